"""Theorem 2: Q from the drift alone where it is unique, and refusal where nothing is stationary."""

import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.tiers.recipe.uniqueness import NotStationary, construct_q, residual_at
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, fokker_planck_residual
from tests.helpers.dynamics_examples import gsgrhmc, sghmc, sgnht

pytestmark = pytest.mark.xdist_group(__name__)  # a fixture of the module is made once

BULK = 1e-5
EXPECTED = {"sghmc": (sghmc(1), lambda t: np.ones_like(t)), "gsgrhmc": (gsgrhmc(1), lambda t: np.sqrt(1 + t**2))}


@pytest.fixture(scope="module", params=EXPECTED)
def built(request):
    dynamics, root = EXPECTED[request.param]
    return construct_q(dynamics.drift, dynamics.D, dynamics.H), root


def test_constructed_q_is_minus_the_root_of_the_metric_where_the_density_exceeds_1e_5(built):
    found, root = built
    bulk = found.density > BULK
    gap = np.abs(found.Q + root(found.axes[0])[:, None])
    assert bulk.sum() > 1000
    assert gap[bulk].max() < 1e-8
    assert np.all(gap[bulk] <= found.error[bulk])


def test_drift_is_recovered_from_the_constructed_q(built):
    found, _ = built
    bulk = found.density > BULK
    # d psi / dx has an error of that of psi times the wave number; the grid has at most 256 / 6 of them a unit.
    assert np.all(found.mismatch[bulk] <= 300 * found.error[bulk])
    assert found.mismatch[bulk].max() < 1e-8


def test_other_drift_with_the_same_law_gives_its_own_q():
    base = sghmc(1)
    fast = Dynamics(base.H, base.D, lambda z: 2.5 * base.Q(z), base.names, base.size)
    found = construct_q(fast.drift, fast.D, fast.H)
    bulk = found.density > BULK
    assert np.abs(found.Q + 2.5)[bulk].max() < 1e-8


@pytest.mark.parametrize("wrong", ["friction", "force"])
def test_drift_that_is_not_stationary_is_refused(wrong):
    base = sghmc(1)
    extra = {"friction": lambda z: jnp.array([0.0, -0.01 * z[1]]), "force": lambda z: jnp.array([0.0, 1e-6])}[wrong]
    with pytest.raises(NotStationary, match="Fokker-Planck"):
        construct_q(lambda z: base.drift(z) + extra(z), base.D, base.H)


def test_potential_that_does_not_grow_has_no_box():
    base = sghmc(1)
    with pytest.raises(ValueError, match="H"):
        construct_q(base.drift, base.D, lambda z: z[1] ** 2)


def test_expanded_residual_equals_the_short_form_for_a_wrong_drift():
    dynamics = sgnht(1)
    wrong = lambda z: dynamics.drift(z) + jnp.sin(z) + 0.3
    points = np.random.default_rng(0).normal(size=(5, 3))
    found = residual_at(wrong, dynamics.D, dynamics.H, points)
    short = [fokker_planck_residual(wrong, dynamics.D, dynamics.H, jnp.asarray(z)) for z in points]
    assert np.all(np.abs(found.value - np.array(short)) <= 256 * 3 * np.finfo(float).eps * found.scale)
    assert np.all(np.abs(found.value) > 1e-3 * found.scale)
