"""The exact discrete law on a manifold, from the transfer operator on polynomials.

Oracles: the closed form of the kinetic energy without a potential; moments of the target; independent chains.
"""

import math
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import NotApplicable, OutOfReach
from sgmcmc_verification.checks.end_points.chains import end_points
from sgmcmc_verification.checks.exact_laws.exact_draws import draw_variables
from sgmcmc_verification.checks.exact_laws.galerkin import (
    polynomials,
    require_moments_of_the_force,
    require_polynomials,
    stationary,
    stationary_laws,
)
from sgmcmc_verification.checks.exact_laws.null_law import null_law
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target

pytestmark = pytest.mark.xdist_group("manifold-law")

H = 0.2
ALPHA = 1e-9


@cache
def on_sphere():
    """The step of all tests here."""
    return step_map(Subject(sampler_row("sggmc")), target("vmf-s2"))


def energies(laws):
    squares = np.sum(laws.basis.nodes[:, 3:] ** 2, axis=1)
    return [float(laws.basis.expectation(row, squares)) / 2 for row in laws.stationary]


def test_without_a_potential_the_kinetic_energy_is_its_closed_form():
    """E |v|^2 / m = C h / sinh(C h): the flow keeps |v|, the two half-dampings and the noise between them set it."""
    step = step_map(Subject(sampler_row("sggmc"), {"friction": 2.0}), target("uniform-s2"))
    laws = stationary_laws(step, H, 0)
    expected = [2.0 * h / math.sinh(2.0 * h) for h in laws.sizes]
    np.testing.assert_allclose(energies(laws), expected, rtol=1e-11)


def test_the_basis_is_orthonormal_under_the_claimed_law_and_has_the_constant():
    basis = polynomials(on_sphere(), 1)
    gram = (basis.values * basis.weights[:, None]).T @ basis.values
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e3 * np.finfo(float).eps * len(gram))
    np.testing.assert_allclose(basis.values @ basis.one, 1.0, rtol=1e-9)


def test_the_stationary_law_tends_to_the_target_at_second_order():
    laws = stationary_laws(on_sphere(), H, 1)
    mu = np.array([2.0, -1.0, 2.0]) / 3
    heights = laws.basis.nodes[:, :3] @ mu
    exact = 1 / math.tanh(3.0) - 1 / 3.0
    bias = [float(laws.basis.expectation(row, heights)) - exact for row in laws.stationary]
    # the series of the bias in h^2 has its second term below the first by a factor h^2 times a few
    ratios = np.array(bias[:-1]) / np.array(bias[1:])
    np.testing.assert_allclose(ratios, 4.0, rtol=4 * H**2)
    assert abs(float(laws.basis.expectation(laws.limit[0], heights)) - exact) < 1e-3 * abs(bias[0])


def test_independent_chains_end_in_it():
    count, steps = 300_000, 20
    starts = draw_variables(on_sphere(), np.random.default_rng(3), count)
    ends = end_points(on_sphere(), starts, H, steps, 4).variable
    laws = stationary_laws(on_sphere(), H, 1)
    law = laws.basis.one @ np.linalg.matrix_power(laws.first, steps)
    for name, f in {"|v|^2": lambda z: np.sum(z[:, 3:] ** 2, axis=1), "x[0] v[1]": lambda z: z[:, 0] * z[:, 4]}.items():
        expected = float(laws.basis.expectation(law, f(laws.basis.nodes)))
        outcome = mean_test(f(ends), expected, name=name, unit="")
        assert outcome.log_p > math.log(ALPHA), name
    # the bias of |v|^2 is large enough to be seen: the claimed law, E |v|^2 = 2, is rejected
    assert mean_test(np.sum(ends[:, 3:] ** 2, axis=1), 2.0, name="", unit="").log_p < math.log(1e-6)


def test_what_is_granted_vanishes_with_the_step_size():
    large, small = (null_law(on_sphere(), h) for h in (H, H / 4))
    assert large.granted == pytest.approx(16 * small.granted, rel=0.2)  # h^2, and 50 steps of each
    assert large.limit <= large.error
    assert small.limit <= small.error


def test_flat_and_bounded_spaces_are_left_to_other_checks():
    with pytest.raises(NotApplicable, match="curved"):
        require_polynomials(step_map(Subject(sampler_row("sgld")), target("double-well")))


def test_a_force_without_a_fourth_moment_is_left_to_other_checks():
    """Dirichlet(2, 3.5, 1.5) through the sphere map: at a face E F^4 is the integral of y^(3 - 1 - 4).

    At T = 1/2 the least alpha is 2.5, and it is that of y^(5 - 1 - 4).
    """
    law = target("dirichlet-sphere")
    with pytest.raises(OutOfReach, match="singular"):
        require_moments_of_the_force(law, 1.0)
    require_moments_of_the_force(law, 0.5)


def test_an_identity_step_keeps_the_claimed_law():
    laws = stationary_laws(on_sphere(), 1e-9, 0)
    np.testing.assert_allclose(laws.first, np.eye(len(laws.first)), atol=1e-4)
    assert bool(jnp.isfinite(laws.stationary).all())


def test_a_step_that_is_not_finite_at_a_node_is_out_of_reach():
    """A direction that is divided by its length has none at the node 0."""
    with pytest.raises(OutOfReach, match="not finite at a node"):
        stationary(np.array([[1.0, 0.0], [0.0, np.nan]]), np.array([1.0, 0.0]))
