"""Samplers of microcanonical dynamics: a direction of unit length that the force turns."""
