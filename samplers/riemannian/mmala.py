"""Metropolis-adjusted Langevin algorithm in a metric (mMALA): RMLD with a Metropolis test."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, row_divergence
from sgmcmc_verification.samplers.entry import PLANE, TEMPERATURES, Row, with_metric
from sgmcmc_verification.samplers.interface.aliases import Estimator, Scalar
from sgmcmc_verification.samplers.interface.claims import Claims, Diffusion, Source
from sgmcmc_verification.samplers.interface.metropolis import accept, finite_or_reject
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.numerics.spd import log_det, solve
from sgmcmc_verification.samplers.riemannian.metrics import Metric, NonHessian2D, dense, recipe_metric
from sgmcmc_verification.samplers.riemannian.sgrld import SGRLD
from sgmcmc_verification.samplers.underdamped.hmc import MetropolisMixin, MetropolisState, potential_of
from sgmcmc_verification.samplers.validation import require_positive
from sgmcmc_verification.targets.target import Target


@dataclass(frozen=True)
class MMALA(MetropolisMixin):
    """An Euler step of the Langevin equation of a metric as proposal, accepted as by Metropolis and Hastings.

        y = m(x) + N(0, 2 h T G^-1(x)),   m(x) = x - h [G^-1 grad U - T Gamma],   Gamma_i = sum_j d_j (G^-1)_ij
        accepted with probability min(1, exp(a)),   a = (U(x) - U(y)) / T + log q(y, x) - log q(x, y)
        log q(x, y) = -(y - m(x))^T G(x) (y - m(x)) / (4 h T) + log |G(x)| / 2

    Without the test it is Riemann manifold Langevin dynamics (RMLD), which is `SGRLD` with exact gradients.

    Source: girolami2011riemann, section 5 (manifold MALA), with h = epsilon^2 / 2 of the source. Differs from the
    source in:
        1. Gamma of ma2015complete in the proposal (`SGRLD`); the test makes any drift exact;
        2. the temperature T;
        3. a proposal whose potential is not finite is rejected.

    Args:
        metric: G^-1 and its square root.
        temperature: T > 0; the law is exp(-U / T), Lebesgue.

    Error: none in the invariant law, at any step size, for exact potentials and gradients. The start needs a finite
    potential.

    Raises:
        ValueError: if `temperature` is not positive, or the estimator returns no potential.
    """

    metric: Metric
    temperature: float = 1.0

    def __post_init__(self) -> None:
        require_positive(self, "temperature")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        source = Source("girolami2011riemann", "section 5, manifold MALA")
        return self.exact_claims(source, Diffusion(self.dynamics), spaces=("euclidean", "positive"))

    def dynamics(self, target: Target) -> Dynamics:
        """Dynamics of SGRLD: the limit of small steps."""
        return SGRLD(self.metric, self.temperature).dynamics(target)

    def mean(self, theta: jax.Array, gradient: jax.Array, step_size: Scalar) -> jax.Array:
        """m(theta) (n,)."""
        drift = self.metric.inverse(theta) @ gradient - self.temperature * row_divergence(self.metric.inverse, theta)
        return theta - step_size * drift

    def log_proposal(self, start: jax.Array, gradient: jax.Array, end: jax.Array, step_size: Scalar) -> jax.Array:
        """log q(start, end) up to a constant, for flat positions (n,); `gradient` is grad U at `start`."""
        inverse, residual = self.metric.inverse(start), end - self.mean(start, gradient, step_size)
        quadratic = residual @ solve(dense(inverse), residual)
        return -quadratic / (4 * step_size * self.temperature) - 0.5 * log_det(dense(inverse))

    def step(self, key: jax.Array, state: MetropolisState, step_size: Scalar, estimator: Estimator) -> MetropolisState:
        """Take one step."""
        noise_key, gradient_key, accept_key = jax.random.split(key, 3)
        x, unravel = ravel_pytree(state.position)
        slope = ravel_pytree(state.gradient)[0]
        noise = self.metric.inverse_sqrt(x) @ normal_like(noise_key, x)
        y = self.mean(x, slope, step_size) + jnp.sqrt(2 * step_size * self.temperature) * noise
        estimate, estate = estimator.estimate(gradient_key, state.estate, unravel(y))
        end = MetropolisState(unravel(y), potential_of(estimate), estimate.gradient, ())
        forward = self.log_proposal(x, slope, y, step_size)
        backward = self.log_proposal(y, ravel_pytree(end.gradient)[0], x, step_size)
        log_ratio = (state.potential - end.potential) / self.temperature + backward - forward
        chosen = accept(accept_key, finite_or_reject(end.potential, log_ratio), end, state._replace(estate=()))
        return chosen._replace(estate=estate)


ENTRIES: tuple[Row, ...] = (
    Row(
        "mmala",
        with_metric(MMALA, lambda target: NonHessian2D(), size=2),
        targets=PLANE,
        variants=TEMPERATURES,
        diffusion=published.langevin(published.non_hessian),
    ),
    Row(
        "mmala-recipe-metric",
        with_metric(MMALA, recipe_metric),
        targets=("double-well",),
        variants=TEMPERATURES,
        diffusion=published.langevin(published.recipe),
    ),
)
