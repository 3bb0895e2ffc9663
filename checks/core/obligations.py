"""Obligations: what has to be shown before a stationary law counts as decided.

A law that holds on Gaussians in one dimension may fail in two, on another potential, in a tree of matrices, with data
or with noisy gradients. Each of these is an obligation; a statement says which ones a pass of it meets.
"""

from typing import NamedTuple

import jax

from sgmcmc_verification.targets.target import Target


class Obligation(NamedTuple):
    """One thing to be shown.

    Attributes:
        name: key in files of results.
        text: what is missing if it is not met, for the line of a verdict.
    """

    name: str
    text: str


GAUSSIAN = Obligation("gaussian", "a correlated Gaussian in two or more dimensions")
HIGH_DIMENSION = Obligation("high-dimension", "fifty coordinates")
LINE = Obligation("line", "a law on a line that is not Gaussian")
PLANE = Obligation("plane", "a law in two dimensions that is not Gaussian")
PYTREE = Obligation("pytree", "positions that are matrices or trees of arrays")
DATA = Obligation("data", "sums over data")
GRADIENT_NOISE = Obligation("gradient-noise", "noise in the gradient")
CLOSED_STATE = Obligation("closed-state", "a state without hidden memory or clock")
KNOWN_DRAWS = Obligation("known-draws", "draws of known laws from fresh keys")
BRANCHES = Obligation("branches", "branches of the code entered")
MANIFOLD = Obligation("manifold", "the law on the manifold")
BOUNDARY = Obligation("boundary", "the law near the boundary of the space")
FINITE = Obligation("finite", "the law on a finite space")
REACHED = Obligation("reached", "every state reached from every other")
PARTICLES = Obligation("particles", "the flow of the particles in one and two dimensions")

OBLIGATIONS: tuple[Obligation, ...] = (
    *(GAUSSIAN, HIGH_DIMENSION, LINE, PLANE, PYTREE, DATA, GRADIENT_NOISE),
    *(CLOSED_STATE, KNOWN_DRAWS, BRANCHES, MANIFOLD, BOUNDARY, FINITE, REACHED, PARTICLES),
)


def obligation(name: str) -> Obligation:
    """The obligation of a name. Raises KeyError."""
    return next(o for o in OBLIGATIONS if o.name == name)


def of_target(target: Target) -> tuple[Obligation, ...]:
    """The obligations that a law which holds on a target meets."""
    if target.finite is not None:
        return (FINITE, REACHED)
    if not target.manifold.is_linear:
        if target.size == 1:
            return (LINE,)
        return (HIGH_DIMENSION,) if target.size >= MANY else (MANIFOLD,)  # few coordinates show more of a law
    data = (DATA,) if target.terms is not None else ()
    if target.gaussian is None:
        return (LINE if target.size == 1 else PLANE, *data)
    found = [GAUSSIAN] * (target.size >= SEVERAL) + [HIGH_DIMENSION] * (target.size >= MANY)
    leaves = jax.tree.leaves(target.example)
    return (*found, *((PYTREE,) if len(leaves) > 1 or leaves[0].ndim > 1 else ()), *data)


SEVERAL, MANY = 2, 50
"""Coordinates from which on a Gaussian meets the obligations of two and of fifty."""
