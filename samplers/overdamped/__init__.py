"""Samplers of overdamped Langevin dynamics."""
