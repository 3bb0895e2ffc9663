"""Numbers beyond z: those that no order sees, those that one does, and sums that grow."""

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.proof import growth
from sgmcmc_verification.checks.proof.potential import DATA
from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.checks.proof.statements import closure, data
from sgmcmc_verification.samplers.estimators.basic import KnownNoise
from sgmcmc_verification.samplers.interface.sampler import Estimate
from sgmcmc_verification.samplers.overdamped.control_variates import SGLDCV
from sgmcmc_verification.samplers.overdamped.sgfs import SGFS, fisher_noise
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.samplers.simple import simple_sampler
from tests.checks.proof.statements.test_data import Tabled, gradients

NAMES = ("position", "mean", "count")


def sampler(rule, start=0):
    """SGLD with a mean and a counter: rule(x, g, mean, count, h, noise) -> (x, mean, count)."""

    def init(key, x, estimator):
        return {"position": x, "mean": jnp.zeros_like(x), "count": jnp.asarray(start, jnp.int32)}

    def step(key, state, h, estimator):
        one, two = jax.random.split(key)
        x = state["position"]
        g = estimator.estimate(one, (), x)[0].gradient
        noise = jnp.sqrt(2 * h) * jax.random.normal(two, x.shape, x.dtype)
        return dict(zip(NAMES, rule(x, g, state["mean"], state["count"], h, noise), strict=True))

    return simple_sampler(step, init=init)


def langevin(x, g, h, noise):
    return x - h * g + noise


RIGHT = {
    "an average that acts at second order": lambda x, g, m, n, h, noise: (
        langevin(x, g, h, noise) - h**2 * m,
        0.9 * m + 0.1 * g,
        n + 1,
    ),
    "the mean of all gradients": lambda x, g, m, n, h, noise: (
        langevin(x, g, h, noise) - h**2 * m,
        m + (g - m) / (n + 1).astype(g.dtype),
        n + 1,
    ),
    "an average at a rate": lambda x, g, m, n, h, noise: (
        langevin(x, g, h, noise) * 1.0 + h**2 * m,
        (1 - 2 * h) * m + 2 * h * x,
        n + 1,
    ),
    "the last gradient": lambda x, g, m, n, h, noise: (langevin(x, g, h, noise) - h**2 * (g - m), g, n + 1),
}
WRONG = {
    "an average in place of the gradient": lambda x, g, m, n, h, noise: (x - h * m + noise, 0.9 * m + 0.1 * g, n + 1),
    "half of the last gradient": lambda x, g, m, n, h, noise: (x - h * (g + m) / 2 + noise, g, n + 1),
    "a sum that acts at second order": lambda x, g, m, n, h, noise: (
        langevin(x, g, h, noise) - h**2 * m,
        m + g,
        n + 1,
    ),
    "a mean without its weight": lambda x, g, m, n, h, noise: (
        langevin(x, g, h, noise) - h**2 * m,
        (1 - 1 / (n + 1)) * m + g,
        n + 1,
    ),
    "a counter that goes down": lambda x, g, m, n, h, noise: (
        langevin(x, g, h, noise) - h**2 * m,
        m + (g - m) / (n + 1).astype(g.dtype),
        n - 1,
    ),
    "noise that falls off": lambda x, g, m, n, h, noise: (
        x - h * g + noise * (1 + 1 / (n + 1).astype(g.dtype)),
        m,
        n + 1,
    ),
    "noise that grows": lambda x, g, m, n, h, noise: (x - h * g + noise * n.astype(g.dtype), m, n + 1),
    "a step that falls off": lambda x, g, m, n, h, noise: (x - h / (n + 1) * g + noise, m, n + 1),
    "a squared mean in the metric": lambda x, g, m, n, h, noise: (
        x - h * g / (1 + m * m) + noise / jnp.sqrt(1 + m * m),
        0.9 * m + 0.1 * g,
        n + 1,
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_memory_that_no_order_sees_is_harmless(name):
    proof = prove(sampler(RIGHT[name]), 2)
    assert proof.verdict == "pass", str(proof)


@pytest.mark.parametrize("name", WRONG)
def test_memory_that_an_order_sees_or_that_grows_is_not(name):
    proof = prove(sampler(WRONG[name]), 2)
    assert proof.verdict == "undecided", str(proof)


def test_a_mean_whose_counter_starts_below_zero_is_not_bounded():
    proof = prove(sampler(RIGHT["the mean of all gradients"], -3), 2)
    assert proof.verdict == "undecided", str(proof)


@pytest.mark.parametrize("name", ["sgfs", "sgfs-diagonal"])
def test_fisher_scoring_has_its_law_for_any_covariance(name):
    row = sampler_row(name)
    assert prove(row.build, 2, row.estimator).is_proved
    assert prove(row.build, 2, lambda t: KnownNoise(t, fisher_noise(t).covariance * 2)).is_proved


@pytest.mark.parametrize("factor", [0.9, 2.0])
def test_fisher_scoring_with_a_wrong_step_fails(factor, monkeypatch):
    row = sampler_row("sgfs-diagonal")
    step = SGFS.step

    def longer(self, key, state, h, estimator):
        new = step(self, key, state, h, estimator)
        return new._replace(position=state.position + factor * (new.position - state.position))

    monkeypatch.setattr(SGFS, "step", longer)
    proof = prove(row.build, 2, row.estimator)
    assert proof.verdict != "pass"
    assert any(result.outcome == "violated" for result in proof.results)


class Growing(Tabled):
    """A table to which gradients are added, with the right total: unbiased, and of a variance that grows."""

    def estimate(self, key, estate, position):
        chosen = jax.random.randint(key, (1,), 0, DATA)
        fresh = gradients(self.terms, position, chosen)
        change = fresh - estate.rows[chosen]
        g = jax.grad(self.terms.prior)(position) + DATA * change.sum(0) + estate.total
        rows = estate.rows.at[chosen].add(fresh)
        return Estimate(g), type(estate)(rows, estate.total + fresh.sum(0))


def test_a_table_that_grows_is_undecided(monkeypatch):
    proof = prove(SGLDCV(), 2, Growing)
    assert proof.verdict == "undecided", str(proof)
    assert "grow" in proof.reason


# Errors planted in the reader -----------------------------------------------------------------------------------------


def test_growth_that_is_not_asked_for_is_seen(monkeypatch):
    monkeypatch.setattr(closure, "grows", lambda after, symbols: False)
    assert prove(sampler(WRONG["a sum that acts at second order"]), 2).verdict == "pass"


def test_memory_that_is_not_looked_for_is_seen(monkeypatch):
    monkeypatch.setattr(data, "is_memory", lambda p: False)
    proof = prove(sampler(WRONG["half of the last gradient"]), 2)
    assert proof.verdict == "undecided" or any(r.outcome == "violated" for r in proof.results)


def test_numbers_stay_bounded_by_the_rules_of_the_module():
    from sgmcmc_verification.checks.proof.potential import Coordinate, Memory, StepRoot
    from sgmcmc_verification.checks.proof.ring import Ring

    ring = Ring()
    m, x = ring.generator(Coordinate("m", -1)), ring.generator(Coordinate("x", 0))
    c, d = Memory("c", 1), Memory("d", 0)
    grows = lambda p: growth.grows({0: p}, {0: m})
    share = ring.generator(c, -1)
    for p in (m, -m, x, m.scaled(2).scaled(1) - m, (m + x).scaled(1) - m, m - share * m + share * x):
        assert not grows(p), p
    s = ring.generator(StepRoot(), 2)
    assert not grows(m - s * m + s * x)
    doubtful = ring.generator(d, -1)
    wrong = (m + x, m.scaled(2), m * m, x * m, m - share * m + x, m - doubtful * m + doubtful * x)
    for p in (*wrong, m + s * m + s * x, m - share.scaled(2) * m, m - s * m + x):
        assert grows(p), p
