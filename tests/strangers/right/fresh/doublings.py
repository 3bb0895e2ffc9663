"""No-U-turn samplers of few doublings that JAX can trace: all points of the longest trajectory, and trees over them."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

NUTS = Claims(Source("hoffman2014no", "with multinomial weights"), ExactLaw())


def trajectory(estimator, key, x, p, h, length):
    """Points -length ... length of the leapfrog trajectory through (x, p): positions, momenta, energies."""

    def evaluate(x):
        found = estimator.estimate(key, (), x)[0]
        return found.potential, found.gradient

    def leap(t):
        def one(carry, _):
            x, p, g = carry
            p = p - t / 2 * g
            x = x + t * p
            u, g = evaluate(x)
            p = p - t / 2 * g
            return (x, p, g), (x, p, u + jnp.sum(p**2) / 2)

        return one

    u, g = evaluate(x)
    forth = jax.lax.scan(leap(h), (x, p, g), None, length)[1]
    back = jax.lax.scan(leap(-h), (x, p, g), None, length)[1]
    here = (x, p, u + jnp.sum(p**2) / 2)
    return [jnp.concatenate([b[::-1], c[None], f]) for b, c, f in zip(back, here, forth)]


def grow(key, points, depth, length):
    """Lowest and highest index of the tree at which doubling stops, and its number of doublings.

    A subtree that turns within itself is not taken. Every point of the tree would have led to it with equal
    probability: the subtrees that it would have met on the way are all looked at.
    """
    xs, ps, _ = points

    def turns(low, high):
        span = xs[high + length] - xs[low + length]
        return (jnp.sum(span * ps[low + length]) < 0) | (jnp.sum(span * ps[high + length]) < 0)

    def turns_within(low, level):
        found = jnp.asarray(False)
        for k in range(1, level + 1):
            for m in range(2 ** (level - k)):
                found |= turns(low + m * 2**k, low + (m + 1) * 2**k - 1)
        return found

    low = high = jnp.zeros((), jnp.int32)
    going, doublings = jnp.asarray(True), jnp.zeros((), jnp.int32)
    forward = jax.random.bernoulli(key, 0.5, (depth,))
    for level in range(depth):
        start = jnp.where(forward[level], high + 1, low - 2**level)
        take = going & ~turns_within(start, level)
        low = jnp.where(take & ~forward[level], start, low)
        high = jnp.where(take & forward[level], high + 2**level, high)
        doublings = doublings + take
        going = take & ~turns(low, high)
    return low, high, doublings


def transition(key, x, h, estimator, depth):
    """(position, number of doublings): a point of the tree by its weight exp(-energy)."""
    a, b, c, d = jax.random.split(key, 4)
    length = 2**depth - 1
    p = jax.random.normal(a, x.shape, x.dtype)
    points = trajectory(estimator, d, x, p, h, length)
    low, high, doublings = grow(b, points, depth, length)
    index = jnp.arange(-length, length + 1)
    logits = jnp.where((index >= low) & (index <= high), -points[2], -jnp.inf)
    return points[0][jax.random.categorical(c, logits)], doublings


# Two doublings: at most four points of seven.
two_doublings = simple_sampler(lambda key, x, h, estimator: transition(key, x, h, estimator, 2)[0], claims=NUTS)


class Diagnosed(NamedTuple):
    position: Any
    doublings: Any
    total: Any


class ThreeDoublings:
    """Three doublings of 2 h, with the depth of the last tree and the sum of all in the state."""

    claims = NUTS
    needs = ("gradient", "potential")

    def init(self, key, position, estimator):
        zero = jnp.zeros((), jnp.int32)
        return Diagnosed(position, zero, zero)

    def step(self, key, state, step_size, estimator):
        x, doublings = transition(key, state.position, 2 * step_size, estimator, 3)
        return Diagnosed(x, doublings, state.total + doublings)


three_doublings = ThreeDoublings()
