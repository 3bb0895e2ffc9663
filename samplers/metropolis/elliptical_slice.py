"""Elliptical slice sampling: a point of an ellipse through the state, above a level that is drawn."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.entry import FLAT, LAW_TIERS, NO_DYNAMICS, TEMPERATURES, Row, plain
from sgmcmc_verification.samplers.interface.aliases import Estimator, Scalar
from sgmcmc_verification.samplers.interface.claims import Claims, Source
from sgmcmc_verification.samplers.interface.metropolis import inner
from sgmcmc_verification.samplers.metropolis.potential_state import PotentialMixin, PotentialState
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.validation import require_positive

SHRINKS = 64
"""Points that are tried: a bracket that is halved as often, on average, is as narrow as round-off."""


@dataclass(frozen=True)
class EllipticalSlice(PotentialMixin):
    """Slice sampling of the density relative to N(0, h I) on the ellipse x cos t + nu sin t, nu ~ N(0, h I).

        level = Phi(x) + E, E ~ Exp(1);  t ~ U(0, 2 pi), bracket [t - 2 pi, t];  until Phi(x cos t + nu sin t) <= level
        the end of the bracket on the side of t becomes t, and t is drawn anew from it;  Phi = U / T - |x|^2 / (2 h)

    Source: murray2010elliptical, figure 2. Differs from the source in:
        1. the target is exp(-U / T) with U whole, not a likelihood beside a prior: the step size h is the variance of
           the reference law, and any h keeps the target;
        2. a point whose potential is not finite is below every level;
        3. after SHRINKS points below the level the state stays: the reverse move meets as many points below it, hence
           balance holds for each number of them.

    Args:
        temperature: T > 0; the law is exp(-U / T).

    Error: none in the invariant law, at any step size, for exact potentials. The start needs a finite potential.

    Raises:
        ValueError: if `temperature` is not positive, or the estimator returns no potential.
    """

    temperature: float = 1.0

    def __post_init__(self) -> None:
        require_positive(self, "temperature")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return self.exact_claims(Source("murray2010elliptical", "figure 2"))

    def relative(self, state: PotentialState, variance: Scalar) -> jax.Array:
        """Phi of a state."""
        return state.potential / self.temperature - inner(state.position, state.position) / (2 * variance)

    def step(self, key: jax.Array, state: PotentialState, step_size: Scalar, estimator: Estimator) -> PotentialState:
        """Take one step."""
        noise_key, level_key, angle_key, estimate_key = jax.random.split(key, 4)
        spread = jnp.sqrt(step_size)
        nu = jax.tree.map(lambda n: spread.astype(n.dtype) * n, normal_like(noise_key, state.position))
        dtype = jnp.result_type(state.potential)
        level = self.relative(state, step_size) + jax.random.exponential(level_key, (), dtype)
        shares = jax.random.uniform(angle_key, (SHRINKS,), dtype)  # drawn ahead: a step has a fixed number of draws

        def at(angle: jax.Array, estate: object) -> PotentialState:
            turned = lambda x, n: jnp.cos(angle).astype(n.dtype) * x + jnp.sin(angle).astype(n.dtype) * n
            return self._at(estimate_key, jax.tree.map(turned, state.position, nu), estate, estimator)

        def below(point: PotentialState) -> jax.Array:
            return ~(self.relative(point, step_size) <= level)  # NaN is below too

        def shrink(carry: tuple) -> tuple:
            i, low, high, angle, end = carry
            low, high = jnp.where(angle < 0, angle, low), jnp.where(angle < 0, high, angle)
            angle = low + (high - low) * shares[i]
            return i + 1, low, high, angle, at(angle, end.estate)

        angle = 2 * jnp.pi * shares[0]
        start = (jnp.asarray(1), angle - 2 * jnp.pi, angle, angle, at(angle, state.estate))
        end = jax.lax.while_loop(lambda carry: (carry[0] < SHRINKS) & below(carry[-1]), shrink, start)[-1]
        stays = below(end)
        kept = jax.tree.map(
            lambda new, old: jnp.where(stays, old, new), end._replace(estate=()), state._replace(estate=())
        )
        return kept._replace(estate=end.estate)


ENTRIES: tuple[Row, ...] = (
    Row(
        "elliptical-slice",
        plain(EllipticalSlice),
        tiers=LAW_TIERS,
        unsupported=NO_DYNAMICS,
        targets=FLAT,
        variants=TEMPERATURES,
        step_size=4.0,
    ),
)
