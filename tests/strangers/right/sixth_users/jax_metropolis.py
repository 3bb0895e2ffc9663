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


# Multiple-try Metropolis (Liu, Liang and Wong), weights w(y) = pi(y) for a symmetric T.  From x: y_1..y_k ~ T(x, .), one
# of them, y, chosen with probability w(y_j) / sum w; from y: k - 1 new points and x itself as the k-th.  Then
#   pi(x) k T(x,y) pi(y) / W_y * min(1, W_y / W_x) = k T(x,y) pi(x) pi(y) min(1 / W_y, 1 / W_x)
# integrated over the 2 (k - 1) other points, which enter symmetrically: detailed balance at every scale.
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
        others = chosen + scale * jax.random.normal(back_key, (tries - 1, x.size), x.dtype)
        reference = jnp.concatenate([others, x[None]])
        log_ratio = logsumexp(weights) - logsumexp(jax.vmap(log_density)(reference))
        accept = jnp.log(jax.random.uniform(accept_key, (), x.dtype)) < log_ratio
        return unravel(jnp.where(accept, chosen, x))

    return simple_sampler(step, claims=EXACT)


def log_rejection(log_ratio):
    """Logarithm of 1 - min(1, exp(log_ratio))."""
    return jnp.log(-jnp.expm1(jnp.minimum(log_ratio, 0)))


# Delayed rejection (Tierney and Mira): a walk of scale s, then, if y was rejected, a narrower one from x again.
#   a_2 = min(1, pi(z) q_1(z,y) [1 - a_1(z,y)] q_2(z,x) / (pi(x) q_1(x,y) [1 - a_1(x,y)] q_2(x,z)))
# q_2 is symmetric and cancels; q_1(z,y) / q_1(x,y) = exp((|y-x|^2 - |y-z|^2) / (2 s^2)), 2 s^2 = 4 h, does not, because y
# is reached from another point on the way back.  Detailed balance holds for each stage by itself.
@dataclass(frozen=True)
class DelayedRejection:
    second: float = 0.8

    claims = EXACT

    def step(self, key, position, step_size, estimator):
        x, unravel = ravel_pytree(position)
        h = jnp.asarray(step_size, x.dtype)
        scale = jnp.sqrt(2 * h)
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
            log_ratio += (jnp.sum((y - x) ** 2) - jnp.sum((y - z) ** 2)) / (4 * h)
            log_ratio += log_rejection(nearer - there) - log_rejection(here - there)
            ok = jnp.log(jax.random.uniform(last_key, (), x.dtype)) < log_ratio
            return jnp.where(ok, z, x)

        first = jnp.log(jax.random.uniform(test_key, (), x.dtype)) < here - there
        return unravel(lax.cond(first, accepted, try_again, None))


# HMC with tempering within a trajectory (Neal 2011, 5.5.7).  A leap is  p *= a_i, kick / drift / kick, p *= b_i.  The 2 L
# factors are sqrt(alpha) for the first L of them, 1 / sqrt(alpha) for the last L: b_(L+1-i) = 1 / a_i for odd L too (the
# leap in the middle has a = sqrt(alpha), b = 1 / a).  So the product of all is 1 (volume), and the trajectory
# with the momentum turned round goes back by itself: with min(1, exp(-dH)) the kernel is in detailed balance.
@dataclass(frozen=True)
class TemperedTrajectory:
    leaps: int = 5
    heating: float = 1.2

    claims = EXACT

    def __post_init__(self):
        if self.leaps < 1 or self.heating <= 0:
            raise ValueError("leaps and heating are positive")

    def factors(self, dtype):
        up = jnp.arange(2 * self.leaps) < self.leaps
        root = self.heating**0.5
        return jnp.where(up, root, 1 / root).astype(dtype).reshape(self.leaps, 2)

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
            p = factor[0] * p
            p = p - 0.5 * eps * slope(q)
            q = q + eps * p
            p = p - 0.5 * eps * slope(q)
            return (q, factor[1] * p), None

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
# normal.  q(x, y) = c_i(x) N(y_i - x_i), so the ratio is pi(y) c_i(y) / (pi(x) c_i(x)): detailed balance.  Energy and gradient
# of the present point are kept; a rejection keeps all three.
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
        before = self.log_choice(state.slope)
        index = jax.random.categorical(pick_key, before)
        jump = jnp.sqrt(2 * jnp.asarray(step_size, x.dtype)) * jax.random.normal(move_key, (), x.dtype)
        new = self.evaluate(data_key, unravel(x.at[index].add(jump)), estimator)
        after = self.log_choice(new.slope)
        log_ratio = state.energy - new.energy + after[index] - before[index]
        accept = jnp.log(jax.random.uniform(accept_key, (), x.dtype)) < log_ratio
        return jax.tree.map(lambda a, b: jnp.where(accept, a, b), new, state)
