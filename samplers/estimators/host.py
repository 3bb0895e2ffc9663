"""Helpers of samplers with `backend == "host"`: random numbers from NumPy, estimators of either kind."""

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.estimators.basic import Exact, compiled_gradient
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.sampler import Estimate
from sgmcmc_verification.targets.target import Target


class Unintercepted(Exception):
    """The step drew from a law that the given generator cannot feed; the message names it."""


def estimator_key(generator: np.random.Generator, estimator: Estimator) -> Any:
    """Key for `estimator`: the generator if it has `backend == "host"`, else a typed JAX key from it."""
    if on_host(estimator):
        return generator
    return jax.random.key(int(generator.integers(2**63)))


@dataclass(frozen=True, eq=False)
class HostExact(Exact):
    """`Exact` for host samplers: it takes their generator, and draws nothing from it.

    Gradients are new arrays of NumPy: arithmetic with arrays of JAX takes several times as long, and they cannot be
    written to.
    """

    backend = "host"

    def estimate(self, key: Any, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and the next state of the estimator."""
        del key
        leaves, structure = jax.tree.flatten(position)
        flat = flat_gradient(self.target)
        if all(map(flat.fits, leaves, flat.parts)) and len(leaves) == len(flat.parts):
            x = leaves[0].ravel() if len(leaves) == 1 else np.concatenate([leaf.ravel() for leaf in leaves])
            values = np.array(flat.both(x))
            each = [values[part.place].reshape(part.shape)[()] for part in flat.parts]
            return Estimate(jax.tree.unflatten(structure, each), values[0]), estate
        value, gradient = compiled_gradient(self.target)(position)
        return in_numpy(Estimate(gradient, value)), estate


class _Part(NamedTuple):
    """A leaf of a position: its shape and type, and its place behind the potential."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    place: slice


class FlatGradient(NamedTuple):
    """The potential and its gradient as one function of arrays, and the leaves of a position.

    An array is handed to a compiled function, and taken from it, in 5 us: a tree of ten takes ten times as long.

    Attributes:
        both: x (d,) -> (1 + d,), compiled.
        parts: of x.
    """

    both: Callable[[np.ndarray], jax.Array]
    parts: list[_Part]

    def fits(self, leaf: object, part: _Part) -> bool:
        """True for an array of NumPy of that shape and type, which is the type of all."""
        return type(leaf) is np.ndarray and leaf.shape == part.shape and leaf.dtype == part.dtype == self.parts[0].dtype


@functools.lru_cache(maxsize=64)
def flat_gradient(target: Target) -> FlatGradient:
    """That of a target."""
    _, unravel = ravel_pytree(target.example)

    def both(x: jax.Array) -> jax.Array:
        value, gradient = target.value_and_gradient(unravel(x))
        return jnp.concatenate([jnp.reshape(value, 1), ravel_pytree(gradient)[0]])

    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(target.example)]
    ends = itertools.pairwise(1 + np.cumsum([0, *(leaf.size for leaf in leaves)]))
    parts = [_Part(leaf.shape, leaf.dtype, slice(int(a), int(b))) for leaf, (a, b) in zip(leaves, ends, strict=True)]
    return FlatGradient(jax.jit(both), parts)


def in_numpy(estimate: Estimate) -> Estimate:
    """The same estimate in new arrays of NumPy and a number; as it is where JAX traces it, for chains at once."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(estimate)):
        return estimate
    np.asarray(estimate.potential)  # waited for before the gradient, which takes twice as long the other way round
    return jax.tree.map(lambda leaf: np.array(leaf)[()], estimate)


def is_exact(estimator: Estimator) -> bool:
    """True for the exact gradient itself; subclasses may add noise to it."""
    return type(estimator) in (Exact, HostExact)
