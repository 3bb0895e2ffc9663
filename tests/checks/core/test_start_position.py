"""What is made in one program where it can be traced, and as it is where it cannot."""

import dataclasses

import jax
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.start_position import in_one_program
from sgmcmc_verification.checks.exact_laws.exact_draws import draw_positions
from sgmcmc_verification.checks.tiers.contract.interface import kit
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target

LAW = target("anharmonic")
IN_PYTHON = dataclasses.replace(
    LAW, sample=lambda key, n: np.random.default_rng(int(jax.random.bits(key))).normal(0.5, 0.1, (n, 1))
)


def test_a_function_has_its_values_either_way():
    key = jax.random.key(0)
    assert in_one_program(lambda key: jax.random.normal(key), key) == pytest.approx(float(jax.random.normal(key)))
    assert in_one_program(lambda key: int(jax.random.bits(key)) % 7, key) == int(jax.random.bits(key)) % 7


def test_draws_of_a_target_that_are_made_in_python_are_those_that_are_used():
    draws = draw_positions(IN_PYTHON, 1.0, np.random.default_rng(0), 500)
    assert draws.shape == (500, 1)
    assert abs(draws.mean() - 0.5) < 0.05
    start = kit(Subject(sampler_row("sgld")), IN_PYTHON).position(0)
    assert abs(float(start[0]) - 0.5) < 0.6
