"""Quadrature, extrapolation and differentiation."""
