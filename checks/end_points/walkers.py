"""Walkers in the state of a sampler: the law of all of them, and functions of all.

Walkers beside the position that are draws of the same target, at its temperature or at those of a ladder that the
sampler holds, independent of one another, make z a draw of a known law. Where they are not, as in a memory of earlier
positions, runs that begin there say so, and others have to decide.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.error_origin import RAISED
from sgmcmc_verification.checks.end_points.functions import Copies, Functions, functions_of
from sgmcmc_verification.checks.end_points.ladders import ladders
from sgmcmc_verification.checks.end_points.runs import example_state
from sgmcmc_verification.checks.tracing.step_map import host_unravel
from sgmcmc_verification.samplers.interface.aliases import Estimator, Tree
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.sampler import Sampler
from sgmcmc_verification.targets.target import Target


def laws_of_walkers(subject: Subject, target: Target) -> list[Copies]:
    """Laws that the walkers beside the position may have, the likeliest first; none if the state holds no walkers.

    One walker beside the position is taken for one only if its temperature is found: it may be a momentum.
    """
    try:
        sampler, estimator = subject.sampler(target), subject.estimator(target)
        state, temperature = example_state(sampler, target, estimator), sampler.claims.temperature
        number = _other_walkers(sampler, target, estimator, sampler.unpack(state))
        found = ladders(sampler, state, estimator, number, temperature) if number else []
    except RAISED:
        return []
    return [Copies(target, each) for each in (*found, *([(temperature,) * number] if number > 1 else []))]


def _other_walkers(sampler: Sampler, target: Target, estimator: Estimator, z: Tree) -> int:
    """Number of walkers that z holds in a row behind the one that is the position; 0 if it does not."""
    shapes, d = [np.shape(leaf) for leaf in jax.tree.leaves(z)], target.size
    total, own = sum(map(math.prod, shapes)), np.shape(target.example)
    array = isinstance(target.example, jax.Array | np.ndarray) and own
    if not array or total < 2 * d or any(shape[-len(own) :] != own for shape in shapes):
        return 0
    marks = np.arange(1.0, total + 1) / total
    key = np.random.default_rng(0) if on_host(sampler) else jax.random.key(0)
    shown = sampler.position(sampler.pack(key, host_unravel(z)(marks), estimator))
    return total // d - 1 if np.allclose(np.ravel(shown), marks[:d], rtol=1e-6) else 0


def of_walkers(functions: Functions, copies: Copies) -> Functions:
    """Functions of z: their means over all walkers, under their own names, and those of the first one alone.

    Those of a walker at another temperature are of its own standardised place. A mean of W walkers varies by up to W
    times less; what is wrong with the position alone it would hide.

    Args:
        functions: of the position.
        copies: the law of the others.

    Raises:
        OutOfReach: if no expectations are known at a temperature.
    """
    size, each = copies.target.size, [functions, *(functions_of(copies.target, t) for t in copies.temperatures)]

    def values(z: jax.Array | np.ndarray) -> jax.Array | np.ndarray:
        xp = np if isinstance(z, np.ndarray) else jnp
        parts = [f.values(z[..., i * size : (i + 1) * size]) for i, f in enumerate(each)]
        return xp.concatenate([sum(parts) / len(parts), parts[0]], axis=-1)

    names = tuple(f"{name} of the position" for name in functions.names)
    expected = np.concatenate([np.mean([f.expected for f in each], axis=0), functions.expected])
    return Functions(values, expected, functions.names + names, walkers=len(each))


def of_position(functions: Functions, size: int) -> Functions:
    """Functions of the position as functions of z, of which it is the first `size` numbers."""
    return Functions(lambda z: functions.values(z[..., :size]), functions.expected, functions.names)
