"""Every check, one row each, in the order of the tiers; and what each costs."""

from checks import contract
from checks.check import Check

CHECKS: tuple[Check, ...] = (*contract.CHECKS,)
"""The full registry; the error rate of a statistical check is the family-wise rate divided by its size."""

COSTS: dict[str, float] = {
    "shapes_and_dtypes": 0.5,
    "jit_vmap_loop_agree": 1.5,
    "key_discipline": 1.0,
    "chains_and_leaves_independent": 0.2,
    "every_input_matters": 0.5,
    "every_option_matters": 4.0,
    "pack_unpack_inverse": 0.2,
    "movement": 0.2,
}
"""Seconds that one run of a check takes on one core, compilation included; 2 s where it was not measured."""


def seconds(check: Check) -> float:
    """The stored cost of a check."""
    return COSTS.get(check.name, 2.0)


def find_check(name: str) -> Check:
    """The check of a name. Raises BadInput with the closest names."""
    from checks.resolve import BadInput, closest

    for check in CHECKS:
        if check.name == name:
            return check
    raise BadInput(f"check {name}: no such check; {closest(name, tuple(c.name for c in CHECKS))}")
