"""Overdamped Langevin integrators in JAX: randomised midpoint, weak Heun, Rademacher noise, Leimkuhler-Matthews.

Everything targets exp(-U) and discretises dx = -grad U dt + sqrt(2) dW.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler

# --------------------------------------------------------------------------------------------------------------------
# 1. randomised midpoint (Shen & Lee 2019, overdamped version of He, Balasubramanian & Erdogdu 2020)


def grad_u(estimator, key, x):
    estimate, _ = estimator.estimate(key, (), x)
    return estimate.gradient


@jax.jit
def _brownian_pair(alpha, h, first, second):
    """Brownian increments (times sqrt 2) over [0, alpha h] and [0, h]."""
    until_mid = jnp.sqrt(2.0 * alpha * h) * first
    rest = jnp.sqrt(2.0 * (1.0 - alpha) * h) * second
    return until_mid, until_mid + rest


def rmm_step(key, x, h, estimator):
    k_alpha, k_first, k_second, k_g0, k_g1 = jax.random.split(key, 5)
    alpha = jax.random.uniform(k_alpha, (), x.dtype)
    b_mid, b_end = _brownian_pair(
        alpha, h, jax.random.normal(k_first, x.shape, x.dtype), jax.random.normal(k_second, x.shape, x.dtype)
    )
    x_mid = x - alpha * h * grad_u(estimator, k_g0, x) + b_mid
    return x - h * grad_u(estimator, k_g1, x_mid) + b_end


randomised_midpoint = simple_sampler(rmm_step)


# --------------------------------------------------------------------------------------------------------------------
# 2. weak second order Heun with the three point variable


class WeakHeun:
    """Kloeden & Platen's simplified weak order 2 scheme; for additive noise it is Heun's method.

    The Gaussian increment is replaced by sqrt(3 dt) * {-1 w.p. 1/6, 0 w.p. 2/3, +1 w.p. 1/6}, whose first five
    moments are those of the normal.
    """

    claims = Claims(
        Source("", "Kloeden and Platen (1992), section 15.1"), StationaryLaw(order=2), conditions=("exact gradient",)
    )

    table = (-math.sqrt(3.0), 0.0, 0.0, 0.0, 0.0, math.sqrt(3.0))

    def three_point(self, key, like):
        die = jax.random.randint(key, like.shape, 0, 6)
        return jnp.asarray(self.table, like.dtype)[die]

    def step(self, key, x, dt, estimator):
        noise_key, *gradient_keys = jax.random.split(key, 3)
        dw = jnp.sqrt(2 * dt) * self.three_point(noise_key, x)
        f = lambda k, q: -estimator.estimate(k, (), q)[0].gradient
        drift = f(gradient_keys[0], x)
        predictor = x + dt * drift + dw
        return x + 0.5 * dt * (drift + f(gradient_keys[1], predictor)) + dw


# --------------------------------------------------------------------------------------------------------------------
# 3. SGLD on pytrees with Rademacher noise


def random_signs(key, tree):
    leaves, treedef = jax.tree_util.tree_flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree_util.tree_unflatten(
        treedef, [jax.random.rademacher(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves)]
    )


def sign_sgld_step(key, params, lr, estimator):
    key, subkey = jax.random.split(key)
    grads = estimator.estimate(subkey, (), params)[0].gradient
    signs = random_signs(key, params)

    def update(scale, p, g, s):
        return (p - lr * g + scale * s).astype(p.dtype)

    return jax.tree_util.tree_map(partial(update, jnp.sqrt(2.0 * lr)), params, grads, signs)


rademacher_sgld = simple_sampler(sign_sgld_step)


# --------------------------------------------------------------------------------------------------------------------
# 4. Leimkuhler & Matthews (2013), with the PRNG key of the chain in the state


@partial(jax.tree_util.register_dataclass, data_fields=["position", "noise", "rng", "n_steps"], meta_fields=[])
@dataclass(frozen=True)
class ChainState:
    position: jax.Array
    noise: jax.Array
    rng: jax.Array
    n_steps: jax.Array


class LeimkuhlerMatthews:
    """x' = x - h grad U(x) + sqrt(h / 2) (R_n + R_{n+1}); the old noise is remembered."""

    def init(self, key, position, estimator):
        rng, first = jax.random.split(key)
        noise = jax.random.normal(first, position.shape, position.dtype)
        return ChainState(position, noise, rng, jnp.zeros((), jnp.int32))

    def step(self, key, state, h, estimator):
        rng, sub = jax.random.split(state.rng)  # the chain has its own stream; `key` is for the minibatch
        fresh = jax.random.normal(sub, state.noise.shape, state.noise.dtype)
        g = estimator.estimate(key, (), state.position)[0].gradient
        x = state.position - h * g + jnp.sqrt(0.5 * h) * (state.noise + fresh)
        return replace(state, position=x, noise=fresh, rng=rng, n_steps=state.n_steps + 1)
