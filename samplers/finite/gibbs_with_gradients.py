"""Gibbs with gradients: a flip that the gradient proposes, and a Metropolis test."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.finite.common import finite_row, reversible_claims
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import Claims, Source
from sgmcmc_verification.samplers.interface.metropolis import accept
from sgmcmc_verification.samplers.underdamped.hmc import MetropolisMixin, MetropolisState, potential_of
from sgmcmc_verification.samplers.validation import require_positive


@dataclass(frozen=True)
class GibbsWithGradients(MetropolisMixin):
    """One site and a new value for it, proposed by the gradient and accepted by the test of Metropolis and Hastings.

        q(i, v | x) proportional to exp(-d(i, v) / 2 T),    d(i, v) = the change of U by x_i -> v, to first order
        accepted with min(1, exp((U(x) - U(y)) / T) q(i, x_i | y) / q(i, v | x))

    d is (v - x_i) dU / dx_i where sites are numbers, and dU / de_iv - dU / de_i(x_i) where e_i is the unit
    vector of x_i.

    Source: grathwohl2021oops, Algorithm 1 and equations 3 and 6. Differs from the source in:
        1. the temperature T;
        2. a value that a site has already is never proposed.
    The step size has no meaning, and is not read.

    Args:
        values: that a site takes, whole numbers.
        temperature: T > 0; the law is exp(-U / T).

    Error: none, for exact potentials and gradients.

    Raises:
        ValueError: if `temperature` is not positive, or the estimator returns no potential.
    """

    values: tuple[int, ...]
    temperature: float = 1.0

    def __post_init__(self) -> None:
        require_positive(self, "temperature")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return reversible_claims(Source("grathwohl2021oops", "Algorithm 1"), self.temperature)

    def log_proposal(self, position: Position, gradient: Tree) -> jax.Array:
        """log q (n, K), normalised over all sites and values."""
        values = jnp.asarray(self.values, position.dtype)
        if gradient.ndim == position.ndim:
            change = gradient[:, None] * (values - position[:, None])
        else:
            at_value = values == position[:, None]
            change = gradient - jnp.sum(jnp.where(at_value, gradient, 0.0), axis=1, keepdims=True)
        logits = jnp.where(values == position[:, None], -jnp.inf, -change / (2 * self.temperature))
        return logits - jax.nn.logsumexp(logits)

    def step(self, key: jax.Array, state: MetropolisState, step_size: Scalar, estimator: Estimator) -> MetropolisState:
        """Take one step."""
        del step_size
        flip_key, gradient_key, accept_key = jax.random.split(key, 3)
        x = state.position
        forward = self.log_proposal(x, state.gradient)
        site, value = jnp.divmod(jax.random.categorical(flip_key, forward.ravel()), len(self.values))
        y = x.at[site].set(jnp.asarray(self.values, x.dtype)[value])
        estimate, estate = estimator.estimate(gradient_key, state.estate, y)
        end = MetropolisState(y, potential_of(estimate), estimate.gradient, ())
        backward = self.log_proposal(y, end.gradient)
        back = jnp.argmax(jnp.asarray(self.values, x.dtype) == x[site])
        log_ratio = (state.potential - end.potential) / self.temperature + backward[site, back] - forward[site, value]
        return accept(accept_key, log_ratio, end, state._replace(estate=()))._replace(estate=estate)


ENTRIES: tuple[Row, ...] = (finite_row("gibbs-with-gradients", GibbsWithGradients),)
