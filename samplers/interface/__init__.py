"""Protocols of samplers and estimators, claims, and helpers that complete a sampler."""
