"""Convergence from bad starts."""
