"""Metrics, streams and preconditioners."""

from math import prod

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler

claims = Claims(Source("", "own"), StationaryLaw(order=1))


def irreversible(strength=1.0, block=4):
    """Langevin with a circular stream J grad U, J antisymmetric, neighbours only, stronger from block to block."""

    def step(key, position, h, estimator):
        a, b = jax.random.split(key)
        x, unravel = ravel_pytree(position)
        g, _ = ravel_pytree(estimator.estimate(a, (), position)[0].gradient)
        weight = strength * (1 + 0.5 * (jnp.arange(x.size) // block)).astype(x.dtype)
        padded = jnp.pad(g, 1)
        stream = weight * (padded[2:] - padded[:-2])
        noise = jax.random.normal(b, x.shape, x.dtype)
        return unravel((x - h * (g + stream) + jnp.sqrt(2 * h) * noise).astype(x.dtype))

    return simple_sampler(step, claims=claims)


circular = irreversible()


def steep_metric_step(key, x, h, estimator):
    """Langevin with the metric p(x) = (1 + |grad U|^2)^(-1/2), the same for all coordinates, and its divergence."""
    a, b = jax.random.split(key)
    flat, unravel = ravel_pytree(x)

    def force(v):
        return ravel_pytree(estimator.estimate(a, (), unravel(v))[0].gradient)[0]

    g = force(flat)
    p = (1 + jnp.sum(g**2)) ** -0.5
    curvature = jax.jacfwd(force)(flat)
    divergence = -(p**3) * jnp.diagonal(curvature) * g  # grad p
    noise = jax.random.normal(b, flat.shape, flat.dtype)
    return unravel((flat + h * (divergence - p * g) + jnp.sqrt(2 * h * p) * noise).astype(flat.dtype))


steep_metric = simple_sampler(steep_metric_step, claims=claims)


def fan_in(shape):
    """Number of inputs of a layer: kernels are (.., inputs, outputs)."""
    return prod(shape[:-1])


def receptive(shape):
    """Height x width x inputs."""
    return prod(shape[-4:-1])


def layerwise_step(key, params, h, estimator):
    """SGLD with a step of h / fan-in for weights."""
    a, b = jax.random.split(key)
    grads = estimator.estimate(a, (), params)[0].gradient
    leaves, tree = jax.tree.flatten(params)
    out = []
    for k, w, g in zip(jax.random.split(b, len(leaves)), leaves, jax.tree.leaves(grads)):
        lr = h / fan_in(w.shape)
        std = jnp.sqrt(2 * h / receptive(w.shape))
        out.append((w - lr * g + std * jax.random.normal(k, w.shape, w.dtype)).astype(w.dtype))
    return jax.tree.unflatten(tree, out)


layerwise = simple_sampler(layerwise_step, claims=claims)
