"""Weak order of a step."""
