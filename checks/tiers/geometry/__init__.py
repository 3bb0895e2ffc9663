"""Constraints and laws on manifolds."""
