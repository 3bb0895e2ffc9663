"""Stochastic gradient Nose-Hoover thermostat (Ding et al., 2014) for trees of parameters.

    dx  = p dt
    dp  = -grad U dt - xi p dt + sqrt(2 A) dW
    dxi = (|p|^2 / d - 1) / Q dt

xi absorbs the unknown noise of the gradient.  Friction and noise are integrated exactly for the current xi.
"""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return structure.unflatten([jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


def temperature(momentum):
    """Kinetic temperature: mean square of the momenta."""
    per_leaf = jnp.stack([jnp.mean(p**2) for p in jax.tree.leaves(momentum)])
    return jnp.mean(per_leaf)


def decay_and_spread(xi, diffusion, step_size):
    """exp(-xi h), and the standard deviation of the Ornstein-Uhlenbeck step; xi may be 0 or negative."""
    rate = 2 * xi * step_size
    safe = jnp.where(jnp.abs(rate) < 1e-4, 1.0, rate)
    ratio = jnp.where(jnp.abs(rate) < 1e-4, 1 - rate / 2 + rate**2 / 6, -jnp.expm1(-safe) / safe)
    return jnp.exp(-rate / 2), jnp.sqrt(2 * diffusion * step_size * ratio)


def sgnht(diffusion=1.0, mass=1.0):
    """`diffusion` is A, `mass` is Q."""

    def init(key, position, estimator):
        first = jax.tree.leaves(position)[0]
        return {
            "position": position,
            "momentum": normal_like(key, position),
            "xi": jnp.asarray(diffusion, first.dtype),
        }

    def step(key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        x, p, xi = state["position"], state["momentum"], state["xi"]
        gradient = estimator.estimate(gradient_key, (), x)[0].gradient
        kept, spread = decay_and_spread(xi, diffusion, step_size)
        p = jax.tree.map(lambda a, g, n: kept * (a - step_size * g) + spread * n, p, gradient, normal_like(noise_key, p))
        x = jax.tree.map(lambda a, b: a + step_size * b, x, p)
        xi = xi + step_size * (temperature(p) - 1) / mass
        return {"position": x, "momentum": p, "xi": xi}

    return simple_sampler(step, init=init)
