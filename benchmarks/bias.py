"""Bias at a fixed budget: how far from the target the same number of gradients leaves every sampler.

The chains start at one place in the bulk of the law and have `BUDGET` gradient evaluations each, at the usual step
size, so that slow mixing counts as much as the error of discretisation. All random numbers are fixed: on one machine a
value moves only if the code does.
"""

import math
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from benchmarks.subjects import ALL, SMALL_LAWS, particle_starts, preferred
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.end_points.chains import end_points
from sgmcmc_verification.checks.exact_laws.exact_draws import draw_positions
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.capabilities import SimultaneousChains, SimultaneousVariables
from sgmcmc_verification.samplers.interface.claims import ParticleLaw
from sgmcmc_verification.samplers.interface.sampler import Estimator
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target as find_target
from sgmcmc_verification.targets.target import Target

BUDGET = 120
"""Gradient evaluations a chain."""
CHAINS = 1 << 16
PARTICLES = 500
EXACT = 1 << 12
"""Exact draws, from which the standard deviations of the moments' functions are taken."""
ONE_BY_ONE = 2000
"""Chains of a host sampler that moves them one after the other in Python."""


class Counting:
    """An estimator that counts how often it is asked."""

    def __init__(self, estimator: Estimator):
        self.estimator, self.count = estimator, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.estimator, name)

    def init(self, key, position):
        return self.estimator.init(key, position)

    def estimate(self, key, estate, position):
        self.count += 1
        return self.estimator.estimate(key, estate, position)


def gradients_a_step(row: Row) -> int:
    """Estimates that the first step after `init` asks for; a sampler that asks for none counts as one a step."""
    subject, target = Subject(row), find_target(preferred(row, SMALL_LAWS))
    sampler, counting = subject.sampler(target), Counting(subject.estimator(target))
    keys: Any = (
        [np.random.default_rng(0)] * 2 if sampler.backend == "host" else list(jax.random.split(jax.random.key(0)))
    )
    with jax.disable_jit():  # so that the loop over the inner steps of a trajectory asks as often as it turns
        state = sampler.init(keys[0], _start(target, ParticleLaw in sampler.claims, 3), counting)
        counting.count = 0
        sampler.step(keys[1], state, subject.step_size(target), counting)
    return max(1, counting.count)


def _start(target: Target, particles: bool, count: int):
    """The example, or `count` particles."""
    return particle_starts(target, target.example, jax.random.key(2), count) if particles else target.example


def budget_bias(row: Row, budget: int = BUDGET, chains: int = CHAINS) -> float:
    """max over the target's moments of |mean of f - E f| / sd f, and at least 4 / sqrt(number of chains).

    Args:
        row: of the registry of samplers.
        budget: gradient evaluations of a chain.
        chains: their number, the most that are used; below four standard errors a bias is not told from chance.

    Raises:
        RuntimeError: if a chain leaves the finite numbers.
    """
    jax.config.update("jax_enable_x64", True)
    subject, target = Subject(row), find_target(preferred(row, SMALL_LAWS))
    sampler, h, steps = subject.sampler(target), subject.step_size(target), budget // gradients_a_step(row)
    if ParticleLaw in sampler.claims:
        chains = min(chains, PARTICLES)
        ends = _particles(sampler, subject.estimator(target), _start(target, True, chains), h, steps)
    else:
        step = step_map(subject, target)
        at_once = sampler.backend == "jax" or isinstance(sampler, SimultaneousChains | SimultaneousVariables)
        chains = chains if at_once else min(chains, ONE_BY_ONE)
        start = np.asarray(ravel_pytree(target.example)[0], float)
        ends = end_points(step, np.tile(start, (chains, 1)), h, steps, 0).position
    if not np.isfinite(ends).all():
        raise RuntimeError(f"{row.name}: a chain is not finite after {steps} steps")
    exact = draw_positions(target, 1.0, np.random.default_rng(0), EXACT)
    worst = 4 / math.sqrt(chains)
    for moment in target.moments.values():
        values = jax.vmap(lambda x, f=moment.function: f(target.unravel(x)))
        worst = max(worst, float(abs(values(ends).mean() - moment.value) / values(exact).std()))
    return worst


def _particles(sampler, estimator, position, h: float, steps: int) -> np.ndarray:
    first, second = jax.random.split(jax.random.key(0))
    advance = lambda t, state: sampler.step(jax.random.fold_in(second, t), state, h, estimator)
    state = jax.jit(lambda s: jax.lax.fori_loop(0, steps, advance, s))(sampler.init(first, position, estimator))
    return np.asarray(jax.vmap(lambda p: ravel_pytree(p)[0])(sampler.position(state)))


class Bias:
    """Largest standardised error of the moments of the target after `BUDGET` gradients from its example."""

    params = ALL
    param_names = ("sampler",)
    timeout = 600.0
    version = "1"
    unit = "standard deviations"

    def track_bias_at_budget(self, sampler):
        return budget_bias(sampler_row(sampler))
