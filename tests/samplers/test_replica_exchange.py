"""Replica exchange: the joint law of two chains, exact and with noise in the potential, and what is exchanged.

Oracles: enumeration of a chain on a few points; quadrature of min(1, S); SGLD for chains that are never exchanged.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Inconclusive
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.tiers.law.replica_exchange import SHIFT, mean_chance, noise_slopes
from sgmcmc_verification.samplers.estimators.basic import Exact, FromLogDensity, FullEnergy
from sgmcmc_verification.samplers.overdamped.replica_exchange import ENERGY_VARIANCE, ReplicaExchangeSGLD, Replicas
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target

EPS = float(np.finfo(np.float64).eps)
RATE = 1e-6
LAW = target("double-well")
FLAT = FromLogDensity(lambda x: 0.0 * jnp.sum(x))
LEVELS = np.array([0.0, 0.4, 1.1, 2.5])
"""Potentials of four points."""


def chance(sampler, gap: float, variance: float = 0.0) -> float:
    """E min(1, S) of the code for U(x) - U(y) = gap, by adaptive quadrature over the noise of both potentials."""
    s = np.sqrt(2 * variance)
    value = lambda n: float(np.exp(np.minimum(np.float64(sampler.log_ratio(gap + s * n, 0.0)), 0.0)))
    if not variance:
        return value(0.0)
    kink = -(gap - float(sampler.energy_variance) * inverse_gap(sampler)) / s
    points = [p for p in (kink,) if abs(p) < 12]
    return integrate.quad(lambda n: value(n) * stats.norm.pdf(n), -12, 12, points=points or None, limit=200)[0]


def inverse_gap(sampler) -> float:
    """1 / T - 1 / T'."""
    cold, hot = sampler.temperatures
    return 1 / cold - 1 / hot


def exchange_matrix(sampler, variance: float = 0.0) -> np.ndarray:
    """The exchange alone as a Markov chain on the 16 pairs of points."""
    size = len(LEVELS)
    matrix = np.zeros((size**2, size**2))
    for i in range(size):
        for j in range(size):
            a = chance(sampler, LEVELS[i] - LEVELS[j], variance)
            matrix[i * size + j, j * size + i] += a
            matrix[i * size + j, i * size + j] += 1 - a
    return matrix


def joint(sampler) -> np.ndarray:
    """The product of both laws on the pairs."""
    cold, hot = (np.exp(-LEVELS / T) / np.exp(-LEVELS / T).sum() for T in sampler.temperatures)
    return np.outer(cold, hot).ravel()


@pytest.mark.parametrize("variance", [0.0, 0.8])
def test_exchange_keeps_the_product_of_both_laws_on_enumerated_pairs(variance):
    sampler = ReplicaExchangeSGLD(temperature=0.7, ratio=3.0, energy_variance=variance)
    law = joint(sampler)
    # adaptive quadrature promises 1.5e-8 absolutely
    np.testing.assert_allclose(
        law @ exchange_matrix(sampler, variance), law, rtol=0, atol=1e-7 if variance else 8 * EPS
    )


def test_without_the_correction_the_law_is_off_by_the_derived_ratio():
    """log S ~ N(D, v) is a corrected one of mean D + v / 2: the exchange balances against exp(-k D), not exp(-D)."""
    variance = 0.8
    plain = ReplicaExchangeSGLD(temperature=0.7, ratio=3.0)
    v = 2 * inverse_gap(plain) ** 2 * variance
    for gap in (0.3, 1.5):
        D = inverse_gap(plain) * gap
        expected = mean_chance(np.array(D + v / 2), v) / mean_chance(np.array(-D + v / 2), v)
        found = chance(plain, gap, variance) / chance(plain, -gap, variance)
        assert found == pytest.approx(expected, rel=1e-6)
        assert found < 0.95 * np.exp(D)


@pytest.mark.parametrize("variance", [0.3, 2.0])
def test_mean_chance_is_the_integral_of_the_smaller_of_one_and_the_ratio(variance):
    for D in (-2.0, 0.0, 0.7):
        value = lambda n, D=D: min(1.0, np.exp(D - variance / 2 + np.sqrt(variance) * n)) * stats.norm.pdf(n)
        kink = (variance / 2 - D) / np.sqrt(variance)
        parts = [integrate.quad(value, a, b)[0] for a, b in ((-12, kink), (kink, 12))]
        assert float(mean_chance(np.array(D), variance)) == pytest.approx(sum(parts), abs=1e-7)


def test_full_energy_has_the_potential_of_all_data_and_noise_of_its_variance():
    law = target("tiny-gaussian-data")
    x = jnp.asarray(law.example) + 0.3
    value = float(law.potential(x))
    exact, _ = FullEnergy(Exact(law), law).estimate(jax.random.key(0), (), x)
    assert float(exact.potential) == pytest.approx(value, rel=8 * EPS)
    noisy = FullEnergy(Exact(law), law, 2.5)
    count = 4000
    draws = jax.vmap(lambda k: noisy.estimate(k, (), x)[0].potential)(jax.random.split(jax.random.key(1), count))
    square = np.sum((np.asarray(draws) - value) ** 2) / 2.5
    assert stats.chi2(count).ppf(RATE / 2) < square < stats.chi2(count).isf(RATE / 2)


def test_an_exchange_takes_the_potential_the_gradient_and_the_memory_of_the_estimator_along():
    class Memory:
        """Remembers the last position; flat."""

        def init(self, key, position):
            return position

        def estimate(self, key, estate, position):
            return FLAT.estimate(key, (), position)[0], estate

    sampler, h = ReplicaExchangeSGLD(rate=1e15), 1e-12
    z = Replicas(jnp.array([1.0]), jnp.array([-2.0]))
    after = sampler.step(jax.random.key(0), sampler.pack(jax.random.key(1), z, Memory()), h, Memory())
    # rate h = 1000: an exchange is certain where both potentials are equal; the noise is of size 2e-6
    assert abs(float(after.position[0]) + 2) < 1e-4
    assert abs(float(after.hot[0]) - 1) < 1e-4
    assert float(after.estate[0]) == -2
    assert float(after.hot_estate[0]) == 1


def test_without_exchanges_each_chain_is_sgld_at_its_own_temperature():
    sampler, h, count = ReplicaExchangeSGLD(temperature=0.7, ratio=3.0, rate=0.0), 0.05, 20_000
    z = Replicas(jnp.array([0.4]), jnp.array([-0.9]))
    state = sampler.pack(jax.random.key(1), z, Exact(LAW))
    step = jax.jit(jax.vmap(lambda k: sampler.unpack(sampler.step(k, state, h, Exact(LAW)))))
    ends = step(jax.random.split(jax.random.key(2), count))
    for x, end, T in ((z.position, ends.position, 0.7), (z.hot, ends.hot, 2.1)):
        mean = x - h * jax.grad(LAW.potential)(x)
        square = np.sum((np.asarray(end) - np.asarray(mean)) ** 2) / (2 * h * T)
        assert stats.chi2(count).ppf(RATE / 2) < square < stats.chi2(count).isf(RATE / 2)


class Lopsided(ReplicaExchangeSGLD):
    """log S with a part of the hot energy only: its noise enters with two different slopes."""

    def log_ratio(self, potential, hot_potential):
        return super().log_ratio(potential, 0.9 * hot_potential)


class Cooler(ReplicaExchangeSGLD):
    """T' = 0.9 ratio T, for the moves and the exchanges alike."""

    @property
    def temperatures(self):
        return self.temperature, 0.9 * self.ratio * self.temperature


@pytest.mark.parametrize(
    ("method", "check"),
    [(Lopsided, "exchange_rate"), (Cooler, "exchange_balance"), (Cooler, "generator_of_code")],
)
def test_energies_and_temperatures_that_the_options_do_not_mean_are_found(method, check):
    row = dataclasses.replace(
        sampler_row("resgld-noisy"), build=lambda target, **given: method(energy_variance=ENERGY_VARIANCE, **given)
    )
    result = execute(find_statement(check), Subject(row), "anharmonic", 0)
    assert result.verdict == "fail", result.reason


def test_the_slopes_of_the_noise_are_read_where_nothing_is_cut_off():
    """log S = -0.5 + 0.3 n_0 - 0.2 n_1 at the first point, cut off at 0 at the second."""
    steps = SHIFT * np.array([0.3, -0.2])
    at = lambda level, shift: np.exp(np.minimum(level + shift, 0.0))
    base, below, above = (np.stack([at(level, s) for level in (-0.5, 0.9)]) for s in (np.zeros(1), -steps, steps))
    np.testing.assert_allclose(noise_slopes(base[:, 0], below, above), [0.3, -0.2], rtol=64 * EPS / SHIFT)
    with pytest.raises(Inconclusive, match="no point shows"):
        noise_slopes(base[1:, 0], below[1:], above[1:])


@pytest.mark.parametrize("options", [{"temperature": 0.0}, {"ratio": 1.0}, {"rate": -1.0}, {"energy_variance": -0.1}])
def test_bad_options_are_refused_by_name(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        ReplicaExchangeSGLD(**options)
