"""Optimisers of other authors as samplers, their conventions solved for."""
