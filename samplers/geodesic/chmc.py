"""Constrained Hamiltonian Monte Carlo (CHMC): RATTLE and a Metropolis test."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.dynamics.embedded import geodesic_overdamped
from sgmcmc_verification.samplers.entry import EMBEDDED, MANIFOLD_TIERS, TRAJECTORIES, Row, on_manifold
from sgmcmc_verification.samplers.geodesic.common import arrive, velocity_like
from sgmcmc_verification.samplers.geodesic.constraints import constraint_of, solve_small
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import Claims, Source
from sgmcmc_verification.samplers.riemannian.trajectories import TrajectoryMixin, agree, solve
from sgmcmc_verification.samplers.underdamped.hmc import MetropolisState, potential_of
from sgmcmc_verification.targets.manifolds.base import Manifold


@dataclass(frozen=True, eq=False)
class CHMC(TrajectoryMixin):
    """Trajectories of RATTLE on a manifold c(x) = 0, accepted with probability min(1, exp(-(H' - H) / T)).

        p ~ N(0, T P(x));  num_steps times, J = dc / dx:
        w = p - (h/2) grad U(x) - J(x)^T l,   x' = x + h w,   l such that c(x') = 0   (Newton's method)
        p' = P(x') [w - (h/2) grad U(x')],                    H = U + |p|^2 / 2

    The equation for l may have several solutions or none, and a step is reversible only if its reverse finds the same
    one. Both are checked: where Newton's method does not converge, or the step from (x', -p') does not lead back to
    x, the transition is rejected, which leaves the law invariant.

    Source: brubaker2012family, constrained HMC with RATTLE; lelievre2019hybrid (the check of reversibility).
    Differs from the sources in:
        1. the temperature T (momentum of variance T, energies divided by T); unit mass;
        2. Newton's method starts from l = 0 and runs to round-off;
        3. a proposal whose potential is not finite is rejected.

    Args:
        manifold: one that `samplers.geodesic.constraints.constraint_of` knows; its geodesics are not used.
        num_steps: steps of the integrator per transition, at least 1.
        temperature: T > 0; the law is exp(-U / T) with respect to the Hausdorff measure.

    `step_size` is h. On a unit sphere a step needs h |p| < 1, about.

    Error: none, at any step size, for exact potentials and gradients. The energy error of a trajectory of fixed length
    is O(h^2).

    Raises:
        ValueError: if `num_steps` or `temperature` is not positive, the manifold is not given by equations, or the
            estimator returns no potential.
    """

    manifold: Manifold
    num_steps: int = 5
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        constraint_of(self.manifold)

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        source = Source("brubaker2012family", "constrained HMC with RATTLE")
        spaces = ("euclidean", "sphere", "stiefel", "product")
        dynamics = lambda target: geodesic_overdamped(target, self.temperature)
        return self.trajectory_claims(source, dynamics, self.manifold.is_linear, spaces)

    def refresh(self, key: jax.Array, position: Position) -> Tree:
        """p ~ N(0, T P(x))."""
        return velocity_like(key, self.manifold, position, self.temperature)

    def drift(self, position: Position, momentum: Tree, step_size: Scalar) -> tuple[Position, Tree, jax.Array]:
        """(x, w) -> (x', (x' - x) / h, converged): x + h w moved along J(x)^T onto the manifold."""
        flat, unravel = ravel_pytree(position)
        c = constraint_of(self.manifold)
        flat_c = lambda y: c(unravel(y))
        free = flat + step_size * ravel_pytree(momentum)[0]
        jacobian = jax.jacfwd(flat_c)
        normal = jacobian(flat).T

        def newton(multiplier: jax.Array) -> jax.Array:
            y = free - normal @ multiplier
            return multiplier + solve_small(jacobian(y) @ normal, flat_c(y))

        if not normal.shape[1]:
            return unravel(free), momentum, jnp.asarray(True)
        multiplier, converged = solve(newton, jnp.zeros(normal.shape[1], flat.dtype))
        end = free - normal @ multiplier
        return unravel(end), unravel((end - flat) / step_size), converged

    def integrate(
        self, key: jax.Array, state: MetropolisState, momentum: Tree, step_size: Scalar, estimator: Estimator
    ) -> tuple[MetropolisState, Tree, jax.Array]:
        """Take one step of RATTLE; valid if its reverse leads back."""
        h, kick = step_size, lambda p, g: jax.tree.map(lambda a, b: a - 0.5 * h * b, p, g)
        half = kick(momentum, state.gradient)
        x, half, converged = self.drift(state.position, half, h)
        x = arrive(self.manifold, x, half)[0]
        estimate, estate = estimator.estimate(key, state.estate, x)
        end = MetropolisState(x, potential_of(estimate), estimate.gradient, estate)
        p = self.manifold.tangent(x, kick(half, end.gradient))
        back = kick(jax.tree.map(jnp.negative, p), end.gradient)
        start, _, returned = self.drift(x, back, h)
        same = agree(ravel_pytree(state.position)[0], ravel_pytree(start)[0])
        return end, p, converged & returned & same


ENTRIES: tuple[Row, ...] = (
    Row(
        "chmc",
        on_manifold(CHMC),
        tiers=MANIFOLD_TIERS,
        targets=(*EMBEDDED, "vmf-s2-and-gaussian"),
        variants=TRAJECTORIES,
        step_size=0.2,
        step_power=0.5,
    ),
)
