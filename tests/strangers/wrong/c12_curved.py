"""Class 12: right on every Gaussian (or nearly), wrong where U'' varies: metrics without their correction."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _hessian(estimator, key, x):
    """Jacobian of the gradient, (d, d), in ravel order."""
    flat, unravel = ravel_pytree(x)
    return jax.jacfwd(lambda y: ravel_pytree(grad(estimator, key, unravel(y)))[0])(flat)


def _metric(estimator, key, x):
    """Diagonal preconditioner 1 / sqrt(1 + H_ii^2) as a flat vector: a smooth 1 / |H|."""
    return 1 / jnp.sqrt(1 + jnp.diagonal(_hessian(estimator, key, x)) ** 2)


def _divergence(estimator, key, x):
    """d G_i / d x_i."""
    flat, unravel = ravel_pytree(x)
    return jnp.diagonal(jax.jacfwd(lambda y: _metric(estimator, key, unravel(y)))(flat))


def _preconditioned(gamma):
    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        flat, unravel = ravel_pytree(x)
        g, _ = ravel_pytree(grad(estimator, k1, x))
        G = _metric(estimator, k1, x)
        drift = -G * g + (gamma * _divergence(estimator, k1, x) if gamma else 0)
        return unravel(flat + h * drift + jnp.sqrt(2 * h * G) * jax.random.normal(k2, flat.shape, flat.dtype))

    return simple_sampler(step)


# Preconditioned by the diagonal of the Hessian without Gamma: in one dimension the law is exp(-U) / G.
hessian_no_gamma = _preconditioned(0.0)

# The same with Gamma of the wrong sign: exp(-U) / G^2.
hessian_gamma_sign = _preconditioned(-1.0)

# The same with half of Gamma: exp(-U) / sqrt(G).
hessian_gamma_half = _preconditioned(0.5)


def _softabs_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    flat, unravel = ravel_pytree(x)
    g, _ = ravel_pytree(grad(estimator, k1, x))
    values, vectors = jnp.linalg.eigh(_hessian(estimator, k1, x))
    inverse = 1 / jnp.sqrt(1 + values**2)
    z = jax.random.normal(k2, flat.shape, flat.dtype)
    move = -h * vectors @ (inverse * (vectors.T @ g)) + jnp.sqrt(2 * h) * vectors @ (jnp.sqrt(inverse) * z)
    return unravel(flat + move)


# Riemannian Langevin with a smooth |Hess U| as metric and no divergence term.
riemannian_no_divergence = simple_sampler(_softabs_step)


class Secant(NamedTuple):
    position: Any
    gradient: Any
    curvature: Any


def _secant_init(key, x, estimator):
    return Secant(x, grad(estimator, key, x), jnp.ones_like(x))


def _secant_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, old_gradient, k = state
    precondition = 1 / jnp.sqrt(0.1 + k**2)
    y = x - h * precondition * old_gradient
    y = y + jnp.sqrt(2 * h * precondition) * jax.random.normal(k2, x.shape, x.dtype)
    g = grad(estimator, k1, y)
    moved = jnp.abs(y - x) > 1e-12
    curvature = jnp.where(moved, (g - old_gradient) / jnp.where(moved, y - x, 1.0), k)
    return Secant(y, g, curvature)


# Barzilai-Borwein: coordinatewise secants of the gradient as preconditioner, no Gamma. On Gaussians with independent
# coordinates the secant is the curvature, and the law is right.
secant_preconditioner = simple_sampler(_secant_step, init=_secant_init, position=lambda s: s.position,
                                       unpack=lambda s: s.position, pack=_secant_init)


def _newton_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    flat, unravel = ravel_pytree(x)
    g, _ = ravel_pytree(grad(estimator, k1, x))
    H = _hessian(estimator, k1, x)
    values, vectors = jnp.linalg.eigh(H)
    values = jnp.maximum(jnp.abs(values), 0.1)
    mode = flat - vectors @ ((vectors.T @ g) / values)
    z = vectors @ (jax.random.normal(k2, flat.shape, flat.dtype) / jnp.sqrt(values))
    c = jnp.exp(-h)
    return unravel(mode + c * (flat - mode) + jnp.sqrt(1 - c**2) * z)


# Stochastic Newton: an exact OU step of the local Gaussian N(x - H^-1 g, H^-1), no correction. In one dimension the
# law is exp(-U) |U''|.
newton_langevin = simple_sampler(_newton_step)


def _ozaki_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    flat, unravel = ravel_pytree(x)
    g, _ = ravel_pytree(grad(estimator, k1, x))
    values, vectors = jnp.linalg.eigh(_hessian(estimator, k1, x))
    safe = jnp.where(jnp.abs(values) < 1e-6, 1e-6, values)
    drift = -(1 - jnp.exp(-safe * h)) / safe
    variance = (1 - jnp.exp(-2 * safe * h)) / safe
    z = jax.random.normal(k2, flat.shape, flat.dtype)
    return unravel(flat + vectors @ (drift * (vectors.T @ g) + jnp.sqrt(variance) * z))


# Ozaki's local linearisation claims an exact law: true on Gaussians only, O(h) bias elsewhere.
ozaki_exact = simple_sampler(_ozaki_step, claims=Claims(Source("roberts1996exponential", "Ozaki"), ExactLaw()))


class Cached(NamedTuple):
    position: Any
    potential: Any


def _mmala_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    flat, unravel = ravel_pytree(state.position)

    def proposal(y):
        g, _ = ravel_pytree(grad(estimator, k1, unravel(y)))
        G = _metric(estimator, k1, unravel(y))
        return y - h * G * g, G

    mean, G = proposal(flat)
    y = mean + jnp.sqrt(2 * h * G) * jax.random.normal(k2, flat.shape, flat.dtype)
    back, G_back = proposal(y)
    forward = -jnp.sum((y - mean) ** 2 / G) / (4 * h)
    backward = -jnp.sum((flat - back) ** 2 / G_back) / (4 * h)
    new = estimator.estimate(k1, (), unravel(y))[0].potential
    accept = jnp.log(jax.random.uniform(k3)) < state.potential - new + backward - forward
    return Cached(
        jax.tree.map(lambda a, b: jnp.where(accept, a, b), unravel(y), state.position),
        jnp.where(accept, new, state.potential),
    )


def _cached_init(key, x, estimator):
    return Cached(x, estimator.estimate(key, (), x)[0].potential)


# Manifold MALA whose log q has no log det G: exact where the metric is constant.
mmala_no_log_det = simple_sampler(
    _mmala_step, init=_cached_init, position=lambda s: s.position, unpack=lambda s: s.position, pack=_cached_init,
    needs=("gradient", "potential"), claims=Claims(Source("girolami2011riemann", "MMALA"), ExactLaw()),
)


def _normalised_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, x)
    h = h / (1 + jnp.sqrt(jnp.sum(g**2)))
    return x - h * g + jnp.sqrt(2 * h) * jax.random.normal(k2, x.shape, x.dtype)


# Step size h / (1 + |grad U|), drift and noise alike: the law is exp(-U) (1 + |grad U|). (On Gaussians too.)
step_over_gradient = simple_sampler(_normalised_step)


def _lars_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, x)
    trust = jnp.sqrt((jnp.sum(x**2) + 1e-12) / (jnp.sum(g**2) + 1e-12))
    return x - h * trust * g + jnp.sqrt(2 * h * trust) * jax.random.normal(k2, x.shape, x.dtype)


# LARS: learning rate times |x| / |grad U|. A constant on isotropic Gaussians around 0, wrong on all others.
lars_trust_ratio = simple_sampler(_lars_step)


class Phase(NamedTuple):
    position: Any
    momentum: Any


def _sgrhmc_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, unravel = ravel_pytree(state.position)
    r, _ = ravel_pytree(state.momentum)
    g, _ = ravel_pytree(grad(estimator, k1, state.position))
    G = jnp.sqrt(_metric(estimator, k1, state.position))
    r = r - h * G * g - h * r + jnp.sqrt(2 * h) * jax.random.normal(k2, r.shape, r.dtype)
    return Phase(unravel(x + h * G * r), unravel(r))


def _phase_init(key, x, estimator):
    keys = jax.tree.unflatten(jax.tree.structure(x), list(jax.random.split(key, len(jax.tree.leaves(x)))))
    return Phase(x, jax.tree.map(lambda leaf, k: jax.random.normal(k, leaf.shape, leaf.dtype), x, keys))


# SGRHMC (dx = G^(1/2) r dt, dr = -G^(1/2) grad U dt + ..) without Gamma: in one dimension exp(-U) / sqrt(G).
sgrhmc_no_gamma = simple_sampler(_sgrhmc_step, init=_phase_init, position=lambda s: s.position, unpack=lambda s: s,
                                 pack=lambda key, z, estimator: Phase(*z))
