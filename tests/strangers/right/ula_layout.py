"""SGLD as people write it around their own code: trees, ravelled vectors, inner loops, counters, running means,
stored keys. The arithmetic is always x - h grad U + sqrt(2 h) N(0, I), whose stationary law is exp(-U) + O(h);
what is carried beside the position is never read by the transition, unless the comment says so."""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.simple import simple_sampler


def _noise_tree(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(
        structure, [jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves, strict=True)]
    )


def _tree_step(key, params, step_size, estimator):
    grad_key, noise_key = jax.random.split(key)
    grads = estimator.estimate(grad_key, (), params)[0].gradient
    scale = jnp.sqrt(2.0 * step_size)
    return jax.tree.map(lambda p, g, n: p - step_size * g + scale * n, params, grads, _noise_tree(noise_key, params))


# SGLD on any pytree, one key a leaf.
tree_sgld = simple_sampler(_tree_step)


def _ravel_step(key, params, step_size, estimator):
    grad_key, noise_key = jax.random.split(key)
    flat, unravel = ravel_pytree(params)
    grad, _ = ravel_pytree(estimator.estimate(grad_key, (), params)[0].gradient)
    noise = jax.random.normal(noise_key, flat.shape, flat.dtype)
    return unravel(flat - step_size * grad + jnp.sqrt(2 * step_size) * noise)


# SGLD on the ravelled vector.
ravel_sgld = simple_sampler(_ravel_step)


def _one_step(key, x, h, estimator):
    grad_key, noise_key = jax.random.split(key)
    grad = estimator.estimate(grad_key, (), x)[0].gradient
    return x - h * grad + jnp.sqrt(2 * h) * jax.random.normal(noise_key, x.shape, x.dtype)


def _scan_step(key, x, step_size, estimator, num=4):
    body = lambda x, k: (_one_step(k, x, step_size / num, estimator), None)
    return jax.lax.scan(body, x, jax.random.split(key, num))[0]


# Four Euler steps of a quarter of the time, by scan: the stationary law of Euler at h / 4.
substeps_scan = simple_sampler(_scan_step)


def _fori_step(key, x, step_size, estimator):
    return jax.lax.fori_loop(0, 3, lambda i, x: _one_step(jax.random.fold_in(key, i), x, step_size, estimator), x)


# Three full SGLD steps a call (thinning by three), keys by fold_in: the stationary law of SGLD.
thinned_fori = simple_sampler(_fori_step)


def _while_step(key, x, step_size, estimator):
    def body(carry):
        key, x, time_left = carry
        key, sub = jax.random.split(key)
        return key, _one_step(sub, x, step_size / 2, estimator), time_left - 1

    return jax.lax.while_loop(lambda carry: carry[2] > 0, body, (key, x, 2))[1]


# Two Euler steps of half the time, by while_loop: the stationary law of Euler at h / 2.
substeps_while = simple_sampler(_while_step)


class Counted(NamedTuple):
    """Position and the number of steps so far."""

    position: jax.Array
    num_steps: jax.Array


# A counter that only counts; `unpack` and `pack` left to the helper.
counted = simple_sampler(
    lambda key, s, h, estimator: Counted(_one_step(key, s.position, h, estimator), s.num_steps + 1),
    init=lambda key, position, estimator: Counted(position, jnp.zeros((), jnp.int32)),
)


class Averaged(NamedTuple):
    """Position, running mean and mean square of all samples (diagnostics), count, estimator state."""

    position: jax.Array
    mean: jax.Array
    square: jax.Array
    count: jax.Array
    estate: Any


class AveragedSGLD:
    """SGLD that carries Welford averages of its samples; nothing reads them in a step."""

    def init(self, key, position, estimator):
        zero = jnp.zeros_like(position)
        return Averaged(position, zero, zero, jnp.zeros((), jnp.int32), estimator.init(key, position))

    def step(self, key, state, step_size, estimator):
        grad_key, noise_key = jax.random.split(key)
        estimate, estate = estimator.estimate(grad_key, state.estate, state.position)
        noise = jax.random.normal(noise_key, state.position.shape, state.position.dtype)
        x = state.position - step_size * estimate.gradient + jnp.sqrt(2 * step_size) * noise
        count = state.count + 1
        weight = (1 / count).astype(x.dtype)
        mean = state.mean + weight * (x - state.mean)
        square = state.square + weight * (x * x - state.square)
        return Averaged(x, mean, square, count, estate)


def _flax_init(key, position, estimator):
    opt_state = {"count": jnp.zeros((), jnp.int32), "rms": jnp.zeros_like(position)}
    return {"params": {"w": position}, "opt_state": opt_state}


def _flax_step(key, state, step_size, estimator):
    x, opt = state["params"]["w"], state["opt_state"]
    grad_key, noise_key = jax.random.split(key)
    grad = estimator.estimate(grad_key, (), x)[0].gradient
    x = x - step_size * grad + jnp.sqrt(2 * step_size) * jax.random.normal(noise_key, x.shape, x.dtype)
    rms = 0.9 * opt["rms"] + 0.1 * grad**2  # logged, not used
    return {"params": {"w": x}, "opt_state": {"count": opt["count"] + 1, "rms": rms}}


# A nested dict like that of a training loop, with a logged mean square of gradients that no step reads.
nested_dict = simple_sampler(_flax_step, init=_flax_init, position=lambda s: s["params"]["w"])


@jax.tree_util.register_dataclass
@dataclass
class Chain:
    """A chain: where it is, and the norm of its last gradient for the log."""

    theta: jax.Array
    grad_norm: jax.Array


def _chain_step(key, chain, step_size, estimator):
    grad_key, noise_key = jax.random.split(key)
    grad = estimator.estimate(grad_key, (), chain.theta)[0].gradient
    noise = jax.random.normal(noise_key, chain.theta.shape, chain.theta.dtype)
    theta = chain.theta - step_size * grad + jnp.sqrt(2 * step_size) * noise
    return Chain(theta, jnp.linalg.norm(grad))


# A registered dataclass as state, all four functions given.
registered = simple_sampler(
    _chain_step,
    init=lambda key, position, estimator: Chain(position, jnp.zeros((), position.dtype)),
    position=lambda chain: chain.theta,
    unpack=lambda chain: chain.theta,
    pack=lambda key, z, estimator: Chain(z, jnp.zeros((), z.dtype)),
)


class WithKey(NamedTuple):
    """Position and the key of the noise of the next step."""

    position: jax.Array
    rng: jax.Array


def _own_rng_step(key, state, step_size, estimator):
    grad_key, next_rng = jax.random.split(key)
    grad = estimator.estimate(grad_key, (), state.position)[0].gradient
    noise = jax.random.normal(state.rng, state.position.shape, state.position.dtype)
    x = state.position - step_size * grad + jnp.sqrt(2 * step_size) * noise
    return WithKey(x, next_rng)


# The key of the noise is stored one step ahead and used once: each step's noise is independent of the position.
key_ahead = simple_sampler(_own_rng_step, init=lambda key, position, estimator: WithKey(position, key))


@functools.partial(jax.jit, static_argnames="noisy")
def _update(x, grad, noise, h, *, noisy):
    drift = x - h * grad
    return drift + jnp.sqrt(2 * h) * noise if noisy else drift


def _jitted_step(key, x, step_size, estimator):
    grad_key, noise_key = jax.random.split(key)
    grad = estimator.estimate(grad_key, (), x)[0].gradient
    return _update(x, grad, jax.random.normal(noise_key, x.shape, x.dtype), step_size, noisy=True)


# The update in a jitted helper with a static flag.
jitted_helper = simple_sampler(_jitted_step)


def _per_coordinate_step(key, x, step_size, estimator):
    grad_key, noise_key = jax.random.split(key)
    grad = estimator.estimate(grad_key, (), x)[0].gradient
    keys = jax.random.split(noise_key, x.size)
    move = lambda k, xi, gi: xi - step_size * gi + jnp.sqrt(2 * step_size) * jax.random.normal(k, (), x.dtype)
    return jax.vmap(move)(keys, x.ravel(), grad.ravel()).reshape(x.shape)


# One key a coordinate, by vmap.
vmapped = simple_sampler(_per_coordinate_step)


def _guarded_step(key, x, step_size, estimator, max_norm=1e7):
    grad_key, noise_key = jax.random.split(key)
    grad = estimator.estimate(grad_key, (), x)[0].gradient
    grad = grad * jnp.minimum(1.0, max_norm / jnp.maximum(jnp.linalg.norm(grad), 1e-12))
    grad = jnp.where(jnp.isfinite(grad), grad, 0.0)
    new = x - step_size * grad + jnp.sqrt(2 * step_size) * jax.random.normal(noise_key, x.shape, x.dtype)
    return jnp.where(jnp.all(jnp.isfinite(new)), new, x)


# Gradients clipped at a norm of 1e7 and guards against NaN, none of which binds at a usual step size.
guarded = simple_sampler(_guarded_step)


@jax.checkpoint
def _drift(x, grad, h):
    return x - h * jnp.clip(grad, -1e8, 1e8)


def _checkpointed_step(key, x, step_size, estimator):
    grad_key, noise_key = jax.random.split(key)
    grad = estimator.estimate(grad_key, (), x)[0].gradient
    return _drift(x, grad, step_size) + jnp.sqrt(2 * step_size) * jax.random.normal(noise_key, x.shape, x.dtype)


# jax.checkpoint around the drift, clipped at 1e8.
checkpointed = simple_sampler(_checkpointed_step)
