"""AMAGOLD: SGHMC with a Metropolis test after several steps, exact with stochastic gradients."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.underdamped import CachedMomentumMixin, PhasePoint, langevin_dynamics
from sgmcmc_verification.samplers.entry import Row, momentum_row, plain
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
from sgmcmc_verification.samplers.numerics.noise import injected_noise
from sgmcmc_verification.samplers.underdamped.hmc import potential_of
from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.target import Target


class AmagoldState(NamedTuple):
    """Position, momentum, the potential at the position (a cache), and the estimator's own state."""

    position: Position
    momentum: Tree
    potential: jax.Array
    estate: EstimatorState


@dataclass(frozen=True)
class AMAGOLD(CachedMomentumMixin):
    """Underdamped Langevin steps with stochastic gradients g, corrected by one Metropolis test for all of them.

        x <- x + (h/2) r;  num_steps times, with x <- x + h r in between:
            r' = ((1 - h C / 2) r - h g(x) + N(0, 2 C T h)) / (1 + h C / 2),  rho <- rho + h g . (r + r') / 2;
        x <- x + (h/2) r;  accepted with probability min(1, exp((U(start) - U(end) + rho) / T)),
        else the position is the old one, and the momentum the old one with its sign changed

    The densities of the momentum's steps forward and backward differ by the kinetic energies and by h g . (r + r') / 2,
    so that rho takes the place of the kinetic energy in the test. The same g serves both ways: its noise does no harm,
    as long as the draws of a trajectory are as likely in the opposite order and do not depend on the position.

    Source: zhang2020amagold, Algorithm 1, with h = epsilon, unit mass (sigma^2 = T) and C = 2 beta. Differs from the
    source in:
        1. the parameterisation and the temperature T;
        2. a proposal whose potential is not finite is rejected.

    Args:
        num_steps: steps per transition, at least 1.
        friction: C > 0.
        temperature: T > 0; the law is exp(-U / T).

    The estimator has to return the potential of all data (`samplers.estimators.basic.FullEnergy`), and must not
    remember positions (SAGA does).

    Error: none, at any step size, for exact potentials and unbiased or biased gradients whatsoever.

    Raises:
        ValueError: if an option is not positive, or the estimator returns no potential.
    """

    num_steps: int = 2
    friction: float = 1.0
    temperature: float = 1.0

    backend = "jax"
    needs = frozenset({"gradient", "potential"})

    def __post_init__(self) -> None:
        require(self.num_steps >= 1, "num_steps: must be at least 1", self.num_steps)
        require_positive(self, "friction", "temperature")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        T = self.temperature
        return Claims(
            Source("zhang2020amagold", "Algorithm 1"),
            ExactLaw(temperature=T),
            Diffusion(self.dynamics),
            StationaryMoments(lambda h, curvature: {"position": T / curvature}),
            Reversal(lambda z: PhasePoint(z.position, jax.tree.map(jnp.negative, z.momentum))),
            Composite(),
            conditions=("exact potential",),
        )

    def dynamics(self, target: Target) -> Dynamics:
        """H = (U + |r|^2 / 2) / T, D = diag(0, C T), Q = T [[0, -I], [I, 0]]: the limit of small steps."""
        return langevin_dynamics(target, self.friction, self.temperature)

    def trajectory(
        self, key: jax.Array, state: AmagoldState, step_size: Scalar, estimator: Estimator
    ) -> tuple[Position, Tree, EstimatorState, Scalar]:
        """(position, momentum, estimator's state) at the end, and rho."""
        h, damping = step_size, 0.5 * step_size * self.friction
        x = jax.tree.map(lambda a, b: a + 0.5 * h * b, state.position, state.momentum)
        r, estate, rho = state.momentum, state.estate, 0.0
        keys = jax.random.split(key, 2 * self.num_steps)
        for i in range(self.num_steps):
            if i:
                x = jax.tree.map(lambda a, b: a + h * b, x, r)
            estimate, estate = estimator.estimate(keys[2 * i], estate, x)
            noise = injected_noise(keys[2 * i + 1], r, 2 * self.friction * self.temperature * h)
            g = estimate.gradient
            new = jax.tree.map(lambda b, d, n: ((1 - damping) * b - h * d + n) / (1 + damping), r, g, noise)
            rho = rho + self.work(h, g, r, new)
            r = new
        return jax.tree.map(lambda a, b: a + 0.5 * h * b, x, r), r, estate, rho

    def work(self, step_size: Scalar, gradient: Tree, before: Tree, after: Tree) -> jax.Array:
        """h g . (r + r') / 2 of one step."""
        return 0.5 * step_size * (inner(gradient, before) + inner(gradient, after))

    def step(self, key: jax.Array, state: AmagoldState, step_size: Scalar, estimator: Estimator) -> AmagoldState:
        """Take one step."""
        trajectory_key, energy_key, accept_key = jax.random.split(key, 3)
        x, r, estate, rho = self.trajectory(trajectory_key, state, step_size, estimator)
        estimate, estate = estimator.estimate(energy_key, estate, x)
        potential = potential_of(estimate)
        log_ratio = finite_or_reject(potential, (state.potential - potential + rho) / self.temperature)
        end = AmagoldState(x, r, potential, ())
        back = state._replace(momentum=jax.tree.map(jnp.negative, state.momentum), estate=())
        return accept(accept_key, log_ratio, end, back)._replace(estate=estate)

    def pack(self, key: jax.Array, z: PhasePoint, estimator: Estimator) -> AmagoldState:
        """State with the full variable z; caches are computed anew."""
        init_key, energy_key = jax.random.split(key)
        estimate, estate = estimator.estimate(energy_key, estimator.init(init_key, z.position), z.position)
        return AmagoldState(z.position, z.momentum, potential_of(estimate), estate)


ENTRIES: tuple[Row, ...] = (
    momentum_row(
        "amagold",
        plain(AMAGOLD),
        (
            {"num_steps": 1, "friction": 2.0, "temperature": 0.5},
            {"num_steps": 3, "friction": 0.4, "temperature": 2.0},
        ),
        step_size=0.4,
    ),
)
