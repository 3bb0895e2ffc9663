"""Planted bugs of samplers of a part of a position: the rest moves."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.core.third_party import builder
from sgmcmc_verification.checks.faults.fault import Defect, Kill
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.claims import Claims, Moves, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.from_step import simple_sampler

CLAIMS = Claims(
    Source("welling2011bayesian", "equation (4)"),
    StationaryLaw(order=1),
    Moves(lambda part: jnp.zeros(2 * part.size).at[::2].set(part)),
)
TARGET = "gaussian-correlated-2d"


def _sampler(update: Callable[..., jax.Array]) -> Any:
    """SGLD of every second coordinate: x + update(-h grad U, noise, mask)."""

    def step(key, position, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        force = -step_size * estimator.estimate(gradient_key, (), position)[0].gradient
        noise = jnp.sqrt(2 * step_size) * jax.random.normal(noise_key, position.shape, position.dtype)
        return position + update(force, noise, jnp.arange(position.size) % 2 == 0)

    return simple_sampler(step, claims=CLAIMS)


right = _sampler(lambda force, noise, mask: jnp.where(mask, force + noise, 0))
BASE = f"{__name__}:right"


def _defect(name: str, update: Callable[..., jax.Array], error: str) -> Defect:
    kill = Kill("rest_stays", TARGET, "r_(n+1) = r_n for the rest r of the position")
    row = Row(name, builder(name, _sampler(update)), targets=(TARGET,))
    source = "an update of all parameters with a mask on a part of it"
    return Defect(name, BASE, row, error, source, kill, ("leaves", "state"))


DEFECTS: tuple[Defect, ...] = (
    _defect(
        "part-rest-slides",
        lambda force, noise, mask: force + jnp.where(mask, noise, 0),
        "the noise is masked, the gradient is not: r' = r - h grad_r U",
    ),
    _defect(
        "part-rest-diffuses",
        lambda force, noise, mask: jnp.where(mask, force, 0) + noise,
        "the gradient is masked, the noise is not: r' = r + N(0, 2 h)",
    ),
)
"""The rows."""
