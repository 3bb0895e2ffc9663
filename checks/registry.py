"""All checks, tier by tier."""

from checks.core.check import Check
from checks.core.lookup import BadInput, closest
from checks.tiers import (
    contract,
    convergence,
    generator,
    geometry,
    invariance,
    law,
    noise,
    order,
    particles,
    recipe,
    workload,
)
from samplers.entry import TIERS

FAMILIES = (
    contract,
    recipe,
    generator,
    order,
    law,
    particles,
    invariance,
    noise,
    geometry,
    convergence,
    workload,
)

# A family may hold checks of more than one tier: the tiers are met in their own order, whatever the families'.
CHECKS: tuple[Check, ...] = tuple(
    sorted((check for family in FAMILIES for check in family.CHECKS), key=lambda check: TIERS.index(check.tier))
)


def find_check(name: str) -> Check:
    """The check of a name. Raises BadInput with the closest names."""
    for check in CHECKS:
        if check.name == name:
            return check
    raise BadInput(f"check {name}: no such check; {closest(name, tuple(c.name for c in CHECKS))}")


def settles_the_law(name: str) -> bool:
    """True if a pass of the check of this name shows the stationary law, or the order of its error."""
    return any(check.name == name and check.decides in ("law", "order") for check in CHECKS)


def is_conduct(name: str) -> bool:
    """True if the check of this name is about the program alone: types, keys, constraints."""
    return any(check.name == name and check.decides == "conduct" for check in CHECKS)
