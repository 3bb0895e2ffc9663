"""MAMS: microcanonical trajectories from a fresh direction, with a Metropolis test."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.entry import LAW_TIERS, NO_DYNAMICS, TRAJECTORIES, Row, plain
from sgmcmc_verification.samplers.interface.aliases import Estimator, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import Claims, Composite, Source
from sgmcmc_verification.samplers.interface.metropolis import accept, finite_or_reject
from sgmcmc_verification.samplers.microcanonical.isokinetic import drift, kick, require_several, uniform_direction
from sgmcmc_verification.samplers.microcanonical.mclmc import PLANAR
from sgmcmc_verification.samplers.underdamped.hmc import MetropolisMixin, MetropolisState, potential_of
from sgmcmc_verification.samplers.validation import require, require_positive


@dataclass(frozen=True)
class MAMS(MetropolisMixin):
    """Microcanonical trajectories B(h/2) A(h) B(h/2) from a fresh direction, accepted as a deterministic proposal.

        log a = (U(x) - U(y)) / T - sum over all B of (d - 1) log(cosh delta + e . u sinh delta)

    B and A are reversible with u -> -u; the sum is the change of the volume of the directions, which A leaves as it is.

    Source: robnik2025mams, section 3. Differs from the source in:
        1. the temperature T;
        2. a proposal whose potential is not finite is rejected.

    Args:
        num_steps: steps of a trajectory, at least 1.
        temperature: T > 0; the law is exp(-U / T).

    `step_size` is the length of one step of a trajectory. The start needs a finite potential.

    Error: none, at any step size, for exact potentials and gradients.

    Raises:
        ValueError: if `num_steps` or `temperature` is not positive, the estimator returns no potential, or the position
            has one coordinate.
    """

    num_steps: int = 3
    temperature: float = 1.0

    def __post_init__(self) -> None:
        require(self.num_steps >= 1, "num_steps: must be at least 1", self.num_steps)
        require_positive(self, "temperature")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return self.exact_claims(Source("robnik2025mams", "section 3"), Composite())

    def trajectory(
        self, key: jax.Array, state: MetropolisState, direction: Tree, step_size: Scalar, estimator: Estimator
    ) -> tuple[MetropolisState, Tree, jax.Array]:
        """State and direction at the end of a trajectory, and the work of the force on the way."""
        half = step_size / (2 * self.temperature)

        def one(
            carry: tuple[MetropolisState, Tree], gradient_key: jax.Array
        ) -> tuple[tuple[MetropolisState, Tree], jax.Array]:
            here, u = carry
            u, first = kick(u, here.gradient, half)
            x = drift(here.position, u, step_size)
            estimate, estate = estimator.estimate(gradient_key, here.estate, x)
            u, second = kick(u, estimate.gradient, half)
            return (MetropolisState(x, potential_of(estimate), estimate.gradient, estate), u), first + second

        (end, u), works = jax.lax.scan(one, (state, direction), jax.random.split(key, self.num_steps))
        return end, u, jnp.sum(works)

    def step(self, key: jax.Array, state: MetropolisState, step_size: Scalar, estimator: Estimator) -> MetropolisState:
        """Take one step."""
        require_several(state.position)
        direction_key, gradient_key, accept_key = jax.random.split(key, 3)
        direction = uniform_direction(direction_key, state.position)
        end, _, work = self.trajectory(gradient_key, state, direction, step_size, estimator)
        log_ratio = finite_or_reject(end.potential, (state.potential - end.potential) / self.temperature - work)
        chosen = accept(accept_key, log_ratio, end._replace(estate=()), state._replace(estate=()))
        return chosen._replace(estate=end.estate)


ENTRIES: tuple[Row, ...] = (
    Row(
        "mams",
        plain(MAMS),
        tiers=LAW_TIERS,
        unsupported=NO_DYNAMICS,
        targets=PLANAR,
        variants=TRAJECTORIES,
        step_power=0.5,
    ),
)
