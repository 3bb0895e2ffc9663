"""Samplers with a position-dependent metric."""
