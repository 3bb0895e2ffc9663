"""What is sampled: manifolds, analytic targets with exact oracles, data models and data access.

The package imports nothing from `samplers`, `checks` or `reports`.
"""
