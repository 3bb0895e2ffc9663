"""Replica-exchange stochastic gradient Langevin dynamics (reSGLD): a cold and a hot chain that change places."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, coordinate_names
from sgmcmc_verification.samplers.entry import FLAT, Row, plain
from sgmcmc_verification.samplers.estimators.basic import Exact, FullEnergy
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position, Scalar
from sgmcmc_verification.samplers.interface.claims import Claims, Diffusion, Exchange, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.metropolis import accept
from sgmcmc_verification.samplers.numerics.noise import injected_noise
from sgmcmc_verification.samplers.underdamped.hmc import potential_of
from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.target import Target


class Replicas(NamedTuple):
    """The full variable z = (x, y): the positions of the cold and of the hot replica."""

    position: Position
    hot: Position


class ReplicaState(NamedTuple):
    """The positions of both replicas, and the estimator's own state for each."""

    position: Position
    hot: Position
    estate: EstimatorState
    hot_estate: EstimatorState


@dataclass(frozen=True)
class ReplicaExchangeSGLD:
    """SGLD at two temperatures T < T', whose positions are exchanged at random times.

        (x, y) <- (y, x) with probability min(1, r h) min(1, S)
        S = exp((1 / T - 1 / T') (U~(x) - U~(y)) - (1 / T - 1 / T')^2 s^2)
        x <- x - h grad U~(x) + N(0, 2 h T),  y <- y - h grad U~(y) + N(0, 2 h T')

    U~ is an estimate of the potential of variance s^2. For Gaussian noise of that variance log S has the mean
    log S_0 - v / 2 and the variance v = 2 (1 / T - 1 / T')^2 s^2, S_0 being that of the exact potential. Then
    E min(1, S) from (x, y) is exactly S_0 times that from (y, x) [ceperley1999penalty]: the exchange leaves the product
    of both laws invariant, whatever s. With noise and without the term in s^2 it leaves another law.

    Source: deng2020nonconvex, Algorithm 1, with h = (step of the source) and U the negative
    log-posterior. Differs from the source in:
        1. the exchange comes before the move, which uses the same estimates: one evaluation per replica and step;
        2. s^2 is given, and the correction is complete (the source estimates it as it runs, and divides it by a factor
           F to be bolder; the law is biased for F > 1);
        3. the intensity r is per unit of time: the source's limit of small steps has it, its algorithm has r h = 1;
        4. what an estimator remembers of a position goes with it.

    Args:
        temperature: T > 0, of the cold replica; its law is exp(-U / T).
        ratio: T' / T > 1.
        rate: r >= 0, exchanges that are tried per unit of time.
        energy_variance: s^2 >= 0, the variance of the estimate of the potential.

    Error: weak order 1 and invariant law O(h) for the pair of both chains, for exact gradients.

    Raises:
        ValueError: if an option is out of its range, or the estimator returns no potential.
    """

    temperature: float = 1.0
    ratio: float = 3.0
    rate: float = 1.0
    energy_variance: float = 0.0

    backend = "jax"
    needs = frozenset({"gradient", "potential"})

    def __post_init__(self) -> None:
        require_positive(self, "temperature")
        require(self.ratio > 1, "ratio: must be above 1: the second replica is the hot one", self.ratio)
        require(self.rate >= 0, "rate: must not be negative", self.rate)
        require(self.energy_variance >= 0, "energy_variance: must not be negative", self.energy_variance)

    @property
    def temperatures(self) -> tuple[float, float]:
        """T and T'."""
        return self.temperature, self.ratio * self.temperature

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("deng2020nonconvex", "Algorithm 1"),
            StationaryLaw(order=1, temperature=self.temperature),
            Diffusion(self.dynamics, weak_order=1),
            # what the options mean, not what the step reads
            Exchange(self.ratio * self.temperature, self.rate, self.energy_variance),
            conditions=("exact gradient", "Gaussian noise of known variance in the potential"),
        )

    def dynamics(self, target: Target) -> Dynamics:
        """H = U(x) / T + U(y) / T', D = diag(T I, T' I), Q = 0: what happens between two exchanges."""
        n, cold, hot = target.size, self.temperature, self.ratio * self.temperature
        scale = lambda z: jnp.concatenate([jnp.full(n, cold, z.dtype), jnp.full(n, hot, z.dtype)])
        return Dynamics(
            H=lambda z: target.flat_potential(z[:n]) / cold + target.flat_potential(z[n:]) / hot,
            D=lambda z: jnp.diag(scale(z)),
            Q=lambda z: jnp.zeros((2 * n, 2 * n), z.dtype),
            names=coordinate_names(n, "y"),
            size=n,
        )

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> ReplicaState:
        """Both replicas start at the same position."""
        return self.pack(key, Replicas(position, position), estimator)

    def log_ratio(self, potential: jax.Array, hot_potential: jax.Array) -> jax.Array:
        """log S for estimates of the potential of the cold and of the hot replica."""
        gap = 1 / self.temperatures[0] - 1 / self.temperatures[1]
        return gap * (potential - hot_potential) - gap**2 * self.energy_variance

    def intensity(self, step_size: Scalar) -> jax.Array:
        """The probability that an exchange is tried in a step."""
        return jnp.minimum(1.0, self.rate * step_size)

    def step(self, key: jax.Array, state: ReplicaState, step_size: Scalar, estimator: Estimator) -> ReplicaState:
        """Take one step."""
        keys = jax.random.split(key, 5)
        here, estate = estimator.estimate(keys[0], state.estate, state.position)
        there, hot_estate = estimator.estimate(keys[1], state.hot_estate, state.hot)
        log_ratio = jnp.minimum(self.log_ratio(potential_of(here), potential_of(there)), 0.0)
        cold, hot = (state.position, here.gradient, estate), (state.hot, there.gradient, hot_estate)
        log_chance = log_ratio + jnp.log(self.intensity(step_size))
        cold, hot = accept(keys[2], log_chance, (hot, cold), (cold, hot))
        move = lambda key, temperature, x, gradient: jax.tree.map(
            lambda a, g, n: a - step_size * g + n, x, gradient, injected_noise(key, x, 2 * temperature * step_size)
        )
        position = move(keys[3], self.temperatures[0], *cold[:2])
        return ReplicaState(position, move(keys[4], self.temperatures[1], *hot[:2]), cold[2], hot[2])

    def position(self, state: ReplicaState) -> Position:
        """Position of a state."""
        return state.position

    def unpack(self, state: ReplicaState) -> Replicas:
        """Full variable z of a state."""
        return Replicas(state.position, state.hot)

    def pack(self, key: jax.Array, z: Replicas, estimator: Estimator) -> ReplicaState:
        """State with the full variable z; caches are computed anew."""
        cold_key, hot_key = jax.random.split(key)
        estates = estimator.init(cold_key, z.position), estimator.init(hot_key, z.hot)
        return ReplicaState(z.position, z.hot, *estates)


ENERGY_VARIANCE = 0.8
"""Of the noise in potentials: of the size that an exchange between temperatures notices."""


def noisy_energy(target: Target) -> FullEnergy:
    """Exact gradients beside potentials with Gaussian noise of variance `ENERGY_VARIANCE`."""
    return FullEnergy(Exact(target), target, ENERGY_VARIANCE)


VARIANTS = (
    {"temperature": 0.5, "ratio": 2.0, "rate": 20.0},
    {"temperature": 2.0, "ratio": 1.5, "rate": 60.0},
)

ENTRIES: tuple[Row, ...] = (
    Row(
        "resgld",
        plain(ReplicaExchangeSGLD),
        targets=FLAT,
        variants=VARIANTS,
        diffusion=published.TWO_TEMPERATURES,
    ),
    Row(
        "resgld-noisy",
        plain(ReplicaExchangeSGLD, energy_variance=ENERGY_VARIANCE),
        targets=("gaussian-1d-scaled", "anharmonic", "double-well"),
        variants=VARIANTS,
        estimator=noisy_energy,
        diffusion=published.TWO_TEMPERATURES,
    ),
)
