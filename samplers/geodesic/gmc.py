"""Geodesic Monte Carlo (GMC) on embedded manifolds, with a Metropolis test."""

from dataclasses import dataclass

import jax

from sgmcmc_verification.samplers.dynamics.embedded import geodesic_overdamped
from sgmcmc_verification.samplers.entry import EMBEDDED, MANIFOLD_TIERS, OTHERS, TRAJECTORIES, Row, on_manifold
from sgmcmc_verification.samplers.geodesic.common import SPACES, arrive, velocity_like
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import Claims, FollowsGeodesics, Source
from sgmcmc_verification.samplers.riemannian.trajectories import TrajectoryMixin
from sgmcmc_verification.samplers.underdamped.hmc import MetropolisState, potential_of
from sgmcmc_verification.targets.manifolds.base import Manifold


@dataclass(frozen=True, eq=False)
class GMC(TrajectoryMixin):
    """Hamiltonian Monte Carlo whose drift is the geodesic flow, accepted with probability min(1, exp(-(H' - H) / T)).

        v ~ N(0, T P(x));  num_steps times:
        v -= (h/2) P grad U(x),  (x, v) <- geodesic flow for a time h,  v -= (h/2) P grad U(x);   H = U + |v|^2 / 2

    P(x) is the tangent projection. Kicks and flow keep the volume of the tangent bundle and run back after a change of
    sign of v, reflections at a boundary included.

    Source: byrne2013geodesic, the geodesic Monte Carlo algorithm. Differs from the source in:
        1. the temperature T (velocity of variance T, energies divided by T);
        2. a proposal whose potential is not finite is rejected;
        3. after every step position and velocity are moved back to the constraint, which changes them by round-off.

    Args:
        manifold: where the position lives; needs `tangent`, `geodesic` and `project_roundoff`.
        num_steps: steps of the integrator per transition, at least 1.
        temperature: T > 0; the law is exp(-U / T) with respect to the Hausdorff measure.

    `step_size` is h, the time of one step of the integrator. The start needs a finite potential.

    Error: none, at any step size, for exact potentials and gradients. The energy error of a trajectory of fixed length
    is O(h^2).

    Raises:
        ValueError: if `num_steps` or `temperature` is not positive, or the estimator returns no potential.
    """

    manifold: Manifold
    num_steps: int = 5
    temperature: float = 1.0

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        source = Source("byrne2013geodesic", "the geodesic Monte Carlo algorithm")
        dynamics = lambda target: geodesic_overdamped(target, self.temperature)
        return self.trajectory_claims(source, dynamics, self.manifold.is_linear, SPACES).amended(
            FollowsGeodesics(self.manifold)
        )

    def refresh(self, key: jax.Array, position: Position) -> Tree:
        """v ~ N(0, T P(x))."""
        return velocity_like(key, self.manifold, position, self.temperature)

    def _kick(self, state: MetropolisState, velocity: Tree, time: Scalar) -> Tree:
        force = self.manifold.tangent(state.position, state.gradient)
        return jax.tree.map(lambda b, g: b - time * g, velocity, force)

    def integrate(
        self, key: jax.Array, state: MetropolisState, velocity: Tree, step_size: Scalar, estimator: Estimator
    ) -> tuple[MetropolisState, Tree, bool]:
        """Half a kick, a geodesic, half a kick."""
        v = self._kick(state, velocity, 0.5 * step_size)
        x, v = arrive(self.manifold, *self.manifold.geodesic(state.position, v, step_size))
        estimate, estate = estimator.estimate(key, state.estate, x)
        end = MetropolisState(x, potential_of(estimate), estimate.gradient, estate)
        return end, self._kick(end, v, 0.5 * step_size), True


ENTRIES: tuple[Row, ...] = (
    Row(
        "gmc",
        on_manifold(GMC),
        tiers=MANIFOLD_TIERS,
        targets=(*EMBEDDED, "dirichlet-sphere-concentrated", *OTHERS),
        variants=TRAJECTORIES,
        step_size=0.2,
        step_power=0.5,
    ),
)
