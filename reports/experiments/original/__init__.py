"""Experiments of this suite's own."""
