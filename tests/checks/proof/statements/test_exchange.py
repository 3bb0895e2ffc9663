"""Exchanges between two chains: those that are balanced, and errors in them as strangers make them."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.checks.proof.statements import exchange
from sgmcmc_verification.samplers.estimators.basic import Exact, FullEnergy
from sgmcmc_verification.samplers.overdamped.replica_exchange import (
    ENERGY_VARIANCE,
    ReplicaExchangeSGLD,
    ReplicaState,
    noisy_energy,
)
from sgmcmc_verification.samplers.underdamped.hmc import potential_of


def noise(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


class Stranger(ReplicaExchangeSGLD):
    """The same sampler as a stranger writes it, with one rule replaced."""

    def ratio_of(self, u, v):
        return (1 / self.temperatures[0] - 1 / self.temperatures[1]) * (u - v)

    def accepted(self, key, ratio, h):
        return jnp.log(jax.random.uniform(key)) < jnp.log(self.rate * h) + jnp.minimum(ratio, 0.0)

    def swapped(self, x, y):
        return y, x

    def scales(self, h) -> Any:
        return jnp.sqrt(2 * self.temperatures[0] * h), jnp.sqrt(2 * self.temperatures[1] * h)

    def keys(self, key) -> Any:
        return jax.random.split(key, 5)

    def step(self, key, state, step_size, estimator):
        one, two, three, four, five = self.keys(key)
        x, y = state.position, state.hot
        here, estate = estimator.estimate(one, state.estate, x)
        there, hot_estate = estimator.estimate(two, state.hot_estate, y)
        swap = self.accepted(three, self.ratio_of(potential_of(here), potential_of(there)), step_size)
        a, b = self.swapped(x, y)
        g, k = self.swapped(here.gradient, there.gradient)
        x, g, y, k = (
            jnp.where(swap, new, old) for new, old in ((a, x), (g, here.gradient), (b, y), (k, there.gradient))
        )
        cold, hot = self.scales(step_size)
        return ReplicaState(
            x - step_size * g + cold * noise(four, x), y - step_size * k + hot * noise(five, y), estate, hot_estate
        )


class Direct(Stranger):
    def accepted(self, key, ratio, h):
        return jax.random.uniform(key) < self.rate * h * jnp.exp(jnp.minimum(ratio, 0.0))


class OtherWay(Stranger):
    def accepted(self, key, ratio, h):
        return ~(jax.random.uniform(key) > self.rate * h * jnp.exp(jnp.minimum(ratio, 0.0)))


class WrongSign(Stranger):
    def ratio_of(self, u, v):
        return -super().ratio_of(u, v)


class WrongGap(Stranger):
    def ratio_of(self, u, v):
        return (self.temperatures[1] - self.temperatures[0]) * (u - v)


class OneTemperature(Stranger):
    def ratio_of(self, u, v):
        return (u - v) / self.temperatures[0]


class Always(Stranger):
    def ratio_of(self, u, v):
        return 0.0 * (u - v)


class Uncut(Stranger):
    def accepted(self, key, ratio, h):
        return jax.random.uniform(key) < self.rate * h * jnp.exp(ratio)


class TooOften(Stranger):
    def accepted(self, key, ratio, h):
        return jax.random.uniform(key) < 2 * self.rate * h * jnp.exp(jnp.minimum(ratio, 0.0))


class AtRootRate(Stranger):
    def accepted(self, key, ratio, h):
        return jax.random.uniform(key) < jnp.sqrt(h) * jnp.exp(jnp.minimum(ratio, 0.0))


class Copies(Stranger):
    def swapped(self, x, y):
        return y, y


class WrongScales(Stranger):
    def scales(self, h):
        return super().scales(h)[::-1]


class SharedKey(Stranger):
    def keys(self, key):
        one, two, three, four, _ = jax.random.split(key, 5)
        return one, two, three, four, four


class DecidesWithNoise(Stranger):
    """The noise of the energy moves the chain too."""

    def keys(self, key):
        one, two, three, four, _ = jax.random.split(key, 5)
        return one, two, three, four, jax.random.split(one)[1]


class Corrected(Stranger):
    factor = 1.0

    def ratio_of(self, u, v):
        gap = 1 / self.temperatures[0] - 1 / self.temperatures[1]
        return gap * (u - v) - self.factor * gap**2 * ENERGY_VARIANCE


class HalfCorrected(Corrected):
    factor = 0.5


class CorrectedTwice(Corrected):
    factor = 2.0


class CorrectedUpwards(Corrected):
    factor = -1.0


@pytest.mark.parametrize("kind", [Stranger, Direct, OtherWay])
@pytest.mark.parametrize("dimension", [1, 2])
def test_balanced_exchanges_pass(kind, dimension):
    assert prove(kind(), dimension).is_proved
    assert prove(kind(temperature=0.5, ratio=2.0, rate=20.0), dimension).is_proved


def test_the_penalty_for_noise_in_the_energy_is_exact():
    assert prove(Corrected(energy_variance=ENERGY_VARIANCE), 2, noisy_energy).is_proved


WRONG = [WrongSign, WrongGap, OneTemperature, TooOften]


@pytest.mark.parametrize("kind", WRONG, ids=lambda kind: kind.__name__)
def test_unbalanced_exchanges_fail(kind):
    proof = prove(kind(), 2)
    assert proof.verdict == "fail", str(proof)
    assert proof.reason.startswith("exchange")


@pytest.mark.parametrize("kind", [AtRootRate, Uncut, Copies, Always], ids=lambda kind: kind.__name__)
def test_rules_of_another_kind_do_not_pass(kind):
    assert prove(kind(), 2).verdict != "pass"


@pytest.mark.parametrize("kind", [WrongScales, SharedKey], ids=lambda kind: kind.__name__)
def test_wrong_moves_between_exchanges_fail(kind):
    assert prove(kind(), 2).verdict == "fail"


@pytest.mark.parametrize(
    "kind", [Stranger, HalfCorrected, CorrectedTwice, CorrectedUpwards], ids=lambda kind: kind.__name__
)
def test_a_wrong_penalty_fails(kind):
    proof = prove(kind(energy_variance=ENERGY_VARIANCE), 2, noisy_energy)
    assert proof.verdict == "fail", str(proof)


def test_a_penalty_without_noise_fails():
    assert prove(Corrected(), 2).verdict == "fail"


def test_a_penalty_for_another_variance_fails():
    build = lambda t: FullEnergy(Exact(t), t, 2 * ENERGY_VARIANCE)
    assert prove(Corrected(energy_variance=ENERGY_VARIANCE), 2, build).verdict == "fail"


def test_noise_that_decides_and_moves_does_not_pass():
    proof = prove(DecidesWithNoise(energy_variance=ENERGY_VARIANCE), 1, noisy_energy)
    assert proof.verdict == "undecided", str(proof)


def test_a_variance_that_is_forgotten_is_seen(monkeypatch):
    right = exchange._gaussian
    monkeypatch.setattr(exchange, "_gaussian", lambda p: (right(p)[0], p.ring.zero))
    assert prove(Corrected(energy_variance=ENERGY_VARIANCE), 2, noisy_energy).verdict == "fail"
