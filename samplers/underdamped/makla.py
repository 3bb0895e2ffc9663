"""Metropolis-adjusted kinetic Langevin algorithm (MAKLA): OBABO with a Metropolis test of its middle."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.underdamped import CachedMomentumMixin, PhasePoint, langevin_dynamics
from sgmcmc_verification.samplers.entry import FRICTIONS, Row, momentum_row, plain
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    Composite,
    Diffusion,
    ExactLaw,
    Reversal,
    Source,
    StationaryMoments,
)
from sgmcmc_verification.samplers.interface.metropolis import accept, finite_or_reject, inner
from sgmcmc_verification.samplers.underdamped.hmc import potential_of
from sgmcmc_verification.samplers.underdamped.splitting import ornstein_uhlenbeck
from sgmcmc_verification.samplers.validation import require_positive
from sgmcmc_verification.targets.target import Target


class KineticState(NamedTuple):
    """Position, momentum, potential and gradient at the position (caches), and the estimator's own state."""

    position: Position
    momentum: Tree
    potential: jax.Array
    gradient: Tree
    estate: EstimatorState


@dataclass(frozen=True)
class MAKLA(CachedMomentumMixin):
    """Half of an Ornstein-Uhlenbeck flow, a leapfrog step that is tested, and the other half.

        O: r <- e r + sqrt(T (1 - e^2)) N(0, I),  e = exp(-C h / 2)
        r' = r - (h/2) grad U(x),  x' = x + h r',  r' <- r' - (h/2) grad U(x')
        accepted with probability min(1, exp((H(x, r) - H(x', r')) / T)),  else (x, -r);  H = U + |r|^2 / 2
        O

    Source: bourabee2024mixing, section 2 (the adjusted kinetic Langevin chain). Differs from the source in:
        1. the temperature T, and the friction C of the Langevin equation;
        2. a proposal whose potential is not finite is rejected.

    Args:
        friction: C > 0.
        temperature: T > 0; the law is exp(-(U + |r|^2 / 2) / T).

    Error: none in the invariant law, at any step size, for exact potentials and gradients. The start needs a finite
    potential.

    Raises:
        ValueError: if an option is not positive, or the estimator returns no potential.
    """

    friction: float = 1.0
    temperature: float = 1.0

    backend = "jax"
    needs = frozenset({"gradient", "potential"})

    def __post_init__(self) -> None:
        require_positive(self, "friction", "temperature")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        T = self.temperature
        return Claims(
            Source("bourabee2024mixing", "section 2"),
            ExactLaw(temperature=T),
            Diffusion(self.dynamics),
            StationaryMoments(lambda h, curvature: {"position": T / curvature, "momentum": T}),
            Reversal(lambda z: PhasePoint(z.position, jax.tree.map(jnp.negative, z.momentum))),
            Composite(),
            conditions=("exact potential and gradient",),
        )

    def dynamics(self, target: Target) -> Dynamics:
        """H = (U + |r|^2 / 2) / T, D = diag(0, C T), Q = T [[0, -I], [I, 0]]: the limit of small steps."""
        return langevin_dynamics(target, self.friction, self.temperature)

    def kinetic(self, momentum: Tree) -> jax.Array:
        """|r|^2 / 2."""
        return 0.5 * inner(momentum, momentum)

    def rejected(self, momentum: Tree) -> Tree:
        """The momentum after a rejection: it turns back."""
        return jax.tree.map(jnp.negative, momentum)

    def step(self, key: jax.Array, state: KineticState, step_size: Scalar, estimator: Estimator) -> KineticState:
        """Take one step."""
        first_key, gradient_key, accept_key, last_key = jax.random.split(key, 4)
        h = step_size
        flow = lambda key, r: ornstein_uhlenbeck(key, r, 0.5 * h, self.friction, self.temperature)
        r = flow(first_key, state.momentum)
        moved = jax.tree.map(lambda b, g: b - 0.5 * h * g, r, state.gradient)
        x = jax.tree.map(lambda a, b: a + h * b, state.position, moved)
        estimate, estate = estimator.estimate(gradient_key, state.estate, x)
        moved = jax.tree.map(lambda b, g: b - 0.5 * h * g, moved, estimate.gradient)
        potential = potential_of(estimate)
        gap = state.potential - potential + self.kinetic(r) - self.kinetic(moved)
        end = KineticState(x, moved, potential, estimate.gradient, ())
        back = state._replace(momentum=self.rejected(r), estate=())
        chosen = accept(accept_key, finite_or_reject(potential, gap / self.temperature), end, back)
        return chosen._replace(momentum=flow(last_key, chosen.momentum), estate=estate)

    def pack(self, key: jax.Array, z: PhasePoint, estimator: Estimator) -> KineticState:
        """State with the full variable z; caches are computed anew."""
        init_key, gradient_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, estimator.init(init_key, z.position), z.position)
        return KineticState(z.position, z.momentum, potential_of(estimate), estimate.gradient, estate)


ENTRIES: tuple[Row, ...] = (momentum_row("makla", plain(MAKLA), FRICTIONS, step_size=0.4),)
