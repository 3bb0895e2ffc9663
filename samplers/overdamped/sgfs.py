"""Stochastic gradient Fisher scoring (SGFS)."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.overdamped import reversible_dynamics
from sgmcmc_verification.samplers.entry import FLAT, Row, langevin_row
from sgmcmc_verification.samplers.estimators.basic import KnownNoise
from sgmcmc_verification.samplers.interface.aliases import Builder, Estimator, EstimatorState, Position, Scalar
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    Diffusion,
    FisherScoring,
    Source,
    StationaryLaw,
    StationaryMoments,
    UncompensatedNoise,
)
from sgmcmc_verification.samplers.interface.estimates import covariance_of
from sgmcmc_verification.samplers.interface.from_step import PositionMixin
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.target import Target


class SGFSState(NamedTuple):
    """Position, the mean of the reported covariances (d, d), how many they are (integer), the estimator's own state."""

    position: Position
    covariance: jax.Array
    count: jax.Array  # pyright: ignore[reportIncompatibleMethodOverride]  # hides tuple.count
    estate: EstimatorState


@dataclass(frozen=True, eq=False)
class SGFS(PositionMixin):
    """Langevin dynamics preconditioned by the Fisher information that the noise of the gradients tells.

        theta' = theta - M (grad U~ + N(0, 2 B / h)),   M = (B / h + F / 2)^-1,   F = (1 + n/N) V-,
        V- = the mean of all V^ so far

    where V^ estimates the covariance of grad U~. At the mode of a posterior of N data with a flat prior and batches of
    n drawn with replacement, V = (N/n) P with P = N I_1 the precision, so that F = P + V: the stationary covariance S =
    (I - M P) S (I - M P)^T + M (V + 2 B / h) M then has the solution S = P^-1 at every step size, since P + V + 2 B / h
    = 2 M^-1. What the gradients bring along is not subtracted from the injected noise but made part of the noise that
    M asks for.

    Source: ahn2012bayesian, Algorithm 1, with h = epsilon / 2 of the source and gamma N I_t = F, gamma = (n + N) / n,
    N I_t = (n/N) V-. Differs from the source in:
        1. the estimator computes the covariance of the scores, of any minibatch that it likes.

    Args:
        batch_fraction: n/N, in (0, 1].
        preconditioner: B, symmetric positive definite: a number (times the identity) or (d, d). The source recommends a
            multiple of the Fisher information.
        diagonal: keep the diagonals of F and B only, for many coordinates. The law is then exact only where F is
            diagonal itself.

    Error: weak order 1 and invariant law O(h), for any covariance of the gradient noise; none on a Gaussian target
    whose gradient noise has the covariance P N/n, if F is not made diagonal.

    Raises:
        ValueError: if an argument is out of its range.
    """

    batch_fraction: float
    preconditioner: float | np.ndarray = 1.0
    diagonal: bool = False

    backend = "jax"
    needs = frozenset({"gradient", "covariance"})

    def __post_init__(self) -> None:
        require(0 < self.batch_fraction <= 1, "batch_fraction: must lie in (0, 1]", self.batch_fraction)
        matrix = np.atleast_2d(self.preconditioner)
        definite = matrix.shape[0] == matrix.shape[1] and bool(np.array_equal(matrix, matrix.T))
        definite = definite and bool(np.linalg.eigvalsh(matrix).min() > 0)
        require(definite, "preconditioner: must be symmetric positive definite", self.preconditioner)

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("ahn2012bayesian", "Algorithm 1"),
            StationaryLaw(order=1),
            Diffusion(self.dynamics, weak_order=1),
            # for V = curvature N/n, see above
            StationaryMoments(lambda h, curvature: {"position": 1 / curvature}),
            UncompensatedNoise(),
            FisherScoring(self.preconditioner, self.batch_fraction, self.diagonal),
            conditions=("gradient noise of the covariance that is reported",),
        )

    def dynamics(self, target: Target) -> Dynamics:
        """D = B^-1, Q = 0, H = U."""
        inverse = np.linalg.inv(self.matrix(target.size))
        return reversible_dynamics(target, lambda z: jnp.asarray(inverse, z.dtype))

    def matrix(self, size: int) -> np.ndarray:
        """B (d, d) for d coordinates."""
        given = np.asarray(self.preconditioner, np.float64)
        full = given if given.ndim == 2 else given * np.eye(size)
        return np.diag(np.diag(full)) if self.diagonal else full

    def fisher(self, covariance: jax.Array) -> jax.Array:
        """F, what the Fisher information adds to 2 B / h."""
        whole = (1 + self.batch_fraction) * covariance
        return jnp.diag(jnp.diag(whole)) if self.diagonal else whole

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> SGFSState:
        """Start a chain at a position."""
        theta = ravel_pytree(position)[0]
        none = jnp.zeros((theta.shape[0], theta.shape[0]), theta.dtype)
        return SGFSState(position, none, jnp.zeros((), jnp.int32), estimator.init(key, position))

    def step(self, key: jax.Array, state: SGFSState, step_size: Scalar, estimator: Estimator) -> SGFSState:
        """Take one step."""
        gradient_key, noise_key = jax.random.split(key)
        theta, unravel = ravel_pytree(state.position)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        count = state.count + 1
        weight = 1 / count.astype(theta.dtype)
        covariance = (1 - weight) * state.covariance + weight * covariance_of(estimate)
        B = self.matrix(theta.shape[0])
        root = jnp.asarray(np.linalg.cholesky(B), theta.dtype)
        # h times the bracket and sqrt(h) times the noise, so that a step of size zero is the identity
        noise = jnp.sqrt(2 * step_size) * (root @ normal_like(noise_key, theta))
        force = step_size * ravel_pytree(estimate.gradient)[0] + noise
        bracket = jnp.asarray(B, theta.dtype) + step_size / 2 * self.fisher(covariance)
        theta = theta - jnp.linalg.solve(bracket, force)
        return SGFSState(unravel(theta), covariance, count, estate)


SCALES = ({"scale": 0.5}, {"scale": 2.0})

BATCH_FRACTION = 0.25
"""n/N of the gradient noise that Fisher scoring meets in the checks."""


def fisher_noise(target: Target) -> KnownNoise:
    """Exact gradients with the noise that batches of N / 4 data have: V = P N/n with P the precision, reported."""
    gaussian = target.gaussian
    precision = gaussian.precision if gaussian is not None else target.curvature * np.eye(target.size)
    return KnownNoise(target, precision / BATCH_FRACTION)


def _fisher_scoring(target: Target, scale: float = 1.0, method: type[SGFS] = SGFS) -> SGFS:
    """SGFS with a full matrix B."""
    n = target.size
    return method(BATCH_FRACTION, scale * (0.7 * np.eye(n) + 0.3 * np.ones((n, n)) + np.diag(np.linspace(0, 0.8, n))))


def _diagonal_scoring(target: Target, scale: float = 1.0, method: type[SGFS] = SGFS) -> SGFS:
    """SGFS with a diagonal matrix B."""
    return method(BATCH_FRACTION, scale * np.diag(np.linspace(1.5, 0.8, target.size)), diagonal=True)


def _row(name: str, build: Builder, matrix: published.Matrix) -> Row:
    diffusion = published.langevin(matrix)
    return langevin_row(name, build, targets=FLAT[:4], variants=SCALES, estimator=fisher_noise, diffusion=diffusion)


ENTRIES: tuple[Row, ...] = (
    _row("sgfs", _fisher_scoring, published.fisher),
    _row("sgfs-diagonal", _diagonal_scoring, published.fisher_diagonal),
)
