"""Stochastic gradient geodesic Monte Carlo (SGGMC)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import expm

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.charts import InChart, langevin_in_charts
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.embedded import EmbeddedDynamics, geodesic_langevin, projection
from sgmcmc_verification.samplers.dynamics.underdamped import langevin_dynamics
from sgmcmc_verification.samplers.entry import (
    CURVED,
    EMBEDDED,
    FRICTIONS,
    MANIFOLD_TIERS,
    OTHERS,
    Row,
    known_noise,
    on_manifold,
)
from sgmcmc_verification.samplers.geodesic.common import (
    SPACES,
    Friction,
    GeodesicState,
    TangentPoint,
    boundary_conditions,
    projected_noise,
    velocity_like,
)
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    Diffusion,
    EmbeddedDiffusion,
    FollowsGeodesics,
    KineticEnergy,
    Source,
    StationaryLaw,
    StationaryMoments,
)
from sgmcmc_verification.samplers.interface.estimates import CompensationMixin
from sgmcmc_verification.samplers.interface.from_step import PointMixin
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.manifolds.base import Manifold
from sgmcmc_verification.targets.target import Target


@dataclass(frozen=True, eq=False)
class SGGMC(CompensationMixin, PointMixin):
    """Underdamped Langevin dynamics on an embedded manifold, with exact geodesics and a symmetric splitting.

        A(h/2) B(h/2) O(h) B(h/2) A(h/2)
        A(t): (x, v) <- geodesic flow for a time t
        B(t): v <- exp(-P(x) C P(x) t) v;  for a scalar C, v <- exp(-C t) v
        O(h): v <- v + P(x) [-h grad U~(x) + N(0, 2 C T h - h^2 V^)],  P(x) = projection onto the tangent space

    with V^ = 0 unless `compensate`: then it is what the estimator reports of its noise, the known covariance or the
    empirical Fisher matrix of the minibatch (`samplers.estimators.basic`).

    Source: liu2016stochastic, Algorithm 1; equation (8) for V^. Differs from the source in:
        1. the temperature T;
        2. after a step the position is moved back to the constraint, and O projects the velocity with its increment:
           both change them by round-off;
        3. exp(-P C P t) for exp(-P C t): they agree on tangent vectors, and the first has a symmetric exponent;
        4. V^ is projected before it is subtracted, so that only its tangent part has to be below 2 C T / h; where that
           is not, the negative eigenvalues of the difference are set to zero.

    Args:
        manifold: where the position lives; needs `tangent`, `geodesic` and `project_roundoff`.
        friction: C, a positive number, or a symmetric positive definite matrix (n, n) on the ambient space, in ravel
            order; a matrix costs an exponential (n, n) per step.
        temperature: T > 0; the law is exp(-U / T) with respect to the Hausdorff measure.
        compensate: subtract the estimate's covariance from the injected noise.

    Error: weak order 2 and invariant law O(h^2), for exact gradients or compensated noise. With U = 0 and a scalar C,
    on any manifold, E |v|^2 / dim = s T C h / sinh(C h), where s = 1 + h V / (2 C T) for gradient noise of
    variance V that is not compensated. At a boundary (`positive`, `simplex`) see `samplers.geodesic.common`.

    Raises:
        ValueError: if `friction` or `temperature` is not positive, or `friction` is no symmetric matrix.
    """

    manifold: Manifold
    friction: Friction = 1.0
    temperature: float = 1.0
    compensate: bool = False

    backend = "jax"
    point = TangentPoint
    state = GeodesicState

    def __post_init__(self) -> None:
        C = np.asarray(self.friction, np.float64)
        require(C.ndim in (0, 2), "friction: must be a number or a matrix", self.friction)
        if C.ndim == 2:
            symmetric = C.shape[0] == C.shape[1] and np.allclose(C, C.T, rtol=1e-12, atol=0)
            require(symmetric, "friction: must be a symmetric matrix", self.friction)
        require(bool(np.all(np.isfinite(C))), "friction: must be finite", self.friction)
        least = C if C.ndim == 0 else np.linalg.eigvalsh(C)[0]
        require(bool(least > 0), "friction: must be positive (definite)", self.friction)
        require_positive(self, "temperature")
        if C.ndim == 2:
            object.__setattr__(self, "friction", tuple(map(tuple, C.tolist())))  # comparable, like every other option

    @cached_property
    def _root(self) -> np.ndarray | None:
        """A square root of a matrix C; None for a number."""
        C = np.asarray(self.friction, np.float64)
        return np.linalg.cholesky(C) if C.ndim == 2 else None

    @property
    def flat(self) -> bool:
        """True on a Euclidean space, where the step is that of SGHMC with the symmetric splitting."""
        return self.manifold.is_linear

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        scalar = self._root is None
        twin = SGHMC(self.friction, self.temperature, scheme="symmetric") if scalar else None
        return Claims(
            Source("liu2016stochastic", "Algorithm 1"),
            StationaryLaw(order=2, temperature=self.temperature),
            Diffusion(self.dynamics, weak_order=2) if self.flat else None,
            None if self.flat else EmbeddedDiffusion(self.embedded, weak_order=2, charts=self.charts),
            StationaryMoments(twin.discrete_law) if self.flat and twin else None,
            KineticEnergy(lambda h: self.friction * h / math.sinh(self.friction * h)) if scalar else None,
            FollowsGeodesics(self.manifold),
            conditions=("exact gradient or compensated noise", *boundary_conditions(self.manifold)),
            spaces=SPACES,
        )

    def dynamics(self, target: Target) -> Dynamics:
        """H = (U + |v|^2 / 2) / T, D = diag(0, C T), Q = T [[0, -I], [I, 0]] on a Euclidean space."""
        return langevin_dynamics(target, self.friction, self.temperature)

    def embedded(self, target: Target) -> EmbeddedDynamics:
        """The dynamics in ambient coordinates; see `geodesic_langevin`."""
        return geodesic_langevin(target, self.friction, self.temperature)

    def charts(self, target: Target) -> tuple[InChart, ...]:
        """The dynamics in charts of the manifold; see `langevin_in_charts`."""
        return langevin_in_charts(target, self.friction, self.temperature)

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> GeodesicState:
        """Start a chain at a position."""
        velocity_key, estimator_key = jax.random.split(key)
        velocity = velocity_like(velocity_key, self.manifold, position, self.temperature)
        return GeodesicState(position, velocity, estimator.init(estimator_key, position))

    def step(self, key: jax.Array, state: GeodesicState, step_size: Scalar, estimator: Estimator) -> GeodesicState:
        """Take one step."""
        gradient_key, noise_key = jax.random.split(key)
        h, T = step_size, self.temperature
        x, v = self.manifold.geodesic(state.position, state.velocity, 0.5 * h)
        estimate, estate = estimator.estimate(gradient_key, state.estate, x)
        covariance = estimate.covariance if self.compensate else None
        noise = projected_noise(noise_key, self.manifold, x, self.friction, self._root, T, h, covariance)
        damp = self._damping(x, 0.5 * h)
        kicked = jax.tree.map(lambda b, g, n: b - h * g + n, damp(v), estimate.gradient, noise)
        x, v = self.manifold.geodesic(x, damp(self.manifold.tangent(x, kicked)), 0.5 * h)
        return GeodesicState(self.manifold.project_roundoff(x), v, estate)

    def _damping(self, x: Position, time: Scalar) -> Callable[[Tree], Tree]:
        """v -> exp(-P C P time) v on the tangent space at x."""
        if self._root is None:
            decay = jnp.exp(-self.friction * time)
            return lambda v: jax.tree.map(lambda b: decay.astype(b.dtype) * b, v)
        P = projection(self.manifold, x)
        decay = expm(-time * (P @ jnp.asarray(np.asarray(self.friction), P.dtype) @ P))

        def damp(v: Tree) -> Tree:
            flat, unravel = ravel_pytree(v)
            return unravel(decay @ flat)

        return damp


def _matrix_friction(target: Target, friction: float = 1.0, temperature: float = 1.0) -> SGGMC:
    """SGGMC with a friction that is not a multiple of the identity, of size `friction`."""
    n = target.size
    return SGGMC(
        target.manifold,
        friction * (0.5 * np.eye(n) + 0.3 * np.ones((n, n)) + np.diag(np.linspace(0, 0.8, n))),
        temperature,
    )


ENTRIES: tuple[Row, ...] = (
    Row(
        "sggmc",
        on_manifold(SGGMC),
        tiers=MANIFOLD_TIERS,
        targets=(*EMBEDDED, "dirichlet-sphere-concentrated", *OTHERS),
        variants=FRICTIONS,
        step_power=0.5,
        diffusion=published.GEODESIC,
    ),
    Row(
        "sggmc-matrix",
        _matrix_friction,
        tiers=MANIFOLD_TIERS,
        targets=CURVED,
        variants=FRICTIONS,
        step_power=0.5,
        diffusion=published.GEODESIC_MATRIX,
    ),
    Row(
        "sggmc-compensated",
        on_manifold(SGGMC, compensate=True),
        tiers=MANIFOLD_TIERS,
        targets=CURVED,
        variants=FRICTIONS,
        step_size=0.015,  # as for sghmc-compensated
        step_power=0.5,
        estimator=known_noise,
        diffusion=published.GEODESIC,
    ),
)
