"""SGLD for cyclical step sizes (cSGLD): steps that explore without noise, and steps that sample."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.entry import Row, cyclical, langevin_row
from sgmcmc_verification.samplers.interface.aliases import Estimator, Scalar
from sgmcmc_verification.samplers.interface.claims import Claims, CyclicalSchedule, Source
from sgmcmc_verification.samplers.numerics.noise import injected_noise
from sgmcmc_verification.samplers.overdamped.sgld import SGLD, SGLDState
from sgmcmc_verification.samplers.validation import require, require_positive


@dataclass(frozen=True)
class CyclicalSGLD(SGLD):
    """SGLD whose steps above a step size are steps of stochastic gradient descent.

        theta' = theta - h grad U~(theta) + [h <= explore_above] N(0, 2 h T)

    A cyclical schedule (`samplers.runner.schedules.cyclical`) decreases h within a cycle, so that a cycle explores
    first and samples then, and has the size that tells the two apart, its `explore_above`. What is fed to the runner:

        schedule = cyclical(a, length, exploration)
        run(CyclicalSGLD(explore_above=schedule.explore_above), target, key, step_size=schedule, num_steps=..)

    Source: zhang2020cyclical, Algorithm 1, with h = (step of the source) / 2, as in SGLD. Differs from the source in:
        1. the temperature T;
        2. the size of a step decides whether it explores, not its number, which the sampler does not know.

    Args:
        temperature: T > 0; the law of the sampling stage is exp(-U / T).
        compensate: must be False: no noise of the gradient is subtracted where none is injected.
        explore_above: the step size above which a step has no noise; infinite: every step samples.

    Error: that of SGLD in the sampling stage. An exploring step has no law but that of its start.

    Raises:
        ValueError: if `temperature` or `explore_above` is not positive, or `compensate` is set.
    """

    explore_above: float = math.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        require(not self.compensate, "compensate: an exploring step has no noise to subtract from", self.compensate)
        require_positive(self, "explore_above")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return super().claims.amended(
            CyclicalSchedule(self.explore_above),
            source=Source("zhang2020cyclical", "Algorithm 1"),
            conditions=("exact gradient", "a step size of the sampling stage"),
        )

    def step(self, key: jax.Array, state: SGLDState, step_size: Scalar, estimator: Estimator) -> SGLDState:
        """Take one step."""
        gradient_key, noise_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        temperature = jnp.where(step_size > self.explore_above, 0.0, self.temperature)
        noise = injected_noise(noise_key, state.position, 2 * temperature * step_size)
        position = jax.tree.map(lambda x, g, n: x - step_size * g + n, state.position, estimate.gradient, noise)
        return SGLDState(position, estate)


ENTRIES: tuple[Row, ...] = (langevin_row("cyclical-sgld", cyclical(CyclicalSGLD, 0.1, 1.0)),)
