"""Metropolis kernels of several proposals, trajectories or coordinates."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.scipy.special import logsumexp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())


# Multiple-try Metropolis, weights w(y) = pi(y) for a symmetric T.
# WRONG: the reference set is k fresh points about y; x itself has to be one of them.  For small h, g = grad U, z_j the moves:
# the choice has the mean -2 h g (1 - 1/k); log of the ratio R = g z_j - g mean(z) + g mean(z*), Cov(z_j, R) = 2 h g (1 - 1/k)
# [right: (1 - 2/k)], and the test adds half of it: drift -h g (1 - 1/k) beside noise 2 h.  The law tends to exp(-(1 - 1/k) U):
# variances are 4/3 for k = 4.
def multiple_try(tries: int = 4):
    if tries < 1:
        raise ValueError("at least one try")

    def step(key, position, step_size, estimator):
        x, unravel = ravel_pytree(position)
        scale = jnp.sqrt(2 * jnp.asarray(step_size, x.dtype))
        data_key, try_key, pick_key, back_key, accept_key = jax.random.split(key, 5)

        def log_density(q):
            return -estimator.estimate(data_key, (), unravel(q))[0].potential

        proposals = x + scale * jax.random.normal(try_key, (tries, x.size), x.dtype)
        weights = jax.vmap(log_density)(proposals)
        chosen = proposals[jax.random.categorical(pick_key, weights)]
        reference = chosen + scale * jax.random.normal(back_key, (tries, x.size), x.dtype)
        log_ratio = logsumexp(weights) - logsumexp(jax.vmap(log_density)(reference))
        accept = jnp.log(jax.random.uniform(accept_key, (), x.dtype)) < log_ratio
        return unravel(jnp.where(accept, chosen, x))

    return simple_sampler(step, claims=EXACT)


def log_rejection(log_ratio):
    """Logarithm of 1 - min(1, exp(log_ratio))."""
    return jnp.log(-jnp.expm1(jnp.minimum(log_ratio, 0)))


# Delayed rejection: a walk of scale s, then, if y was rejected, a narrower one from x again.
#   a_2 = min(1, pi(z) q_1(z,y) [1 - a_1(z,y)] q_2(z,x) / (pi(x) q_1(x,y) [1 - a_1(x,y)] q_2(x,z)))
# WRONG: "both proposals are symmetric, so they cancel".  q_2 does; q_1(z,y) / q_1(x,y) = exp((|y-x|^2 - |y-z|^2) / (4 h)) does not.
# It is of order 1, the second stage comes with probability O(sqrt h), its moves are O(sqrt h): an O(h) drift that is not due.
# With 0.8 for the second scale the variance of a Gaussian tends to 0.84 of the due one as h -> 0 (0.87 at h = 0.3).
@dataclass(frozen=True)
class DelayedRejection:
    second: float = 0.8

    claims = EXACT

    def step(self, key, position, step_size, estimator):
        x, unravel = ravel_pytree(position)
        scale = jnp.sqrt(2 * jnp.asarray(step_size, x.dtype))
        data_key, first_key, test_key, second_key, last_key = jax.random.split(key, 5)

        def energy(q):
            return estimator.estimate(data_key, (), unravel(q))[0].potential

        here = energy(x)
        y = x + scale * jax.random.normal(first_key, x.shape, x.dtype)
        there = energy(y)

        def accepted(_):
            return y

        def try_again(_):
            z = x + self.second * scale * jax.random.normal(second_key, x.shape, x.dtype)
            nearer = energy(z)
            log_ratio = here - nearer
            log_ratio += log_rejection(nearer - there) - log_rejection(here - there)
            ok = jnp.log(jax.random.uniform(last_key, (), x.dtype)) < log_ratio
            return jnp.where(ok, z, x)

        first = jnp.log(jax.random.uniform(test_key, (), x.dtype)) < here - there
        return unravel(lax.cond(first, accepted, try_again, None))


# HMC with tempering within a trajectory (Neal 2011, 5.5.7).  A leap is  p *= a, kick / drift / kick, p *= a, with
# a = sqrt(alpha) in the first half of the leaps and 1 / sqrt(alpha) in the second.
# WRONG for an odd number of leaps: L // 2 heat and L - L // 2 cool (the leap in the middle needs one of each).  The momentum ends
# multiplied by 1 / alpha: no volume, no reversibility, and dH = |p|^2 (1 / alpha^2 - 1) / 2 < 0: all is accepted.  With c_i the factor
# of p in the i-th drift, S = sum c_i, K = sum_i (1/2 + sum_(j>i) c_j / c_i), the drift is -eps^2 K grad U and the noise eps^2 S^2:
# the law tends to exp(-(2 K / S^2) U).  L = 5, alpha = 1.2: c = a, a^3, a^3, a, 1/a; 2 K / S^2 = 0.707: variances are 1.41.
@dataclass(frozen=True)
class TemperedTrajectory:
    leaps: int = 5
    heating: float = 1.2

    claims = EXACT

    def __post_init__(self):
        if self.leaps < 1 or self.heating <= 0:
            raise ValueError("leaps and heating are positive")

    def factors(self, dtype):
        up = jnp.arange(self.leaps) < self.leaps // 2
        root = self.heating**0.5
        return jnp.where(up, root, 1 / root).astype(dtype)

    def step(self, key, position, step_size, estimator):
        x, unravel = ravel_pytree(position)
        eps = jnp.sqrt(jnp.asarray(step_size, x.dtype))
        data_key, momentum_key, accept_key = jax.random.split(key, 3)

        def slope(q):
            return ravel_pytree(estimator.estimate(data_key, (), unravel(q))[0].gradient)[0]

        def hamiltonian(q, p):
            return estimator.estimate(data_key, (), unravel(q))[0].potential + 0.5 * jnp.sum(p * p)

        def leap(carry, factor):
            q, p = carry
            p = factor * p
            p = p - 0.5 * eps * slope(q)
            q = q + eps * p
            p = p - 0.5 * eps * slope(q)
            return (q, factor * p), None

        p = jax.random.normal(momentum_key, x.shape, x.dtype)
        (y, r), _ = lax.scan(leap, (x, p), self.factors(x.dtype))
        log_ratio = hamiltonian(x, p) - hamiltonian(y, r)
        accept = jnp.log(jax.random.uniform(accept_key, (), x.dtype)) < log_ratio
        return unravel(jnp.where(accept, y, x))


class Site(NamedTuple):
    position: jax.Array
    energy: jax.Array
    slope: jax.Array


# One coordinate a step, chosen by the size of its force: c_i(x) = w_i / sum w, w_i = 1 + s |U_i(x)|, and moved by a
# normal.  WRONG: the move is symmetric, the choice is not, and c_i(y) / c_i(x) is missing from the ratio.  As h -> 0 coordinate i
# has drift -c_i U_i and noise 2 c_i, and lacks d_i c_i.  Where U is a sum over coordinates the law is exp(-U) (sum w) / (prod w):
# for two of N(0, 1) and s = 2 variances are 0.79, for three 0.70.  Right in one dimension, where c = 1.
@dataclass(frozen=True)
class InformedCoordinate:
    sharpness: float = 2.0

    claims = EXACT

    def evaluate(self, key, position, estimator):
        estimate = estimator.estimate(key, (), position)[0]
        return Site(position, estimate.potential, ravel_pytree(estimate.gradient)[0])

    def log_choice(self, slope):
        return jax.nn.log_softmax(jnp.log1p(self.sharpness * jnp.abs(slope)))

    def init(self, key, position, estimator):
        return self.evaluate(key, position, estimator)

    def step(self, key, state, step_size, estimator):
        x, unravel = ravel_pytree(state.position)
        data_key, pick_key, move_key, accept_key = jax.random.split(key, 4)
        index = jax.random.categorical(pick_key, self.log_choice(state.slope))
        jump = jnp.sqrt(2 * jnp.asarray(step_size, x.dtype)) * jax.random.normal(move_key, (), x.dtype)
        new = self.evaluate(data_key, unravel(x.at[index].add(jump)), estimator)
        log_ratio = state.energy - new.energy
        accept = jnp.log(jax.random.uniform(accept_key, (), x.dtype)) < log_ratio
        return jax.tree.map(lambda a, b: jnp.where(accept, a, b), new, state)
