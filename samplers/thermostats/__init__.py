"""Samplers of Nose-Hoover Langevin dynamics."""
