"""Walkers in the state of a sampler: the law of all of them, and functions of all.

Walkers beside the position that are draws of the same target, independent of one another, make z a draw of a known law.
Where they are not, as at other temperatures, in a memory of earlier positions, or started at the first one, runs that
begin there say so, and others have to decide.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.error_origin import RAISED
from sgmcmc_verification.checks.end_points.functions import Copies, Functions
from sgmcmc_verification.checks.end_points.runs import example_state
from sgmcmc_verification.checks.tracing.step_map import host_unravel
from sgmcmc_verification.samplers.interface.aliases import Estimator, Tree
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.sampler import Sampler
from sgmcmc_verification.targets.target import Target


def copies_of(subject: Subject, target: Target) -> Copies | None:
    """The law of the walkers beside the position, if the state holds some, independent draws of the target perhaps."""
    try:
        sampler, estimator = subject.sampler(target), subject.estimator(target)
        z = sampler.unpack(example_state(sampler, target, estimator))
        number = other_walkers(sampler, target, estimator, z)
    except RAISED:
        return None
    return Copies(target, sampler.claims.temperature, number) if number else None


def other_walkers(sampler: Sampler, target: Target, estimator: Estimator, z: Tree) -> int:
    """Number of walkers, two or more, that z holds in a row behind the one that is the position; 0 if it does not."""
    shapes, d = [np.shape(leaf) for leaf in jax.tree.leaves(z)], target.size
    total, own = sum(map(math.prod, shapes)), np.shape(target.example)
    array = isinstance(target.example, jax.Array | np.ndarray) and own
    if not array or total < 3 * d or any(shape[-len(own) :] != own for shape in shapes):
        return 0
    marks = np.arange(1.0, total + 1) / total
    key = np.random.default_rng(0) if on_host(sampler) else jax.random.key(0)
    shown = sampler.position(sampler.pack(key, host_unravel(z)(marks), estimator))
    return total // d - 1 if np.allclose(np.ravel(shown), marks[:d], rtol=1e-6) else 0


def of_walkers(functions: Functions, size: int) -> Functions:
    """Functions of z: their means over all walkers, under their own names, and those of the first one alone.

    A mean of W walkers varies by up to W times less; what is wrong with the position alone it would hide.

    Args:
        functions: of a position.
        size: d, its numbers.
    """

    def values(z: jax.Array | np.ndarray) -> jax.Array | np.ndarray:
        xp = np if isinstance(z, np.ndarray) else jnp
        each = functions.values(xp.reshape(z, (*z.shape[:-1], -1, size)))
        return xp.concatenate([xp.mean(each, axis=-2), each[..., 0, :]], axis=-1)

    names = tuple(f"{name} of the position" for name in functions.names)
    return Functions(values, np.tile(functions.expected, 2), functions.names + names)
