"""Planted bugs of chains that change places: the chance of an exchange, what is exchanged, and how often."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.interface.metropolis import accept
from sgmcmc_verification.samplers.numerics.noise import injected_noise
from sgmcmc_verification.samplers.overdamped.replica_exchange import ENERGY_VARIANCE, ReplicaExchangeSGLD, ReplicaState
from sgmcmc_verification.samplers.underdamped.hmc import potential_of


@dataclass(frozen=True)
class WrongSign(ReplicaExchangeSGLD):
    """S = exp(-(1 / T - 1 / T') (U(x) - U(y))): the colder chain is given the higher energy."""

    def log_ratio(self, potential, hot_potential):
        return super().log_ratio(hot_potential, potential)


@dataclass(frozen=True)
class Temperatures(ReplicaExchangeSGLD):
    """S = exp((T' - T) (U(x) - U(y))): temperatures for their inverses."""

    def log_ratio(self, potential, hot_potential):
        cold, hot = self.temperatures
        return (hot - cold) * (potential - hot_potential)


@dataclass(frozen=True)
class Corrected(ReplicaExchangeSGLD):
    """The correction for the noise of the potential is (1 / T - 1 / T')^power s^2, times a factor."""

    factor: float = 1.0
    power: int = 2

    def log_ratio(self, potential, hot_potential):
        gap = 1 / self.temperatures[0] - 1 / self.temperatures[1]
        return gap * (potential - hot_potential) - self.factor * gap**self.power * self.energy_variance


@dataclass(frozen=True)
class EveryStep(ReplicaExchangeSGLD):
    """An exchange is tried with probability min(1, r) in a step of any size."""

    def intensity(self, step_size):
        return jnp.minimum(1.0, self.rate + 0.0 * step_size)


@dataclass(frozen=True)
class Incomplete(ReplicaExchangeSGLD):
    """The exchange leaves the gradients, or the position of the hot chain, where they are."""

    gradients: bool = True
    both: bool = True
    hot_noise: bool = True

    def step(self, key, state, step_size, estimator):
        keys = jax.random.split(key, 5)
        here, estate = estimator.estimate(keys[0], state.estate, state.position)
        there, hot_estate = estimator.estimate(keys[1], state.hot_estate, state.hot)
        log_ratio = jnp.minimum(self.log_ratio(potential_of(here), potential_of(there)), 0.0)
        pair, gradients = (state.position, state.hot), (here.gradient, there.gradient)
        swapped = (state.hot, state.position if self.both else state.hot)
        turned = gradients[::-1] if self.gradients else gradients
        log_chance = log_ratio + jnp.log(self.intensity(step_size))
        (x, y), (g, k) = accept(keys[2], log_chance, (swapped, turned), (pair, gradients))
        cold, hot = self.temperatures
        noise = injected_noise(keys[3], x, 2 * cold * step_size)
        hot_noise = injected_noise(keys[4], y, 2 * (hot if self.hot_noise else cold) * step_size)
        move = lambda a, b, n: a - step_size * b + n
        return ReplicaState(jax.tree.map(move, x, g, noise), jax.tree.map(move, y, k, hot_noise), estate, hot_estate)


def noisy(factor: float, power: int):
    """A builder of `Corrected` for potentials with noise."""
    return lambda target, **options: Corrected(energy_variance=ENERGY_VARIANCE, factor=factor, power=power, **options)


BALANCE = "pi(x, y) a(x, y) = pi(y, x) a(y, x)"
LINE = ("gaussian-1d-scaled", "anharmonic")

DEFECTS: tuple[Defect, ...] = (
    planted(
        "resgld-sign-of-exchange",
        "resgld",
        WrongSign,
        "the chance of an exchange has the energies the wrong way round",
        Kill("exchange_balance", "anharmonic", BALANCE),
        "metropolis",
        targets=LINE,
    ),
    planted(
        "resgld-temperatures-not-inverted",
        "resgld",
        Temperatures,
        "T' - T in the place of 1 / T - 1 / T'",
        Kill("exchange_balance", "anharmonic", BALANCE),
        "metropolis",
        targets=LINE,
    ),
    planted(
        "resgld-without-correction",
        "resgld-noisy",
        noisy(0.0, 2),
        "no correction for the variance of the potential: log a(x, y) - log a(y, x) is too near to 0",
        Kill("exchange_balance", "anharmonic", "E min(1, S) = S_0 E min(1, 1 / S) with noise in the potential"),
        "metropolis",
        "gradient-noise",
        targets=LINE,
    ),
    planted(
        "resgld-correction-of-one-energy",
        "resgld-noisy",
        noisy(0.5, 2),
        "the correction is half of (1 / T - 1 / T')^2 s^2, as if one of the energies were exact",
        Kill("exchange_balance", "anharmonic", "E min(1, S) = S_0 E min(1, 1 / S) with noise in the potential"),
        "metropolis",
        "gradient-noise",
        targets=LINE,
    ),
    planted(
        "resgld-correction-not-squared",
        "resgld-noisy",
        noisy(1.0, 1),
        "the correction is (1 / T - 1 / T') s^2",
        Kill("exchange_balance", "anharmonic", "E min(1, S) = S_0 E min(1, 1 / S) with noise in the potential"),
        "metropolis",
        "gradient-noise",
        targets=LINE,
    ),
    planted(
        "resgld-intensity-per-step",
        "resgld",
        EveryStep,
        "an exchange is tried with probability r in every step, not r h: no limit of small steps",
        Kill("exchange_rate", "anharmonic", "a(x, y) = min(1, r h) E min(1, S)"),
        "limit",
        targets=LINE,
    ),
    planted(
        "resgld-copies-hot-chain",
        "resgld",
        lambda target, **options: Incomplete(both=False, **options),
        "the cold chain takes the place of the hot one, which keeps it",
        Kill("exchange_balance", "anharmonic", "an exchange exchanges both positions"),
        "metropolis",
        "state",
        targets=LINE,
    ),
    planted(
        "resgld-keeps-gradients",
        "resgld",
        lambda target, **options: Incomplete(gradients=False, **options),
        "the positions are exchanged, the gradients that move them are not",
        Kill("exchange_balance", "anharmonic", "after an exchange the step is that of the exchanged positions"),
        "stages",
        "state",
        targets=LINE,
    ),
    planted(
        "resgld-hot-chain-has-cold-noise",
        "resgld",
        lambda target, **options: Incomplete(hot_noise=False, **options),
        "the noise of the hot chain has the variance 2 h T",
        Kill("generator_of_code", "anharmonic", "Cov(z') / h -> 2 diag(T, T')"),
        "variance",
        targets=LINE,
        diagnosis=r"noise in .*factor",
    ),
)
