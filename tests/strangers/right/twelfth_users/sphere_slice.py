"""Geodesic shrinkage slice sampler on the sphere.

A great circle through x in a uniform direction, a level below the density at x, and an angle that is drawn from a bracket around the
circle, which shrinks towards x at each angle whose density is below the level (Habeck, Hasenpflug, Kodgirwar and Rudolf 2023). There
is no step size and nothing to tune; `sweeps` updates are made in one step.
"""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def tangent_direction(key, x):
    z = jax.random.normal(key, x.shape, x.dtype)
    v = z - x * jnp.vdot(x, z)
    return v / jnp.linalg.norm(v)


def great_circle(x, v, angle):
    y = x * jnp.cos(angle) + v * jnp.sin(angle)
    return y / jnp.linalg.norm(y)


def slice_update(key, x, log_density):
    direction_key, level_key, angle_key, loop_key = jax.random.split(key, 4)
    v = tangent_direction(direction_key, x)
    level = log_density(x) + jnp.log1p(-jax.random.uniform(level_key, (), x.dtype))
    angle = jax.random.uniform(angle_key, (), x.dtype, 0, 2 * jnp.pi)

    def below(loop):
        _, angle, low, high = loop
        open_bracket = high - low > jnp.finfo(x.dtype).eps  # what is left is x itself, up to round-off
        return open_bracket & (log_density(great_circle(x, v, angle)) < level)

    def shrink(loop):
        key, angle, low, high = loop
        key, draw_key = jax.random.split(key)
        low = jnp.where(angle < 0, angle, low)
        high = jnp.where(angle < 0, high, angle)
        return key, low + (high - low) * jax.random.uniform(draw_key, (), x.dtype), low, high

    angle = jax.lax.while_loop(below, shrink, (loop_key, angle, angle - 2 * jnp.pi, angle))[1]
    return great_circle(x, v, angle)


def geodesic_slice(sweeps: int = 1):
    if sweeps < 1:
        raise ValueError("one sweep at least")

    def step(key, x, step_size, estimator):
        estimate_key, update_key = jax.random.split(key)
        log_density = lambda q: -estimator.estimate(estimate_key, (), q)[0].potential
        for one in jax.random.split(update_key, sweeps):
            x = slice_update(one, x, log_density)
        return x

    claims = Claims(Source("", "Habeck, Hasenpflug, Kodgirwar and Rudolf 2023"), ExactLaw(), spaces=("sphere",))
    return simple_sampler(step, claims=claims)
