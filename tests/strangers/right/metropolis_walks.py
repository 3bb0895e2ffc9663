"""Random walk Metropolis with many proposals and many ways to toss the coin. Every proposal is symmetric, or its
density ratio is in the acceptance, and the coin has probability min(1, ratio) (or Barker's ratio / (1 +
ratio)), so that exp(-U) is invariant at every step size. The walk has variance 2 h per coordinate unless it
says otherwise."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Reversal, Source

NEEDS = ("gradient", "potential")
EXACT = Claims(Source("metropolis1953equation", "the algorithm"), ExactLaw(), Reversal(lambda z: z))


def energy(estimator, key, x):
    """U at a position."""
    return estimator.estimate(key, (), x)[0].potential


def _normal_walk(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    y = x + jnp.sqrt(2 * h) * jax.random.normal(k1, x.shape, x.dtype)
    ratio = jnp.exp(energy(estimator, k2, x) - energy(estimator, k3, y))
    return jnp.where(jax.random.uniform(k4, dtype=x.dtype) < ratio, y, x)


# Normal proposal, `u < ratio`.
normal_walk = simple_sampler(_normal_walk, needs=("potential",))

# The same, claimed to be exact and reversible.
normal_walk_claimed = simple_sampler(_normal_walk, needs=("potential",), claims=EXACT)


def _box_walk(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    width = jnp.sqrt(6 * h)
    y = x + width * jax.random.uniform(k1, x.shape, x.dtype, -1, 1)
    log_ratio = energy(estimator, k2, x) - energy(estimator, k3, y)
    return jnp.where(jnp.log(jax.random.uniform(k4, dtype=x.dtype)) < log_ratio, y, x)


# Uniform box proposal, `log u < log ratio`.
box_walk = simple_sampler(_box_walk, needs=("potential",), claims=Claims(Source("", ""), ExactLaw()))


def _student_walk(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    y = x + jnp.sqrt(h) * jax.random.t(k1, 4.0, x.shape, x.dtype)
    log_ratio = energy(estimator, k2, x) - energy(estimator, k3, y)
    return jax.lax.select(-jax.random.exponential(k4, dtype=x.dtype) < log_ratio, y, x)


# Heavy-tailed symmetric proposal (Student t, 4 degrees of freedom), `-exponential < log ratio`.
student_walk = simple_sampler(_student_walk, needs=("potential",), claims=EXACT)


def _laplace_walk(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    y = x + jnp.sqrt(h) * jax.random.laplace(k1, x.shape, x.dtype)
    accept = jnp.exp(jnp.minimum(energy(estimator, k2, x) - energy(estimator, k3, y), 0.0))
    return jnp.where(jax.random.uniform(k4, dtype=x.dtype) > 1 - accept, y, x)


# Laplace proposal, `u > 1 - min(1, ratio)`.
laplace_walk = simple_sampler(_laplace_walk, needs=("potential",))


def _bernoulli_walk(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    y = x + jnp.sqrt(2 * h) * jax.random.normal(k1, x.shape, x.dtype)
    p = jnp.clip(jnp.exp(energy(estimator, k2, x) - energy(estimator, k3, y)), 0.0, 1.0)
    return jax.lax.cond(jax.random.bernoulli(k4, p), lambda: y, lambda: x)


# bernoulli(min(1, ratio)) and lax.cond.
bernoulli_walk = simple_sampler(_bernoulli_walk, needs=("potential",))


def _barker_rule(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    y = x + jnp.sqrt(2 * h) * jax.random.normal(k1, x.shape, x.dtype)
    p = jax.nn.sigmoid(energy(estimator, k2, x) - energy(estimator, k3, y))
    return jnp.where(jax.random.bernoulli(k4, p), y, x)


# Barker's rule: accept with probability pi(y) / (pi(x) + pi(y)).
barker_rule = simple_sampler(_barker_rule, needs=("potential",), claims=EXACT)


class WalkState(NamedTuple):
    """Position, its potential, the last acceptance probability and the number of acceptances."""

    position: jax.Array
    potential: jax.Array
    accept_prob: jax.Array
    accepted: jax.Array


def _cached_init(key, position, estimator):
    U = energy(estimator, key, position)
    return WalkState(position, U, jnp.ones_like(U), jnp.zeros((), jnp.int32))


def _cached_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x = state.position
    y = x + jnp.sqrt(2 * h) * jax.random.normal(k1, x.shape, x.dtype)
    U = energy(estimator, k2, y)
    p = jnp.exp(jnp.minimum(0.0, state.potential - U))
    p = jnp.where(jnp.isfinite(U), p, 0.0)
    yes = jax.random.uniform(k3, dtype=x.dtype) < p
    new, old = (y, U), (x, state.potential)
    x, U = jax.tree.map(lambda a, b: jnp.where(yes, a, b), new, old)
    return WalkState(x, U, p, state.accepted + yes)


# The potential kept with the position (of the kept point on a rejection), the acceptance logged.
cached_walk = simple_sampler(_cached_step, init=_cached_init, needs=NEEDS)

# The same with claims and everything given.
cached_walk_claimed = simple_sampler(
    _cached_step,
    init=_cached_init,
    position=lambda s: s.position,
    unpack=lambda s: s.position,
    pack=_cached_init,
    needs=("potential",),
    claims=EXACT,
)


def _one_coordinate(key, x, h, estimator):
    k0, k1, k2, k3, k4 = jax.random.split(key, 5)
    i = jax.random.randint(k0, (), 0, x.size)
    y = x.at[i].add(jnp.sqrt(2 * h * x.size) * jax.random.normal(k1, (), x.dtype))
    ratio = jnp.exp(energy(estimator, k2, x) - energy(estimator, k3, y))
    return jnp.where(jax.random.uniform(k4, dtype=x.dtype) <= ratio, y, x)


# Random-scan Metropolis within Gibbs: one coordinate by randint.
one_coordinate = simple_sampler(_one_coordinate, needs=("potential",), claims=EXACT)


def _sweep(key, x, h, estimator):
    start = energy(estimator, jax.random.fold_in(key, 0), x)

    def visit(i, carry):
        x, U = carry
        k1, k2, k3 = jax.random.split(jax.random.fold_in(key, i + 1), 3)
        y = x.at[i].add(jnp.sqrt(2 * h) * jax.random.normal(k1, (), x.dtype))
        V = energy(estimator, k2, y)
        yes = jnp.log(jax.random.uniform(k3, dtype=x.dtype)) < U - V
        return jnp.where(yes, y, x), jnp.where(yes, V, U)

    return jax.lax.fori_loop(0, x.size, visit, (x, start))[0]


# A systematic sweep over all coordinates, each with its own Metropolis test.
sweep = simple_sampler(_sweep, needs=("potential",))


def _permuted_sweep(key, x, h, estimator):
    order_key, scan_key = jax.random.split(key)

    def visit(x, item):
        i, k = item
        k1, k2, k3, k4 = jax.random.split(k, 4)
        y = x.at[i].add(jnp.sqrt(2 * h) * jax.random.normal(k1, (), x.dtype))
        log_ratio = energy(estimator, k2, x) - energy(estimator, k3, y)
        return jnp.where(jax.random.bernoulli(k4, jnp.exp(jnp.minimum(log_ratio, 0))), y, x), None

    items = jax.random.permutation(order_key, x.size), jax.random.split(scan_key, x.size)
    return jax.lax.scan(visit, x, items)[0]


# A sweep in a random order.
permuted_sweep = simple_sampler(_permuted_sweep, needs=("potential",))


def _discrete_scale(key, x, h, estimator):
    k0, k1, k2, k3, k4 = jax.random.split(key, 5)
    scale = jax.random.choice(k0, jnp.array([0.3, 1.0, 3.0], x.dtype))
    y = x + scale * jnp.sqrt(2 * h) * jax.random.normal(k1, x.shape, x.dtype)
    log_ratio = energy(estimator, k2, x) - energy(estimator, k3, y)
    return jnp.where(-jax.random.exponential(k4, dtype=x.dtype) < log_ratio, y, x)


# A scale chosen among three, independently of the position: a mixture of symmetric proposals.
mixed_scales = simple_sampler(_discrete_scale, needs=("potential",))


def _hit_and_run(key, x, h, estimator):
    k1, k2, k3, k4, k5 = jax.random.split(key, 5)
    u = jax.random.normal(k1, x.shape, x.dtype)
    u = u / jnp.linalg.norm(u)
    y = x + jnp.sqrt(2 * h * x.size) * jax.random.normal(k2, (), x.dtype) * u
    ratio = jnp.exp(energy(estimator, k3, x) - energy(estimator, k4, y))
    return jnp.where(jax.random.uniform(k5, dtype=x.dtype) < ratio, y, x)


# Hit and run: a uniform direction, a normal distance along it.
hit_and_run = simple_sampler(_hit_and_run, needs=("potential",))


@dataclass(frozen=True)
class CorrelatedWalk:
    """Random walk with a constant covariance 2 h S at a temperature T: symmetric, exp(-U / T) is invariant."""

    correlation: float = 0.5
    temperature: float = 1.0
    barker: bool = False

    needs = frozenset({"potential"})
    backend = "jax"

    @property
    def claims(self):
        return Claims(Source("hastings1970monte", "section 2"), ExactLaw(temperature=self.temperature))

    def step(self, key, x, step_size, estimator):
        k1, k2, k3, k4 = jax.random.split(key, 4)
        d = x.size
        S = (1 - self.correlation) * jnp.eye(d, dtype=x.dtype) + self.correlation * jnp.ones((d, d), x.dtype)
        y = jax.random.multivariate_normal(k1, x, 2 * step_size * S, dtype=x.dtype)
        log_ratio = (energy(estimator, k2, x) - energy(estimator, k3, y)) / self.temperature
        p = jax.nn.sigmoid(log_ratio) if self.barker else jnp.exp(jnp.minimum(log_ratio, 0.0))
        return jnp.where(jax.random.uniform(k4, dtype=x.dtype) < p, y, x)


# The dataclass at temperature 2 with Barker's rule.
warm_barker = CorrelatedWalk(temperature=2.0, barker=True)
