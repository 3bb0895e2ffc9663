"""Samplers in NumPy: no wrong one passes, right ones do, and a reason says what was met and where."""

import itertools
import os

import numpy as np
import pytest
from beartype import beartype

from sgmcmc_verification.checks.core.third_party import builder
from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.samplers.estimators.host import HostExact
from tests.checks.proof.hosts.samplers import EXACT, LENGTHS, REFUTED, RIGHT, WRONG, gradient, host, scaled


def proof_of(sampler):
    return prove(builder("stranger", sampler), 2, HostExact)


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_sampler_is_proved(name):
    proof = proof_of(RIGHT[name])
    assert proof.is_proved, str(proof)


@pytest.mark.parametrize("law", LENGTHS)
def test_scales_of_laws_that_are_functions_of_others_are_read(law):
    proof = proof_of(host(scaled(LENGTHS[law]), claims=EXACT, needs=("potential",)))
    assert proof.verdict == "pass", str(proof)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_sampler_does_not_pass(name):
    proof = proof_of(WRONG[name])
    assert proof.verdict == ("fail" if name in REFUTED else "undecided"), str(proof)
    assert proof.reason


def test_what_is_hidden_is_named():
    assert "the attribute momentum of Momentum" in proof_of(WRONG["momentum"]).reason
    assert "a global" in proof_of(WRONG["counted"]).reason
    assert "is not the one that runs" in proof_of(WRONG["own generator"]).reason


def reading(line):
    """SGLD, with a line of a stranger before it that gets the position and the draws."""

    def step(rng, x, h, estimator):
        noise = rng.normal(size=x.shape)
        line(x, noise, h)
        return x - h * gradient(rng, estimator, x) + np.sqrt(2 * h) * noise

    return proof_of(host(step)).reason


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (lambda x, noise, h: np.zeros(2)[int(x[0])], "integer"),
        (lambda x, noise, h: x[x > 0], "chosen"),
        (lambda x, noise, h: x.tobytes(), "memory"),
        (lambda x, noise, h: np.float64(noise[0]), "float"),
        (lambda x, noise, h: np.random.normal(), "numpy.random"),  # noqa: NPY002
        (lambda x, noise, h: x.astype(int), "integer"),
    ],
)
def test_what_symbols_cannot_answer_is_a_reason_with_its_place(line, word):
    reason = reading(line)
    assert word in reason
    assert "test_strangers.py:" in reason or "hidden state" in reason


def test_a_reason_that_the_code_catches_is_one_all_the_same():
    def line(x, noise, h):
        try:
            return int(x[0])
        except Exception:
            return 0

    assert "integer" in reading(line)


def test_a_law_that_is_not_known_is_a_reason():
    def step(rng, x, h, estimator):
        return x - h * gradient(rng, estimator, x) + np.sqrt(2 * h) * rng.vonmises(0.0, 1.0, size=x.shape)

    reason = proof_of(host(step)).reason
    assert "Generator.vonmises" in reason
    assert "test_strangers.py:" in reason


def test_the_potential_of_the_target_itself_is_no_number_of_the_program():
    def build(target):
        def step(rng, x, h, estimator):
            return x - h * x * float(target.potential(x)) + np.sqrt(2 * h) * rng.normal(size=x.shape)

        return host(step)

    assert prove(builder("stranger", build), 2, HostExact).verdict == "undecided"


def test_arrays_of_the_state_that_share_memory_are_a_reason():
    def step(rng, state, h, estimator):
        x = state["x"] - h * gradient(rng, estimator, state["x"]) + np.sqrt(2 * h) * rng.normal(size=2)
        return {"x": x, "old": x}

    sampler = host(
        step, init=lambda rng, x, estimator: {"x": np.array(x), "old": np.array(x)}, position=lambda s: s["x"]
    )
    assert "share memory" in proof_of(sampler).reason


class Slotted:
    __slots__ = ("count",)

    def __init__(self):
        self.count = 0

    def __next__(self):
        self.count += 1
        return self.count


def numbered():
    n = 0
    while True:
        yield (n := n + 1)


@pytest.mark.parametrize("clock", [itertools.count(), Slotted(), numbered(), iter(range(10**6))])
def test_a_counter_is_seen_wherever_it_counts_long_before_it_acts(clock):
    def step(rng, x, h, estimator):
        T = 1.0 if next(clock) < 10_000 else 0.5
        return x - h * gradient(rng, estimator, x) + np.sqrt(2 * h * T) * rng.normal(size=x.shape)

    assert "hidden state" in proof_of(host(step)).reason


def test_the_environment_of_the_process_is_nobodys_memory():
    @beartype
    def scale(x, name: str):
        os.environ[name] = str(int(os.environ.get(name, "0")) + 1)
        return np.sqrt(x)

    def step(rng, x, h, estimator):
        return x - h * gradient(rng, estimator, x) + scale(2 * h, "STEPS") * rng.normal(size=x.shape)

    proof = proof_of(host(step))
    assert proof.is_proved, str(proof)
