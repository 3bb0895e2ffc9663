"""The experiments with particles: their reference rule, a cell of each method, and the published page."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

from reports.experiments import liu2019_banana as banana
from reports.experiments.cells import PUBLISHED, load


def test_the_rule_of_the_banana_has_its_moments_and_satisfies_integration_by_parts():
    """E y^2 by adaptive quadrature in the plane, E z_i d_j U = delta_ij."""
    nodes, weights = banana.rule()
    slopes = np.asarray(jax.vmap(jax.grad(banana.energy))(jnp.asarray(nodes)))
    np.testing.assert_allclose((weights[:, None] * nodes).T @ slopes, np.eye(2), rtol=0, atol=1e-9)
    energy = lambda x, y: 0.01 * (0.5 * (x * x + y * y) + 0.4 * (25 * x + y * y) ** 2)
    ridge = lambda y: -(y**2) / 25  # x is within 5 of it but for a mass of exp(-60)
    over = lambda f: integrate.dblquad(
        lambda x, y: f(x, y) * np.exp(-energy(x, y)), -30, 30, lambda y: ridge(y) - 5, lambda y: ridge(y) + 6
    )[0]
    expected = over(lambda x, y: y * y) / over(lambda x, y: 1.0)
    assert weights @ nodes[:, 1] ** 2 == pytest.approx(expected, rel=1e-4)  # y beyond 30: exp(-U) < 2e-5 of its peak


@pytest.mark.parametrize("method", ["SGHMC", "pSGHMC-fGH"])
def test_particles_start_where_they_should_and_come_nearer_to_the_law(method):
    shots = banana.moved(banana.Cell(method, (0, 150)))["snapshots"]
    start = np.array(shots[0]["points"])
    assert np.all(np.abs(start.mean(axis=0) - banana.START) < 5 * banana.SPREAD / np.sqrt(banana.PARTICLES))
    assert shots[1]["KSD"] < shots[0]["KSD"]


def test_the_published_page_is_what_its_lines_say():
    lines = load(PUBLISHED / f"{banana.NAME}.jsonl")
    page = (PUBLISHED / f"{banana.NAME}.md").read_text(encoding="utf-8")
    assert "\n".join(banana.text(lines, quick=False)) == page
