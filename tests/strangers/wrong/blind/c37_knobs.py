"""Two configurable samplers; the options are the fields of the dataclasses."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source


def gaussian(key, tree):
    leaves, treedef = jax.tree.flatten(tree)
    return jax.tree.unflatten(
        treedef,
        [jax.random.normal(jax.random.fold_in(key, i), a.shape, a.dtype) for i, a in enumerate(leaves)],
    )


def axpy(a, x, y):
    return jax.tree.map(lambda u, v: v + a * u, x, y)


def dot(a, b):
    return sum(jnp.vdot(u, v) for u, v in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


@dataclass(frozen=True)
class Splitting:
    """Underdamped Langevin by a splitting: A drifts, B kicks, O is Ornstein-Uhlenbeck; letters from left to right.

    WRONG for scheme = "ABAO": every A and B is half a step, but its one B has to be a whole one. Right: h / scheme.count(c).
    There the force is half of what it should be, and the law exp(-U / 2): twice the variance on every Gaussian. "BAOAB"
    (default) is right, and so is "OBABO", where O is run twice for a whole step: this is only twice the friction.
    """

    friction: float = 1.0
    scheme: Literal["BAOAB", "OBABO", "ABAO"] = "BAOAB"

    def init(self, key, position, estimator):
        return {"position": position, "momentum": gaussian(key, position)}

    def step(self, key, state, step_size, estimator):
        q, p = state["position"], state["momentum"]
        keys = jax.random.split(key, len(self.scheme))
        for letter, k in zip(self.scheme, keys, strict=True):
            if letter == "A":
                q = axpy(step_size / 2, p, q)
            elif letter == "B":
                p = axpy(-step_size / 2, estimator.estimate(k, (), q)[0].gradient, p)
            else:
                c = jnp.exp(-self.friction * step_size)
                s = jnp.sqrt(-jnp.expm1(-2 * self.friction * step_size))
                p = jax.tree.map(lambda a, n, c=c, s=s: (c * a + s * n).astype(a.dtype), p, gaussian(k, p))
        return {"position": q, "momentum": p}


@dataclass(frozen=True)
class PersistentHmc:
    """Horowitz' HMC of one leapfrog step sqrt(2 h): the momentum is kept in part, p <- a p + sqrt(1 - a^2) N(0, 1).

    WRONG for persistence a > 0: after a rejection the momentum has to be turned round, (x, -p); here it is left. Harmless at
    the default a = 0 (a new momentum every step). Claimed exact; Gaussians, a = 0.9: variance +3.5% at h = 0.5 in one
    dimension, +6% at h = 0.3 in ten; simulated, 0.998 to 1.000 with the turn.
    """

    persistence: float = 0.0
    needs: ClassVar[Any] = ("potential", "gradient")
    claims: ClassVar[Any] = Claims(Source("", "horowitz1991generalized, from memory"), ExactLaw())

    def init(self, key, position, estimator):
        return {"position": position, "momentum": gaussian(key, position)}

    def step(self, key, state, step_size, estimator):
        k_momentum, k_here, k_there, k_test = jax.random.split(key, 4)
        a, eps = self.persistence, jnp.sqrt(2 * step_size)
        x = state["position"]
        p = jax.tree.map(
            lambda u, n: a * u + (1 - a**2) ** 0.5 * n, state["momentum"], gaussian(k_momentum, state["momentum"])
        )
        here = estimator.estimate(k_here, (), x)[0]
        middle = axpy(-eps / 2, here.gradient, p)
        y = axpy(eps, middle, x)
        there = estimator.estimate(k_there, (), y)[0]
        r = axpy(-eps / 2, there.gradient, middle)
        loss = there.potential - here.potential + (dot(r, r) - dot(p, p)) / 2
        taken = jnp.log(jax.random.uniform(k_test, dtype=loss.dtype)) < -loss
        pick = lambda new, old: jax.tree.map(lambda u, v: jnp.where(taken, u, v), new, old)
        return {"position": pick(y, x), "momentum": pick(r, p)}


splitting = Splitting
persistent_hmc = PersistentHmc
