"""Generalised stochastic gradient Riemannian Hamiltonian Monte Carlo (gSGRHMC)."""

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, coordinate_names, row_divergence
from sgmcmc_verification.samplers.dynamics.underdamped import MomentumMixin, MomentumState
from sgmcmc_verification.samplers.entry import (
    MANIFOLD_TIERS,
    PLANE,
    POSITIVE,
    TEMPERATURES,
    Row,
    known_noise,
    with_metric,
)
from sgmcmc_verification.samplers.interface.aliases import Estimate, Estimator, Scalar, State
from sgmcmc_verification.samplers.interface.claims import Claims, ShearingForce, Source
from sgmcmc_verification.samplers.interface.estimates import covariance_of
from sgmcmc_verification.samplers.numerics.matrix_sqrt import positive_root
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.riemannian.common import RiemannianMixin
from sgmcmc_verification.samplers.riemannian.metrics import (
    Diagonal,
    FlatMetric,
    Metric,
    NonHessian2D,
    PositiveMetric,
    recipe_metric,
)
from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.target import Target

Order = Literal["semi-implicit", "explicit"]


@dataclass(frozen=True)
class SGRHMC(RiemannianMixin, MomentumMixin):
    """Euler on underdamped dynamics with mass and friction from a Riemannian metric, B = G^-1/2 symmetric.

        r' = r + h [-B grad U~ + T div B - C r] + N(0, 2 h T C - h^2 B V^ B),  all matrices at theta
        theta' = theta + h B(theta) r'     (`order="semi-implicit"`)
        theta' = theta + h B(theta) r      (`order="explicit"`)

    with (div B)_i = sum_j d_j B_ij, V^ = 0 unless `compensate`, and, if `reflect`, theta_j and r_j both change sign
    where theta'_j < 0. C is G^-1, or a number.

    With C = G^-1 the metric is lost where friction decides: for C >> 1 the position moves by the overdamped equation
    with the matrix B C^-1 B, the unit matrix. Of a law theta^N e^-theta, G = diag(theta)^-1, the force is
    B U'' B = theta / N, about 1, and the friction theta is about N: correlations last for N units of time. For C = 1
    they last for one.

    Source: ma2015complete, Algorithm 1 and section 3.2 (equation (17)); `explicit` is Algorithm 1 as printed. Differs
    from the source in:
        1. the signs of div B and G^-1 r in equation (17), which are misprints there; Algorithm 1 has them right;
        2. the order of the updates, unless `explicit`: an explicit Euler step of a momentum has a larger error;
        3. the temperature T, and no resampling of the momentum;
        4. the friction, if it is a number: D = diag(0, C) has no divergence either.

    Args:
        metric: G^-1 and its symmetric square root B.
        temperature: T > 0; the law is exp(-(U + |r|^2 / 2) / T).
        compensate: subtract the gradient noise B V^ B from the injected noise; needs an estimator that returns V^.
            Negative eigenvalues of the difference are set to zero.
        order: which momentum moves the position.
        reflect: mirror at zero, for laws on (0, inf)^n.
        friction: C > 0; None for G^-1.

    Error: weak order 1 and invariant law O(h), for exact gradients or compensated noise.

    Raises:
        ValueError: if `temperature` or `friction` is not positive, or `order` is unknown.
    """

    metric: Metric
    temperature: float = 1.0
    compensate: bool = False
    order: Order = "semi-implicit"
    reflect: bool = False
    friction: float | None = None

    backend = "jax"
    source = Source("ma2015complete", "Algorithm 1")

    def __post_init__(self) -> None:
        require_positive(self, "temperature")
        require(self.friction is None or self.friction > 0, "friction: must be positive", self.friction)
        require(self.order in ("semi-implicit", "explicit"), "order: unknown", self.order)

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return super().claims.amended(ShearingForce()) if self.order == "semi-implicit" else super().claims

    def friction_matrix(self, theta: jax.Array) -> jax.Array | Diagonal:
        """C (n, n) at theta (n,)."""
        return self.metric.inverse(theta) if self.friction is None else self.friction * jnp.eye(len(theta))

    def dynamics(self, target: Target) -> Dynamics:
        """H = (U + |r|^2 / 2) / T, D = T diag(0, C), Q = T [[0, -B], [B, 0]]."""
        T, n, metric = self.temperature, target.size, self.metric

        def D(z: jax.Array) -> jax.Array:
            zero = jnp.zeros((n, n), z.dtype)
            return jnp.block([[zero, zero], [zero, T * self.friction_matrix(z[:n])]])

        def Q(z: jax.Array) -> jax.Array:
            zero, root = jnp.zeros((n, n), z.dtype), T * metric.inverse_sqrt(z[:n])
            return jnp.block([[zero, -root], [root, zero]])

        return Dynamics(
            H=lambda z: (target.flat_potential(z[:n]) + 0.5 * z[n:] @ z[n:]) / T,
            D=D,
            Q=Q,
            names=coordinate_names(n, "r"),
            size=n,
        )

    def injected(self, key: jax.Array, theta: jax.Array, estimate: Estimate, step_size: Scalar) -> jax.Array:
        """The injected noise N(0, 2 h T C - h^2 B V^ B) at theta (n,), (n,)."""
        h, T, root = step_size, self.temperature, self.metric.inverse_sqrt(theta)
        white = normal_like(key, theta)
        if not self.compensate:
            return jnp.sqrt(2 * T * h) * (root @ white if self.friction is None else self.friction**0.5 * white)
        return (
            jnp.sqrt(h)
            * positive_root(2 * T * self.friction_matrix(theta) - h * root @ covariance_of(estimate) @ root)
            @ white
        )

    def step(self, key: jax.Array, state: State, step_size: Scalar, estimator: Estimator) -> MomentumState:
        """Take one step."""
        gradient_key, noise_key = jax.random.split(key)
        h, T = step_size, self.temperature
        theta, unravel = ravel_pytree(state.position)
        r = ravel_pytree(state.momentum)[0]
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        gradient = ravel_pytree(estimate.gradient)[0]
        root = self.metric.inverse_sqrt(theta)
        resisted = self.metric.inverse(theta) @ r if self.friction is None else self.friction * r
        noise = self.injected(noise_key, theta, estimate, h)
        divergence = row_divergence(self.metric.inverse_sqrt, theta)
        new_r = r + h * (T * divergence - root @ gradient - resisted) + noise
        theta = theta + h * (root @ (new_r if self.order == "semi-implicit" else r))
        if self.reflect:
            new_r = jnp.where(theta < 0, -new_r, new_r)
            theta = jnp.abs(theta)
        return MomentumState(unravel(theta), unravel(new_r), estate)


ENTRIES: tuple[Row, ...] = (
    Row(
        "sgrhmc",
        with_metric(SGRHMC, lambda target: PositiveMetric(), reflect=True),
        tiers=MANIFOLD_TIERS,
        targets=POSITIVE,
        variants=(
            {"temperature": 0.5},
            {"temperature": 2.0, "order": "explicit"},
            {"friction": 0.5},
            {"friction": 2.0, "temperature": 2.0},
        ),
        step_size=0.02,
        step_power=0.5,
        diffusion=published.underdamped(published.positive),
    ),
)

OTHER_METRICS: tuple[Row, ...] = (
    Row(
        "sghmc-reflected",
        with_metric(SGRHMC, lambda target: FlatMetric(), reflect=True),
        tiers=MANIFOLD_TIERS,
        targets=("simplex-expanded-mean", "half-gaussian"),
        step_size=0.02,
        step_power=0.5,
        diffusion=published.underdamped(published.flat),
    ),
    Row(
        "sgrhmc-expanded-mean",
        with_metric(SGRHMC, lambda target: PositiveMetric(), reflect=True),
        tiers=MANIFOLD_TIERS,
        targets=("simplex-expanded-mean",),
        step_size=0.02,
        step_power=0.5,
        diffusion=published.underdamped(published.positive),
    ),
    Row(
        "sgrhmc-non-hessian",
        with_metric(SGRHMC, lambda target: NonHessian2D(), size=2),
        targets=PLANE,
        variants=(
            {"temperature": 0.5},
            {"temperature": 2.0, "order": "explicit"},
            {"friction": 0.7},
            {"friction": 1.5},
        ),
        step_size=0.05,
        step_power=0.5,
        diffusion=published.underdamped(published.non_hessian),
    ),
    Row(
        "sgrhmc-recipe-metric",
        with_metric(SGRHMC, recipe_metric),
        targets=("double-well",),
        variants=TEMPERATURES,
        step_size=0.05,
        step_power=0.5,
        diffusion=published.underdamped(published.recipe),
    ),
    Row(
        "sgrhmc-compensated",
        with_metric(SGRHMC, recipe_metric, compensate=True),
        targets=("double-well",),
        variants=TEMPERATURES,
        step_size=0.05,
        step_power=0.5,
        estimator=known_noise,
        diffusion=published.underdamped(published.recipe),
    ),
)
