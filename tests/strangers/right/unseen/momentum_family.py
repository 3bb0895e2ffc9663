"""Second-order (and third-order) Langevin equations: position, momentum and whatever else the noise goes through."""

import functools
import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import tree_leaves, tree_map, tree_structure, tree_unflatten

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, Source, StationaryLaw


def draw_like(key, tree):
    keys = tree_unflatten(tree_structure(tree), list(jax.random.split(key, len(tree_leaves(tree)))))
    return tree_map(lambda k, leaf: jax.random.normal(k, leaf.shape, leaf.dtype), keys, tree)


def relax(key, tree, rate_times_h, variance=1.0):
    """The exact Ornstein-Uhlenbeck flow: kept fraction e^(-rate h), stationary variance as given."""
    kept = jnp.exp(-rate_times_h)
    fresh = (variance * -jnp.expm1(-2 * rate_times_h)) ** 0.5
    return tree_map(lambda p, n: kept * p + fresh * n, tree, draw_like(key, tree))


# A ----- fourth order: friction outside, Yoshida's triple jump inside ----------------------------------------------

OUTER = 1 / (2 - 2 ** (1 / 3))
JUMPS = (OUTER, 1 - 2 * OUTER, OUTER)  # the one in the middle goes backwards in time


class Particle(NamedTuple):
    position: Any
    momentum: Any


@dataclass(frozen=True)
class TripleJump:
    friction: float = 1.0
    mass: float = 2.0

    @property
    def claims(self):
        # the friction keeps the law, the jump keeps volume and, up to h^5, the energy: an error h^4 in all
        return Claims(Source("", "Yoshida 1990"), StationaryLaw(order=4), conditions=("exact gradient",))

    def init(self, key, position, estimator):
        return Particle(position, tree_map(lambda n: self.mass**0.5 * n, draw_like(key, position)))

    def step(self, key, state, step_size, estimator):
        k_in, k_out, k_jumps = jax.random.split(key, 3)

        def leapfrog(phase, item):
            share, key = item
            h = share * step_size
            before, after = jax.random.split(key)
            x, p = phase
            p = tree_map(lambda b, g: b - h / 2 * g, p, estimator.estimate(before, (), x)[0].gradient)
            x = tree_map(lambda a, b: a + h / self.mass * b, x, p)
            p = tree_map(lambda b, g: b - h / 2 * g, p, estimator.estimate(after, (), x)[0].gradient)
            return (x, p), None

        p = relax(k_in, state.momentum, self.friction * step_size / 2, self.mass)
        shares = jnp.asarray(JUMPS, jnp.result_type(*tree_leaves(p)))
        (x, p), _ = jax.lax.scan(leapfrog, (state.position, p), (shares, jax.random.split(k_jumps, 3)))
        return Particle(x, relax(k_out, p, self.friction * step_size / 2, self.mass))


# B ----- third order: the heat bath sees a memory variable only, and the sweep goes forth and back in turns --------


class GeneralisedLangevin:
    """x' = p, p' = -grad U + c m, m' = -c p - f m + sqrt(2 f) dW/dt, which keeps exp(-U - |p|^2/2 - |m|^2/2)."""

    def __init__(self, coupling: float = 1.5, friction: float = 2.0):
        self.coupling, self.friction = coupling, friction

    def init(self, key, position, estimator):
        k_p, k_m = jax.random.split(key)
        p, m = draw_like(k_p, position), draw_like(k_m, position)
        return {"position": position, "momentum": p, "memory": m, "back": jnp.zeros(())}

    def step(self, key, state, h, estimator):
        k_gradient, k_bath = jax.random.split(key)

        def kick(x, p, m):
            g = estimator.estimate(k_gradient, (), x)[0].gradient
            return x, tree_map(lambda b, s: b - h * s, p, g), m

        def drift(x, p, m):
            return tree_map(lambda a, b: a + h * b, x, p), p, m

        def rotate(x, p, m):
            c, s = jnp.cos(self.coupling * h), jnp.sin(self.coupling * h)
            return x, tree_map(lambda a, b: c * a + s * b, p, m), tree_map(lambda a, b: c * b - s * a, p, m)

        def bath(x, p, m):
            return x, p, relax(k_bath, m, self.friction * h)

        sweep = (kick, drift, rotate, bath)
        through = lambda parts, z: functools.reduce(lambda at, part: part(*at), parts, z)
        z = state["position"], state["momentum"], state["memory"]
        x, p, m = jax.lax.cond(
            state["back"] > 0.5, lambda: through(sweep[::-1], z), lambda: through(sweep, z)
        )
        return {"position": x, "momentum": p, "memory": m, "back": 1.0 - state["back"]}


# C ----- relativistic particles; data are drawn with chances that follow their gradients at the start --------------

DRAWS = 3


def relativistic(target, friction=1.0, light=2.0):
    """H = U + sum light sqrt(p^2 + light^2): no velocity exceeds `light`. Rest mass one."""
    terms = target.terms
    velocity = lambda p: p / (1 + (p / light) ** 2) ** 0.5

    if terms is not None:
        data = tree_map(jnp.asarray, terms.data)
        slopes = jax.vmap(jax.grad(terms.datum), (None, 0))(target.example, data)
        sizes = sum(jnp.sum(s.reshape(terms.size, -1) ** 2, axis=1) for s in tree_leaves(slopes)) ** 0.5
        sizes = sizes + jnp.mean(sizes) + 1e-6  # every datum has its chance
        chances = sizes / jnp.sum(sizes)

    def force(key, x, estimator):
        if terms is None:
            return estimator.estimate(key, (), x)[0].gradient
        drawn = jax.random.choice(key, terms.size, (DRAWS,), p=chances)
        rows = tree_map(lambda a: a[drawn], data)

        def weighted(y):
            each = jax.vmap(terms.datum, (None, 0))(y, rows)
            return terms.prior(y) + jnp.mean(each / chances[drawn].astype(each.dtype))

        return jax.grad(weighted)(x)

    def step(key, state, h, estimator):
        k_force, k_noise = jax.random.split(key)
        x, p = state
        noise, g = draw_like(k_noise, p), force(k_force, x, estimator)
        p = tree_map(
            lambda b, s, n: b - h * (s + friction * velocity(b)) + (2 * friction * h) ** 0.5 * n, p, g, noise
        )
        return Particle(tree_map(lambda a, b: a + h * velocity(b), x, p), p)

    return simple_sampler(step, init=lambda key, position, estimator: Particle(position, draw_like(key, position)))


# D ----- a Nose-Hoover chain of two, beside a gentle Langevin bath that makes it ergodic ---------------------------


class Chain(NamedTuple):
    position: Any
    momentum: Any
    first: jax.Array
    second: jax.Array


@dataclass(frozen=True)
class NoseHooverChain:
    friction: float = 0.5
    thermal_mass: float = 1.0
    outer_mass: float = 1.0

    def init(self, key, position, estimator):
        zero = jnp.zeros((), jnp.result_type(*tree_leaves(position)))
        return Chain(position, draw_like(key, position), zero, zero)

    def step(self, key, state, h, estimator):
        k_gradient, k_bath = jax.random.split(key)
        x, p, a, b = state
        degrees = sum(leaf.size for leaf in tree_leaves(x))
        q = self.thermal_mass * degrees
        g = estimator.estimate(k_gradient, (), x)[0].gradient
        p = tree_map(lambda u, v: u - h * v, p, g)
        x = tree_map(lambda u, v: u + h * v, x, p)
        # p' = -a p, a' = (|p|^2 - n) / q - a b, b' = (q a^2 - 1) / outer: one after the other, each of them exactly
        p = tree_map(lambda u: jnp.exp(-h * a) * u, p)
        twice_kinetic = sum(jnp.sum(u * u) for u in tree_leaves(p))
        a = jnp.exp(-h * b) * a + h * (twice_kinetic - degrees) / q
        b = b + h * (q * a * a - 1) / self.outer_mass
        return Chain(x, relax(k_bath, p, self.friction * h), a, b)


# E ----- kick, drift and friction in an order that is shuffled for every step: second order on average -------------


class Carried(NamedTuple):
    position: Any
    momentum: Any
    estate: Any


def _kick(key, s, h, estimator):
    found, estate = estimator.estimate(key, s.estate, s.position)
    return s._replace(momentum=tree_map(lambda p, g: p - h * g, s.momentum, found.gradient), estate=estate)


def _drift(key, s, h, estimator):
    return s._replace(position=tree_map(lambda x, p: x + h * p, s.position, s.momentum))


def _friction(key, s, h, estimator):
    return s._replace(momentum=relax(key, s.momentum, h))


def chain(*transforms):
    """One transform after another, as optimisers are put together; each gets a key of its own."""

    def composed(key, s, h, estimator):
        for k, transform in zip(jax.random.split(key, len(transforms)), transforms, strict=True):
            s = transform(k, s, h, estimator)
        return s

    return composed


ORDERS = [chain(*order) for order in itertools.permutations((_kick, _drift, _friction))]


def shuffled_step(key, state, step_size, estimator):
    k_order, k_step = jax.random.split(key)
    branches = [functools.partial(way, h=step_size, estimator=estimator) for way in ORDERS]
    return jax.lax.switch(jax.random.randint(k_order, (), 0, len(ORDERS)), branches, k_step, state)


def shuffled_init(key, position, estimator):
    k_momentum, k_estimator = jax.random.split(key)
    return Carried(position, draw_like(k_momentum, position), estimator.init(k_estimator, position))


shuffled = simple_sampler(
    shuffled_step,
    init=shuffled_init,
    claims=Claims(Source("", "mean of all Lie splittings"), StationaryLaw(order=2), conditions=("exact gradient",)),
)
