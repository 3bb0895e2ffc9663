"""Slice sampling along random lines, with Neal's doubling procedure (Neal, 2003, figures 4 and 5).

Each step draws a level below the density at the present point, a line through it in a uniform direction, doubles an interval of width
`width` until both ends are outside of the slice (`max_doublings` times at most), and then shrinks it towards the present point. There is
nothing to tune but the width, and a wrong one costs a few evaluations only.
"""

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


def uniform_direction(key, like):
    v = jax.random.normal(key, like.shape, like.dtype)
    return v / jnp.linalg.norm(v)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SliceSampler:
    width: float = dataclasses.field(default=1.0, metadata={"static": True})
    max_doublings: int = dataclasses.field(default=6, metadata={"static": True})

    claims = Claims(Source("neal2003", "section 4"), ExactLaw())

    def double(self, key, outside, dtype):
        """An interval around 0 whose ends are outside of the slice, or that has been doubled often enough."""
        place_key, side_key = jax.random.split(key)
        left = -self.width * jax.random.uniform(place_key, (), dtype)
        right = left + self.width
        to_left = jax.random.bernoulli(side_key, 0.5, (self.max_doublings,))

        def go_on(carry):
            count, left, right = carry
            return (count < self.max_doublings) & ~(outside(left) & outside(right))

        def widen(carry):
            count, left, right = carry
            length = right - left
            left_next = jnp.where(to_left[count], left - length, left)
            right_next = jnp.where(to_left[count], right, right + length)
            return count + 1, left_next, right_next

        _, left, right = lax.while_loop(go_on, widen, (jnp.zeros((), jnp.int32), left, right))
        return left, right

    def shrink(self, key, outside, left, right):
        """A uniform point of the interval that is in the slice; points outside of it become the new ends."""

        def draw(key, left, right):
            key, draw_key = jax.random.split(key)
            return key, left + (right - left) * jax.random.uniform(draw_key, (), left.dtype)

        def body(carry):
            key, left, right, t = carry
            left, right = jnp.where(t < 0, t, left), jnp.where(t < 0, right, t)
            key, t = draw(key, left, right)
            return key, left, right, t

        key, t = draw(key, left, right)
        return lax.while_loop(lambda carry: outside(carry[3]), body, (key, left, right, t))[3]

    def step(self, key, position, step_size, estimator):
        batch_key, level_key, line_key, double_key, shrink_key = jax.random.split(key, 5)
        x, unravel = ravel_pytree(position)
        energy = lambda q: estimator.estimate(batch_key, (), unravel(q))[0].potential
        level = energy(x) + jax.random.exponential(level_key, (), x.dtype)
        line = uniform_direction(line_key, x)
        outside = lambda t: energy(x + t * line) > level
        left, right = self.double(double_key, outside, x.dtype)
        t = self.shrink(shrink_key, outside, left, right)
        return unravel(x + t * line)
