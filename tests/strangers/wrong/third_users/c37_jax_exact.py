"""Metropolis, slice and tempering kernels that claim to be exact."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())


def flat_energy(estimator, key, back):
    return lambda q: estimator.estimate(key, (), back(q))[0].potential


def flat_slope(estimator, key, back):
    return lambda q: ravel_pytree(estimator.estimate(key, (), back(q))[0].gradient)[0]


# ---------------------------------------------------------------------------------------------------------------- GHMC


class Walk(NamedTuple):
    position: Any
    momentum: Any


class PersistentHMC:
    """Horowitz's guided Monte Carlo: partial refresh, leapfrog, Metropolis, and a flip when the test fails."""

    claims = EXACT

    def __init__(self, persistence=0.8, num_leapfrog=2):
        self.persistence, self.num_leapfrog = persistence, num_leapfrog

    def init(self, key, position, estimator):
        leaves, form = jax.tree.flatten(position)
        keys = jax.random.split(key, len(leaves))
        return Walk(position, form.unflatten([jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves)]))

    def step(self, key, state, h, estimator):
        batch, refresh, test = jax.random.split(key, 3)
        a = self.persistence
        leaves, form = jax.tree.flatten(state.momentum)
        keys = jax.random.split(refresh, len(leaves))
        start = form.unflatten(
            [a * p + (1 - a**2) ** 0.5 * jax.random.normal(k, p.shape, p.dtype) for k, p in zip(keys, leaves)]
        )
        slope = lambda x: estimator.estimate(batch, (), x)[0].gradient
        energy = lambda x, p: estimator.estimate(batch, (), x)[0].potential + 0.5 * sum(
            jnp.sum(v * v) for v in jax.tree.leaves(p)
        )
        eps = jnp.sqrt(2 * h)
        x, p = state.position, start
        for _ in range(self.num_leapfrog):
            p = jax.tree.map(lambda v, g: v - eps / 2 * g, p, slope(x))
            x = jax.tree.map(lambda q, v: q + eps * v, x, p)
            p = jax.tree.map(lambda v, g: v - eps / 2 * g, p, slope(x))
        log_ratio = energy(state.position, start) - energy(x, p)
        taken = jnp.log(jax.random.uniform(test, dtype=log_ratio.dtype)) < log_ratio
        head, *tail = jax.tree.leaves(start)
        flipped = form.unflatten([-head, *tail])
        choose = lambda yes, no: jnp.where(taken, yes, no)
        return Walk(jax.tree.map(choose, x, state.position), jax.tree.map(choose, p, flipped))


# ------------------------------------------------------------------------------------------------------- scaled MALA


def _scaled_mala(key, x, h, estimator):
    """MALA with a ladder of scales, 1 for the first coordinate and 1/2 for the last."""
    batch, move, test = jax.random.split(key, 3)
    q, back = ravel_pytree(x)
    d = q.size
    scale = 1 / (1 + jnp.arange(d, dtype=q.dtype) / d)
    U, dU = flat_energy(estimator, batch, back), flat_slope(estimator, batch, back)
    ahead = q - h * scale * dU(q)
    y = ahead + jnp.sqrt(2 * h * scale) * jax.random.normal(move, q.shape, q.dtype)
    behind = y - h * scale * dU(y)
    log_q = lambda to, mean: -jnp.sum((to - mean) ** 2) / (4 * h)
    log_ratio = U(q) - U(y) + log_q(q, behind) - log_q(y, ahead)
    return jax.tree.map(
        lambda new, old: jnp.where(jnp.log(jax.random.uniform(test, dtype=q.dtype)) < log_ratio, new, old), back(y), x
    )


scaled_mala = simple_sampler(_scaled_mala, claims=EXACT)


# ----------------------------------------------------------------------------------- slice along a line, by doubling


def _doubling_slice(key, x, h, estimator):
    """A random direction, an interval by doubling, then shrinkage (Neal 2003, figures 4 and 5)."""
    batch, aim, level_key, place, grow, shrink = jax.random.split(key, 6)
    q, back = ravel_pytree(x)
    U = flat_energy(estimator, batch, back)
    u = jax.random.normal(aim, q.shape, q.dtype)
    u = u / jnp.linalg.norm(u)
    level = U(q) + jax.random.exponential(level_key, dtype=q.dtype)
    inside = lambda t: U(q + t * u) < level
    width = 2 * jnp.sqrt(h)
    left = -width * jax.random.uniform(place, dtype=q.dtype)

    def widen(carry):
        a, b, k, count = carry
        k, coin = jax.random.split(k)
        to_left = jax.random.bernoulli(coin)
        return jnp.where(to_left, a - (b - a), a), jnp.where(to_left, b, b + (b - a)), k, count + 1

    a, b, *_ = jax.lax.while_loop(
        lambda c: (c[3] < 8) & (inside(c[0]) | inside(c[1])), widen, (left, left + width, grow, 0)
    )

    def narrow(carry):
        a, b, t, k = carry
        a, b = jnp.where(t < 0, t, a), jnp.where(t < 0, b, t)
        k, draw = jax.random.split(k)
        return a, b, a + (b - a) * jax.random.uniform(draw, dtype=q.dtype), k

    shrink, first = jax.random.split(shrink)
    t = a + (b - a) * jax.random.uniform(first, dtype=q.dtype)
    *_, t, _ = jax.lax.while_loop(lambda c: ~inside(c[2]), narrow, (a, b, t, shrink))
    return back(q + t * u)


doubling_slice = simple_sampler(_doubling_slice, claims=EXACT)


# ------------------------------------------------------------------------------------------------- several proposals


def centred_tries(tries=4):
    """Several proposals around a hidden centre, so that the present point is one of them (Tjelmeland 2004)."""

    def step(key, x, h, estimator):
        batch, centre_key, tries_key, pick = jax.random.split(key, 4)
        q, back = ravel_pytree(x)
        U = flat_energy(estimator, batch, back)
        centre = q + jnp.sqrt(h) * jax.random.normal(centre_key, q.shape, q.dtype)
        others = centre + jnp.sqrt(0.7 * h) * jax.random.normal(tries_key, (tries, q.size), q.dtype)
        points = jnp.concatenate([q[None], others])
        which = jax.random.categorical(pick, -jax.vmap(U)(points))
        return back(points[which])

    return simple_sampler(step, claims=EXACT)


# --------------------------------------------------------------------------------------------------- two temperatures


class TemperedPair:
    """Random walks at T = 1 and T = `hot`, which change places now and then. Energies are kept: they are dear."""

    claims = EXACT

    def __init__(self, hot=2.0, exchange=0.25):
        if hot <= 1:
            raise ValueError("hot > 1")
        if not 0 < exchange < 1:
            raise ValueError("0 < exchange < 1")
        self.hot, self.exchange = hot, exchange

    def init(self, key, position, estimator):
        energy = estimator.estimate(key, (), position)[0].potential
        return {"cold": position, "hot": position, "energies": jnp.stack([energy, energy])}

    def position(self, state):
        return state["cold"]

    def _walk(self, key, x, energy, h, temperature, estimator, batch):
        move, test = jax.random.split(key)
        q, back = ravel_pytree(x)
        y = q + jnp.sqrt(2 * h * temperature) * jax.random.normal(move, q.shape, q.dtype)
        new = estimator.estimate(batch, (), back(y))[0].potential
        taken = jnp.log(jax.random.uniform(test, dtype=q.dtype)) < (energy - new) / temperature
        return back(jnp.where(taken, y, q)), jnp.where(taken, new, energy)

    def step(self, key, state, h, estimator):
        batch, k1, k2, k3, k4 = jax.random.split(key, 5)
        cold, e1 = self._walk(k1, state["cold"], state["energies"][0], h, 1.0, estimator, batch)
        hot, e2 = self._walk(k2, state["hot"], state["energies"][1], h, self.hot, estimator, batch)
        log_ratio = (1 - 1 / self.hot) * (e1 - e2)
        swap = jax.random.bernoulli(k3, self.exchange) & (
            jnp.log(jax.random.uniform(k4, dtype=log_ratio.dtype)) < log_ratio
        )
        mix = lambda a, b: jax.tree.map(lambda u, v: jnp.where(swap, u, v), a, b)
        return {"cold": mix(hot, cold), "hot": mix(cold, hot), "energies": jnp.stack([e1, e2])}


# ----------------------------------------------------------------------------------------- scales, by factors


def _log_walk(key, x, h, estimator):
    """Multiplies all scales by random factors; Hastings' correction is the ratio of the volumes."""
    batch, move, test = jax.random.split(key, 3)
    U = lambda q: estimator.estimate(batch, (), q)[0].potential
    factors = jnp.sqrt(2 * h) * jax.random.normal(move, x.shape, x.dtype)
    y = x * jnp.exp(factors)
    log_ratio = U(x) - U(y) + jnp.mean(factors)
    return jnp.where(jnp.log(jax.random.uniform(test, dtype=x.dtype)) < log_ratio, y, x)


log_walk = simple_sampler(_log_walk, claims=Claims(Source("", "own"), ExactLaw(), spaces=("positive",)))
