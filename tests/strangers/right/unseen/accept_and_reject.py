"""Metropolis kernels, each with an accept step written in its own way."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

EXACT = Claims(Source("", "own notes"), ExactLaw())


def _look(estimator, key, back):
    """flat -> (potential, flat gradient)."""

    def look(flat):
        seen = estimator.estimate(key, (), back(flat))[0]
        return seen.potential, ravel_pytree(seen.gradient)[0]

    return look


def _barker(key, position, h, estimator):
    """Barker's proposal with moves of size about sqrt(2 h), turned uphill with probability sigmoid, then a test."""
    k_look, k_size, k_side, k_test = jax.random.split(key, 4)
    x, back = ravel_pytree(position)
    look = _look(estimator, k_look, back)
    u, g = look(x)
    move = (2 * h) ** 0.5 * (1 + 0.3 * jax.random.normal(k_size, x.shape, x.dtype))
    keep = jax.random.bernoulli(k_side, jax.nn.sigmoid(-move * g))
    move = jnp.where(keep, move, -move)
    u_new, g_new = look(x + move)
    log_ratio = u - u_new + jnp.sum(jnp.logaddexp(0, move * g) - jnp.logaddexp(0, -move * g_new))
    accepted = jnp.log(jax.random.uniform(k_test, dtype=x.dtype)) < log_ratio
    return back(jnp.where(accepted, x + move, x))


barker_bimodal = simple_sampler(_barker, claims=EXACT)


def _scaled_walk(key, position, h, estimator):
    """Random walk whose scale depends on where it stands, with the densities of both ways; tested by expm1."""
    k_look, k_move, k_test = jax.random.split(key, 3)
    x, back = ravel_pytree(position)
    look = _look(estimator, k_look, back)
    scale = lambda a: jnp.sqrt(2 * h * (1 + a**2 / (4 + a**2)))
    log_q = lambda a, b: -jnp.sum(0.5 * ((b - a) / scale(a)) ** 2 + jnp.log(scale(a)))
    y = x + scale(x) * jax.random.normal(k_move, x.shape, x.dtype)
    log_ratio = look(x)[0] - look(y)[0] + log_q(y, x) - log_q(x, y)
    chance = jax.random.uniform(k_test, dtype=x.dtype) - 1
    return back(jax.lax.select(chance < jnp.expm1(jnp.minimum(log_ratio, 0)), y, x))


scaled_walk = simple_sampler(_scaled_walk, claims=EXACT)


@dataclass(frozen=True)
class LogisticHMC:
    """HMC with logistic momenta, K = sum 2 log cosh(p / 2), and a jittered step size."""

    leaps: int = 3
    claims = EXACT

    def step(self, key, x, h, estimator):
        k_look, k_momentum, k_jitter, k_test = jax.random.split(key, 4)
        eps = (2 * h) ** 0.5 * jax.random.uniform(k_jitter, (), x.dtype, 0.7, 1.3)
        look = lambda q: estimator.estimate(k_look, (), q)[0]
        kinetic = lambda p: 2 * jnp.sum(jnp.logaddexp(p / 2, -p / 2))
        p = start = jax.random.logistic(k_momentum, x.shape, x.dtype)
        q = x
        for _ in range(self.leaps):
            p = p - eps / 2 * look(q).gradient
            q = q + eps * jnp.tanh(p / 2)
            p = p - eps / 2 * look(q).gradient
        gain = look(x).potential - look(q).potential + kinetic(start) - kinetic(p)
        return jnp.where(jax.random.bernoulli(k_test, jnp.exp(jnp.minimum(gain, 0))), q, x)


def _two_stages(key, x, h, estimator):
    """Delayed rejection (Tierney and Mira): a long move, and if that is refused a short one from the same point."""
    k_look, k_long, k_short, k_first, k_second = jax.random.split(key, 5)
    potential = lambda a: estimator.estimate(k_look, (), a)[0].potential
    wide, narrow = (8 * h) ** 0.5, (0.5 * h) ** 0.5
    y = x + wide * jax.random.normal(k_long, x.shape, x.dtype)
    z = x + narrow * jax.random.normal(k_short, x.shape, x.dtype)
    at_x, at_y, at_z = potential(x), potential(y), potential(z)
    log_first, log_back = jnp.minimum(at_x - at_y, 0), jnp.minimum(at_z - at_y, 0)
    log_refused = lambda log_accepted: jnp.log(-jnp.expm1(log_accepted))
    log_second = at_x - at_z + log_refused(log_back) - log_refused(log_first)
    log_second = log_second + (jnp.sum((y - x) ** 2) - jnp.sum((y - z) ** 2)) / (2 * wide**2)
    first = jnp.log(jax.random.uniform(k_first, dtype=x.dtype)) < log_first
    second = jnp.log(jax.random.uniform(k_second, dtype=x.dtype)) < log_second
    return jnp.where(first, y, jnp.where(second, z, x))


two_stages = simple_sampler(_two_stages, claims=EXACT)
