"""Four strangers that are exact at every step size."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())


# --- MALA with U and grad U kept ------------------------------------------------------------------------------------
# q(x, y) = N(y; x - h g(x), 2h): log ratio U(x) - U(y) + (|y - x + h g(x)|^2 - |x - y + h g(y)|^2) / (4h); the cache is
# selected together with the point.
class Cached(NamedTuple):
    position: jax.Array
    energy: jax.Array
    slope: jax.Array


def _look(key, x, estimator):
    e = estimator.estimate(key, (), x)[0]
    return Cached(x, e.potential, e.gradient)


def _mala(key, state, h, estimator):
    k_batch, k_move, k_test = jax.random.split(key, 3)
    x, u, g = state
    y = x - h * g + jnp.sqrt(2 * h) * jax.random.normal(k_move, x.shape, x.dtype)
    new = _look(k_batch, y, estimator)
    forth = jnp.sum((y - x + h * g) ** 2)
    back = jnp.sum((x - y + h * new.slope) ** 2)
    log_ratio = u - new.energy + (forth - back) / (4 * h)
    ok = jnp.log(jax.random.uniform(k_test, (), x.dtype)) < log_ratio
    return jax.tree.map(lambda a, b: jnp.where(ok, a, b), new, state), {"accepted": ok}


mala_cached = simple_sampler(_mala, init=_look, claims=EXACT)


# --- Barker, coordinate by coordinate -------------------------------------------------------------------------------
# w_i = +-z_i, sign + with chance 1 / (1 + exp(z_i g_i)): density 2 phi(w) / (1 + exp(w g(x))), back 2 phi(w) / (1 + exp(-w g(y))).
def _barker(key, x, h, estimator):
    k_batch, k_z, k_sign, k_test = jax.random.split(key, 4)
    here = estimator.estimate(k_batch, (), x)[0]
    z = jnp.sqrt(2 * h) * jax.random.normal(k_z, x.shape, x.dtype)
    plus = jax.random.uniform(k_sign, x.shape, x.dtype) < jax.nn.sigmoid(-z * here.gradient)
    w = jnp.where(plus, z, -z)
    there = estimator.estimate(k_batch, (), x + w)[0]
    correction = jnp.sum(jax.nn.softplus(w * here.gradient) - jax.nn.softplus(-w * there.gradient))
    log_ratio = here.potential - there.potential + correction
    return jnp.where(jnp.log(jax.random.uniform(k_test, (), x.dtype)) < log_ratio, x + w, x)


barker_metropolis = simple_sampler(_barker, claims=EXACT)


# --- multiple try ---------------------------------------------------------------------------------------------------
# Liu, Liang, Wong 2000 with a symmetric proposal and weights pi: pick y among K by pi, draw K - 1 points about y, the
# last reference point is x; accept with sum pi(y_j) / sum pi(x*_j).
TRIES = 3


def _multiple_try(key, x, h, estimator):
    k_batch, k_out, k_pick, k_back, k_test = jax.random.split(key, 5)
    log_pi = jax.vmap(lambda q: -estimator.estimate(k_batch, (), q)[0].potential)
    scale = jnp.sqrt(2 * h)
    tries = x + scale * jax.random.normal(k_out, (TRIES, *x.shape), x.dtype)
    out = log_pi(tries)
    y = tries[jax.random.categorical(k_pick, out)]
    others = y + scale * jax.random.normal(k_back, (TRIES - 1, *x.shape), x.dtype)
    back = log_pi(jnp.concatenate([others, x[None]]))
    ok = jnp.log(jax.random.uniform(k_test, (), x.dtype)) < logsumexp(out) - logsumexp(back)
    return jnp.where(ok, y, x)


multiple_try = simple_sampler(_multiple_try, claims=EXACT)


# --- elliptical slice, relative to N(0, 1) --------------------------------------------------------------------------
# Murray, Adams, MacKay 2010 with the likelihood exp(-U + |x|^2 / 2) beside the prior N(0, I): exact; it has no step size.
def _elliptical(key, x, h, estimator):
    k_batch, k_nu, k_level, k_angle, k_loop = jax.random.split(key, 5)
    log_like = lambda q: jnp.sum(q * q) / 2 - estimator.estimate(k_batch, (), q)[0].potential
    nu = jax.random.normal(k_nu, x.shape, x.dtype)
    level = log_like(x) + jnp.log1p(-jax.random.uniform(k_level, (), x.dtype))
    angle = jax.random.uniform(k_angle, (), x.dtype, 0, 2 * jnp.pi)
    point = lambda a: x * jnp.cos(a) + nu * jnp.sin(a)

    def outside(carry):
        return log_like(point(carry[1])) < level

    def shrink(carry):
        k, a, low, high = carry
        k, sub = jax.random.split(k)
        low, high = jnp.where(a < 0, a, low), jnp.where(a < 0, high, a)
        return k, low + (high - low) * jax.random.uniform(sub, (), x.dtype), low, high

    return point(jax.lax.while_loop(outside, shrink, (k_loop, angle, angle - 2 * jnp.pi, angle))[1])


elliptical_slice = simple_sampler(_elliptical, claims=EXACT)
