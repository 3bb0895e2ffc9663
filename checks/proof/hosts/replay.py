"""The record of a sampler in Python beside its real steps, with the same draws, on the target that is sampled.

A record whose branches are too many to be read one after the other is a program all the same. Its draws are those of
keys of JAX, and a generator of NumPy that hands out the same numbers has the real step end where the program does.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.programs.rolled import rolled
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.hosts.generators import KeyedGenerator
from sgmcmc_verification.checks.proof.hosts.guard import ROUND_OFF, require_nothing_kept
from sgmcmc_verification.checks.proof.hosts.hidden import modules_of
from sgmcmc_verification.checks.proof.hosts.recorded import Held, Recorded
from sgmcmc_verification.checks.proof.hosts.states import opened, values
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.interface.aliases import Estimator
from sgmcmc_verification.samplers.interface.copied import copied
from sgmcmc_verification.samplers.interface.sampler import Sampler
from sgmcmc_verification.targets.target import Target

FACTORS = (0.1, 1.0, 7.0, 40.0)
"""Multiples of the usual step size: at the larger ones proposals are rejected."""
STEPS = 24
"""Steps at each of them: a side that one step in ten takes is not taken in any of 96 with a chance of 4e-5."""


@dataclass(frozen=True, eq=False)
class AtOnce(Recorded):
    """A record whose steps compute arrays where Python computed entries; to be run, and not to be read."""

    def step(self, key: Any, state: Held, step_size: Any, estimator: Estimator) -> Held:
        """Take one step."""
        step = super().step
        return rolled(lambda key, state, size: step(key, state, size, estimator))(key, state, step_size)


def replayed(sampler: Sampler, target: Target, step_size: float) -> Recorded:
    """The record of a sampler of NumPy, which was compared with real starts and steps of it.

    Args:
        sampler: with `backend == "host"`, of exact gradients.
        target: that it is built for.
        step_size: the usual one.

    Raises:
        Unreadable: if there is no such program, or if it differs from the real steps.
    """
    require_nothing_kept(sampler, target)
    record, host, exact = AtOnce(sampler, modules_of(sampler)), HostExact(target), Exact(target)
    init = jax.jit(lambda key, position: record.init(key, position, exact))
    step = jax.jit(lambda key, state, h: record.step(key, state, h, exact))
    position = jax.tree.map(np.array, target.example)
    for number, factor in enumerate(FACTORS):
        first, *keys = jax.random.split(jax.random.key(number), STEPS + 1)
        state = sampler.init(KeyedGenerator(first), copied(position), host)
        _require_same(_held(state), init(first, position))
        for key in keys:
            expected = step(key, _held(state), jnp.float64(factor * step_size))
            state = sampler.step(KeyedGenerator(key), copied(state), factor * step_size, host)
            if not _is_finite(state):
                break
            _require_same(_held(state), expected)
    return record


def _held(state: Any) -> Held:
    """A real state as one of the record."""
    parts = opened(state)
    return Held(parts.form, tuple(values(parts.leaves)))


def _is_finite(state: Any) -> bool:
    return all(np.all(np.isfinite(np.asarray(leaf, float))) for leaf in opened(state).leaves)


def _require_same(real: Held, expected: Held) -> None:
    if real.form != expected.form:
        raise Unreadable("a real start or step that ends in a state of another form than the one that was read")
    for one, other in zip(real.leaves, expected.leaves, strict=True):
        a, b = np.asarray(one, float), np.asarray(other, float)
        if a.shape != b.shape or not np.all(np.abs(a - b) <= ROUND_OFF * (1 + np.abs(a))):
            raise Unreadable("a real start or step that is not the one that was read")
