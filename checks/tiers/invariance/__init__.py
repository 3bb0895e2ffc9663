"""Chains started from the claimed law keep it."""
