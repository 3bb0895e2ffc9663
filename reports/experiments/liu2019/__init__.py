"""Experiments of the particle-flow paper (Liu et al. 2019)."""
