"""Overdamped Langevin with other integrators than Euler's and with other diffusion matrices, no claims made. Each
is a weak order 1 (or better) approximation of dx = (-(D + Q) grad U + Gamma) dt + sqrt(2 D) dW with D > 0, Q
skew and Gamma = div(D + Q), which leaves exp(-U) invariant, so that the stationary law is exp(-U) + O(h)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _gradient(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _tamed(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = _gradient(estimator, k1, x)
    return x - h * g / (1 + h * jnp.linalg.norm(g)) + jnp.sqrt(2 * h) * _normal(k2, x)


# Tamed ULA (Hutzenthaler, Jentzen and Kloeden): the drift differs from Euler's by O(h^2).
tamed = simple_sampler(_tamed)


def _tamed_coordinates(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = _gradient(estimator, k1, x)
    return x - h * g / (1 + h * jnp.abs(g)) + jnp.sqrt(2 * h) * jax.random.rademacher(k2, x.shape, x.dtype)


# Coordinate-wise taming with fair signs as noise (weak Euler).
tamed_signs = simple_sampler(_tamed_coordinates)


@jax.custom_jvp
def _safe_norm(g):
    return jnp.sqrt(jnp.sum(g * g))


@_safe_norm.defjvp
def _safe_norm_jvp(primals, tangents):
    (g,), (dg,) = primals, tangents
    norm = _safe_norm(g)
    return norm, jnp.vdot(g, dg) / jnp.maximum(norm, 1e-12)


def _truncated_drift(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = _gradient(estimator, k1, x)
    g = g * jnp.minimum(1.0, 1 / (h * jnp.maximum(_safe_norm(g), 1e-12)))
    return x - h * g + jnp.sqrt(2 * h) * _normal(k2, x)


# Truncated drift: steps of at most 1, |grad U| > 1 / h is needed to bind, whose probability vanishes with h.
truncated_drift = simple_sampler(_truncated_drift)


def _heun(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    noise = jnp.sqrt(2 * h) * _normal(k3, x)
    g = _gradient(estimator, k1, x)
    ahead = x - h * g + noise
    return x - 0.5 * h * (g + _gradient(estimator, k2, ahead)) + noise


# Stochastic Heun (predictor, corrector) with the same additive noise in both.
heun = simple_sampler(_heun)


def _randomised_midpoint(key, x, h, estimator):
    k0, k1, k2, k3, k4 = jax.random.split(key, 5)
    a = jax.random.uniform(k0, (), x.dtype)
    first = jnp.sqrt(2 * h * a) * _normal(k1, x)
    rest = jnp.sqrt(2 * h * (1 - a)) * _normal(k2, x)
    middle = x - a * h * _gradient(estimator, k3, x) + first
    return x - h * _gradient(estimator, k4, middle) + first + rest


# Randomised midpoint: the gradient at a uniform time of the step, on the same Brownian path.
randomised_midpoint = simple_sampler(_randomised_midpoint)


def _exponential_euler(key, x, h, estimator, a=1.0):
    k1, k2 = jax.random.split(key)
    move = -jnp.expm1(-a * h) / a
    scale = jnp.sqrt(-jnp.expm1(-2 * a * h) / a)
    return x - move * _gradient(estimator, k1, x) + scale * _normal(k2, x)


# Exponential Euler: the linear part a x of grad U is solved exactly, the rest is frozen.
exponential_euler = simple_sampler(_exponential_euler)


def _predictor(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    y = x - h * _gradient(estimator, k1, x)
    return x - h * _gradient(estimator, k2, 0.5 * (x + y)) + jnp.sqrt(2 * h) * _normal(k3, x)


# An explicit midpoint rule for the drift, the whole noise at the end: weak order 1.
midpoint_drift = simple_sampler(_predictor)


def _strang(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x = x + jnp.sqrt(h) * _normal(k1, x)
    x = x - h * _gradient(estimator, k2, x)
    return x + jnp.sqrt(h) * _normal(k3, x)


# Noise, drift, noise: half of the Brownian motion before and half after the Euler drift.
noise_drift_noise = simple_sampler(_strang)


def _random_time(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    t = h * jax.random.uniform(k1, (), x.dtype, 0.5, 1.5)
    return x - t * _gradient(estimator, k2, x) + jnp.sqrt(2 * t) * _normal(k3, x)


# A random step size of mean h, drawn independently of the position: drift and noise use the same one.
random_time = simple_sampler(_random_time)


def _random_coordinate(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    i = jax.random.randint(k1, (), 0, x.size)
    g = _gradient(estimator, k2, x)
    t = h * x.size
    return x.at[i].add(-t * g[i] + jnp.sqrt(2 * t) * jax.random.normal(k3, (), x.dtype))


# Random-scan coordinate Langevin: one coordinate of d moves by d times the step.
random_coordinate = simple_sampler(_random_coordinate)


def _random_block(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    mask = jax.random.bernoulli(k1, 0.5, x.shape).astype(x.dtype)
    g = _gradient(estimator, k2, x)
    return x + mask * (-2 * h * g + jnp.sqrt(4 * h) * _normal(k3, x))


# Every coordinate moves with probability one half, by twice the step.
random_block = simple_sampler(_random_block)


def _sweep(key, x, h, estimator):
    order_key, sweep_key = jax.random.split(key)
    order = jax.random.permutation(order_key, x.size)

    def update(j, x):
        k1, k2 = jax.random.split(jax.random.fold_in(sweep_key, j))
        i = order[j]
        g = _gradient(estimator, k1, x)
        return x.at[i].add(-h * g[i] + jnp.sqrt(2 * h) * jax.random.normal(k2, (), x.dtype))

    return jax.lax.fori_loop(0, x.size, update, x)


# Coordinates one after the other in a random order, with a new gradient each.
permuted_sweep = simple_sampler(_sweep)


def _constant_matrix(d, dtype):
    return jnp.eye(d, dtype=dtype) + jnp.ones((d, d), dtype) / (2 * d)


def _preconditioned(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    A = _constant_matrix(x.size, x.dtype)
    L = jnp.linalg.cholesky(A)
    g = _gradient(estimator, k1, x)
    return x - h * jnp.einsum("ij,j->i", A, g) + jnp.sqrt(2 * h) * jnp.einsum("ij,j->i", L, _normal(k2, x))


# A constant preconditioner A = L L^T: drift -A grad U, noise sqrt(2) L dW.
preconditioned = simple_sampler(_preconditioned)


def _preconditioned_mvn(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    A = _constant_matrix(x.size, x.dtype)
    return jax.random.multivariate_normal(k2, x - h * A @ _gradient(estimator, k1, x), 2 * h * A, dtype=x.dtype)


# The same by multivariate_normal with mean x - h A grad U and covariance 2 h A.
preconditioned_mvn = simple_sampler(_preconditioned_mvn)


def _diagonal(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    D = jnp.linspace(0.5, 1.5, x.size, dtype=x.dtype)
    return x - h * D * _gradient(estimator, k1, x) + jnp.sqrt(2 * h * D) * _normal(k2, x)


# A constant diagonal preconditioner.
diagonal = simple_sampler(_diagonal)


def _diagonal_of_position(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    D = 1 / (1 + x**2)
    gamma = -2 * x * D**2
    return x + h * (gamma - D * _gradient(estimator, k1, x)) + jnp.sqrt(2 * h * D) * _normal(k2, x)


# D_ii = 1 / (1 + x_i^2) with its Gamma_i = dD_ii / dx_i by hand.
diagonal_of_position = simple_sampler(_diagonal_of_position)


def _metric(x):
    return jnp.eye(x.size, dtype=x.dtype) + jnp.outer(x, x) / (1 + x @ x)


def _full_metric(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    D = _metric(x)
    gamma = jnp.einsum("ijj->i", jax.jacfwd(_metric)(x))
    return x + h * (gamma - D @ _gradient(estimator, k1, x)) + jnp.sqrt(2 * h) * jnp.linalg.cholesky(D) @ _normal(k2, x)


# A full matrix D(x) = I + x x^T / (1 + |x|^2), Gamma_i = sum_j dD_ij / dx_j by automatic differentiation.
full_metric = simple_sampler(_full_metric)


def _skew(d, dtype):
    upper = jnp.triu(jnp.ones((d, d), dtype), 1)
    return upper - upper.T


def _irreversible(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = _gradient(estimator, k1, x)
    return x - h * (g + _skew(x.size, x.dtype) @ g) + jnp.sqrt(2 * h) * _normal(k2, x)


# Non-reversible Langevin: drift -(I + J) grad U with a constant skew J.
irreversible = simple_sampler(_irreversible)


def _curl(x):
    return jnp.sin(jnp.sum(x)) * _skew(x.size, x.dtype)


def _irreversible_of_position(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = _gradient(estimator, k1, x)
    gamma = jnp.einsum("ijj->i", jax.jacfwd(_curl)(x))
    return x - h * (g + _curl(x) @ g - gamma) + jnp.sqrt(2 * h) * _normal(k2, x)


# Non-reversible Langevin with Q(x) = sin(sum x) J and its Gamma = div Q.
irreversible_of_position = simple_sampler(_irreversible_of_position)


class Averaging(NamedTuple):
    """Position x_n and the normal draw R_n that went into it."""

    position: jax.Array
    noise: jax.Array


def _leimkuhler_matthews(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    noise = _normal(k2, state.position)
    x = state.position - h * _gradient(estimator, k1, state.position) + jnp.sqrt(h / 2) * (state.noise + noise)
    return Averaging(x, noise)


# Leimkuhler and Matthews: x - h grad U + sqrt(h / 2) (R_n + R_{n+1}); the law of x is exp(-U) + O(h^2).
leimkuhler_matthews = simple_sampler(
    _leimkuhler_matthews, init=lambda key, position, estimator: Averaging(position, _normal(key, position))
)
