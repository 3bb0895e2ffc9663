"""Slice sampling along random lines, with Neal's doubling procedure.

    height    log y = -U(x) - E,  E ~ Exp(1)
    bracket   an interval of length `width`, placed uniformly around x, is doubled to the left or to the right, by a fair
              coin, until both of its ends are below the slice (at most `max_doublings` times)
    shrink    uniform points of the bracket, which is cut at each point that is not in the slice

Doubling finds wide slices in a logarithmic number of evaluations, which stepping out does not. R. M. Neal, Slice sampling,
Annals of Statistics 31 (2003), sections 4 and 5. There is no step size.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def _double(key, inside, width, max_doublings):
    """A bracket around 0 on the line, whose ends are outside of the slice."""
    place_key, coin_key = jax.random.split(key)
    left = -width * jax.random.uniform(place_key, dtype=width.dtype)

    def grows(carry):
        i, lo, hi = carry
        return (i < max_doublings) & (inside(lo) | inside(hi))

    def grow(carry):
        i, lo, hi = carry
        to_left = jax.random.bernoulli(jax.random.fold_in(coin_key, i))
        length = hi - lo
        return i + 1, jnp.where(to_left, lo - length, lo), jnp.where(to_left, hi, hi + length)

    _, lo, hi = jax.lax.while_loop(grows, grow, (0, left, left + width))
    return lo, hi


def _shrink(key, inside, lo, hi):
    """A point of the bracket that lies in the slice; 0 itself does, so that this ends."""

    def draw(i, lo, hi):
        return lo + (hi - lo) * jax.random.uniform(jax.random.fold_in(key, i), dtype=lo.dtype)

    def misses(carry):
        _, _, _, t = carry
        return ~inside(t)

    def cut(carry):
        i, lo, hi, t = carry
        lo, hi = jnp.where(t < 0, t, lo), jnp.where(t < 0, hi, t)
        return i + 1, lo, hi, draw(i + 1, lo, hi)

    return jax.lax.while_loop(misses, cut, (0, lo, hi, draw(0, lo, hi)))[-1]


def slice_doubling(width=1.0, max_doublings=8):
    """The sampler, with an initial bracket of length `width` in the units of the position."""
    if width <= 0 or max_doublings < 1:
        raise ValueError("width has to be positive, and one doubling at least is due")

    def step(key, position, step_size, estimator):
        del step_size
        batch_key, line_key, height_key, bracket_key, shrink_key = jax.random.split(key, 5)
        x, unravel = ravel_pytree(position)

        def log_density(q):
            return -estimator.estimate(batch_key, (), unravel(q))[0].potential

        direction = jax.random.normal(line_key, x.shape, x.dtype)
        direction = direction / jnp.linalg.norm(direction)
        height = log_density(x) - jax.random.exponential(height_key, dtype=x.dtype)

        def inside(t):
            return log_density(x + t * direction) >= height

        lo, hi = _double(bracket_key, inside, jnp.asarray(width, x.dtype), max_doublings)
        return unravel(x + _shrink(shrink_key, inside, lo, hi) * direction)

    return simple_sampler(step, claims=Claims(Source("", "Neal (2003), figures 4 and 5"), ExactLaw()))
