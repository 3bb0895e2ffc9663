"""SGHMC for cyclical step sizes (cSGHMC): steps that explore without noise, and steps that sample."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.underdamped import PhasePoint
from sgmcmc_verification.samplers.entry import FRICTIONS, Row, cyclical, momentum_row
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import Claims, CyclicalSchedule, Source
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.samplers.validation import require, require_positive


class CyclicalState(NamedTuple):
    """Position, momentum, the estimator's own state, and a flag: True if the last step sampled."""

    position: Position
    momentum: Tree
    estate: EstimatorState
    sampled: jax.Array


@dataclass(frozen=True)
class CyclicalSGHMC(SGHMC):
    """SGHMC whose steps above a step size are steps of stochastic gradient descent with momentum.

        r <- N(0, T I) in the first exploring step after a sampling one, that is, where a cycle starts again
        r' = r - h grad U~(theta) - h C r + [h <= explore_above] N(0, 2 C T h),  theta' = theta + h r'

    See `CyclicalSGLD` for the schedule that it is run with.

    Source: zhang2020cyclical, Algorithm 2 (cSGHMC), with the scheme of chen2014stochastic, equation (13). Differs from
    the sources in:
        1. the parameterisation and the temperature, as in `SGHMC`;
        2. the size of a step decides whether it explores, not its number, which the sampler does not know;
        3. the momentum that the exploration starts with is drawn afresh, so that a cycle depends on the one before by
           its position only.

    Args:
        friction: C > 0.
        temperature: T > 0; the law of the sampling stage is exp(-U / T).
        compensate: must be False: no noise of the gradient is subtracted where none is injected.
        scheme: must be `semi-implicit`.
        explore_above: the step size above which a step has no noise; infinite: every step samples.

    Error: that of SGHMC in the sampling stage. An exploring step has no law but that of its start.

    Raises:
        ValueError: if an option is out of its range.
    """

    explore_above: float = math.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        require(not self.compensate, "compensate: an exploring step has no noise to subtract from", self.compensate)
        require(self.scheme == "semi-implicit", "scheme: must be 'semi-implicit'", self.scheme)
        require_positive(self, "explore_above")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return super().claims.amended(
            CyclicalSchedule(self.explore_above, refreshed=True),
            source=Source("zhang2020cyclical", "Algorithm 2"),
            conditions=("exact gradient", "a step size of the sampling stage"),
        )

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> CyclicalState:
        """Start a chain at a position."""
        return CyclicalState(*super().init(key, position, estimator), jnp.asarray(False))  # pyright: ignore  # a MomentumState

    def step(self, key: jax.Array, state: CyclicalState, step_size: Scalar, estimator: Estimator) -> CyclicalState:
        """Take one step."""
        gradient_key, noise_key = jax.random.split(key)
        h, C, T = step_size, self.friction, self.temperature
        exploring = jnp.asarray(h > self.explore_above)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        # one draw serves both: a step that starts a cycle injects no noise
        white = normal_like(noise_key, state.momentum)
        renew, scale = exploring & state.sampled, jnp.where(exploring, 0.0, jnp.sqrt(2 * C * T * h))
        start = jax.tree.map(lambda r, n: jnp.where(renew, jnp.sqrt(T) * n, r), state.momentum, white)
        momentum = jax.tree.map(lambda r, g, n: r - h * g - h * C * r + scale * n, start, estimate.gradient, white)
        position = jax.tree.map(lambda x, r: x + h * r, state.position, momentum)
        return CyclicalState(position, momentum, estate, ~exploring)

    def pack(self, key: jax.Array, z: PhasePoint, estimator: Estimator) -> CyclicalState:
        """State with the full variable z; caches are computed anew."""
        return CyclicalState(*super().pack(key, z, estimator), jnp.asarray(False))  # pyright: ignore  # a MomentumState


ENTRIES: tuple[Row, ...] = (
    momentum_row("cyclical-sghmc", cyclical(CyclicalSGHMC, 0.1, 0.5), FRICTIONS, diffusion=published.UNDERDAMPED),
)
