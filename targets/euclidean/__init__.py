"""Targets on R^n: Gaussians, mixtures, heavy tails, and sums over a handful of data."""
