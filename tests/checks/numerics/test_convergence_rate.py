"""Orders of errors that are powers of h, with a floor, and of some that are none."""

import math

import numpy as np
import pytest

from sgmcmc_verification.checks.numerics.convergence_rate import order_of

FLOOR, EXACT = 1e-3, 1e-4
HS = np.array([0.02, 0.01, 0.005])


def order(error):
    """The order of an error with a floor, which is lost where it is above one."""

    def at(h):
        return error(h) if error(h) < 1 else None

    return order_of(HS, np.array([error(h) for h in HS]), FLOOR, EXACT, at)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 4.0])
def test_the_order_of_a_power_above_a_floor_is_its_exponent(power):
    exponent, doubt = order(lambda h: 0.5 * h**power + EXACT)
    assert abs(exponent - power) < 0.3
    assert doubt < 0.3


def test_errors_of_a_law_that_breaks_down_at_large_steps_have_no_order():
    """A plateau from which they fall to the floor within one doubling."""
    assert order(lambda h: 0.09 if h > 0.1 else 0.1 * h**2) == (math.inf, math.inf)


def test_errors_that_do_not_vanish_have_the_order_zero():
    exponent, doubt = order(lambda h: 0.09 + 0.1 * h)
    assert abs(exponent) < 0.05
    assert doubt < 0.05
