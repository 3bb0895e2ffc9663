"""The declared dynamics have the target as a stationary law."""

from sgmcmc_verification.checks.tiers.recipe.complete_recipe import autodiff_recipe, completeness, symbolic_recipe

__all__ = [
    "autodiff_recipe",
    "completeness",
    "symbolic_recipe",
]
