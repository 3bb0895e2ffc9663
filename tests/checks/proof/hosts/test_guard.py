"""The stand-in for a potential on which real steps of a host are compared with their record."""

import numpy as np
import pytest

from sgmcmc_verification.checks.proof.hosts.guard import Waves, WavesEstimator
from sgmcmc_verification.targets.euclidean.gaussian import gaussian

X = np.array([0.3, -1.2, 0.8])


def estimated(x):
    waves = Waves.random(3)
    return WavesEstimator(gaussian(np.zeros(3), np.eye(3), "guard"), waves).estimate(None, (), x)[0]


@pytest.mark.parametrize("orders", [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 2), (1, 1, 0), (0, 3, 0), (1, 0, 2)])
def test_derivatives_are_those_of_the_order_below(orders):
    """Central differences, from the potential that a step is given upwards."""
    waves, eps = Waves.random(3), 1e-5
    if not any(orders):
        assert waves.derivative(X, orders) == pytest.approx(estimated(X).potential, rel=1e-14)
        return
    at = int(np.flatnonzero(orders)[0])
    below = [n - (i == at) for i, n in enumerate(orders)]
    shift = eps * np.eye(3)[at]
    slope = (waves.derivative(X + shift, below) - waves.derivative(X - shift, below)) / (2 * eps)
    assert waves.derivative(X, orders) == pytest.approx(slope, abs=1e-8)


def test_the_gradient_is_that_of_the_potential():
    waves = Waves.random(3)
    first = [waves.derivative(X, tuple(np.eye(3, dtype=int)[i])) for i in range(3)]
    assert np.asarray(estimated(X).gradient) == pytest.approx(np.array(first), rel=1e-13)


def test_it_grows_in_every_direction():
    """A slice that is stepped out until it ends ends: waves alone are bounded, and no density."""
    directions = np.random.default_rng(0).standard_normal((20, 3))
    assert all(estimated(30 * u / np.linalg.norm(u)).potential > estimated(X).potential + 40 for u in directions)
