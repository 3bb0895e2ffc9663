"""The declared dynamics have the target as a stationary law."""

from checks.core.check import Check
from checks.tiers.recipe.complete_recipe import autodiff_recipe, completeness, symbolic_recipe

CHECKS: tuple[Check, ...] = (
    autodiff_recipe,
    symbolic_recipe,
    completeness,
)
