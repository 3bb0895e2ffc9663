"""Targets on the probability simplex."""
