"""Steps of a sampler on a small Gaussian, compiled once, for the suites of time and memory."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.subjects import SMALL_GAUSSIANS, particle_starts, preferred
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.claims import ParticleLaw
from sgmcmc_verification.targets.registry import target as find_target


def stepper(row: Row, steps: int, chains: int, particles: int = 100) -> Callable[[], Any]:
    """A function without arguments that takes `steps` steps in float32 from the target's example and waits for them.

    The step itself in a plain scan, with one key a step and chain; the runner is measured in `test_speed.py`.

    Args:
        row: of the registry of samplers, at its default options.
        steps: number of steps.
        chains: number of chains, vmapped; a particle method or a host sampler runs one.
        particles: number of particles of a particle method.
    """
    subject, target = Subject(row), find_target(preferred(row, SMALL_GAUSSIANS))
    sampler: Any = subject.sampler(target)
    estimator, step_size = subject.estimator(target), subject.step_size(target)
    if sampler.backend == "host":
        return lambda: _host(sampler, estimator, target.example, steps, step_size)
    particle = ParticleLaw in sampler.claims

    def chain(key, start):
        def body(state, t):
            return sampler.step(jax.random.fold_in(key, t), state, jnp.float32(step_size), estimator), None

        state = sampler.init(jax.random.fold_in(key, 0), start, estimator)
        return sampler.position(lax.scan(body, state, jnp.arange(1, steps + 1, dtype=jnp.uint32))[0])

    # The checks switch JAX to double precision; SG-MCMC is run in single precision.
    with jax.enable_x64(False):
        example = jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), target.example)
        if particle:
            starts = particle_starts(target, example, jax.random.key(1), particles)
        else:
            starts = jax.tree.map(lambda a: jnp.broadcast_to(a, (chains, *a.shape)), example)
        keys = jax.random.key(0) if particle else jax.random.split(jax.random.key(0), chains)
        compiled = jax.jit(chain if particle else jax.vmap(chain)).lower(keys, starts).compile()
    return lambda: jax.block_until_ready(compiled(keys, starts))


def _host(sampler, estimator, start, steps, step_size):
    generator = np.random.default_rng(0)
    state = sampler.init(generator, start, estimator)
    for _ in range(steps):
        state = sampler.step(generator, state, step_size, estimator)
    return sampler.position(state)
