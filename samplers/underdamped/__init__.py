"""Samplers of underdamped Langevin and Hamiltonian dynamics."""
