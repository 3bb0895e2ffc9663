"""Many independent chains from given starts, and where they end: a sample that is independent by construction."""

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.compilation import OPTIMISED
from sgmcmc_verification.checks.end_points.error_rates import stage_seed
from sgmcmc_verification.checks.exact_laws.exact_draws import draw_variables
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, host_ravel
from sgmcmc_verification.samplers.interface.capabilities import SimultaneousChains, SimultaneousVariables

BLOCK = 1 << 16
"""Chains that one compiled call moves."""


class EndPoints(NamedTuple):
    """Positions (N, d) and full variables (N, n) of N chains after their last step."""

    position: np.ndarray
    variable: np.ndarray


def end_points(step: JaxStep | HostStep, starts: np.ndarray, step_size: float, num_steps: int, seed: int) -> EndPoints:
    """End points of independent chains, one per start, after `num_steps` steps.

    Every chain has its own key; nothing is shared between chains but the compiled code of one step, vmapped.

    Args:
        step: the step of a sampler on a target, with its estimator.
        starts: (N, n) values of z, or (N, d) positions, from which `init` makes the rest of the state.
        step_size: SDE time of a step.
        num_steps: number of steps.
        seed: of all randomness of the chains.

    Returns:
        The end points.
    """
    if step.sampler.backend == "jax":
        return _jax_end_points(step, starts, step_size, num_steps, seed)
    return _host_end_points(step, starts, step_size, num_steps, seed)


def _jax_end_points(step: Any, starts: np.ndarray, step_size: float, num_steps: int, seed: int) -> EndPoints:
    run = _compiled_chains(step, starts.shape[1])
    key = jax.random.key(seed)
    dtype = step.template.flat.dtype
    count = len(starts)
    block = min(BLOCK, count)
    parts = []
    for number, first in enumerate(range(0, count, block)):
        part = starts[first : first + block]
        padded = np.concatenate([part, np.repeat(part[-1:], block - len(part), axis=0)])
        ends = run(
            jax.random.fold_in(key, number), jnp.asarray(padded, dtype), jnp.asarray(step_size, dtype), num_steps
        )
        parts.append([np.asarray(end)[: len(part)] for end in ends])
    return EndPoints(*(np.concatenate(column) for column in zip(*parts, strict=True)))


@lru_cache(maxsize=16)
def _compiled_chains(step: JaxStep, width: int):
    """(key, starts (B, width), h, number of steps) -> (positions (B, d), variables (B, n)), compiled once for all."""
    sampler, estimator, target = step.sampler, step.estimator, step.target

    def chain(key: jax.Array, start: jax.Array, h: jax.Array, num_steps: int):
        first, steps = jax.random.split(key)
        if width == step.size:
            state = sampler.pack(first, step.template.unravel(start), estimator)
        else:
            state = sampler.init(first, target.unravel(start), estimator)

        def advance(i: jax.Array, state: Any):
            return sampler.step(jax.random.fold_in(steps, i), state, h, estimator)

        state = jax.lax.fori_loop(0, num_steps, advance, state)
        return ravel_pytree(sampler.position(state))[0], ravel_pytree(sampler.unpack(state))[0]

    def chains(key: jax.Array, starts: jax.Array, h: jax.Array, num_steps: int):
        keys = jax.random.split(key, len(starts))
        return jax.vmap(chain, (0, 0, None, None))(keys, starts, h, num_steps)

    return jax.jit(chains, compiler_options=OPTIMISED)


def _host_end_points(
    step: JaxStep | HostStep, starts: np.ndarray, step_size: float, num_steps: int, seed: int
) -> EndPoints:
    sampler, estimator, target = step.sampler, step.estimator, step.target
    generator = np.random.default_rng(seed)
    if isinstance(sampler, SimultaneousVariables):
        ends = np.asarray(sampler.chain_variables(generator, starts, step_size, num_steps, estimator), np.float64)
        return EndPoints(ends[:, : target.size], ends)
    if isinstance(sampler, SimultaneousChains):
        ends = np.asarray(
            sampler.chains(generator, starts[:, : target.size], step_size, num_steps, estimator), np.float64
        )
        ends = ends.reshape(len(starts), target.size)
        return EndPoints(ends, ends)
    positions, variables = [], []
    for start in starts:
        if len(start) == step.size:
            state = sampler.pack(generator, step.template.unravel(start), estimator)
        else:
            state = sampler.init(generator, jax.tree.map(np.asarray, target.unravel(start)), estimator)
        for _ in range(num_steps):
            state = sampler.step(generator, state, step_size, estimator)
        positions.append(host_ravel(sampler.position(state)))
        variables.append(host_ravel(sampler.unpack(state)))
    return EndPoints(np.array(positions), np.array(variables))


@lru_cache(maxsize=2)
def sample(
    step: JaxStep | HostStep, h: float, num_steps: int, seed: int, stage: int, count: int
) -> tuple[np.ndarray, EndPoints]:
    """Starting values z and end points of `count` independent chains."""
    starts = draw_variables(step, np.random.default_rng(stage_seed(seed, stage, 1)), count)
    return starts, end_points(step, starts, h, num_steps, stage_seed(seed, stage, 2))
