"""Riemann manifold Hamiltonian Monte Carlo (RMHMC): generalised leapfrog and a Metropolis test."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.entry import PLANE, TRAJECTORIES, Row, with_metric
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Scalar
from sgmcmc_verification.samplers.interface.claims import Claims, Source
from sgmcmc_verification.samplers.numerics import spd
from sgmcmc_verification.samplers.riemannian.metrics import Metric, NonHessian2D, dense, recipe_metric
from sgmcmc_verification.samplers.riemannian.sgrld import SGRLD
from sgmcmc_verification.samplers.riemannian.trajectories import TrajectoryMixin, agree, solve
from sgmcmc_verification.samplers.underdamped.hmc import MetropolisState, potential_of


@dataclass(frozen=True)
class RMHMC(TrajectoryMixin):
    """Trajectories of the generalised leapfrog in a metric, accepted with probability min(1, exp(-(H' - H) / T)).

        H(x, p) = U(x) + K(x, p),   K = p^T G^-1(x) p / 2 + T log |G(x)| / 2,   p ~ N(0, T G(x));  num_steps times:
        w  = p - (h/2) [grad U(x) + d_x K(x, w)]
        x' = x + (h/2) [G^-1(x) + G^-1(x')] w
        p' = w - (h/2) [grad U(x') + d_x K(x', w)]

    The first two equations are implicit and solved by iteration. A step is reversible only if its reverse finds the
    same solutions. Both are checked: where an iteration does not converge, or the step from (x', -p') does not lead
    back to (x, -p), the transition is rejected, which leaves the law invariant.

    Source: girolami2011riemann, section 6 (generalised leapfrog). Differs from the source in:
        1. the temperature T;
        2. the iterations run to round-off, and convergence and reversibility are checked;
        3. a proposal whose potential is not finite is rejected.

    Args:
        metric: G^-1 and its square root.
        num_steps: steps of the integrator per transition, at least 1.
        temperature: T > 0; the law is exp(-U / T), Lebesgue.

    `step_size` is h.

    Error: none, at any step size, for exact potentials and gradients. The energy error of a trajectory of fixed length
    is O(h^2).

    Raises:
        ValueError: if `num_steps` or `temperature` is not positive, or the estimator returns no potential.
    """

    metric: Metric
    num_steps: int = 5
    temperature: float = 1.0

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        source = Source("girolami2011riemann", "section 6, generalised leapfrog")
        return self.trajectory_claims(source, SGRLD(self.metric, self.temperature).dynamics, flat=True)

    def refresh(self, key: jax.Array, position: Position) -> jax.Array:
        """p ~ N(0, T G(x)), flat (n,)."""
        theta = ravel_pytree(position)[0]
        white = jax.random.normal(key, theta.shape, theta.dtype)
        root = jnp.sqrt(self.temperature).astype(theta.dtype)
        return root * spd.solve(dense(self.metric.inverse_sqrt(theta)), white)

    def kinetic(self, position: Position, momentum: jax.Array) -> jax.Array:
        """K(x, p)."""
        return self._kinetic(ravel_pytree(position)[0], momentum)

    def _kinetic(self, theta: jax.Array, p: jax.Array) -> jax.Array:
        inverse = self.metric.inverse(theta)
        return 0.5 * p @ inverse @ p - 0.5 * self.temperature * spd.log_det(dense(inverse))

    def _move(
        self, theta: jax.Array, p: jax.Array, gradient: jax.Array, h: Scalar
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """(x, p, grad U(x)) -> (x', w, converged): the two implicit equations."""
        slope = jax.grad(self._kinetic)
        half, first = solve(lambda w: p - 0.5 * h * (gradient + slope(theta, w)), p)
        velocity = self.metric.inverse(theta) @ half
        along = lambda x: theta + 0.5 * h * (velocity + self.metric.inverse(x) @ half)
        end, second = solve(along, theta + h * velocity)
        return end, half, first & second

    def integrate(
        self, key: jax.Array, state: MetropolisState, momentum: jax.Array, step_size: Scalar, estimator: Estimator
    ) -> tuple[MetropolisState, jax.Array, jax.Array]:
        """Take one step of the generalised leapfrog; valid if its reverse leads back."""
        h = step_size
        theta, unravel = ravel_pytree(state.position)
        x, half, converged = self._move(theta, momentum, ravel_pytree(state.gradient)[0], h)
        estimate, estate = estimator.estimate(key, state.estate, unravel(x))
        gradient = ravel_pytree(estimate.gradient)[0]
        p = half - 0.5 * h * (gradient + jax.grad(self._kinetic)(x, half))
        start, back, returned = self._move(x, -p, gradient, h)
        same = agree(theta, start) & agree(-half, back)
        end = MetropolisState(unravel(x), potential_of(estimate), estimate.gradient, estate)
        return end, p, converged & returned & same


ENTRIES: tuple[Row, ...] = (
    Row(
        "rmhmc",
        with_metric(RMHMC, lambda target: NonHessian2D(), size=2),
        targets=PLANE,
        variants=TRAJECTORIES,
        step_size=0.2,
        step_power=0.5,
    ),
    Row(
        "rmhmc-recipe-metric",
        with_metric(RMHMC, recipe_metric),
        targets=("double-well",),
        variants=TRAJECTORIES,
        step_size=0.2,
        step_power=0.5,
    ),
)
