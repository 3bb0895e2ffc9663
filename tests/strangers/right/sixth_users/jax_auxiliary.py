"""Kernels that keep or draw something beside the position: slices, levels, temperatures, swarms."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

EXACT = Claims(Source("", "own"), ExactLaw())


# Elliptical slice sampling (Murray, Adams and MacKay): exp(-U) = N(x; 0, s^2) L(x), log L = |x|^2 / (2 s^2) - U.  With
# nu ~ N(0, s^2) of the same law as the Gaussian factor, (x, nu) is invariant under rotations, and the shrinking bracket
# about the angle 0 is reversible on {L > level}.  Exact for every U, whatever s.  It has no step size.
@dataclass(frozen=True)
class EllipticalSlice:
    prior_scale: float = 1.5

    claims = EXACT

    def step(self, key, position, step_size, estimator):
        x, unravel = ravel_pytree(position)
        data_key, ellipse_key, level_key, angle_key, loop_key = jax.random.split(key, 5)
        variance = self.prior_scale**2

        def log_likelihood(q):
            prior = -0.5 * jnp.sum(q * q) / variance
            return -estimator.estimate(data_key, (), unravel(q))[0].potential - prior

        nu = math.sqrt(variance) * jax.random.normal(ellipse_key, x.shape, x.dtype)
        level = log_likelihood(x) + jnp.log(jax.random.uniform(level_key, (), x.dtype))

        def on_ellipse(angle):
            y = x * jnp.cos(angle) + nu * jnp.sin(angle)
            return y, log_likelihood(y)

        def outside(carry):
            return jnp.logical_not(carry[5] >= level)

        def shrink(carry):
            key, angle, low, high, _, _ = carry
            low = jnp.where(angle < 0, angle, low)
            high = jnp.where(angle < 0, high, angle)
            key, draw = jax.random.split(key)
            angle = low + (high - low) * jax.random.uniform(draw, (), x.dtype)
            return (key, angle, low, high, *on_ellipse(angle))

        angle = 2 * math.pi * jax.random.uniform(angle_key, (), x.dtype)
        start = (loop_key, angle, angle - 2 * math.pi, angle, *on_ellipse(angle))
        return unravel(lax.while_loop(outside, shrink, start)[4])


class Flight(NamedTuple):
    position: jax.Array
    momentum: jax.Array
    level: jax.Array


# HMC with partial refreshment, in which the level u of the test is kept and slides (Neal 2020): joint law
# pi(x) N(p) U(-1, 1)(v).  The slide is a rotation of the circle.  A leapfrog is accepted if |v| < r = exp(-dH), and then
# v' = v / r: on {|v| < r} the map (x, p, v) -> (y, -q, v / r) is its own inverse, and its Jacobian 1 / r makes
# exp(-H(y,q)) / r = exp(-H(x,p)).  Elsewhere it is the identity; then p is turned round.  All parts keep the law, at every h.
@dataclass(frozen=True)
class SlidingLevel:
    friction: float = 1.0
    leaps: int = 3
    slide: float = 0.02

    claims = EXACT

    def __post_init__(self):
        if self.leaps < 1 or self.friction <= 0:
            raise ValueError("leaps and friction are positive")

    def init(self, key, position, estimator):
        x, _ = ravel_pytree(position)
        momentum_key, level_key = jax.random.split(key)
        momentum = jax.random.normal(momentum_key, x.shape, x.dtype)
        return Flight(position, momentum, 2 * jax.random.uniform(level_key, (), x.dtype) - 1)

    def step(self, key, state, step_size, estimator):
        x, unravel = ravel_pytree(state.position)
        h = jnp.asarray(step_size, x.dtype)
        data_key, noise_key = jax.random.split(key)

        def slope(q):
            return ravel_pytree(estimator.estimate(data_key, (), unravel(q))[0].gradient)[0]

        def hamiltonian(q, p):
            return estimator.estimate(data_key, (), unravel(q))[0].potential + 0.5 * jnp.sum(p * p)

        def leap(_, carry):
            q, p = carry
            p = p - 0.5 * h * slope(q)
            q = q + h * p
            return q, p - 0.5 * h * slope(q)

        kept = jnp.exp(-self.friction * h)
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        p = kept * state.momentum + jnp.sqrt(1 - kept**2) * noise
        level = jnp.mod(state.level + 1 + self.slide, 2) - 1
        y, q = lax.fori_loop(0, self.leaps, leap, (x, p))
        log_ratio = hamiltonian(x, p) - hamiltonian(y, q)
        accept = jnp.log(jnp.abs(level)) < log_ratio
        return Flight(
            unravel(jnp.where(accept, y, x)),
            jnp.where(accept, q, -p),
            jnp.where(accept, level * jnp.exp(-log_ratio), level).astype(x.dtype),
        )


class Ladder(NamedTuple):
    chains: jax.Array
    energies: jax.Array


# Parallel tempering: replica k has the law exp(-U / T_k), T_k = spread^k, and moves by a random walk tested at T_k;
# neighbours j, j + 1 change places with probability min(1, exp((1 / T_j - 1 / T_(j+1)) (U_j - U_(j+1)))).  Both keep the
# product law, of which the first marginal is exp(-U).  Energies are kept beside the points and change places with them.
@dataclass(frozen=True)
class ReplicaExchange:
    levels: int = 3
    spread: float = 1.7

    claims = EXACT

    def __post_init__(self):
        if self.levels < 2 or self.spread <= 0:
            raise ValueError("two levels at least, and positive temperatures")

    def position(self, state):
        return jax.tree.map(lambda a: a[0], state.chains)

    def temperatures(self, dtype):
        return (self.spread ** jnp.arange(self.levels)).astype(dtype)

    def init(self, key, position, estimator):
        x, unravel = ravel_pytree(position)
        data_key, noise_key = jax.random.split(key)
        shift = jax.random.normal(noise_key, (self.levels, x.size), x.dtype).at[0].set(0)
        points = x + shift
        energies = jax.vmap(lambda q: estimator.estimate(data_key, (), unravel(q))[0].potential)(points)
        return Ladder(jax.vmap(unravel)(points), energies)

    def step(self, key, state, step_size, estimator):
        _, unravel = ravel_pytree(self.position(state))
        points = jax.vmap(lambda chain: ravel_pytree(chain)[0])(state.chains)
        heat = self.temperatures(points.dtype)
        data_key, move_key, accept_key, pair_key, swap_key = jax.random.split(key, 5)

        scale = jnp.sqrt(2 * jnp.asarray(step_size, points.dtype) * heat)
        proposals = points + scale[:, None] * jax.random.normal(move_key, points.shape, points.dtype)
        new = jax.vmap(lambda q: estimator.estimate(data_key, (), unravel(q))[0].potential)(proposals)
        coins = jnp.log(jax.random.uniform(accept_key, (self.levels,), points.dtype))
        accept = coins < (state.energies - new) / heat
        points = jnp.where(accept[:, None], proposals, points)
        energies = jnp.where(accept, new, state.energies)

        lower = jax.random.randint(pair_key, (), 0, self.levels - 1)
        usual = jnp.arange(self.levels)
        swapped = usual.at[lower].set(lower + 1).at[lower + 1].set(lower)
        gain = (1 / heat[lower] - 1 / heat[lower + 1]) * (energies[lower] - energies[lower + 1])
        exchange = jnp.log(jax.random.uniform(swap_key, (), points.dtype)) < gain
        order = jnp.where(exchange, swapped, usual)
        points, energies = points[order], energies[order]
        return Ladder(jax.vmap(unravel)(points), energies)


# Differential evolution MCMC (ter Braak): walker i proposes x_i + gamma (x_j - x_k) + N(0, 2 h), with j and k two different
# walkers, neither of which is i.  Given the others the proposal is symmetric (j and k are as likely as k and j), so that
# min(1, pi(y) / pi(x_i)) keeps the law of x_i given the others; a sweep does so for each walker in turn.  The law is the product.
@dataclass(frozen=True)
class Swarm:
    walkers: int = 5
    boost: float = 1.0

    claims = EXACT

    def __post_init__(self):
        if self.walkers < 3:
            raise ValueError("a walker needs two others")

    def position(self, state):
        return jax.tree.map(lambda a: a[0], state)

    def init(self, key, position, estimator):
        x, unravel = ravel_pytree(position)
        shift = jax.random.normal(key, (self.walkers, x.size), x.dtype).at[0].set(0)
        return jax.vmap(unravel)(x + shift)

    def step(self, key, state, step_size, estimator):
        _, unravel = ravel_pytree(self.position(state))
        points = jax.vmap(lambda walker: ravel_pytree(walker)[0])(state)
        total, dimension = points.shape
        gamma = self.boost * 2.38 / math.sqrt(2 * dimension)
        jitter = jnp.sqrt(2 * jnp.asarray(step_size, points.dtype))
        data_key, sweep_key = jax.random.split(key)

        def energy(q):
            return estimator.estimate(data_key, (), unravel(q))[0].potential

        def move(i, carry):
            points, energies = carry
            one_key, two_key, noise_key, accept_key = jax.random.split(jax.random.fold_in(sweep_key, i), 4)
            # offsets 1 .. W - 1 from i, two different ones
            one = jax.random.randint(one_key, (), 0, total - 1)
            two = (one + 1 + jax.random.randint(two_key, (), 0, total - 2)) % (total - 1)
            j, k = (i + 1 + one) % total, (i + 1 + two) % total
            noise = jax.random.normal(noise_key, (dimension,), points.dtype)
            y = points[i] + gamma * (points[j] - points[k]) + jitter * noise
            new = energy(y)
            accept = jnp.log(jax.random.uniform(accept_key, (), points.dtype)) < energies[i] - new
            points = points.at[i].set(jnp.where(accept, y, points[i]))
            return points, energies.at[i].set(jnp.where(accept, new, energies[i]))

        points, _ = lax.fori_loop(0, total, move, (points, jax.vmap(energy)(points)))
        return jax.vmap(unravel)(points)
