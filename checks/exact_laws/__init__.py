"""Exact stationary laws of discrete kernels."""
