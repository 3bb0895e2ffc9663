"""Adapters to samplers written in torch."""

ADAPTERS = __name__
"""Name of this package, for those who import parts of it when torch is there."""
