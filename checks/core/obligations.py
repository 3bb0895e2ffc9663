"""Obligations: what has to be shown before a stationary law counts as decided.

A law that holds on Gaussians in one dimension may fail in two, on another potential, in a tree of matrices, with data
or with noisy gradients. Each of these is an obligation; a statement says which ones a pass of it meets.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

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
        edge = (BOUNDARY,) if reaches_boundary(target) else ()
        if target.size == 1:
            return (LINE, *edge)
        # few coordinates show more of a law
        return (HIGH_DIMENSION, *edge) if target.size >= MANY else (MANIFOLD, *edge)
    data = (DATA,) if target.terms is not None else ()
    if target.gaussian is None:
        return (LINE if target.size == 1 else PLANE, *data)
    found = [GAUSSIAN] * (target.size >= SEVERAL) + [HIGH_DIMENSION] * (target.size >= MANY)
    leaves = jax.tree.leaves(target.example)
    return (*found, *((PYTREE,) if len(leaves) > 1 or leaves[0].ndim > 1 else ()), *data)


@functools.lru_cache(maxsize=256)
def reaches_boundary(target: Target) -> bool:
    """True if a law on an open set has a boundary, for positive numbers with more than a negligible density there."""
    if not target.manifold.is_positive:
        return target.manifold.has_boundary and target.manifold.dim == target.size
    inside = ravel_pytree(target.example)[0]
    edges = jnp.where(jnp.eye(target.size, dtype=bool), jnp.finfo(inside.dtype).tiny, inside)
    heights = jax.vmap(target.flat_potential)(edges) - target.flat_potential(inside)
    return bool(jnp.any(heights < -np.log(np.finfo(float).eps)))


SEVERAL, MANY = 2, 50
"""Coordinates from which on a Gaussian meets the obligations of two and of fifty."""
