"""Samplers of the Dirichlet-process mixture."""
