"""Random-scan Gibbs sampler."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.finite.common import finite_row, reversible_claims
from sgmcmc_verification.samplers.interface.aliases import Estimator, Scalar
from sgmcmc_verification.samplers.interface.claims import Claims, Source
from sgmcmc_verification.samplers.interface.from_step import PositionMixin, PositionState
from sgmcmc_verification.samplers.underdamped.hmc import potential_of
from sgmcmc_verification.samplers.validation import require_positive


@dataclass(frozen=True)
class Gibbs(PositionMixin):
    """A site at random is given a new value by its law given all others.

        i uniform,  x_i' = v with the probability exp(-U(x with x_i = v) / T) / sum over all values

    Source: geman1984stochastic, section XI, with a site at random in place of a schedule of visits. The step size has
    no meaning, and is not read.

    Args:
        values: that a site takes, whole numbers.
        temperature: T > 0; the law is exp(-U / T).

    Error: none, for exact potentials.

    Raises:
        ValueError: if `temperature` is not positive, or the estimator returns no potential.
    """

    values: tuple[int, ...]
    temperature: float = 1.0

    backend = "jax"
    needs = frozenset({"potential"})

    def __post_init__(self) -> None:
        require_positive(self, "temperature")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return reversible_claims(Source("geman1984stochastic", "section XI"), self.temperature)

    def step(self, key: jax.Array, state: PositionState, step_size: Scalar, estimator: Estimator) -> PositionState:
        """Take one step."""
        del step_size
        site_key, renew_key = jax.random.split(key)
        return self.renewed(renew_key, state, jax.random.randint(site_key, (), 0, state.position.size), estimator)

    def renewed(self, key: jax.Array, state: PositionState, site: jax.Array, estimator: Estimator) -> PositionState:
        """The state with a new value of one site."""
        value_key, potential_key = jax.random.split(key)
        x = state.position
        candidates = jax.vmap(lambda value: x.at[site].set(value))(jnp.asarray(self.values, x.dtype))
        potential = lambda y: potential_of(estimator.estimate(potential_key, state.estate, y)[0])
        chosen = jax.random.categorical(value_key, -jax.vmap(potential)(candidates) / self.temperature)
        return PositionState(candidates[chosen], state.estate)


ENTRIES: tuple[Row, ...] = (finite_row("gibbs", Gibbs),)
