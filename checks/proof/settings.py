"""Kinds of positions that a step is read for: what is right for two numbers may be wrong for a pytree, or for many."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from sgmcmc_verification.checks.proof.potential import any_matrix, any_target, target_of_few_leaves, target_of_tree
from sgmcmc_verification.targets.target import Target

LARGE = 34
"""A dimension beyond the sizes (10, 16, 32) at which programs cut arrays into blocks."""


@dataclass(frozen=True, eq=False)
class Setting:
    """The positions that a sampler is read for.

    Attributes:
        name: for readers.
        target: whether positions are positive -> a target with an uninterpreted potential.
        in_the_limit: ask for the law in the limit h -> 0 only, and not for orders: for many coordinates.
        noisy: with gradient noise N(0, V(x)), of which c_1 and c_3/2 must be free.
    """

    name: str
    target: Callable[[bool], Target]
    in_the_limit: bool = False
    noisy: bool = False


def of_dimension(dimension: int) -> Setting:
    """Vectors (d,)."""
    return Setting(f"d = {dimension}", lambda positive: any_target(dimension, positive))


LINE, PLANE = of_dimension(1), of_dimension(2)
NOISY = Setting("d = 2 with gradient noise", lambda positive: any_target(2, positive), in_the_limit=True, noisy=True)
TREE = Setting("a pytree of five leaves", target_of_tree, in_the_limit=True)
FEW_LEAVES = Setting("a pytree of three leaves", target_of_few_leaves, in_the_limit=True)
"""For other values of options, of a sampler that is read for the larger one at its own."""
MATRIX = Setting("a matrix", any_matrix, in_the_limit=True)
"""For samplers that refuse a pytree."""
MANY, FIFTY = (replace(of_dimension(dimension), in_the_limit=True) for dimension in (LARGE, 50))

SETTINGS = (LINE, PLANE, NOISY, TREE, MANY)
"""The settings of a full proof."""
