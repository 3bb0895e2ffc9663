"""Sweeps over samplers, targets, step sizes and seeds."""
