"""Underdamped integrators, and a sampler with minibatches of its own."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def force(key, x, unravel, estimator):
    return ravel_pytree(estimator.estimate(key, (), unravel(x))[0].gradient)[0]


class Phase(NamedTuple):
    position: jax.Array
    velocity: jax.Array
    force: jax.Array


# BAOAB with a dense inverse mass W = B B^T, B = 1 + c (shift by one): velocities v ~ N(0, W),
#   x' = v,  v' = -W grad U - g v + sqrt(2 g) B dw.
# With x = B z, v = B u it is BAOAB for the potential U(B z) and unit mass, since B^T grad U = grad_z U(B z): order 2.
# The force at the end of a step is kept for the next.
@dataclass(frozen=True)
class CoupledMass:
    coupling: float = 0.8
    friction: float = 1.0

    claims = Claims(Source("", "own"), StationaryLaw(order=2))

    def lower(self, u):
        return u.at[1:].add(self.coupling * u[:-1])

    def upper(self, u):
        return u.at[:-1].add(self.coupling * u[1:])

    def init(self, key, position, estimator):
        x, unravel = ravel_pytree(position)
        gradient_key, velocity_key = jax.random.split(key)
        velocity = self.lower(jax.random.normal(velocity_key, x.shape, x.dtype))
        return Phase(position, velocity, force(gradient_key, x, unravel, estimator))

    def step(self, key, state, step_size, estimator):
        x, unravel = ravel_pytree(state.position)
        h = jnp.asarray(step_size, x.dtype)
        gradient_key, noise_key = jax.random.split(key)
        kept = jnp.exp(-self.friction * h)
        v = state.velocity - h / 2 * self.lower(self.upper(state.force))
        x = x + h / 2 * v
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        v = kept * v + jnp.sqrt(1 - kept**2) * self.lower(noise)
        x = x + h / 2 * v
        new = force(gradient_key, x, unravel, estimator)
        v = v - h / 2 * self.lower(self.upper(new))
        return Phase(unravel(x), v, new)


# Adaptive Langevin thermostat, one for all coordinates (all leaves of a tree):
#   dx = p, dp = -grad U - xi p + sqrt(2 A) dw, dxi = (|p|^2 / d - 1) / q
# keeps exp(-U - |p|^2 / 2 - q d (xi - A)^2 / 2): the drift of xi has to vanish in the mean for N momenta, N = d.
# Steps: A D B C N C B D A, C the factor exp(-xi h / 2) and N the noise, a palindrome of exact flows.
@dataclass(frozen=True)
class Thermostat:
    noise: float = 1.0
    inertia: float = 1.0

    def init(self, key, position, estimator):
        x, _ = ravel_pytree(position)
        momentum = jax.random.normal(key, x.shape, x.dtype)
        return {"position": position, "momentum": momentum, "xi": jnp.asarray(self.noise, x.dtype)}

    def heat(self, p):
        degrees = p.size
        return (jnp.sum(p * p) - degrees) / (self.inertia * p.size)

    def step(self, key, state, step_size, estimator):
        x, unravel = ravel_pytree(state["position"])
        p, xi = state["momentum"], state["xi"]
        h = jnp.asarray(step_size, x.dtype)
        gradient_key, noise_key = jax.random.split(key)
        x = x + h / 2 * p
        xi = xi + h / 2 * self.heat(p)
        gradient = force(gradient_key, x, unravel, estimator)
        p = p - h / 2 * gradient
        damping = jnp.exp(-xi * h / 2)
        p = damping * p
        p = p + jnp.sqrt(2 * self.noise * h) * jax.random.normal(noise_key, x.shape, x.dtype)
        p = damping * p
        p = p - h / 2 * gradient
        xi = xi + h / 2 * self.heat(p)
        x = x + h / 2 * p
        return {"position": unravel(x), "momentum": p, "xi": xi}


class Saga(NamedTuple):
    position: jax.Array
    table: jax.Array
    total: jax.Array


def add_noise(key, position, gradient, step_size):
    leaves, tree = jax.tree.flatten(position)
    keys = jax.random.split(key, len(leaves))
    moved = []
    for k, x, g in zip(keys, leaves, jax.tree.leaves(gradient), strict=True):
        h = jnp.asarray(step_size, x.dtype)
        moved.append(x - h * g + jnp.sqrt(2 * h) * jax.random.normal(k, x.shape, x.dtype))
    return jax.tree.unflatten(tree, moved)


# SAGA-LD with its own minibatches: a table of the last gradient of each datum, and its running sum.  n different data are
# drawn, each with probability n / N, so that  prior + sum of table + (N / n) sum (new - old)  has the mean grad U, whatever
# is in the table.  The running sum stays that of the table because no datum is replaced twice in a step.
# Langevin with an unbiased gradient: order 1.
def saga(target, batch: int = 2):
    terms = target.terms
    if batch < 1:
        raise ValueError("a batch has one datum at least")

    if terms is None:

        def plain(key, position, step_size, estimator):
            gradient_key, noise_key = jax.random.split(key)
            gradient = estimator.estimate(gradient_key, (), position)[0].gradient
            return add_noise(noise_key, position, gradient, step_size)

        return simple_sampler(plain)

    size = terms.size
    drawn = min(batch, size)

    def slopes(position, rows):
        return jax.vmap(jax.grad(terms.datum), (None, 0))(position, rows)

    def init(key, position, estimator):
        table = slopes(position, jax.tree.map(jnp.asarray, terms.data))
        return Saga(position, table, jax.tree.map(lambda t: jnp.sum(t, 0), table))

    def step(key, state, step_size, estimator):
        batch_key, noise_key = jax.random.split(key)
        index = jax.random.choice(batch_key, size, (drawn,), replace=False)
        rows = jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data)
        new = slopes(state.position, rows)
        change = jax.tree.map(lambda a, t: jnp.sum(a - t[index], 0), new, state.table)
        gradient = jax.tree.map(
            lambda p, s, c: p + s + size / drawn * c, jax.grad(terms.prior)(state.position), state.total, change
        )
        return Saga(
            add_noise(noise_key, state.position, gradient, step_size),
            jax.tree.map(lambda t, a: t.at[index].set(a), state.table, new),
            jax.tree.map(lambda s, c: s + c, state.total, change),
        )

    return simple_sampler(step, init=init)
