"""Slices, changes of scale, temperatures that come and go, and a drift that turns."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())
SHRINKS = 40


def slice_sweep_step(key, position, step_size, estimator):
    """One sweep of univariate slice sampling: a bracket of width 8 sqrt(h) at random around x_i, shrunk on failure."""
    here_key, energy_key, level_key, bracket_key, shrink_key = jax.random.split(key, 5)
    x, unravel = ravel_pytree(position)
    width = 8 * jnp.sqrt(jnp.asarray(step_size, x.dtype))
    here = estimator.estimate(here_key, (), position)[0].potential
    # all random numbers of the sweep are drawn at once
    levels = here + jax.random.exponential(level_key, x.shape, x.dtype)
    offsets = jax.random.uniform(bracket_key, x.shape, x.dtype)
    shares = jax.random.uniform(shrink_key, (x.size, SHRINKS), x.dtype)

    def energy(z):
        return estimator.estimate(energy_key, (), unravel(z))[0].potential

    def coordinate(x, drawn):
        i, level, offset, share = drawn
        low = x[i] - offset * width

        def outside(carry):
            return (carry[0] < SHRINKS) & ~carry[-1]

        def shrink(carry):
            tries, low, high, _, _ = carry
            point = low + (high - low) * share[tries]
            inside = energy(x.at[i].set(point)) <= level
            below = point < x[i]
            low, high = jnp.where(below, point, low), jnp.where(below, high, point)
            return tries + 1, low, high, point, inside

        start = (jnp.asarray(0), low, low + width, x[i], jnp.asarray(False))
        _, _, _, point, inside = jax.lax.while_loop(outside, shrink, start)
        return x.at[i].set(jnp.where(inside, point, x[i])), None

    return unravel(jax.lax.scan(coordinate, x, (jnp.arange(x.size), levels, offsets, shares))[0])


slice_sweep = simple_sampler(slice_sweep_step, claims=EXACT)


def stretching_walk_step(key, position, step_size, estimator):
    """A random walk step, and then a change of scale x -> exp(s) x with its Jacobian exp(s dim)."""
    keys = jax.random.split(key, 8)
    spread = jnp.sqrt(2 * jnp.asarray(step_size))
    dim = sum(len(jnp.atleast_1d(leaf)) for leaf in jax.tree.leaves(position))

    def energy(key, z):
        return estimator.estimate(key, (), z)[0].potential

    def test(key, log_ratio, new, old):
        accepts = jnp.log(jax.random.uniform(key, (), log_ratio.dtype)) < log_ratio
        return jax.tree.map(lambda a, b: jnp.where(accepts, a, b), new, old)

    x, unravel = ravel_pytree(position)
    walked = unravel(x + spread.astype(x.dtype) * jax.random.normal(keys[0], x.shape, x.dtype))
    position = test(keys[1], energy(keys[2], position) - energy(keys[7], walked), walked, position)
    s = spread.astype(x.dtype) * jax.random.normal(keys[3], (), x.dtype)
    scaled = jax.tree.map(lambda leaf: jnp.exp(s).astype(leaf.dtype) * leaf, position)
    return test(keys[4], energy(keys[5], position) - energy(keys[6], scaled) + dim * s, scaled, position)


stretching_walk = simple_sampler(stretching_walk_step, claims=EXACT)


class Tempered(NamedTuple):
    position: Any
    walker: Any
    hot: jax.Array


@dataclass(frozen=True)
class SimulatedTempering:
    """SGLD that changes between the temperatures 1 and `ratio`, by a Metropolis test.

    The joint law is exp(-U) at the cold level and exp(-U / ratio - offset) at the hot one. What is shown is the walker
    when it was last cold; samples of the hot level are of another law, and are never shown.
    """

    ratio: float = 2.0
    offset: float = 1.0
    rate: float = 1.0

    def init(self, key, position, estimator):
        return Tempered(position, position, jnp.asarray(False))

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key, energy_key, try_key, accept_key = jax.random.split(key, 5)
        x, unravel = ravel_pytree(state.walker)
        h = jnp.asarray(step_size, x.dtype)
        temperature = jnp.where(state.hot, self.ratio, 1.0).astype(x.dtype)
        gradient = ravel_pytree(estimator.estimate(gradient_key, (), state.walker)[0].gradient)[0]
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        walker = unravel(x - h * gradient + jnp.sqrt(2 * h * temperature) * noise)
        energy = estimator.estimate(energy_key, (), walker)[0].potential
        heat = (1 - 1 / self.ratio) * energy - self.offset
        log_ratio = jnp.where(state.hot, -heat, heat)
        tries = jax.random.uniform(try_key) < 1 - jnp.exp(-self.rate * step_size)
        accepts = jnp.log(jax.random.uniform(accept_key, (), log_ratio.dtype)) < log_ratio
        hot = jnp.where(tries & accepts, ~state.hot, state.hot)
        shown = jax.tree.map(lambda new, old: jnp.where(hot, old, new), walker, state.position)
        return Tempered(shown, walker, hot)


@dataclass(frozen=True)
class SwirlingLangevin:
    """Langevin dynamics with a skew drift, which mixes faster: pairs of coordinates turn, most quickly near zero."""

    speed: float = 4.0

    def step(self, key, position, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        x, unravel = ravel_pytree(position)
        h = jnp.asarray(step_size, x.dtype)
        gradient = ravel_pytree(estimator.estimate(gradient_key, (), position)[0].gradient)[0]
        half = x.size // 2
        first, second, rest = gradient[:half], gradient[half : 2 * half], gradient[2 * half :]
        turned = jnp.concatenate([-second, first, jnp.zeros_like(rest)])  # J grad U with J skew
        drift = gradient + self.speed / (1 + jnp.sum(x**2)) * turned
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        return unravel(x - h * drift + jnp.sqrt(2 * h) * noise)
