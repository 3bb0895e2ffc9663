"""Samplers of latent-variable models."""
