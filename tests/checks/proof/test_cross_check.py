"""The reader against the program: what it reads of a step is the step, up to the order that it claims to know."""

import pytest

from sgmcmc_verification.samplers.registry import sampler_row
from tests.checks.proof.cross_check import observed_power

ORDER = 3
FAMILIES = {
    "sgld": False,
    "leimkuhler-matthews": False,
    "baoab": False,
    "ubu": False,
    "sgnht": False,
    "badodab": False,
    "sgrld-non-hessian": False,
    "sgrld-recipe-metric": False,
    "psgld-gamma": False,
    "sggmc": False,
    "sgrld-expanded-mean": True,
}
"""One row of each family, and whether it runs on positive numbers."""


@pytest.mark.parametrize("name", FAMILIES)
def test_remainder_of_the_series_is_of_the_next_order(name):
    row = sampler_row(name)
    power, size = observed_power(row.build, 2, ORDER, FAMILIES[name])
    assert power > ORDER + 0.7, (power, size)
