"""What is due from a sampler: the law near a boundary, where the density does not vanish at it."""

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.core import obligations as o
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.runner.check_sampler import check_sampler
from sgmcmc_verification.samplers.interface.claims import Claims, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.from_step import simple_sampler
from tests.helpers.strangers import Kept, gradient, normal


@pytest.mark.parametrize(
    ("name", "reaches"),
    [("gamma", False), ("gamma-sparse", True), ("half-gaussian", True), ("truncated-box", True), ("log-normal", False)],
)
def test_a_density_that_does_not_vanish_at_the_boundary_asks_for_its_law_there(name, reaches):
    """Gamma(a) has the density 0 at 0 for a > 1, and none that is bounded for a < 1."""
    assert (o.BOUNDARY in o.of_target(find_target(name))) is reaches


def folded(turns):
    """Underdamped Langevin on positive numbers, folded at 0, whose momentum is turned there or not."""

    def init(key, position, estimator):
        return Kept(position, normal(key, position))

    def step(key, state, step_size, estimator):
        x, p = state
        c = jnp.exp(-step_size)
        p = c * (p - step_size * gradient(estimator, x, key)) + jnp.sqrt(1 - c**2) * normal(key, x)
        moved = jax.tree.map(lambda x, p: x + step_size * p, x, p)
        turned = jax.tree.map(lambda p, y: jnp.where(y < 0, -p, p), p, moved) if turns else p
        return Kept(jax.tree.map(jnp.abs, moved), turned)

    claims = Claims(Source("", "own"), StationaryLaw(order=1), spaces=("positive",))
    return simple_sampler(step, init=init, claims=claims)


def test_a_momentum_that_keeps_its_sign_at_a_wall_is_seen_though_the_law_away_from_it_is_proved():
    assert check_sampler(folded(turns=True)).conclusion.word == "pass"
    report = check_sampler(folded(turns=False))
    assert report.conclusion.word == "fail", str(report)
    assert any(name.startswith("law_of_runs") for name, _ in report.conclusion.violated)
