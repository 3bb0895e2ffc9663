"""Hamiltonian Monte Carlo (HMC) with leapfrog steps and a Metropolis test."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax

from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics
from sgmcmc_verification.samplers.entry import TRAJECTORIES, Row, momentum_row, plain
from sgmcmc_verification.samplers.interface.aliases import Estimate, Estimator, EstimatorState, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import (
    Claim,
    Claims,
    Composite,
    ExactLaw,
    HamiltonianProposal,
    Source,
    StationaryMoments,
)
from sgmcmc_verification.samplers.interface.from_step import PositionMixin
from sgmcmc_verification.samplers.interface.metropolis import accept, finite_or_reject, inner
from sgmcmc_verification.samplers.numerics.noise import momentum_like
from sgmcmc_verification.samplers.validation import require, require_positive


class MetropolisState(NamedTuple):
    """Position, its potential and gradient (caches), and the estimator's own state."""

    position: Position
    potential: jax.Array
    gradient: Tree
    estate: EstimatorState


class ExactMixin(PositionMixin):
    """The claims of an exact kernel with z = the position.

    Attributes:
        temperature: T > 0; the law is exp(-U / T).
        conditions: what the law rests on.
    """

    temperature: float
    conditions: ClassVar[tuple[str, ...]] = ("exact potential and gradient",)

    backend = "jax"

    def exact_claims(
        self, source: Source, *claims: Claim, flat: bool = True, spaces: tuple[str, ...] = ("euclidean",)
    ) -> Claims:
        """Claims of an exact kernel; `flat` where the position is in a Euclidean space."""
        T = self.temperature
        return Claims(
            source,
            ExactLaw(temperature=T),
            StationaryMoments(lambda h, curvature: {"position": T / curvature}) if flat else None,
            *claims,
            conditions=self.conditions,
            spaces=spaces,
        )


class MetropolisMixin(ExactMixin):
    """Cached state of Metropolis samplers, with z = the position, and their claims: all but `step`."""

    needs = frozenset({"gradient", "potential"})

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> MetropolisState:
        """Start a chain at a position."""
        init_key, gradient_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, estimator.init(init_key, position), position)
        return MetropolisState(position, potential_of(estimate), estimate.gradient, estate)


def potential_of(estimate: Estimate) -> jax.Array:
    """The potential of an estimate. Raises ValueError if it has none."""
    if estimate.potential is None:
        raise ValueError("estimator: a Metropolis test needs the potential; use an estimator that returns it")
    return estimate.potential


@dataclass(frozen=True)
class HMC(MetropolisMixin):
    """Leapfrog trajectories from a fresh momentum, accepted with probability min(1, exp(-(H' - H) / T)).

        r ~ N(0, T I);  num_steps times: r -= (h/2) grad U(x), x += h r, r -= (h/2) grad U(x);  H = U + |r|^2 / 2

    Source: neal2011mcmc, section 5.3.2 (figure 2), unit mass. Differs from the source in:
        1. the temperature T (momentum of variance T, energies divided by T);
        2. a proposal whose potential is not finite is rejected.

    Args:
        num_steps: leapfrog steps per transition, at least 1.
        temperature: T > 0; the law is exp(-U / T).

    `step_size` is the leapfrog step h, not the length of the trajectory. The start needs a finite potential.

    Error: none, at any step size, for exact potentials and gradients; with an estimate of either, no law is claimed.

    Raises:
        ValueError: if `num_steps` or `temperature` is not positive, or the estimator returns no potential.
    """

    num_steps: int = 5
    temperature: float = 1.0

    def __post_init__(self) -> None:
        require(self.num_steps >= 1, "num_steps: must be at least 1", self.num_steps)
        require_positive(self, "temperature")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        dynamics = lambda target: overdamped_dynamics(target, self.temperature)
        return self.exact_claims(
            Source("neal2011mcmc", "section 5.3.2"), Composite(), HamiltonianProposal(self.num_steps, dynamics)
        )

    def trajectory(
        self, key: jax.Array, state: MetropolisState, momentum: Tree, step_size: Scalar, estimator: Estimator
    ) -> tuple[MetropolisState, Tree]:
        """`num_steps` leapfrog steps: `(state, momentum) -> (state, momentum)` at the end, no accept-reject."""
        h = step_size

        def leapfrog(
            carry: tuple[MetropolisState, Tree], gradient_key: jax.Array
        ) -> tuple[tuple[MetropolisState, Tree], None]:
            here, r = carry
            r = jax.tree.map(lambda b, g: b - 0.5 * h * g, r, here.gradient)
            x = jax.tree.map(lambda a, b: a + h * b, here.position, r)
            estimate, estate = estimator.estimate(gradient_key, here.estate, x)
            r = jax.tree.map(lambda b, g: b - 0.5 * h * g, r, estimate.gradient)
            return (MetropolisState(x, potential_of(estimate), estimate.gradient, estate), r), None

        return jax.lax.scan(leapfrog, (state, momentum), jax.random.split(key, self.num_steps))[0]

    def step(self, key: jax.Array, state: MetropolisState, step_size: Scalar, estimator: Estimator) -> MetropolisState:
        """Take one step."""
        momentum_key, gradient_key, accept_key = jax.random.split(key, 3)
        momentum = momentum_like(momentum_key, state.position, self.temperature)
        end, end_momentum = self.trajectory(gradient_key, state, momentum, step_size, estimator)
        before = state.potential + 0.5 * inner(momentum, momentum)
        after = end.potential + 0.5 * inner(end_momentum, end_momentum)
        log_ratio = finite_or_reject(end.potential, (before - after) / self.temperature)
        chosen = accept(accept_key, log_ratio, end._replace(estate=()), state._replace(estate=()))
        return chosen._replace(estate=end.estate)


ENTRIES: tuple[Row, ...] = (momentum_row("hmc", plain(HMC), TRAJECTORIES, step_size=0.2),)
