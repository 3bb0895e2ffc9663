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


# BAOAB with a dense inverse mass W = B B^T, B = 1 + c (shift by one):
#   x' = v,  v' = -W grad U - g v + sqrt(2 g) B dw.
# WRONG: velocities are drawn as B^T n: their covariance is B^T B.  In two dimensions W = (1, c; c, 1 + c^2) and
# B^T B = (1 + c^2, c; c, 1).  For U = |x|^2 / 2 and a large friction the covariance S of x solves W S + S W = 2 B^T B: with c = 0.8
# S = (1.74, -0.12; -0.12, 0.67) for 1.  Right in one dimension; in many it is the first and the last coordinates that are wrong.
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
        velocity = self.upper(jax.random.normal(velocity_key, x.shape, x.dtype))
        return Phase(position, velocity, force(gradient_key, x, unravel, estimator))

    def step(self, key, state, step_size, estimator):
        x, unravel = ravel_pytree(state.position)
        h = jnp.asarray(step_size, x.dtype)
        gradient_key, noise_key = jax.random.split(key)
        kept = jnp.exp(-self.friction * h)
        v = state.velocity - h / 2 * self.lower(self.upper(state.force))
        x = x + h / 2 * v
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        v = kept * v + jnp.sqrt(1 - kept**2) * self.upper(noise)
        x = x + h / 2 * v
        new = force(gradient_key, x, unravel, estimator)
        v = v - h / 2 * self.lower(self.upper(new))
        return Phase(unravel(x), v, new)


# Adaptive Langevin thermostat, one for all coordinates (all leaves of a tree):
#   dx = p, dp = -grad U - xi p + sqrt(2 A) dw, dxi = (|p|^2 / d - 1) / q
# WRONG: it counts d - 1 degrees of freedom, as molecular dynamics does that takes out the motion of the centre; nothing is taken out here.
# dxi = (|p|^2 - (d - 1)) / (q d) keeps exp(-(U + |p|^2 / 2) / T - ..) with d T = d - 1 and the mean A / T of xi: temperature 1/2 in two
# dimensions, 2/3 in three, right in one (max) and nearly so in many.  Steps: A D B C N C B D A, C the factor exp(-xi h / 2) and N the noise, a palindrome of exact flows.
@dataclass(frozen=True)
class Thermostat:
    noise: float = 1.0
    inertia: float = 1.0

    def init(self, key, position, estimator):
        x, _ = ravel_pytree(position)
        momentum = jax.random.normal(key, x.shape, x.dtype)
        return {"position": position, "momentum": momentum, "xi": jnp.asarray(self.noise, x.dtype)}

    def heat(self, p):
        degrees = max(p.size - 1, 1)
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


# SAGA-LD with its own minibatches: a table of the last gradient of each datum, and its running sum; the gradient is
# prior + sum + (N / n) sum of (new - old).  WRONG: the batch is drawn with replacement (the default of choice).  A datum that is drawn
# twice is replaced once in the table and twice in the sum, which is that of the table no more: e = total - sum(table) gets
# new_i - old_i with probability 1 / (2 N - 1) in each update of i (n = 2), is never mended, and is the bias of the gradient.
# e = (total change of the table) / (2 N - 1) + a martingale of variance O(1) per unit of time: there is no stationary law, the chain
# wanders off with -e / curvature.  Right for n = 1.
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
        index = jax.random.choice(batch_key, size, (drawn,))
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
