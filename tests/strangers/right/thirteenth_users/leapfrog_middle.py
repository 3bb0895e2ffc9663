"""Underdamped Langevin dynamics, the "middle" scheme in leapfrog form: B A O A with a force that is kept.

A step from (x, p) with the force f = -grad U(x) that the step before has evaluated at x:

    B   p <- p + h f
    A   x <- x + h/2 p / m
    O   p <- c p + sqrt(m T (1 - c^2)) xi,        c = exp(-friction h)
    A   x <- x + h/2 p / m
    f <- -grad U(x)

The positions are those of BAOAB, whose two half kicks at one place are joined here into a full one, so that momenta are
half a kick behind and lean on the force at O(h), while the law of positions is within O(h^2).
"""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(structure, [jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


def axpy(a, x, y):
    """a x + y, leaf by leaf."""
    return jax.tree.map(lambda u, v: a * u + v, x, y)


def force_at(key, position, estimator):
    return jax.tree.map(jnp.negative, estimator.estimate(key, (), position)[0].gradient)


def leapfrog_middle(friction=1.5, mass=2.0, temperature=1.0):
    if min(friction, mass, temperature) <= 0:
        raise ValueError("friction, mass and temperature are positive")

    def init(key, position, estimator):
        momentum_key, force_key = jax.random.split(key)
        scale = (mass * temperature) ** 0.5
        momentum = jax.tree.map(lambda a: scale * a, normal_like(momentum_key, position))
        return {"position": position, "momentum": momentum, "force": force_at(force_key, position, estimator)}

    def step(key, state, step_size, estimator):
        noise_key, force_key = jax.random.split(key)
        kept = jnp.exp(-friction * step_size)
        spread = jnp.sqrt(mass * temperature * -jnp.expm1(-2 * friction * step_size))
        drift = step_size / (2 * mass)

        p = axpy(step_size, state["force"], state["momentum"])
        x = axpy(drift, p, state["position"])
        p = jax.tree.map(lambda a, xi: kept * a + spread * xi, p, normal_like(noise_key, p))
        x = axpy(drift, p, x)
        return {"position": x, "momentum": p, "force": force_at(force_key, x, estimator)}

    return simple_sampler(
        step,
        init=init,
        position=lambda state: state["position"],
        claims=Claims(Source("", "own"), StationaryLaw(order=2, temperature=temperature)),
    )
