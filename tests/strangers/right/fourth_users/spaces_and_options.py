"""Samplers of positive numbers, of a box, a simplex and a sphere, and classes with options."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, StationaryLaw, simple_sampler

OWN = Source("", "own")


def exact_on(space):
    return Claims(OWN, ExactLaw(), spaces=(space,))


def langevin_on(space):
    return Claims(OWN, StationaryLaw(order=1), spaces=(space,))


def gradient_of(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def energy_of(estimator, key):
    return lambda q: estimator.estimate(key, (), q)[0].potential


def normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def log_uniform(key, x):
    return jnp.log(jax.random.uniform(key, dtype=x.dtype))


# 1. Positive numbers: a Langevin step of y, x = log(1 + e^y); dx/dy = s = 1 - e^-x, and (log s)' = 1 - s = e^-x


def softplus_step(key, x, h, estimator):
    batch_key, noise_key = jax.random.split(key)
    s = -jnp.expm1(-x)
    y = x + jnp.log(s)
    y = y + h * (jnp.exp(-x) - s * gradient_of(estimator, batch_key, x)) + jnp.sqrt(2 * h) * normal(noise_key, x)
    return jax.nn.softplus(y)


softplus = simple_sampler(softplus_step, claims=langevin_on("positive"))


# 2. Positive numbers: a walk of the logarithms, tested


@dataclass
class Multiplicative:
    """y = x exp(scale sqrt(h) v), v uniform with variance 1; dy / y = dx / x, so that x has the density pi(x) x."""

    scale: float = 1.0
    claims = exact_on("positive")

    def __post_init__(self):
        if not self.scale > 0:
            raise ValueError("scale has to be positive")

    def step(self, key, x, h, estimator):
        batch_key, move_key, accept_key = jax.random.split(key, 3)
        energy = energy_of(estimator, batch_key)
        root = math.sqrt(3)
        v = jax.random.uniform(move_key, x.shape, x.dtype, -root, root)
        log_factor = self.scale * jnp.sqrt(h) * v
        y = x * jnp.exp(log_factor)
        log_ratio = energy(x) - energy(y) + jnp.sum(log_factor)
        return jnp.where(log_uniform(accept_key, x) < log_ratio, y, x)


# 3. Simplex: two coordinates share what they have anew, tested; it has no step size


def share_step(key, x, h, estimator):
    batch_key, first_key, second_key, share_key, accept_key = jax.random.split(key, 5)
    energy = energy_of(estimator, batch_key)
    i = jax.random.randint(first_key, (), 0, x.size)
    j = (i + jax.random.randint(second_key, (), 1, x.size)) % x.size
    total, share = x[i] + x[j], jax.random.uniform(share_key, dtype=x.dtype)
    y = x.at[i].set(total * share).at[j].set(total * (1 - share))
    return jnp.where(log_uniform(accept_key, x) < energy(x) - energy(y), y, x)


share = simple_sampler(share_step, claims=exact_on("simplex"))


# 4. Simplex: a Langevin step of the centred log ratios c, x = softmax(c), whose volume is the product of x


def centred_step(key, x, h, estimator):
    batch_key, noise_key = jax.random.split(key)
    g = gradient_of(estimator, batch_key, x)
    slope = x * (g - jnp.dot(x, g)) - 1 + x.size * x  # of U(softmax(c)) - sum of log softmax(c); its sum is zero
    noise = normal(noise_key, x)
    c = jnp.log(x) - h * slope + jnp.sqrt(2 * h) * (noise - jnp.mean(noise))
    return jax.nn.softmax(c)


centred = simple_sampler(centred_step, claims=langevin_on("simplex"))


# 5. Sphere: HMC along great circles (Byrne and Girolami)


class GreatCircles:
    claims = exact_on("sphere")

    def __init__(self, leaps=3):
        if leaps != int(leaps) or leaps < 1:
            raise ValueError("leaps is a number of steps")
        self.leaps = int(leaps)

    def step(self, key, x, h, estimator):
        batch_key, velocity_key, accept_key = jax.random.split(key, 3)
        eps = jnp.sqrt(h)
        at = lambda q: estimator.estimate(batch_key, (), q)[0]
        tangent = lambda q, v: v - q * jnp.dot(q, v)

        def leap(_, carry):
            y, w = carry
            w = w - eps / 2 * tangent(y, at(y).gradient)
            speed = jnp.sqrt(jnp.maximum(jnp.dot(w, w), 1e-300 if y.dtype == jnp.float64 else 1e-30))
            turn, back = jnp.cos(speed * eps), jnp.sin(speed * eps)
            y, w = y * turn + w / speed * back, w * turn - y * speed * back
            y = y / jnp.linalg.norm(y)
            w = tangent(y, w)
            return y, w - eps / 2 * tangent(y, at(y).gradient)

        v = tangent(x, normal(velocity_key, x))
        y, w = jax.lax.fori_loop(0, self.leaps, leap, (x, v))
        rise = at(y).potential - at(x).potential + (jnp.dot(w, w) - jnp.dot(v, v)) / 2
        return jnp.where(log_uniform(accept_key, x) < -rise, y, x)


# 6. Unit box: a Laplace walk, folded at the faces, tested


class FoldedWalk:
    claims = exact_on("box")

    def __init__(self, scale=1.0):
        if not scale > 0:
            raise ValueError("scale has to be positive")
        self.scale = scale

    def step(self, key, x, h, estimator):
        batch_key, move_key, accept_key = jax.random.split(key, 3)
        energy = energy_of(estimator, batch_key)
        y = x + self.scale * jnp.sqrt(h) * jax.random.laplace(move_key, x.shape, x.dtype)
        y = 1 - jnp.abs(1 - y % 2)
        return jnp.where(log_uniform(accept_key, x) < energy(x) - energy(y), y, x)


# 7. R^n: underdamped Langevin with a mass and a friction, of order 2


class Phase(NamedTuple):
    position: Any
    momentum: Any


@dataclass(frozen=True)
class Underdamped:
    """ABOBA; the momentum is N(0, mass)."""

    friction: float = 1.0
    mass: float = 2.0
    claims = Claims(OWN, StationaryLaw(order=2))

    def __post_init__(self):
        if not (self.friction > 0 and self.mass > 0):
            raise ValueError("friction and mass have to be positive")

    def thermal(self, key, tree):
        leaves, structure = jax.tree.flatten(tree)
        keys = jax.random.split(key, len(leaves))
        return jax.tree.unflatten(structure, [self.mass**0.5 * normal(k, a) for k, a in zip(keys, leaves)])

    def init(self, key, position, estimator):
        return Phase(position, self.thermal(key, position))

    def step(self, key, state, h, estimator):
        batch_key, noise_key = jax.random.split(key)
        drift = lambda x, p: jax.tree.map(lambda a, b: a + h / 2 * b / self.mass, x, p)
        kept = jnp.exp(-self.friction * h)
        x = drift(*state)
        g = gradient_of(estimator, batch_key, x)
        p = jax.tree.map(lambda a, b: a - h / 2 * b, state.momentum, g)
        p = jax.tree.map(lambda a, n: kept * a + jnp.sqrt(1 - kept**2) * n, p, self.thermal(noise_key, p))
        p = jax.tree.map(lambda a, b: a - h / 2 * b, p, g)
        return Phase(drift(x, p), p)


# 8. R^n: generalised HMC (Horowitz), exact: the momentum is turned a little, and reversed on rejection


class Horowitz:
    claims = Claims(OWN, ExactLaw())

    def __init__(self, angle=0.6, mass=1.0, leaps=2):
        if not 0 < angle <= math.pi / 2 or not mass > 0:
            raise ValueError("0 < angle <= pi / 2, and mass > 0")
        if leaps != int(leaps) or leaps < 1:
            raise ValueError("leaps is a number of steps")
        self.angle, self.mass, self.leaps = angle, mass, int(leaps)

    def init(self, key, position, estimator):
        leaves, structure = jax.tree.flatten(position)
        keys = jax.random.split(key, len(leaves))
        return position, jax.tree.unflatten(structure, [self.mass**0.5 * normal(k, a) for k, a in zip(keys, leaves)])

    def position(self, state):
        return state[0]

    def step(self, key, state, h, estimator):
        batch_key, noise_key, accept_key = jax.random.split(key, 3)
        at = lambda q: estimator.estimate(batch_key, (), q)[0]
        eps = jnp.sqrt(h)
        plus = lambda factor: lambda a, b: jax.tree.map(lambda s, t: s + factor * t, a, b)
        kinetic = lambda p: sum(jnp.sum(a**2) for a in jax.tree.leaves(p)) / (2 * self.mass)
        x, p = state
        _, fresh = self.init(noise_key, x, estimator)
        p = jax.tree.map(lambda a, b: math.cos(self.angle) * a + math.sin(self.angle) * b, p, fresh)
        y, r = x, p
        for _ in range(self.leaps):
            r = plus(-eps / 2)(r, at(y).gradient)
            y = plus(eps / self.mass)(y, r)
            r = plus(-eps / 2)(r, at(y).gradient)
        rise = at(y).potential - at(x).potential + kinetic(r) - kinetic(p)
        accept = jnp.log(jax.random.uniform(accept_key)) < -rise
        choose = lambda a, b: jax.tree.map(lambda s, t: jnp.where(accept, s, t), a, b)
        return choose(y, x), choose(r, jax.tree.map(jnp.negative, p))
