"""Samplers of spheres, Stiefel manifolds, positive numbers and the simplex by group actions, pairs, slices and
changes of variables. The Metropolis and slice ones are exact, the Langevin ones err by O(h)."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source, StationaryLaw

NEEDS = ("potential",)


def exact(*spaces):
    """Claims of a kernel that keeps the target."""
    return Claims(Source("metropolis1953equation", "the algorithm"), ExactLaw(), spaces=spaces)


def normal(key, x):
    """Normal of the shape of x."""
    return jax.random.normal(key, x.shape, x.dtype)


def energy(estimator, x):
    """U at x."""
    return estimator.estimate(jax.random.key(0), (), x)[0].potential


def coin(key, log_rate):
    """True with probability min(1, exp(log_rate))."""
    return jnp.log(jax.random.uniform(key, dtype=log_rate.dtype)) < log_rate


def _rotation(key, x, h, estimator):
    # y = Q x, Q the Cayley map of a skew matrix whose law is symmetric: Q' has the law of Q, and x -> Q x keeps Haar's.
    a, b = jax.random.split(key)
    n = x.shape[0]
    z = jnp.sqrt(h / 2) * jax.random.normal(a, (n, n), x.dtype)
    skew = z - z.T
    y = jnp.linalg.solve(jnp.eye(n, dtype=x.dtype) + skew / 2, x - skew @ x / 2)
    return jnp.where(coin(b, energy(estimator, x) - energy(estimator, y)), y, x)


rotation_sphere = simple_sampler(_rotation, needs=NEEDS, claims=exact("sphere"))
rotation_stiefel = simple_sampler(_rotation, needs=NEEDS, claims=exact("stiefel"))


def _multiplicative(key, x, h, estimator):
    # y = x exp(s l), l Laplace: symmetric in log x, Jacobian prod y / x.
    a, b = jax.random.split(key)
    step = jnp.sqrt(h) * jax.random.laplace(a, x.shape, x.dtype)
    y = x * jnp.exp(step)
    return jnp.where(coin(b, energy(estimator, x) - energy(estimator, y) + jnp.sum(step)), y, x)


multiplicative_walk = simple_sampler(_multiplicative, needs=NEEDS, claims=exact("positive"))


def _log_slice(key, x, h, estimator):
    # Slice along a random line in log x (stepping out by the line's own width, shrinkage), density exp(-U) prod x.
    a, b, c, d = jax.random.split(key, 4)
    line = normal(a, x)
    line = line / jnp.linalg.norm(line)
    width = 2 * jnp.sqrt(h)
    value = lambda t: energy(estimator, x * jnp.exp(t * line)) - t * jnp.sum(line)
    level = value(jnp.zeros((), x.dtype)) + jax.random.exponential(b, dtype=x.dtype)
    low = -width * jax.random.uniform(c, dtype=x.dtype)
    high = low + width
    low = jax.lax.while_loop(lambda t: value(t) < level, lambda t: t - width, low)
    high = jax.lax.while_loop(lambda t: value(t) < level, lambda t: t + width, high)

    def shrink(carry):
        key, low, high, t = carry
        low, high = jnp.where(t < 0, t, low), jnp.where(t < 0, high, t)
        key, use = jax.random.split(key)
        return key, low, high, jax.random.uniform(use, dtype=x.dtype, minval=low, maxval=high)

    key, use = jax.random.split(d)
    first = jax.random.uniform(use, dtype=x.dtype, minval=low, maxval=high)
    t = jax.lax.while_loop(lambda carry: value(carry[3]) >= level, shrink, (key, low, high, first))[3]
    return x * jnp.exp(t * line)


log_slice = simple_sampler(_log_slice, needs=NEEDS, claims=exact("positive"))


def _mirror_langevin(key, x, h, estimator):
    # Langevin for y = log x, potential U - sum log x: grad_y = x grad U - 1.
    a, b = jax.random.split(key)
    g = estimator.estimate(a, (), x)[0].gradient
    return x * jnp.exp(-h * (x * g - 1) + jnp.sqrt(2 * h) * jax.random.rademacher(b, x.shape, x.dtype))


log_signs = simple_sampler(
    _mirror_langevin, claims=Claims(Source("", "Langevin of log x"), StationaryLaw(order=1), spaces=("positive",))
)


def _pair_beta(key, x, h, estimator):
    # Two parts i, j exchange: their share is proposed from Beta(2, 2), independence Metropolis on the share.
    a, b, c = jax.random.split(key, 3)
    i, j = jax.random.choice(a, x.shape[-1], (2,), replace=False)
    both = x[i] + x[j]
    old, new = x[i] / both, jax.random.beta(b, 2.0, 2.0, dtype=x.dtype)
    y = x.at[i].set(new * both).at[j].set((1 - new) * both)
    log_q = lambda s: jnp.log(s) + jnp.log1p(-s)
    return jnp.where(coin(c, energy(estimator, x) - energy(estimator, y) + log_q(old) - log_q(new)), y, x)


pair_beta = simple_sampler(_pair_beta, needs=NEEDS, claims=exact("simplex"))


def _host_gamma_walk(rng, x, h, estimator):
    # y = x times a Lognormal: symmetric in log x.
    x = np.asarray(x)
    factor = rng.lognormal(0.0, np.sqrt(2 * h), x.shape)
    y = (x * factor).astype(x.dtype)
    U = lambda x: float(estimator.estimate(estimator_key(rng, estimator), (), x)[0].potential)
    return y if np.log(rng.random()) < U(x) - U(y) + np.sum(np.log(factor)) else x


host_lognormal = simple_sampler(_host_gamma_walk, backend="host", needs=NEEDS, claims=exact("positive"))
