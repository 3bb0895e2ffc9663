"""Proofs for every smooth potential, read from the code of a step."""
