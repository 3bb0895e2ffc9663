"""Gradient estimators that need no memory: exact, known Gaussian noise, minibatches (SAGA has its own file).

Every `estimate` returns +grad U, summed over the data.
"""

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position, Tree
from sgmcmc_verification.samplers.interface.sampler import Estimate, Stateless
from sgmcmc_verification.targets.target import DataTerms, Target


def terms_of(target: Target) -> DataTerms:
    """The sum over data of a target. Raises ValueError for a target without data."""
    if target.terms is None:
        raise ValueError(f"target: {target.name} is not a sum over data")
    return target.terms


@dataclass(frozen=True, eq=False)
class Exact(Stateless):
    """The exact gradient and potential of U."""

    target: Target

    def estimate(self, key: jax.Array, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and the next state of the estimator."""
        del key
        value, gradient = self.target.value_and_gradient(position)
        return Estimate(gradient, value), estate


@functools.lru_cache(maxsize=64)
def compiled_gradient(target: Target) -> Callable[[Position], tuple[jax.Array, Tree]]:
    """Potential and gradient, compiled once per target: for steps that are not, which ask for one at a time."""
    return jax.jit(target.value_and_gradient)


@dataclass(frozen=True, eq=False)
class KnownNoise(Stateless):
    """grad U + N(0, V) with known V, the noise model of the recipe paper's synthetic experiments.

    Args:
        target: gives the exact gradient.
        covariance: V, (d, d), in ravel order of the position.
        report: return V itself as the covariance of the estimate (`True`) or nothing (`False`), to tell compensated
            and uncompensated samplers apart.
    """

    target: Target
    covariance: np.ndarray
    report: bool = True

    def estimate(self, key: jax.Array, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and the next state of the estimator."""
        flat, unravel = ravel_pytree(jax.grad(self.target.potential)(position))
        covariance = jnp.asarray(self.covariance, flat.dtype)
        root = jnp.asarray(square_root(self.covariance), flat.dtype)
        noisy = flat + root @ jax.random.normal(key, flat.shape, flat.dtype)
        return Estimate(unravel(noisy), None, covariance if self.report else None), estate


def square_root(covariance: np.ndarray) -> np.ndarray:
    """Symmetric square root of a positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(np.asarray(covariance, np.float64))
    if values.min() < -1e-12 * max(1.0, values.max()):
        raise ValueError("covariance: the matrix of the gradient noise must be positive semidefinite")
    return (vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T


@dataclass(frozen=True, eq=False)
class Minibatch(Stateless):
    """grad U_0 + (N/n) sum_{i in S} grad U_i over a random minibatch S of n data.

    Args:
        terms: prior and datum potentials with the data.
        batch_size: n.
        replace: draw with replacement (independent, uniform), else a uniform subset.
        fisher: also return V-hat, the empirical Fisher estimate of the covariance of the gradient:
            (N^2/n) / (n - 1) sum (s_i - mean s)(s_i - mean s)^T, times (1 - n/N) without replacement
            [liu2016stochastic, section 3]. Needs n >= 2.

    Without replacement the subset is drawn as one uniform integer that indexes the list of all subsets when there
    are at most 4096 of them (`enumerable`), else by Floyd-free `jax.random.choice`, which sorts N numbers: for a
    large N use `replace=True`, as SG-MCMC practice does, or draw indices on the host.
    """

    terms: DataTerms
    batch_size: int
    replace: bool = True
    fisher: bool = False

    def __post_init__(self) -> None:
        n, total = self.batch_size, self.terms.size
        if not 1 <= n <= total:
            raise ValueError(f"batch_size: must lie between 1 and the number of data {total}, got {n}")
        if self.fisher and n < 2:
            raise ValueError("fisher: the empirical Fisher matrix needs a batch size of at least 2")

    @property
    def enumerable(self) -> bool:
        """True if all minibatches can be listed (at most 4096)."""
        n, total = self.batch_size, self.terms.size
        return (total**n if self.replace else math.comb(total, n)) <= 4096

    def indices(self) -> np.ndarray:
        """All minibatches, (count, n), each of the same probability. Raises ValueError if not enumerable."""
        if not self.enumerable:
            raise ValueError("batch_size: too many minibatches to enumerate")
        total, n = self.terms.size, self.batch_size
        source = itertools.product(range(total), repeat=n) if self.replace else itertools.combinations(range(total), n)
        return np.array(list(source), dtype=np.int32)

    def draw(self, key: jax.Array) -> jax.Array:
        """Indices (n,) of one random minibatch."""
        n, total = self.batch_size, self.terms.size
        if self.replace:
            return jax.random.randint(key, (n,), 0, total)
        if self.enumerable:
            table = self.indices()
            return jnp.asarray(table)[jax.random.randint(key, (), 0, len(table))]
        return jax.random.choice(key, total, (n,), replace=False)

    def at(self, indices: jax.Array, position: Position) -> Estimate:
        """The estimate for given indices (n,)."""
        batch = jax.tree.map(lambda a: jnp.asarray(a)[indices], self.terms.data)
        scale = self.terms.size / self.batch_size
        prior, prior_gradient = jax.value_and_grad(self.terms.prior)(position)
        if not self.fisher:
            value, gradient = jax.value_and_grad(lambda x: jnp.sum(jax.vmap(self.terms.datum, (None, 0))(x, batch)))(
                position
            )
            total = jax.tree.map(lambda a, b: a + scale * b, prior_gradient, gradient)
            return Estimate(total, prior + scale * value)
        values, gradients = jax.vmap(jax.value_and_grad(self.terms.datum), (None, 0))(position, batch)
        total = jax.tree.map(lambda a, b: a + scale * jnp.sum(b, axis=0), prior_gradient, gradients)
        scores = jax.vmap(lambda g: ravel_pytree(g)[0])(gradients)
        centred = scores - jnp.mean(scores, axis=0)
        finite = 1.0 if self.replace else 1.0 - self.batch_size / self.terms.size
        factor = finite * self.terms.size**2 / (self.batch_size * (self.batch_size - 1))
        return Estimate(total, prior + scale * jnp.sum(values), factor * centred.T @ centred)

    def estimate(self, key: jax.Array, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and the next state of the estimator."""
        return self.at(self.draw(key), position), estate


@dataclass(frozen=True, eq=False)
class FullEnergy:
    """The gradient of another estimator, beside the potential of all data, or that with noise of known variance.

    For samplers that move by a cheap gradient and decide by the energy; where the potential is not used, the compiler
    leaves it out.

    Args:
        inner: gives everything but the potential.
        target: gives U.
        variance: s^2 >= 0; the potential is U + N(0, s^2).
    """

    inner: Estimator
    target: Target
    variance: float = 0.0

    def init(self, key: jax.Array, position: Position) -> EstimatorState:
        """State of the inner estimator."""
        return self.inner.init(key, position)

    def estimate(self, key: jax.Array, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and the next state of the estimator."""
        potential = self.target.potential(position)
        if self.variance:
            key, energy_key = jax.random.split(key)
            noise = jax.random.normal(energy_key, (), jnp.result_type(potential))
            potential = potential + math.sqrt(self.variance) * noise
        estimate, estate = self.inner.estimate(key, estate, position)
        return estimate._replace(potential=potential), estate


@dataclass(frozen=True, eq=False)
class FromLogDensity(Stateless):
    """The exact gradient of any log-density, for samplers used outside the catalogue of targets.

    Args:
        log_density: position -> scalar, up to a constant.
    """

    log_density: Callable[[Position], jax.Array]

    def estimate(self, key: jax.Array, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and the next state of the estimator."""
        del key
        value, gradient = jax.value_and_grad(lambda x: -self.log_density(x))(position)
        return Estimate(gradient, value), estate
