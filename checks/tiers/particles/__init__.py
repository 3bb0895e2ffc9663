"""Particle methods."""
