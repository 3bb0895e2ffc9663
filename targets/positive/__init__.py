"""Targets on the positive orthant."""
