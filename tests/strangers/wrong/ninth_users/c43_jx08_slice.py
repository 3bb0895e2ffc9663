"""Slice sampling along random directions (hit-and-run), with shrinkage.

A level below the density at x, a uniformly random direction, a bracket of half width `width` around x, and shrinkage
of the bracket towards x until a point lies on the slice. No tuning, no step size. Exact.
"""
import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def slice_sampler(width=2.5):
    def step(key, position, step_size, estimator):
        x, unravel = ravel_pytree(position)
        data_key, level_key, way_key, loop_key = jax.random.split(key, 4)
        log_density = lambda v: -estimator.estimate(data_key, (), unravel(v))[0].potential
        level = log_density(x) - jax.random.exponential(level_key, dtype=x.dtype)
        way = jax.random.normal(way_key, x.shape, x.dtype)
        way = way / jnp.linalg.norm(way)

        def draw(carry):
            key, low, high, _, _ = carry
            key, sub = jax.random.split(key)
            t = jax.random.uniform(sub, dtype=x.dtype, minval=low, maxval=high)
            inside = log_density(x + t * way) > level
            return key, jnp.where(t < 0, t, low), jnp.where(t < 0, high, t), t, inside

        half = jnp.asarray(width, x.dtype)
        start = (loop_key, -half, half, jnp.zeros((), x.dtype), jnp.asarray(False))
        t = lax.while_loop(lambda c: ~c[4], draw, start)[3]
        return unravel(x + t * way)

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))


# wrong: the first bracket has x in its middle for x at a uniform place of it.
# wrong: Variance 0.84 for 1 on N(0, 1) (width 2.5), 0.73 at width 1.25, 0.98 at 5.
