"""Contour stochastic gradient Langevin dynamics (CSGLD): a flattened law over energies, whose weights are learned."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.overdamped import reversible_dynamics
from sgmcmc_verification.samplers.entry import FLAT, Row
from sgmcmc_verification.samplers.interface.aliases import Builder, Estimator, EstimatorState, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import (
    AdaptiveLaw,
    Claims,
    Diffusion,
    FlattenedLaw,
    Source,
    StationaryLaw,
    StationaryMoments,
)
from sgmcmc_verification.samplers.numerics.noise import injected_noise
from sgmcmc_verification.samplers.underdamped.hmc import potential_of
from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.target import Target


class ContourPoint(NamedTuple):
    """The full variable z = (theta, log w) while the weights are learned."""

    position: Position
    log_weights: jax.Array


class ContourState(NamedTuple):
    """Position, logarithms of the weights (m,), () where they are kept, and the estimator's own state."""

    position: Position
    log_weights: Tree
    estate: EstimatorState


@dataclass(frozen=True)
class ContourSGLD:
    """SGLD on exp(-U / tau) / Psi(U)^zeta, where Psi interpolates the weights w_1 .. w_m of m bins of the energy.

        J = 1 if U~ <= u_1, else the i with u_(i-1) < U~ <= u_i, at most m;  u_i = first_edge + (i - 1) width
        theta' = theta - h [1 + zeta tau (log w_J - log w_(max(J - 1, 1))) / width] grad U~ + N(0, 2 h tau)
        w' = w + omega w_J^zeta (e_J - w),  omega = min(1, rate h)

    log Psi is linear between the upper edges u_i of the bins, where it is log w_i; it is log w_1 below u_1 and goes on
    beyond u_m. With fixed weights the law of theta is the flattened one, and averages under exp(-U / tau) are those
    with the weights Psi(U)^zeta (`log_importance`). The weights settle where w_i is the probability of bin i, up to
    what w_J / Psi differs from 1 within a bin.

    Source: deng2020contour, Algorithm 1 and the piecewise exponential interpolation before it. Differs from the source
    in:
        1. the weights are updated with the energy of the position that a step starts from: one evaluation per step;
        2. omega is a rate times the step size, so that a decreasing schedule of the runner decreases both;
        3. averages are weighted by Psi^zeta, which is exact, where the source has w_J^zeta.

    Args:
        temperature: tau > 0.
        zeta: how flat, > 0; 1 makes all bins equally likely.
        first_edge: u_1, the energy up to which the first bin reaches.
        width: of a bin, > 0.
        log_weights: log w_1 .. log w_m at the start, m >= 2; they are normalised.
        rate: of learning, per unit of time; 0 keeps the weights, and then z is the position alone.

    Error, for kept weights and exact gradients, where log w is linear in the number of the bin, with the slope s per
    unit of energy, and no potential is below u_1: the law is exp(-U / T), 1 / T = 1 / tau + zeta s, with weak order 1
    and an error O(h). With other weights the density has kinks at the edges; no order is claimed.

    Raises:
        ValueError: if an option is out of its range, or the estimator returns no potential.
    """

    temperature: float = 1.0
    zeta: float = 0.75
    first_edge: float = 0.0
    width: float = 0.5
    log_weights: tuple[float, ...] = (0.0,) * 20
    rate: float = 0.0

    backend = "jax"
    needs = frozenset({"gradient", "potential"})

    def __post_init__(self) -> None:
        require_positive(self, "temperature", "zeta", "width")
        require(self.rate >= 0, "rate: must not be negative", self.rate)
        require(len(self.log_weights) >= 2, "log_weights: needs at least two bins", self.log_weights)
        require(all(map(math.isfinite, self.log_weights)), "log_weights: must be finite", self.log_weights)

    @property
    def slope(self) -> float | None:
        """Slope of log w per unit of energy, where it is the same everywhere; else None."""
        steps = np.diff(self.log_weights) / self.width
        return float(steps[0]) if np.ptp(steps) <= 1e-12 * (1 + np.abs(steps).max()) else None

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        source = Source("deng2020contour", "Algorithm 1")
        flattened = FlattenedLaw(
            self.temperature, self.zeta, self.first_edge + self.width * np.arange(len(self.log_weights)), self.rate
        )
        if self.rate or self.slope is None:
            return Claims(source, AdaptiveLaw(temperature=self.temperature), flattened)
        T = self.law_temperature
        return Claims(
            source,
            StationaryLaw(order=1, temperature=T),
            Diffusion(self.dynamics, weak_order=1),
            # SGLD at the temperature tau on U tau / T
            StationaryMoments(lambda h, k: {"position": T / k / (1 - h * k * self.temperature / T / 2)}),
            conditions=("exact gradient", "no potential below the first edge"),
        )

    @property
    def law_temperature(self) -> float:
        """T of the law of kept log-linear weights."""
        return 1 / (1 / self.temperature + self.zeta * (self.slope or 0.0))

    def dynamics(self, target: Target) -> Dynamics:
        """H = U / T, D = tau I, Q = 0 for kept log-linear weights."""
        T, tau, n = self.law_temperature, self.temperature, target.size
        return reversible_dynamics(target, lambda z: tau * jnp.eye(n, dtype=z.dtype), T)

    def index(self, potential: jax.Array) -> jax.Array:
        """J - 1, the number of the bin of an energy, from 0."""
        number = jnp.ceil((potential - self.first_edge) / self.width)
        return jnp.clip(number, 0, len(self.log_weights) - 1).astype(jnp.int32)

    def multiplier(self, log_weights: jax.Array, bin_index: jax.Array) -> jax.Array:
        """Factor of the gradient in a bin."""
        return 1 + self.zeta * self.temperature * self.rise(log_weights, bin_index) / self.width

    def rise(self, log_weights: jax.Array, bin_index: jax.Array) -> jax.Array:
        """log w_J - log w_(max(J - 1, 1)): from the bin below to this one."""
        return log_weights[bin_index] - log_weights[jnp.maximum(bin_index - 1, 0)]

    def learned(self, log_weights: jax.Array, bin_index: jax.Array, omega: jax.Array) -> jax.Array:
        """log w' after a visit of a bin."""
        weights = jnp.exp(log_weights)
        pull = omega * weights[bin_index] ** self.zeta
        return jnp.log(weights + pull * (jax.nn.one_hot(bin_index, len(weights), dtype=weights.dtype) - weights))

    def log_importance(self, log_weights: jax.Array, potential: jax.Array) -> jax.Array:
        """zeta log Psi(U): the logarithm of the weight that a draw has in averages under exp(-U / tau)."""
        here = self.index(potential)
        above = (potential - self.first_edge) / self.width - here
        return self.zeta * (log_weights[here] + self.rise(log_weights, here) * above)

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> ContourState:
        """Start a chain at a position."""
        start = self._first_weights(position) if self.rate else ()
        return ContourState(position, start, estimator.init(key, position))

    def _first_weights(self, position: Position) -> jax.Array:
        """log w at the start, normalised, in the precision of the position."""
        dtype = jnp.result_type(*jax.tree.leaves(position))
        return jax.nn.log_softmax(jnp.asarray(self.log_weights, dtype))

    def step(self, key: jax.Array, state: ContourState, step_size: Scalar, estimator: Estimator) -> ContourState:
        """Take one step."""
        gradient_key, noise_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        here = self.index(potential_of(estimate))
        weights = state.log_weights if self.rate else self._first_weights(state.position)
        push = self.multiplier(weights, here)
        noise = injected_noise(noise_key, state.position, 2 * self.temperature * step_size)
        position = jax.tree.map(
            lambda x, g, n: x - step_size * push.astype(x.dtype) * g + n, state.position, estimate.gradient, noise
        )
        if not self.rate:
            return ContourState(position, (), estate)
        omega = jnp.minimum(1.0, self.rate * step_size).astype(weights.dtype)
        return ContourState(position, self.learned(weights, here, omega), estate)

    def position(self, state: ContourState) -> Position:
        """Position of a state."""
        return state.position

    def unpack(self, state: ContourState) -> Tree:
        """Full variable z of a state."""
        return ContourPoint(state.position, state.log_weights) if self.rate else state.position

    def pack(self, key: jax.Array, z: Tree, estimator: Estimator) -> ContourState:
        """State with the full variable z; caches are computed anew."""
        if not self.rate:
            return self.init(key, z, estimator)
        return ContourState(z.position, z.log_weights, estimator.init(key, z.position))


CONTOUR_SLOPE = 0.3
"""Of log-linear weights, per unit of energy: below 1 / (T zeta) of all rows, for a finite inner temperature."""


def contour(method: Builder) -> Builder:
    """A builder of a contour sampler that keeps log-linear weights, whose law has the temperature that is asked for."""

    def build(target: Target, temperature: float = 1.0, zeta: float = 0.75):
        del target
        inner = 1 / (1 / temperature - zeta * CONTOUR_SLOPE)
        return method(
            temperature=inner, zeta=zeta, first_edge=-30.0, width=1.0, log_weights=tuple(CONTOUR_SLOPE * np.arange(60))
        )

    return build


def learning_contour(method: Builder) -> Builder:
    """A builder of a contour sampler that learns its weights, on ten bins from the least energy of a line on."""

    def build(target: Target, **options: Any):
        if target.interval is None or target.size != 1:
            raise ValueError(f"target: the bins are laid for a law on a line, which {target.name} is not")
        line = jnp.linspace(*target.interval, 2001)[:, None]
        least = float(jnp.min(jax.vmap(target.flat_potential)(line)))
        settings = {"first_edge": least + 0.25, "width": 0.5, "log_weights": (0.0,) * 10, "rate": 2.0}
        return method(**{**settings, **options})

    return build


ENTRIES: tuple[Row, ...] = (
    Row(
        "csgld-kept",
        contour(ContourSGLD),
        targets=FLAT,
        variants=({"temperature": 0.5, "zeta": 0.3}, {"temperature": 2.0, "zeta": 1.0}),
    ),
    Row(
        "csgld",
        learning_contour(ContourSGLD),
        tiers=("contract", "law"),
        unsupported=dict.fromkeys(
            ("recipe", "generator", "order", "invariance", "noise", "convergence"),
            "it learns as it runs: csgld-kept has its law with weights that are kept",
        ),
        targets=("anharmonic", "double-well"),
        variants=(
            {"temperature": 0.5, "zeta": 0.3, "rate": 1.0},
            {"temperature": 2.0, "zeta": 1.0, "rate": 4.0},
        ),
    ),
)
