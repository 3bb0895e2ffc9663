"""Samplers of positive variables."""
