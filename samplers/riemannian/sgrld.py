"""Stochastic gradient Riemannian Langevin dynamics (SGRLD)."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, row_divergence
from sgmcmc_verification.samplers.dynamics.overdamped import reversible_dynamics
from sgmcmc_verification.samplers.entry import MANIFOLD_TIERS, PLANE, POSITIVE, TEMPERATURES, Row, with_metric
from sgmcmc_verification.samplers.interface.aliases import Estimator, Scalar, State
from sgmcmc_verification.samplers.interface.claims import Source
from sgmcmc_verification.samplers.interface.estimates import covariance_of
from sgmcmc_verification.samplers.interface.from_step import PositionMixin, PositionState
from sgmcmc_verification.samplers.numerics.matrix_sqrt import positive_root
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.riemannian.common import RiemannianMixin
from sgmcmc_verification.samplers.riemannian.metrics import (
    ExpandedNaturalMetric,
    FlatMetric,
    Metric,
    NonHessian2D,
    PositiveMetric,
    ReducedMeanMetric,
    ReducedNaturalMetric,
    recipe_metric,
)
from sgmcmc_verification.samplers.validation import require_positive
from sgmcmc_verification.targets.simplex.parameterisations import REDUCED
from sgmcmc_verification.targets.target import Target


@dataclass(frozen=True)
class SGRLD(RiemannianMixin, PositionMixin):
    """Euler-Maruyama on the Langevin equation of a Riemannian metric.

        theta' = theta - h (G^-1 grad U~ - T Gamma) + N(0, 2 h T G^-1 - h^2 G^-1 V^ G^-1),
        Gamma_i = sum_j d_j (G^-1)_ij,  everything at theta

    with V^ = 0 unless `compensate`, and theta' replaced by |theta'| if `reflect`.

    Source: patterson2013stochastic (SGRLD, general metric), with h = epsilon / 2 of the source; ma2015complete,
    section 3.1 (D = G^-1, Q = 0). Differs from the sources in:
        1. the sign of Gamma, which ma2015complete prints inside the minus bracket of equation (9) and has right in
           theorem 1;
        2. Gamma in place of the correction of girolami2011riemann: they agree in one dimension and for Hessian
           metrics only, and it is Gamma that leaves exp(-U) invariant (Lebesgue density);
        3. the temperature T and the compensation of the gradient noise (ma2015complete, equation (9)).

    Args:
        metric: G^-1 and its square root.
        temperature: T > 0; the law is exp(-U / T).
        compensate: subtract the gradient noise G^-1 V^ G^-1 from the injected noise; needs an estimator that returns
            V^. Negative eigenvalues of the difference are set to zero.
        reflect: mirror at zero, for laws on (0, inf)^n.

    Error: weak order 1 and invariant law O(h), for exact gradients or compensated noise; with `reflect`, if the
    density is bounded at zero (a law like theta^(a-1) with a < 1 has error O(h^a)).

    Raises:
        ValueError: if `temperature` is not positive.
    """

    metric: Metric
    temperature: float = 1.0
    compensate: bool = False
    reflect: bool = False

    backend = "jax"
    source = Source("patterson2013stochastic", "stochastic gradient Riemannian Langevin dynamics")

    def __post_init__(self) -> None:
        require_positive(self, "temperature")

    def dynamics(self, target: Target) -> Dynamics:
        """D = T G^-1, Q = 0, H = U / T."""
        T = self.temperature
        return reversible_dynamics(target, lambda z: T * self.metric.inverse(z), T)

    def step(self, key: jax.Array, state: State, step_size: Scalar, estimator: Estimator) -> PositionState:
        """Take one step."""
        gradient_key, noise_key = jax.random.split(key)
        h, T = step_size, self.temperature
        theta, unravel = ravel_pytree(state.position)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        gradient = ravel_pytree(estimate.gradient)[0]
        inverse = self.metric.inverse(theta)
        white = normal_like(noise_key, theta)
        if self.compensate:
            noise = (
                jnp.sqrt(h) * positive_root(2 * T * inverse - h * inverse @ covariance_of(estimate) @ inverse) @ white
            )
        else:
            noise = jnp.sqrt(2 * T * h) * (self.metric.inverse_sqrt(theta) @ white)
        gamma = row_divergence(self.metric.inverse, theta)
        theta = theta - h * (inverse @ gradient - T * gamma) + noise
        return PositionState(unravel(jnp.abs(theta) if self.reflect else theta), estate)


ENTRIES: tuple[Row, ...] = (
    Row(
        "sgrld",
        with_metric(SGRLD, lambda target: PositiveMetric(), reflect=True),
        tiers=MANIFOLD_TIERS,
        targets=POSITIVE,
        variants=TEMPERATURES,
        step_size=0.01,
        diffusion=published.langevin(published.positive),
    ),
    Row(
        "sgrld-reduced-mean",
        with_metric(SGRLD, lambda target: ReducedMeanMetric(sum(REDUCED)), size=2),
        targets=("simplex-reduced-mean",),
        step_size=2.0,
        diffusion=published.langevin(published.reduced_mean),
    ),
    Row(
        "sgrld-reduced-natural",
        with_metric(SGRLD, lambda target: ReducedNaturalMetric(sum(REDUCED)), size=2),
        targets=("simplex-reduced-natural",),
        step_size=0.2,
        diffusion=published.langevin(published.reduced_natural),
    ),
    Row(
        "sgrld-expanded-mean",
        with_metric(SGRLD, lambda target: PositiveMetric(), reflect=True),
        tiers=MANIFOLD_TIERS,
        targets=("simplex-expanded-mean",),
        step_size=0.01,
        diffusion=published.langevin(published.positive),
    ),
    Row(
        "sgrld-expanded-natural",
        with_metric(SGRLD, lambda target: ExpandedNaturalMetric()),
        targets=("simplex-expanded-natural",),
        step_size=0.02,
        diffusion=published.langevin(published.expanded_natural),
    ),
    Row(
        "sgrld-non-hessian",
        with_metric(SGRLD, lambda target: NonHessian2D(), size=2),
        targets=PLANE,
        variants=TEMPERATURES,
        step_size=0.02,
        diffusion=published.langevin(published.non_hessian),
    ),
    Row(
        "sgrld-recipe-metric",
        with_metric(SGRLD, recipe_metric),
        targets=("double-well",),
        variants=TEMPERATURES,
        step_size=0.02,
        diffusion=published.langevin(published.recipe),
    ),
)

REFLECTED: tuple[Row, ...] = (
    Row(
        "sgld-reflected",
        with_metric(SGRLD, lambda target: FlatMetric(), reflect=True),
        tiers=MANIFOLD_TIERS,
        targets=("simplex-expanded-mean", "half-gaussian"),
        step_size=0.02,
        diffusion=published.LANGEVIN,
    ),
)
