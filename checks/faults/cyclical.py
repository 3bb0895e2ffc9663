"""Planted bugs of samplers for cyclical step sizes: which stage has noise, of what size, and where a cycle starts."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.entry import cyclical
from sgmcmc_verification.samplers.numerics.noise import injected_noise
from sgmcmc_verification.samplers.overdamped.cyclical_sgld import CyclicalSGLD
from sgmcmc_verification.samplers.overdamped.sgld import SGLDState
from sgmcmc_verification.samplers.underdamped.cyclical_sghmc import CyclicalSGHMC


@dataclass(frozen=True)
class Staged(CyclicalSGLD):
    """cSGLD whose stages have the temperatures (exploring, sampling), in units of T."""

    stages: tuple[float, float] = (0.0, 1.0)

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        exploring, sampling = self.stages
        share = jnp.where(step_size > self.explore_above, exploring, sampling)
        noise = injected_noise(noise_key, state.position, 2 * share * self.temperature * step_size)
        position = jax.tree.map(lambda x, g, n: x - step_size * g + n, state.position, estimate.gradient, noise)
        return SGLDState(position, estate)


class StaleState(NamedTuple):
    """As `SGLDState`, and the bits of the last step size in single precision (not a number: there was none)."""

    position: Any
    estate: Any
    last: jax.Array


def _bits(step_size) -> jax.Array:
    return jax.lax.bitcast_convert_type(jnp.asarray(step_size, jnp.float32), jnp.int32)


@dataclass(frozen=True)
class StaleNoise(CyclicalSGLD):
    """N(0, 2 h_{t-1} T) in the step of size h_t."""

    def init(self, key, position, estimator):
        return StaleState(*super().init(key, position, estimator), _bits(jnp.nan))

    def step(self, key, state: StaleState, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        last = jax.lax.bitcast_convert_type(state.last, jnp.float32).astype(jnp.result_type(float))
        size = jnp.where(jnp.isnan(last), step_size, last)
        temperature = jnp.where(step_size > self.explore_above, 0.0, self.temperature)
        noise = injected_noise(noise_key, state.position, 2 * temperature * size)
        position = jax.tree.map(lambda x, g, n: x - step_size * g + n, state.position, estimate.gradient, noise)
        return StaleState(position, estate, _bits(step_size))


@dataclass(frozen=True)
class Renewed(CyclicalSGHMC):
    """cSGHMC that draws its momentum afresh in every exploring step, or in none."""

    always: bool = False

    def step(self, key, state, step_size, estimator):
        return super().step(key, state._replace(sampled=jnp.asarray(self.always)), step_size, estimator)


def staged(exploring: float, sampling: float):
    """A builder of `Staged`."""
    return cyclical(lambda **options: Staged(stages=(exploring, sampling), **options), 0.1, 1.0)


CYCLE = "S' = A S A^T + [h <= h_0] N(h)"
GAUSSIANS = ("gaussian-1d-scaled", "gaussian-correlated-2d")

DEFECTS: tuple[Defect, ...] = (
    planted(
        "cyclical-sgld-stages-exchanged",
        "cyclical-sgld",
        staged(1.0, 0.0),
        "the steps that explore have the noise, those that sample have none",
        Kill("gaussian_limit", "gaussian-correlated-2d", "pi_h -> N(m, T P^-1) as h -> 0"),
        "variance",
        targets=GAUSSIANS,
        diagnosis=r"no noise",
    ),
    planted(
        "cyclical-sgld-explores-with-noise",
        "cyclical-sgld",
        staged(1.0, 1.0),
        "every step has noise: there is no exploration stage, which no constant step size shows",
        Kill("cycle_law", "gaussian-correlated-2d", CYCLE),
        "state",
        targets=GAUSSIANS,
    ),
    planted(
        "cyclical-sgld-stale-noise",
        "cyclical-sgld",
        cyclical(StaleNoise, 0.1, 1.0),
        "the noise is scaled with the step size of the step before, which no constant step size shows",
        Kill("cycle_law", "gaussian-correlated-2d", CYCLE),
        "variance",
        "state",
        targets=GAUSSIANS,
        diagnosis=r"holds more than unpack shows",
    ),
    planted(
        "cyclical-sghmc-keeps-momentum",
        "cyclical-sghmc",
        cyclical(Renewed, 0.1, 0.5),
        "the momentum is not drawn afresh where a cycle starts again",
        Kill("cycle_law", "gaussian-correlated-2d", "r ~ N(0, T I) at a restart"),
        "state",
        targets=GAUSSIANS,
    ),
    planted(
        "cyclical-sghmc-renews-every-step",
        "cyclical-sghmc",
        cyclical(lambda **options: Renewed(always=True, **options), 0.1, 0.5),
        "the momentum is drawn afresh in every step that explores",
        Kill("cycle_law", "gaussian-correlated-2d", "r ~ N(0, T I) at a restart, and there only"),
        "state",
        targets=GAUSSIANS,
    ),
)
