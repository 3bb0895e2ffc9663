"""Proposals and acceptance of Metropolis kernels as h -> 0: what the law does not show.

Oracles: the Langevin equation of a sphere by hand; wrong kernels with the right law.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import cached_target
from sgmcmc_verification.checks.tiers.generator.proposal import acceptance_limit, finite_potential, proposal_generator
from sgmcmc_verification.checks.tiers.law.detailed_balance import detailed_balance
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.samplers.dynamics.embedded import geodesic_overdamped
from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.estimators.altered import Altered
from sgmcmc_verification.samplers.geodesic.gmc import GMC
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, HamiltonianProposal
from sgmcmc_verification.samplers.interface.from_step import simple_sampler
from sgmcmc_verification.samplers.overdamped.mala import MALA
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.samplers.underdamped.hmc import HMC

EPS = float(np.finfo(np.float64).eps)
PROPOSAL, ACCEPTANCE, FINITE, BALANCE = (
    find_statement(name) for name in ("proposal_generator", "acceptance_limit", "finite_potential", "detailed_balance")
)


@dataclass(frozen=True)
class Slow(HMC):
    """Leapfrog with x += 0.9 h r and the energy of the right one: reversible, and its volume is kept."""

    def trajectory(self, key, state, momentum, step_size, estimator):
        # a flow of |r|^2 0.9 / 2 for a time h is one of |r|^2 / 2 for r' = sqrt(0.9) r and h' = sqrt(0.9) h
        scale = jnp.sqrt(0.9)
        shrunk = jax.tree.map(lambda r: scale * r, momentum)
        end, last = super().trajectory(key, state, shrunk, scale * step_size, estimator)
        return end, jax.tree.map(lambda r: r / scale, last)


@dataclass(frozen=True, eq=False)
class Short(GMC):
    """One step less than asked for, but at least one."""

    def trajectory(self, key, state, momentum, step_size, estimator):
        shorter = GMC(self.manifold, max(1, self.num_steps - 1), self.temperature)
        return shorter.trajectory(key, state, momentum, step_size, estimator)


def local(method, base="hmc"):
    row = sampler_row(base)
    return Subject(Row("local", method, step_size=row.step_size, step_power=row.step_power))


SLOW = local(lambda target, **options: Slow(**options))
SHORT = local(lambda target, **options: Short(target.manifold, **options), "gmc")


@pytest.mark.parametrize(
    ("name", "on"),
    [("hmc", "anharmonic"), ("rmhmc", "gaussian-correlated-2d"), ("gmc", "vmf-s2"), ("chmc", "vmf-s1^2")],
)
def test_trajectories_of_the_references_are_of_the_length_that_was_asked_for(name, on):
    for check in (PROPOSAL, ACCEPTANCE):
        result = check(Case(Subject(sampler_row(name)), cached_target(on)), 0)
        assert result.verdict == "pass", result.reason


@pytest.mark.parametrize(("subject", "on"), [(SLOW, "anharmonic"), (SHORT, "vmf-s2")], ids=["0.9 h", "L - 1"])
def test_another_trajectory_with_the_right_law_fails(subject, on):
    result = proposal_generator(Case(subject, cached_target(on)))
    assert result.verdict == "fail", result.reason
    assert "the proposal has" in result.reason


def test_the_law_does_not_show_the_slow_trajectory():
    result = detailed_balance(Case(SLOW, cached_target("anharmonic")))
    assert result.verdict == "pass", result.reason


def test_the_langevin_equation_of_a_sphere_is_that_of_the_textbook():
    """dx = -P grad U dt - (n - 1) T x dt + sqrt(2 T) P dW on the unit sphere of R^n, P = I - x x^T."""
    T, law = 0.7, cached_target("vmf-s2")
    dynamics = geodesic_overdamped(law, T)
    for x in generic_points(step_map(Subject(sampler_row("gmc")), law)):
        P = np.eye(3) - np.outer(x, x)
        gradient = np.asarray(jax.grad(law.flat_potential)(jnp.asarray(x)))
        np.testing.assert_allclose(dynamics.D(jnp.asarray(x)), T * P, rtol=0, atol=16 * EPS)
        scale = 1 + np.abs(gradient).max()
        np.testing.assert_allclose(
            dynamics.drift(jnp.asarray(x)), -P @ gradient - 2 * T * x, rtol=0, atol=64 * EPS * scale
        )


def barker(claims):
    """A random walk that is accepted as by Barker: with probability S / (1 + S), 1/2 as h -> 0."""

    def step(key, x, h, estimator):
        noise_key, accept_key = jax.random.split(key)
        y = x + h * jax.random.normal(noise_key, x.shape)
        energy = [estimator.estimate(key, (), q)[0].potential for q in (x, y)]
        return jnp.where(jax.random.uniform(accept_key) < jax.nn.sigmoid(energy[0] - energy[1]), y, x)

    made = simple_sampler(step, needs=("gradient", "potential"), claims=claims)
    return local(lambda target: made)


def test_barkers_rule_is_not_held_to_a_limit_that_it_does_not_have():
    source = HMC().claims.source
    free = Claims(
        source,
        ExactLaw(),
    )
    with pytest.raises(NotApplicable, match="no dynamics"):
        acceptance_limit(Case(barker(free), cached_target("anharmonic")))
    bound = Claims(
        source,
        ExactLaw(),
        HamiltonianProposal(1, overdamped_dynamics),
    )
    result = acceptance_limit(Case(barker(bound), cached_target("anharmonic")))
    assert result.verdict == "fail"
    assert result.effect == pytest.approx(0.5, abs=1e-6)


def test_what_is_no_metropolis_kernel_is_not_applicable():
    for run in (proposal_generator, acceptance_limit):
        with pytest.raises(NotApplicable, match="claims no ExactLaw"):
            run(Case(Subject(sampler_row("sgld")), cached_target("anharmonic")))


@pytest.mark.parametrize(
    ("name", "on"),
    [("hmc", "anharmonic"), ("mala", "double-well"), ("amagold", "anharmonic"), ("chmc", "vmf-s2")],
)
def test_the_references_stay_where_the_potential_is_finite(name, on):
    result = finite_potential(Case(Subject(sampler_row(name)), cached_target(on)))
    assert result.verdict == "pass", result.reason


@dataclass(frozen=True)
class Careless(MALA):
    """A potential that is not a number is taken for that of the start, as by a clean-up of the estimate."""

    def step(self, key, state, step_size, estimator):
        clean = lambda e, _: e._replace(potential=jnp.where(jnp.isfinite(e.potential), e.potential, state.potential))
        return super().step(key, state, step_size, Altered(estimator, clean))


def test_a_kernel_that_leaves_the_support_fails():
    result = finite_potential(
        Case(local(lambda target, **options: Careless(**options), "mala"), cached_target("anharmonic"))
    )
    assert result.verdict == "fail"
    with pytest.raises(NotApplicable, match="claims no ExactLaw"):
        finite_potential(Case(Subject(sampler_row("sgld")), cached_target("anharmonic")))
