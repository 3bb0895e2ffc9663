"""Samplers and variational methods for the spherical admixture model."""
