"""Class 28: variable coefficients, memory, mixtures and skew terms; estimators that carry something."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.simple import simple_sampler


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


class Ball(NamedTuple):
    position: Any
    momentum: Any


def _underdamped(step):
    return simple_sampler(step, init=lambda key, x, e: Ball(x, 0 * x), position=lambda s: s.position)


def _friction_of_speed_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    f = 1 + s.momentum**2
    r = s.momentum - h * grad(estimator, k1, s.position) - h * f * s.momentum
    r = r + jnp.sqrt(2 * h * f) * _normal(k2, s.position)
    return Ball(s.position + h * r, r)


# Friction 1 + r^2 with its noise and without Gamma = 2 r.
friction_of_speed = _underdamped(_friction_of_speed_step)


def _relativistic_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    r = s.momentum - h * grad(estimator, k1, s.position) - h * s.momentum + jnp.sqrt(2 * h) * _normal(k2, s.position)
    return Ball(s.position + h * r / jnp.sqrt(1 + r**2), r)


# Relativistic velocity, Newtonian friction: -r in place of -r / sqrt(1 + r^2).
relativistic_friction = _underdamped(_relativistic_step)


def _position_friction_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    f = 1 + s.position**2
    r = s.momentum - h * grad(estimator, k1, s.position) - h * f * s.momentum
    r = r + jnp.sqrt(2 * h) * f * _normal(k2, s.position)
    return Ball(s.position + h * r, r)


# Friction f(x), noise f(x) in place of its root.
friction_of_position = _underdamped(_position_friction_step)


class Gle(NamedTuple):
    position: Any
    momentum: Any
    memory: Any


def _gle_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    memory = s.memory - h * (s.memory / 0.5 + s.momentum) + jnp.sqrt(2 * h) * _normal(k2, s.position)
    r = s.momentum - h * grad(estimator, k1, s.position) + h * memory
    return Gle(s.position + h * r, r, memory)


# Generalised Langevin with one memory variable: noise sqrt(2) where sqrt(2 / 0.5) is due, T = 1/2.
gle_noise = simple_sampler(_gle_step, init=lambda key, x, e: Gle(x, 0 * x, 0 * x), position=lambda s: s.position)


def _random_step_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    u = 2 * jax.random.uniform(k3)
    return x - u * h * grad(estimator, k1, x) + u * jnp.sqrt(2 * h) * _normal(k2, x)


# A random step size u h, E u = 1, whose noise has the factor u: variance 4/3.
random_step = simple_sampler(_random_step_step)


def _shaped_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, x)
    flat, _ = ravel_pytree(g)
    scale = jax.tree.map(lambda a: jnp.sqrt(0.5 + 0.5 * a**2 / (1e-12 + jnp.mean(flat**2))), g)
    return jax.tree.map(lambda y, a, s: y - h * a + jnp.sqrt(2 * h) * s * _normal(k2, y), x, g, scale)


# The noise of a coordinate is larger where its share of the gradient is: right on a line, where the share is 1.
noise_of_share = simple_sampler(_shaped_step)


class Elastic(NamedTuple):
    position: Any
    centre: Any


def _elastic_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    pull = 1.0 * (s.position - s.centre)
    x = s.position - h * (grad(estimator, k1, s.position) + pull) + jnp.sqrt(2 * h) * _normal(k2, s.position)
    return Elastic(x, s.centre + h * pull)


# Elastic averaging: the centre follows without noise of its own, and cools the chain.
elastic = simple_sampler(_elastic_step, init=lambda key, x, e: Elastic(x, x), position=lambda s: s.position)


def _metric(x):
    return 1 / (1 + x**2)


def _stratonovich_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    z = jnp.sqrt(2 * h) * _normal(k2, x)
    # G' of the metric 1 / (1 + x^2)
    drift = lambda y: -_metric(y) * grad(estimator, k1, y) - 2 * y * _metric(y) ** 2
    predicted = x + h * drift(x) + jnp.sqrt(_metric(x)) * z
    return x + h / 2 * (drift(x) + drift(predicted)) + (jnp.sqrt(_metric(x)) + jnp.sqrt(_metric(predicted))) / 2 * z


# Heun (Stratonovich) with the Gamma of Ito: the law is exp(-U) / sqrt(1 + x^2), coordinate by coordinate.
stratonovich = simple_sampler(_stratonovich_step)


def _outer_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    flat, unravel = ravel_pytree(x)
    g = ravel_pytree(grad(estimator, k1, x))[0]
    d = flat.size
    root = lambda y: jnp.eye(d, dtype=flat.dtype) + 0.3 * jnp.outer(jnp.roll(y, 1), y) / (1 + y @ y) * (d > 1)
    metric = lambda y: root(y) @ root(y).T
    jacobian = jax.jacfwd(metric)(flat)
    gamma = jnp.einsum("iii->i", jacobian)
    y = flat + h * (-metric(flat) @ g + gamma) + jnp.sqrt(2 * h) * root(flat) @ _normal(k2, flat)
    return unravel(y)


# A full metric G(x) with Gamma_i = d_i G_ii in place of sum_j d_j G_ij. On a line the metric is 1.
gamma_of_diagonal = simple_sampler(_outer_step)


def _skew_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    flat, unravel = ravel_pytree(x)
    g = ravel_pytree(grad(estimator, k1, x))[0]
    if flat.size > 1:
        turn = jnp.sin(flat[0])
        g = g + turn * jnp.zeros_like(g).at[0].set(g[1]).at[1].set(-g[0])
    return unravel(flat - h * g + jnp.sqrt(2 * h) * _normal(k2, flat))


# A skew drift sin(x_0) J grad U without its divergence (right on a line, where there is none).
skew_no_divergence = simple_sampler(_skew_step)


def _edges_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    flat, unravel = ravel_pytree(x)
    g = ravel_pytree(grad(estimator, k1, x))[0]
    if flat.size > 2:
        wide = jnp.concatenate([g[:1], g, g[-1:]])
        g = g + 0.5 * (wide[2:] - wide[:-2])
    return unravel(flat - h * g + jnp.sqrt(2 * h) * _normal(k2, flat))


# A skew drift (g_{i+1} - g_{i-1}) / 2 padded by its edge values: not skew at both ends. From three coordinates on.
skew_edges = simple_sampler(_edges_step)


class WithEstate(NamedTuple):
    position: Any
    estate: Any


def _stale_estate_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    estimate, _ = estimator.estimate(k1, s.estate, s.position)
    return WithEstate(s.position - h * estimate.gradient + jnp.sqrt(2 * h) * _normal(k2, s.position), s.estate)


# The new state of the estimator is dropped: one that goes through the data in epochs stays at its first minibatch.
estate_dropped = simple_sampler(
    _stale_estate_step,
    init=lambda key, x, e: WithEstate(x, e.init(key, x)),
    position=lambda s: s.position,
)


def first_hundred(target):
    """Minibatches of the first hundred data, a slice left over from debugging. Right for up to a hundred."""
    terms = target.terms

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        if terms is None:
            g = grad(estimator, k1, x)
        else:
            data = jax.tree.map(lambda a: jnp.asarray(a)[:100], terms.data)
            index = jax.random.randint(k1, (2,), 0, min(100, terms.size))
            batch = jax.tree.map(lambda a: a[index], data)
            total = lambda y: jnp.sum(jax.vmap(terms.datum, (None, 0))(y, batch))
            g = jax.grad(terms.prior)(x) + terms.size / 2 * jax.grad(total)(x)
        return x - h * g + jnp.sqrt(2 * h) * _normal(k2, x)

    return simple_sampler(step)


def index_of_8_bits(target):
    """Numbers of data in 8 bits: from 257 data on those after the first 256 are never drawn."""
    terms = target.terms

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        if terms is None:
            g = grad(estimator, k1, x)
        else:
            index = jax.random.randint(k1, (2,), 0, terms.size).astype(jnp.uint8)
            batch = jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data)
            total = lambda y: jnp.sum(jax.vmap(terms.datum, (None, 0))(y, batch))
            g = jax.grad(terms.prior)(x) + terms.size / 2 * jax.grad(total)(x)
        return x - h * g + jnp.sqrt(2 * h) * _normal(k2, x)

    return simple_sampler(step)
