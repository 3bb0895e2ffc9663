"""How it is sampled: one method a file, the recipe (`dynamics`), gradient estimators, the runner and adapters.

The package imports `targets` and nothing else of the suite.
"""
