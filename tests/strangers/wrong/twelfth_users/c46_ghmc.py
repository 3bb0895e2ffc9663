"""Generalised HMC with a persistent momentum and a persistent uniform variable (Horowitz 1991; Neal 2020).

One leapfrog trajectory a step. The momentum is refreshed in part, the uniform variable that decides on acceptance moves along (-1, 1) by
a drift and a little noise, so that rejections, which reverse the momentum, come in clusters.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class GHMCState(NamedTuple):
    position: Any
    momentum: Any
    level: jax.Array


def gaussian(key, like):
    leaves, structure = jax.tree.flatten(like)
    keys = jax.random.split(key, len(leaves))
    return structure.unflatten([jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


def axpy(a, x, y):
    return jax.tree.map(lambda u, v: (a * u + v).astype(v.dtype), x, y)


def kinetic(momentum):
    return 0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(momentum))


@dataclass(frozen=True)
class GHMC:
    persistence: float = 0.8
    drift: float = 0.03
    jitter: float = 0.01
    leapfrog_steps: int = 2

    claims = Claims(Source("neal2020", "sections 3 and 4"), ExactLaw())

    def __post_init__(self):
        if not 0 <= self.persistence < 1 or self.leapfrog_steps < 1:
            raise ValueError("persistence in [0, 1) and at least one leapfrog step")

    def init(self, key, position, estimator):
        momentum_key, level_key = jax.random.split(key)
        dtype = jax.tree.leaves(position)[0].dtype
        level = jax.random.uniform(level_key, (), dtype, minval=-1, maxval=1)
        return GHMCState(position, gaussian(momentum_key, position), level)

    def leapfrog(self, key, position, momentum, step, estimator):
        slope = lambda x: estimator.estimate(key, (), x)[0].gradient
        momentum = axpy(-step / 2, slope(position), momentum)
        for i in range(self.leapfrog_steps):
            position = axpy(step, momentum, position)
            last = i + 1 == self.leapfrog_steps
            momentum = axpy(-step / 2 if last else -step, slope(position), momentum)
        return position, momentum

    def step(self, key, state, step_size, estimator):
        noise_key, jitter_key, batch_key = jax.random.split(key, 3)
        potential = lambda x: estimator.estimate(batch_key, (), x)[0].potential
        kept = self.persistence
        momentum = axpy(kept, state.momentum, jax.tree.map(lambda n: (1 - kept**2) ** 0.5 * n, gaussian(noise_key, state.momentum)))
        jitter = self.jitter * jax.random.normal(jitter_key, (), state.level.dtype)
        level = (state.level + 1 + self.drift + jitter) % 2 - 1
        level = level.astype(state.level.dtype)

        proposal, velocity = self.leapfrog(batch_key, state.position, momentum, step_size, estimator)
        change = potential(proposal) + kinetic(velocity) - potential(state.position) - kinetic(momentum)
        accept = jnp.log(jnp.abs(level)) < -change

        keep = lambda new, old: jnp.where(accept, new, old)
        return GHMCState(
            jax.tree.map(keep, proposal, state.position),
            jax.tree.map(lambda v, p: keep(v, -p), velocity, momentum),
            level,
        )
