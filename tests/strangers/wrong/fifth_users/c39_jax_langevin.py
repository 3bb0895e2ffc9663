"""Overdamped Langevin samplers in JAX: plain, adaptive, second order, cyclical, layer-wise."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler

# --- SGLD on pytrees -------------------------------------------------------------------------------------------------


def _randn_like(key, leaf):
    return jax.random.normal(jax.random.fold_in(key, leaf.size), leaf.shape, leaf.dtype)


def _sgld_update(key, params, step_size, estimator):
    grad_key, noise_key = jax.random.split(key)
    grads = estimator.estimate(grad_key, (), params)[0].gradient
    noise = jax.tree_util.tree_map(lambda p: _randn_like(noise_key, p), params)
    return jax.tree_util.tree_map(
        lambda p, g, n: p - step_size * g + jnp.sqrt(2.0 * step_size) * n, params, grads, noise
    )


tree_sgld = simple_sampler(_sgld_update)


# --- SGLD with a step size that adapts to the local slope ---------------------------------------------------------


def _global_norm(tree):
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))


def _adaptive_step(key, theta, step_size, estimator):
    """Take smaller steps where the potential is steep (drift and noise use the same effective step size)."""
    k_grad, k_noise = jax.random.split(key)
    g = estimator.estimate(k_grad, (), theta)[0].gradient
    eps = step_size / (1.0 + _global_norm(g))
    leaves, treedef = jax.tree.flatten(theta)
    keys = treedef.unflatten(list(jax.random.split(k_noise, len(leaves))))
    return jax.tree.map(
        lambda x, d, k: x - eps * d + jnp.sqrt(2 * eps) * jax.random.normal(k, x.shape, x.dtype), theta, g, keys
    )


adaptive_sgld = simple_sampler(_adaptive_step)


# --- stochastic Heun ----------------------------------------------------------------------------------------------


def _heun(key, x, h, estimator):
    key_g1, key_g2, key_pred, key_corr = jax.random.split(key, 4)
    grad = lambda k, y: estimator.estimate(k, (), y)[0].gradient
    sigma = jnp.sqrt(2 * h)
    g0 = grad(key_g1, x)
    predictor = x - h * g0 + sigma * jax.random.normal(key_pred, x.shape, x.dtype)
    g1 = grad(key_g2, predictor)
    return x - 0.5 * h * (g0 + g1) + sigma * jax.random.normal(key_corr, x.shape, x.dtype)


heun = simple_sampler(_heun, claims=Claims(Source("", "own"), StationaryLaw(order=2)))


# --- cyclical step sizes ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CyclicalSGLD:
    """SGLD with cosine step sizes; the step size of an iteration is `step_size` at the start of a cycle."""

    cycle_length: int = 10

    def __post_init__(self):
        if self.cycle_length < 1:
            raise ValueError("cycle_length must be positive")

    def init(self, key, position, estimator):
        return {"position": position, "iteration": jnp.zeros((), jnp.int32)}

    def step(self, key, state, step_size, estimator):
        x, t = state["position"], state["iteration"]
        k_grad, k_noise = jax.random.split(key)
        g = estimator.estimate(k_grad, (), x)[0].gradient
        phase = jnp.mod(t, self.cycle_length) / self.cycle_length
        factor = (0.5 * (jnp.cos(jnp.pi * phase) + 1.0)).astype(x.dtype)
        noise = jnp.sqrt(2 * step_size) * jax.random.normal(k_noise, x.shape, x.dtype)
        return {"position": x - factor * step_size * g + factor * noise, "iteration": t + 1}


# --- layer-wise step sizes ----------------------------------------------------------------------------------------


class LayerwiseState(NamedTuple):
    position: Any


class LayerwiseInfo(NamedTuple):
    grad_norm: Any


@dataclass(frozen=True)
class LayerwiseLangevin:
    """Each layer moves at its own speed, `decay ** depth` times the step size."""

    decay: float = 0.5

    def init(self, key, position, estimator):
        return LayerwiseState(position)

    def _noise(self, key, leaves, step_size):
        pending, noises = list(leaves), []
        for depth, k in enumerate(jax.random.split(key, len(leaves))):
            leaf = pending.pop()
            scale = jnp.sqrt(2 * step_size * self.decay**depth)
            noises.insert(0, scale.astype(leaf.dtype) * jax.random.normal(k, leaf.shape, leaf.dtype))
        return noises

    def step(self, key, state, step_size, estimator):
        k_grad, k_noise = jax.random.split(key)
        grads = estimator.estimate(k_grad, (), state.position)[0].gradient
        leaves, treedef = jax.tree.flatten(state.position)
        flat_grads = treedef.flatten_up_to(grads)
        noise = self._noise(k_noise, leaves, step_size)
        moved = [
            x - step_size * self.decay**depth * g + n
            for depth, (x, g, n) in enumerate(zip(leaves, flat_grads, noise))
        ]
        info = LayerwiseInfo(jnp.sqrt(sum(jnp.sum(g**2) for g in flat_grads)))
        return LayerwiseState(treedef.unflatten(moved)), info
