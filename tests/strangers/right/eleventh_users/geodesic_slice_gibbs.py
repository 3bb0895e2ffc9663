"""Blocks in turn: a direction on the sphere by slices of great circles, and numbers beside it by several antithetic proposals.

The direction: a great circle through x with a uniform tangent, a level below exp(-U), and angles from a bracket of a full turn that
shrinks towards x (Habeck, Hasenpflug, Kodgirwar and Rudolf, 2023).

The numbers z: an auxiliary centre c = z + w e with e normal. Given c, the candidates c + w s e_k, with both signs s and with further normal
e_k, have the same joint density whichever of them z is, so that one is drawn with probabilities proportional to exp(-U). There is no
rejection and no step size.
"""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


def unit_tangent(key, x):
    v = jax.random.normal(key, x.shape, x.dtype)
    v = v - x * jnp.sum(x * v)
    return v / jnp.linalg.norm(v)


def circle_slice(key, x, energy):
    tangent_key, level_key, angle_key, loop_key = jax.random.split(key, 4)
    v = unit_tangent(tangent_key, x)
    level = energy(x) + jax.random.exponential(level_key, (), x.dtype)
    at = lambda angle: jnp.cos(angle) * x + jnp.sin(angle) * v
    angle = jax.random.uniform(angle_key, (), x.dtype, 0, 2 * jnp.pi)

    def outside(carry):
        return energy(at(carry[0])) > level

    def shrink(carry):
        angle, low, high, k = carry
        low, high = jnp.where(angle < 0, angle, low), jnp.where(angle < 0, high, angle)
        k, draw_key = jax.random.split(k)
        return low + (high - low) * jax.random.uniform(draw_key, (), x.dtype), low, high, k

    angle, *_ = jax.lax.while_loop(outside, shrink, (angle, angle - 2 * jnp.pi, angle, loop_key))
    y = at(angle)
    return y / jnp.linalg.norm(y)


def antithetic_candidates(key, z, energy, width, pairs):
    own_key, other_key, choice_key = jax.random.split(key, 3)
    own = jax.random.normal(own_key, (1, *z.shape), z.dtype)
    others = jax.random.normal(other_key, (pairs - 1, *z.shape), z.dtype)
    noise = jnp.concatenate([own, others])
    centre = z + width * own[0]
    candidates = jnp.concatenate([centre - width * noise, centre + width * noise])
    chosen = jax.random.categorical(choice_key, -jax.vmap(energy)(candidates))
    return candidates[chosen]


class GeodesicSliceGibbs:
    claims = Claims(Source("", "own"), ExactLaw(), spaces=("sphere x euclidean",))

    def __init__(self, width=0.7, pairs=3):
        if pairs < 1 or width <= 0:
            raise ValueError("pairs and width have to be positive")
        self.width, self.pairs = width, pairs

    def init(self, key, position, estimator):
        direction, numbers = position
        return direction, numbers

    def step(self, key, state, step_size, estimator):
        direction_key, numbers_key, energy_key = jax.random.split(key, 3)
        x, z = state
        energy = lambda point: estimator.estimate(energy_key, (), point)[0].potential
        x = circle_slice(direction_key, x, lambda q: energy((q, z)))
        z = antithetic_candidates(numbers_key, z, lambda q: energy((x, q)), self.width, self.pairs)
        return x, z
