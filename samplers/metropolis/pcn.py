"""Preconditioned Crank-Nicolson (pCN): a walk that keeps a Gaussian law, and a Metropolis test for the rest."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.entry import FLAT, LAW_TIERS, NO_DYNAMICS, Row
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Scalar
from sgmcmc_verification.samplers.interface.claims import Claims, Source
from sgmcmc_verification.samplers.interface.metropolis import accept, finite_or_reject, inner
from sgmcmc_verification.samplers.metropolis.potential_state import PotentialMixin, PotentialState
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.validation import require_positive
from sgmcmc_verification.targets.target import Target


@dataclass(frozen=True)
class PCN(PotentialMixin):
    """Autoregressive proposals, reversible for N(0, s^2 I), and a Metropolis test of the density relative to it.

        y = e x + s sqrt(1 - e^2) N(0, I),  e = exp(-h T / s^2),
        accepted with probability min(1, exp(Phi(x) - Phi(y))),  Phi = U / T - |x|^2 / (2 s^2)

    Source: cotter2013mcmc, section 1.2, pCN with beta = sqrt(1 - e^2). Differs from the source in:
        1. the target is exp(-U / T) with U whole, not the density relative to a prior: any s keeps it;
        2. the step size h, which makes the increments those of a walk of variance 2 h T as h -> 0;
        3. a proposal whose potential is not finite is rejected.

    Args:
        scale: s > 0, the standard deviation of the reference law.
        temperature: T > 0; the law is exp(-U / T).

    Error: none in the invariant law, at any step size, for exact potentials. The start needs a finite potential.

    Raises:
        ValueError: if `scale` or `temperature` is not positive, or the estimator returns no potential.
    """

    scale: float = 1.0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        require_positive(self, "scale", "temperature")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return self.exact_claims(Source("cotter2013mcmc", "section 1.2"))

    def propose(self, key: jax.Array, x: Position, step_size: Scalar) -> Position:
        """A draw of the autoregressive proposal."""
        time = step_size * self.temperature / self.scale**2
        decay, spread = jnp.exp(-time), self.scale * jnp.sqrt(-jnp.expm1(-2 * time))
        return jax.tree.map(lambda a, n: decay.astype(n.dtype) * a + spread.astype(n.dtype) * n, x, normal_like(key, x))

    def relative(self, state: PotentialState) -> jax.Array:
        """Phi of a state."""
        squares = inner(state.position, state.position)
        return state.potential / self.temperature - squares / (2 * self.scale**2)

    def step(self, key: jax.Array, state: PotentialState, step_size: Scalar, estimator: Estimator) -> PotentialState:
        """Take one step."""
        noise_key, estimate_key, accept_key = jax.random.split(key, 3)
        y = self.propose(noise_key, state.position, jnp.asarray(step_size))
        end = self._at(estimate_key, y, state.estate, estimator)
        log_ratio = finite_or_reject(end.potential, self.relative(state) - self.relative(end))
        chosen = accept(accept_key, log_ratio, end._replace(estate=()), state._replace(estate=()))
        return chosen._replace(estate=end.estate)


def on_target(target: Target, scale: float = 3.0, temperature: float = 1.0) -> PCN:
    """pCN with a reference law of `scale` standard deviations of the narrowest direction of a target."""
    return PCN(scale / target.curvature**0.5, temperature)


ENTRIES: tuple[Row, ...] = (
    Row(
        "pcn",
        on_target,
        tiers=LAW_TIERS,
        unsupported=NO_DYNAMICS,
        targets=FLAT,
        variants=({"scale": 1.5, "temperature": 0.5}, {"scale": 6.0, "temperature": 2.0}),
    ),
)
