"""Adapters to samplers written in torch."""
