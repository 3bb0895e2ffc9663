"""Extra chance generalised HMC (Campos and Sanz-Serna 2015); look-ahead HMC (Sohl-Dickstein et al. 2014) is the same chain.

One uniform number serves for all chances: the trajectory is extended until H has come down enough, and the momentum is
reversed when it never does.
"""

from collections import namedtuple
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class QP(NamedTuple):
    position: jax.Array
    momentum: jax.Array


Chance = namedtuple("Chance", "count at done")


def leapfrog(slope, eps, n, qp):
    def one(_, z):
        q, p = z
        p = p - eps / 2 * slope(q)
        q = q + eps * p
        return QP(q, p - eps / 2 * slope(q))

    return jax.lax.fori_loop(0, n, one, qp)


class ExtraChanceHMC:
    claims = Claims(Source("", "Campos and Sanz-Serna, J. Comput. Phys. 281, 2015"), ExactLaw())

    def __init__(self, steps: int = 2, chances: int = 3, angle: float = 0.6):
        self.steps, self.chances, self.angle = steps, chances, angle

    def init(self, key, position, estimator):
        return QP(position, jax.random.normal(key, position.shape, position.dtype))

    def step(self, key, state, step_size, estimator):
        k_est, k_mom, k_unif = jax.random.split(key, 3)
        look = lambda q: estimator.estimate(k_est, (), q)[0]
        total = lambda z: look(z.position).potential + 0.5 * jnp.sum(z.momentum**2)

        q, p = state
        fresh = jax.random.normal(k_mom, p.shape, p.dtype)
        start = QP(q, jnp.cos(self.angle) * p + jnp.sin(self.angle) * fresh)
        limit = total(start) - jnp.log(jax.random.uniform(k_unif, dtype=q.dtype))
        flow = partial(leapfrog, lambda q: look(q).gradient, step_size, self.steps)

        def another(c):
            z = flow(c.at)
            return Chance(c.count + 1, z, total(z) < limit)

        first = Chance(jnp.asarray(0), start, jnp.asarray(False))
        end = jax.lax.while_loop(lambda c: ~c.done & (c.count < self.chances), another, first)
        keep = lambda new, old: jnp.where(end.done, new, old)
        return QP(keep(end.at.position, start.position), keep(end.at.momentum, -start.momentum))
