"""Split steps on positive numbers and in a box, and two interacting systems of particles."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import cholesky

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw

# ---------------------------------------------------------------------------------------------------------------------
# Positive numbers. dx = (1 - x U') dt + sqrt(2 x) dW keeps exp(-U): the flux (1 - x U') p - (x p)' is 0 for p = exp(-U). It
# is split into the CIR process dx = (1 - b x) dt + sqrt(2 x) dW of a reference law b exp(-b x), which is drawn exactly, and
# the rest dx = -x (U' - b) dt. The CIR transition is c chi'^2_2(x e^(-b h) / c), c = (1 - e^(-b h)) / (2 b), two degrees of
# freedom. The rest is a step that keeps the sign, x (1 + h (b - U')+) / (1 + h (U' - b)+). WRONG: c lacks the 1 / b, as for b = 1. So
# the exact part is dx = (b - b x) dt + sqrt(2 b x) dW, the whole one b (1 - x U' / b) dt + sqrt(2 b x) dW, with the law exp(-U / b):
# a temperature b, 0.5 at the default. Gamma(3, 1): mean 2.5 for 3, variance 1.25 for 3. (Right at rate = 1 alone.)


@dataclasses.dataclass(frozen=True)
class SquareRootSplit:
    """Exact square-root diffusion of a reference law, and a positive step for the rest of the potential."""

    rate: float = 0.5
    claims = Claims(Source("", "own"), StationaryLaw(order=1), spaces=("positive",))

    def step(self, key, x, step_size, estimator):
        gradient_key, first_key, second_key = jax.random.split(key, 3)
        tilt = estimator.estimate(gradient_key, (), x)[0].gradient - self.rate
        x = (x + step_size * x * jnp.maximum(-tilt, 0)) / (1 + step_size * jnp.maximum(tilt, 0))
        decay = jnp.exp(-self.rate * step_size)
        scale = -jnp.expm1(-self.rate * step_size) / 2
        centre = jnp.sqrt(x * decay / scale)
        first = jax.random.normal(first_key, x.shape, x.dtype)
        second = jax.random.normal(second_key, x.shape, x.dtype)
        return scale * ((centre + first) ** 2 + second**2)


# ---------------------------------------------------------------------------------------------------------------------
# Box. Kinetic Langevin dynamics with mirrors: the free flight in a box has to turn a momentum round at each hit. WRONG: whether
# a face was hit is asked of the position after it was folded back, which is never outside. Momenta are not turned, so that a
# coordinate at a face is driven into it until its momentum changes its sign by noise, after a time of the order 1: a share of the
# order 1 of the law stands within O(h) of the faces, as h -> 0 too. For U = 2 x the mean is 0.05 for 0.34.


class Ball(NamedTuple):
    position: Any
    momentum: Any


@dataclasses.dataclass(frozen=True)
class Billiard:
    """Flight, kick, flight, friction, between mirrors at 0 and 1."""

    friction: float = 1.0
    claims = Claims(Source("", "own"), StationaryLaw(order=1), spaces=("box",))

    def init(self, key, position, estimator):
        return Ball(position, jax.random.normal(key, position.shape, position.dtype))

    @staticmethod
    def flight(x, p, time):
        y = x + time * p
        y = 1 - jnp.abs(1 - y % 2)
        outside = (y < 0) | (y > 1)
        return y, jnp.where(outside, -p, p)

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        x, p = self.flight(state.position, state.momentum, step_size / 2)
        p = p - step_size * estimator.estimate(gradient_key, (), x)[0].gradient
        x, p = self.flight(x, p, step_size / 2)
        kept = jnp.exp(-self.friction * step_size)
        p = kept * p + jnp.sqrt(1 - kept**2) * jax.random.normal(noise_key, p.shape, p.dtype)
        return Ball(x, p)


# ---------------------------------------------------------------------------------------------------------------------
# Ensemble of N walkers, each coordinate preconditioned by the variance C_a = 1/N sum_j E_ja^2 of the ensemble at that
# time, E = x - mean. WRONG: dx_ia = -C_a d_a U(x_i) dt + sqrt(2 C_a) dW lacks Gamma_ia = d C_a / d x_ia = 2/N E_ia, which vanishes for
# N -> infinity alone. The flux C_a (d log p + dU) + dC_a/dx = 0 gives p = exp(-sum_i U(x_i)) / prod_a C_a: the walkers are too
# close. On Gaussians N C_a / s^2 is chi^2_(N-3) for chi^2_(N-1): a variance of (N - 2) / N, 2/3 for N = 6, in each coordinate.


class Swarm(NamedTuple):
    members: Any  # the tree of a position, with a leading axis of walkers


def _scattered(key, position, count):
    leaves, form = jax.tree.flatten(position)
    keys = jax.random.split(key, len(leaves))

    def several(k, leaf):
        others = leaf + jax.random.normal(k, (count - 1, *leaf.shape), leaf.dtype)
        return jnp.concatenate([leaf[None], others])

    return form.unflatten([several(k, leaf) for k, leaf in zip(keys, leaves, strict=True)])


def _gradients(key, members, count, estimator):
    keys = jax.random.split(key, count)
    return jax.vmap(lambda k, q: estimator.estimate(k, (), q)[0].gradient)(keys, members)


@dataclasses.dataclass(frozen=True)
class PooledVariances:
    """Interacting Langevin walkers with the variances of the ensemble as preconditioner."""

    num_walkers: int = 6
    claims = Claims(Source("", "own"), StationaryLaw(order=1))

    def __post_init__(self):
        if self.num_walkers < 4:
            raise ValueError("num_walkers has to be at least 4")

    def init(self, key, position, estimator):
        return Swarm(_scattered(key, position, self.num_walkers))

    def position(self, state):
        return jax.tree.map(lambda leaf: leaf[0], state.members)

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradients = _gradients(gradient_key, state.members, self.num_walkers, estimator)
        leaves, form = jax.tree.flatten(state.members)
        keys = jax.random.split(noise_key, len(leaves))

        def move(k, leaf, gradient):
            spread = leaf - jnp.mean(leaf, axis=0)
            variance = jnp.mean(spread**2, axis=0)
            drift = -variance * gradient
            noise = jax.random.normal(k, leaf.shape, leaf.dtype)
            return leaf + step_size * drift + jnp.sqrt(2 * step_size * variance) * noise

        moved = [move(*each) for each in zip(keys, leaves, jax.tree.leaves(gradients), strict=True)]
        return Swarm(form.unflatten(moved))


# ---------------------------------------------------------------------------------------------------------------------
# Stein particles with noise. On all N particles D = (K + e I) / N with K_ij = k(x_i, x_j), k(x, y) = exp(-|x - y|^2 / (2 l)):
# Gamma_i = sum_j d D_ij / d x_j = 1/N sum_j k_ij (x_i - x_j) / l is the repulsion of SVGD, and noise N(0, 2 h D) makes it a sampler.
# WRONG: SciPy's Cholesky factor is the upper one, R'R = D, unless it is asked for the lower one, and R times a normal has the
# covariance R R'. R R' has the entry D_00 + sum_j D_0j^2 / D_00 for particle 0, the one that is shown, and too little for the last
# ones: particles have temperatures of their own. N = 4 on N(0, 1): variance 2.2 for 1 in one dimension.
# l = bandwidth x dimension, so that k_ij does not go to 0 in many dimensions.


@dataclasses.dataclass(frozen=True)
class NoisyStein:
    """SVGD with the noise that makes it a sampler, with a fixed kernel."""

    num_particles: int = 4
    bandwidth: float = 1.0
    claims = Claims(Source("", "own"), StationaryLaw(order=1))

    def init(self, key, position, estimator):
        return Swarm(_scattered(key, position, self.num_particles))

    def position(self, state):
        return jax.tree.map(lambda leaf: leaf[0], state.members)

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        _, unravel = ravel_pytree(self.position(state))
        flatten = jax.vmap(lambda tree: ravel_pytree(tree)[0])
        points = flatten(state.members)
        slopes = flatten(_gradients(gradient_key, state.members, self.num_particles, estimator))
        count, dim = points.shape
        length = self.bandwidth * dim

        gaps = points[:, None] - points[None]
        kernel = jnp.exp(-jnp.sum(gaps**2, axis=-1) / (2 * length))
        gram = kernel + 0.1 * jnp.eye(count, dtype=points.dtype)
        repulsion = jnp.einsum("ij,ija->ia", kernel, gaps) / length
        root = cholesky(gram)
        noise = root @ jax.random.normal(noise_key, points.shape, points.dtype)
        points = points + step_size / count * (repulsion - gram @ slopes) + jnp.sqrt(2 * step_size / count) * noise
        return Swarm(jax.vmap(unravel)(points))
