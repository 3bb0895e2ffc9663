"""Metropolis-adjusted Langevin algorithm (MALA)."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.entry import Row, langevin_row, plain
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import Claims, Diffusion, Source
from sgmcmc_verification.samplers.interface.metropolis import accept, finite_or_reject, inner
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.underdamped.hmc import MetropolisMixin, MetropolisState, potential_of
from sgmcmc_verification.samplers.validation import require_positive
from sgmcmc_verification.targets.target import Target


@dataclass(frozen=True)
class MALA(MetropolisMixin):
    """An Euler step of the Langevin equation as proposal, accepted with the probability of Metropolis and Hastings.

        y = x - h grad U(x) + N(0, 2 h T),  accepted with probability min(1, exp(a)),
        a = (U(x) - U(y)) / T + log q(y, x) - log q(x, y),  log q(x, y) = -|y - x + h grad U(x)|^2 / (4 h T)

    Source: roberts1996exponential, section 1.4, with h = (step of the source) / 2. Differs from the source in:
        1. the temperature T;
        2. a proposal whose potential is not finite is rejected.

    Args:
        temperature: T > 0; the law is exp(-U / T).

    Error: none in the invariant law, at any step size, for exact potentials and gradients. The start needs a finite
    potential.

    Raises:
        ValueError: if `temperature` is not positive, or the estimator returns no potential.
    """

    temperature: float = 1.0

    def __post_init__(self) -> None:
        require_positive(self, "temperature")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return self.exact_claims(Source("roberts1996exponential", "section 1.4"), Diffusion(self.dynamics))

    def dynamics(self, target: Target) -> Dynamics:
        """D = T I, Q = 0, H = U / T: the limit of small steps."""
        return SGLD(self.temperature).dynamics(target)

    def log_proposal(self, start: Position, gradient: Tree, end: Position, step_size: Scalar) -> jax.Array:
        """log q(start, end) up to a constant; `gradient` is grad U at `start`."""
        residual = jax.tree.map(lambda y, x, g: y - x + step_size * g, end, start, gradient)
        return -inner(residual, residual) / (4 * step_size * self.temperature)

    def step(self, key: jax.Array, state: MetropolisState, step_size: Scalar, estimator: Estimator) -> MetropolisState:
        """Take one step."""
        noise_key, gradient_key, accept_key = jax.random.split(key, 3)
        scale = jnp.sqrt(2 * step_size * self.temperature)
        x = state.position
        noise = normal_like(noise_key, x)
        y = jax.tree.map(lambda a, g, n: a - step_size * g + scale.astype(n.dtype) * n, x, state.gradient, noise)
        estimate, estate = estimator.estimate(gradient_key, state.estate, y)
        end = MetropolisState(y, potential_of(estimate), estimate.gradient, ())
        forward = self.log_proposal(x, state.gradient, y, step_size)
        backward = self.log_proposal(y, end.gradient, x, step_size)
        log_ratio = (state.potential - end.potential) / self.temperature + backward - forward
        chosen = accept(accept_key, finite_or_reject(end.potential, log_ratio), end, state._replace(estate=()))
        return chosen._replace(estate=estate)


ENTRIES: tuple[Row, ...] = (langevin_row("mala", plain(MALA)),)
