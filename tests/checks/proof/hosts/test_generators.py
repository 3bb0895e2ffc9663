"""Laws that are made of others by a generator that hands out known draws.

Oracles: closed forms of the mean and of the mean square.
"""

import math

import numpy as np
import pytest

from sgmcmc_verification.checks.proof.hosts.generators import NumberedGenerator

COUNT = 100_000
MOMENTS = {
    "lognormal": ((0.1, 0.5), math.exp(0.1 + 0.5**2 / 2), math.exp(0.2 + 2 * 0.5**2)),
    "rayleigh": ((0.7,), 0.7 * math.sqrt(math.pi / 2), 2 * 0.7**2),
    "weibull": ((2.5,), math.gamma(1 + 1 / 2.5), math.gamma(1 + 2 / 2.5)),
    "pareto": ((9.0,), 1 / 8, 2 / (8 * 7)),
    "power": ((3.0,), 3 / 4, 3 / 5),
    "triangular": ((0.5, 1.0, 2.0), 3.5 / 3, (0.25 + 1 + 4 + 0.5 + 1 + 2) / 6),
    "standard_cauchy": ((), None, None),
}


@pytest.mark.parametrize("law", MOMENTS)
def test_a_law_has_its_moments(law):
    parameters, *moments = MOMENTS[law]
    draws = getattr(NumberedGenerator(3), law)(*parameters, size=COUNT)
    if law == "standard_cauchy":  # of which a quarter is above one
        draws, moments = draws > 1, [0.25, 0.25]
    for power, expected in enumerate(moments, 1):
        values = np.asarray(draws, float) ** power
        assert abs(values.mean() - expected) < 5 * values.std() / math.sqrt(COUNT)


@pytest.mark.parametrize("law", [law for law in MOMENTS if law != "standard_cauchy"])
def test_one_draw_is_a_number_and_parameters_give_a_shape(law):
    parameters = MOMENTS[law][0]
    assert np.ndim(getattr(NumberedGenerator(3), law)(*parameters)) == 0
    last = np.full(4, parameters[-1])
    assert np.shape(getattr(NumberedGenerator(3), law)(*parameters[:-1], last)) == (4,)
