"""Stationary laws of the code, computed."""
