"""The Leimkuhler-Matthews method: overdamped Langevin dynamics with an invariant law of order 2."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics
from sgmcmc_verification.samplers.entry import Row, langevin_row, plain
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import (
    CarriedState,
    Claims,
    Diffusion,
    EpochLaw,
    Source,
    StationaryLaw,
    StationaryMoments,
)
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.validation import require_positive
from sgmcmc_verification.targets.target import Target


class LeimkuhlerMatthewsState(NamedTuple):
    """Hidden position X, the normal draw R that the next step uses too, the last step size, estimator state."""

    hidden: Position
    noise: Tree
    last_step_size: jax.Array
    estate: EstimatorState


@dataclass(frozen=True)
class LeimkuhlerMatthews:
    """Overdamped Langevin dynamics with noise averaged over two steps:

        x_{n+1} = x_n - h grad U~(x_n) + sqrt(T h / 2) (R_n + R_{n+1})

    which is not a Markov chain in x, but one in X_n = x_n - sqrt(T h / 2) R_n, whose R_n is independent of X_n:

        x = X + sqrt(T h / 2) R,   X' = X - h grad U~(x) + sqrt(2 T h) R,   x' = X' + sqrt(T h / 2) R'.

    `position` is x; `unpack` gives X, and `pack` starts from X with a new R.

    Source: leimkuhler2013rational, the limit of BAOAB at high friction. Differs from the source in:
        1. the step size is that of the SDE, h = delta t^2 / 2;
        2. the first step: `init` starts with X at the given position (which is what `position` then returns), so that
           the first gradient is taken at a point sqrt(T h / 2) R away from it.

    Args:
        temperature: T > 0; the law is exp(-U / T).

    Error: weak order 1 (of X); the invariant law of x is exp(-U / T) + O(h^2), for exact gradients, and exact on
    quadratic targets (h lambda < 2). Gradient noise V adds O(h V).

    Raises:
        ValueError: if `temperature` is not positive.
    """

    temperature: float = 1.0

    backend = "jax"
    needs = frozenset({"gradient"})

    def __post_init__(self) -> None:
        require_positive(self, "temperature")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        T = self.temperature
        return Claims(
            Source("leimkuhler2013rational", "the high-friction limit of BAOAB"),
            StationaryLaw(order=2, temperature=T),
            Diffusion(self.dynamics, weak_order=1),
            CarriedState("the draw R of the next step"),
            EpochLaw(order=1),
            # s = (1 - h lambda)^2 s + 2 (1 - h lambda) T h / 2 + T h has the solution s = T / lambda
            StationaryMoments(lambda h, curvature: {"position": T / curvature}),
            conditions=("exact gradient",),
        )

    def dynamics(self, target: Target) -> Dynamics:
        """D = T I, Q = 0, H = U / T."""
        return overdamped_dynamics(target, self.temperature)

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> LeimkuhlerMatthewsState:
        """Start a chain at a position."""
        return self.pack(key, position, estimator)

    def step(
        self, key: jax.Array, state: LeimkuhlerMatthewsState, step_size: Scalar, estimator: Estimator
    ) -> LeimkuhlerMatthewsState:
        """Take one step."""
        gradient_key, noise_key = jax.random.split(key)
        x = self._shifted(state.hidden, state.noise, step_size)
        estimate, estate = estimator.estimate(gradient_key, state.estate, x)
        scale = jnp.sqrt(2 * self.temperature * step_size)
        hidden = jax.tree.map(
            lambda a, g, n: a - step_size * g + scale * n, state.hidden, estimate.gradient, state.noise
        )
        last = jnp.asarray(step_size, state.last_step_size.dtype)
        return LeimkuhlerMatthewsState(hidden, normal_like(noise_key, hidden), last, estate)

    def _shifted(self, hidden: Position, noise: Tree, step_size: Scalar) -> Position:
        scale = jnp.sqrt(0.5 * self.temperature * step_size)
        return jax.tree.map(lambda a, n: a + scale * n, hidden, noise)

    def position(self, state: LeimkuhlerMatthewsState) -> Position:
        """Position of a state."""
        return self._shifted(state.hidden, state.noise, state.last_step_size)

    def unpack(self, state: LeimkuhlerMatthewsState) -> Position:
        """Full variable z of a state."""
        return state.hidden

    def pack(self, key: jax.Array, z: Position, estimator: Estimator) -> LeimkuhlerMatthewsState:
        """State with the full variable z; caches are computed anew."""
        noise_key, estimator_key = jax.random.split(key)
        zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(z)))
        return LeimkuhlerMatthewsState(z, normal_like(noise_key, z), zero, estimator.init(estimator_key, z))


ENTRIES: tuple[Row, ...] = (langevin_row("leimkuhler-matthews", plain(LeimkuhlerMatthews)),)
