"""Barker's proposal: increments whose signs are drawn by the gradient, with a Metropolis test and without one."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics
from sgmcmc_verification.samplers.entry import FLAT, LAW_TIERS, NO_DYNAMICS, TEMPERATURES, Row, langevin_row, plain
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import Claims, Diffusion, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.from_step import PositionMixin, PositionState
from sgmcmc_verification.samplers.interface.metropolis import accept, finite_or_reject
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.underdamped.hmc import MetropolisMixin, MetropolisState, potential_of
from sgmcmc_verification.samplers.validation import require_positive
from sgmcmc_verification.targets.target import Target


def increments(key: jax.Array, gradient: Tree, step_size: Scalar, temperature: float) -> Tree:
    """Increments z b of the shape of a gradient, coordinate by coordinate.

        z ~ N(0, 2 h T),  b = 1 with probability 1 / (1 + exp(z g / T)), else -1

    Source: livingstone2022barker, algorithm 1, for log pi = -U / T.
    """
    size_key, sign_key = jax.random.split(key)
    spread = jnp.sqrt(2 * jnp.asarray(step_size) * temperature)
    z = jax.tree.map(lambda n: spread.astype(n.dtype) * n, normal_like(size_key, gradient))
    leaves, structure = jax.tree.flatten(gradient)
    keys = jax.tree.unflatten(structure, list(jax.random.split(sign_key, len(leaves))))

    def signed(key: jax.Array, z: jax.Array, g: jax.Array) -> jax.Array:
        up = jax.random.uniform(key, z.shape, z.dtype) < jax.nn.sigmoid(-z * g / temperature)
        return jnp.where(up, z, -z)

    return jax.tree.map(signed, keys, z, gradient)


def log_density(start: Position, gradient: Tree, end: Position, temperature: float) -> jax.Array:
    """log q(start, end) but for the even part: -sum log(1 + exp((end - start) g / T)), `gradient` that at `start`."""
    terms = jax.tree.map(lambda x, g, y: -jnp.sum(jax.nn.softplus((y - x) * g / temperature)), start, gradient, end)
    return jnp.sum(jnp.stack(jax.tree.leaves(terms)))


@dataclass(frozen=True)
class Barker(MetropolisMixin):
    """Barker's proposal in each coordinate, accepted with the probability of Metropolis and Hastings.

        y = x + z b (`increments`),  a = (U(x) - U(y)) / T + log q(y, x) - log q(x, y),
        log q(x, y) = -sum_i log(1 + exp((y - x)_i d_i U(x) / T)) + an even function of y - x

    Source: livingstone2022barker, algorithm 2, with sigma^2 = 2 h T. Differs from the source in:
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
        return self.exact_claims(Source("livingstone2022barker", "algorithm 2"))

    def log_proposal(self, start: Position, gradient: Tree, end: Position) -> jax.Array:
        """log q(start, end) up to an even function of their difference; `gradient` is grad U at `start`."""
        return log_density(start, gradient, end, self.temperature)

    def step(self, key: jax.Array, state: MetropolisState, step_size: Scalar, estimator: Estimator) -> MetropolisState:
        """Take one step."""
        noise_key, gradient_key, accept_key = jax.random.split(key, 3)
        x = state.position
        y = jax.tree.map(jnp.add, x, increments(noise_key, state.gradient, step_size, self.temperature))
        estimate, estate = estimator.estimate(gradient_key, state.estate, y)
        end = MetropolisState(y, potential_of(estimate), estimate.gradient, ())
        densities = self.log_proposal(y, end.gradient, x) - self.log_proposal(x, state.gradient, y)
        log_ratio = (state.potential - end.potential) / self.temperature + densities
        chosen = accept(accept_key, finite_or_reject(end.potential, log_ratio), end, state._replace(estate=()))
        return chosen._replace(estate=estate)


@dataclass(frozen=True)
class SGBD(PositionMixin):
    """Stochastic-gradient Barker dynamics: Barker's proposal with an estimate of the gradient, and no test.

        x' = x + z b (`increments`),  g an estimate of grad U(x)

    Source: mauri2024robust, algorithm 1 (vanilla SGBD), with sigma^2 = 2 h T. Differs from the source in:
        1. the temperature T.

    Args:
        temperature: T > 0; the law is exp(-U / T).

    Error: weak order 1 and invariant law O(h), for exact gradients: E z b = -h g + O(h^2) and E z^2 = 2 h T.

    Raises:
        ValueError: if `temperature` is not positive.
    """

    temperature: float = 1.0

    backend = "jax"
    needs = frozenset({"gradient"})

    def __post_init__(self) -> None:
        require_positive(self, "temperature")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("mauri2024robust", "algorithm 1"),
            StationaryLaw(order=1, temperature=self.temperature),
            Diffusion(self.dynamics, weak_order=1),
            conditions=("exact gradient",),
        )

    def dynamics(self, target: Target) -> Dynamics:
        """D = T I, Q = 0, H = U / T."""
        return overdamped_dynamics(target, self.temperature)

    def step(self, key: jax.Array, state: PositionState, step_size: Scalar, estimator: Estimator) -> PositionState:
        """Take one step."""
        noise_key, gradient_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        moved = increments(noise_key, estimate.gradient, step_size, self.temperature)
        return PositionState(jax.tree.map(jnp.add, state.position, moved), estate)


ENTRIES: tuple[Row, ...] = (langevin_row("sgbd", plain(SGBD)),)
EXACT: tuple[Row, ...] = (
    Row("barker", plain(Barker), tiers=LAW_TIERS, unsupported=NO_DYNAMICS, targets=FLAT, variants=TEMPERATURES),
)
