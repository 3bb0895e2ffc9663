"""Experiments of the recipe paper (Ma, Chen and Fox 2015)."""
