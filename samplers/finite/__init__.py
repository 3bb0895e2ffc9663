"""Samplers on finite sets of states."""
