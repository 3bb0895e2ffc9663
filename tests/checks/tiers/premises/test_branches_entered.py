"""Branches of a step: what a far side does is compared, what no state reaches is named, and guards that hold pass."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.tiers.premises.branches_entered import _polynomial, branches_entered
from sgmcmc_verification.checks.tracing.branches import branches
from sgmcmc_verification.checks.tracing.noise_tape import Noise, record
from tests.helpers.strangers import MALA, Euler, Underdamped, decide, gradient, normal, potential

PLANE = "gaussian-correlated-2d"
corner = lambda x: (x[0] > 4) & (x[1] > 1)


@dataclass
class Walk:
    """Random walk Metropolis that accepts by `rule(log u, fall of U, x, y)`, of half the size where `small(x)`."""

    rule: Any
    small: Any = lambda x: False

    def step(self, key, x, step_size, estimator):
        a, b = jax.random.split(key)
        y = x + jnp.sqrt(2 * step_size) * jnp.where(self.small(x), 0.5, 1.0) * normal(a, x)
        fall = potential(estimator, x) - potential(estimator, y)
        return jnp.where(self.rule(jnp.log(jax.random.uniform(b)), fall, x, y), y, x)


@dataclass
class Thermostat:
    """SGNHT by Euler, whose noise is multiplied by `scale(xi)`: a polynomial of degree 4."""

    scale: Any

    def init(self, key, position, estimator):
        return {"momentum": jnp.zeros_like(position), "position": position, "xi": jnp.ones(())}

    def step(self, key, state, step_size, estimator):
        x, p, xi, h = state["position"], state["momentum"], state["xi"], step_size
        p = p - h * gradient(estimator, x) - h * xi * p + self.scale(xi) * jnp.sqrt(2 * h) * normal(key, x)
        return {"momentum": p, "position": x + h * p, "xi": xi + h * (jnp.mean(p**2) - 1)}


OTHER_BEYOND = {
    "gradients clipped at 25, before the box ends": Euler(lambda g, h: jnp.clip(g, -25, 25)),
    "positions kept in a box of 6": Euler(end=lambda x: jnp.clip(x, -6, 6)),
    "noise clipped at 4 sigma": Euler(noise=lambda e: jnp.clip(e, -4, 4)),
    "no gradient beyond 50": Euler(lambda g, h: jnp.where(jnp.linalg.norm(g) > 50, 0.0, g)),
    "a corner where positions are rounded": Euler(end=lambda x: jnp.where(corner(x), jnp.round(x), x)),
    "a thermostat without noise in a band": Thermostat(lambda xi: jnp.where((xi > 2.1) & (xi < 2.9), 0.0, 1.0)),
    "a momentum clipped at 5": Underdamped(change=lambda p: jnp.clip(p, -5, 5)),
    "a cond in a corner": Euler(end=lambda x: jax.lax.cond(corner(x), lambda y: 0.9 * y, lambda y: y, x)),
}
FINE = {
    "no branch": Euler(),
    "a walk that never goes into a cell": Walk(lambda log_u, fall, x, y: (log_u < fall) & ~corner(y)),
    "proposals of half the size in a corner, which balance decides on": Walk(
        lambda log_u, fall, x, y: log_u < fall, corner
    ),
    "a thermostat": Thermostat(lambda xi: 1.0),
    "a guard against what is not finite": Euler(end=lambda x: jnp.where(jnp.isfinite(x), x, 0.0)),
    "a drift tamed by h": Euler(lambda g, h: g / jnp.maximum(1.0, h * jnp.linalg.norm(g))),
    "MALA": MALA(),
    "two sides that are the same map": Euler(end=lambda x: jnp.where(x > 4, 1 - (1 - x), x)),
    "a momentum": Underdamped(),
}
UNREACHED = {
    "gradients clipped at 1e6": Euler(lambda g, h: jnp.clip(g, -1e6, 1e6)),
    "gradients clipped at 500": Euler(lambda g, h: jnp.clip(g, -500, 500)),
    "positions kept in a box of 30": Euler(end=lambda x: jnp.clip(x, -30, 30)),
    "no gradient beyond 600": Euler(lambda g, h: jnp.where(jnp.linalg.norm(g) > 600, 0.0, g)),
}


@pytest.mark.parametrize("name", OTHER_BEYOND)
def test_a_side_that_is_another_map_fails_and_its_line_is_named(name):
    finding = decide(branches_entered, OTHER_BEYOND[name], PLANE)
    assert finding.verdict == "fail", finding.reason
    assert "is not the map of the middle" in finding.reason
    assert "test_branches_entered.py:" in finding.reason or "strangers.py:" in finding.reason


@pytest.mark.parametrize("name", FINE)
def test_branches_that_change_nothing_pass(name):
    finding = decide(branches_entered, FINE[name], PLANE)
    assert finding.verdict == "pass", finding.reason


@pytest.mark.parametrize("name", UNREACHED)
def test_a_side_that_nothing_within_reach_enters_is_named_and_does_not_fail(name):
    finding = decide(branches_entered, UNREACHED[name], PLANE)
    assert finding.verdict == "pass", finding.reason
    (named,) = {text.split(" at ")[1] for text in finding.measurements["not entered"]}
    assert "test_branches_entered.py:" in named


def test_a_side_that_is_entered_is_not_named():
    """Both sides of the reflection are taken in the bulk; the clip is taken in the box."""
    assert not decide(branches_entered, Euler(end=lambda x: jnp.abs(x)), "double-well").measurements
    assert not decide(branches_entered, Euler(end=lambda x: jnp.clip(x, -2, 2)), "double-well").measurements


def test_a_rare_corner_of_draws_is_searched_for():
    """Both normals beyond 4: 1e-9 of the mass, and a thousandth of the box of draws."""
    rare = Euler(noise=lambda e: jnp.where(jnp.all(e > 4), 0.0, e))
    finding = decide(branches_entered, rare, PLANE)
    assert finding.verdict == "fail", finding.reason


def test_margins_are_those_of_the_comparisons():
    """max(x, 1 + noise) and x > 2, by hand."""
    program = record(lambda key, x: jnp.where(x > 2.0, x, jnp.maximum(x, 1.0 + jax.random.normal(key))), KEY, 0.0)
    found, margins = branches(program, KEY, 0.0)
    kinds = [branch.kind for branch in found]
    values = dict(
        zip(
            kinds, np.asarray(margins(Noise(jnp.array([0.5]), jnp.zeros(0), jnp.zeros(0, int)), KEY, 0.25)), strict=True
        )
    )
    assert set(kinds) == {"gt", "max", "select_n"}
    np.testing.assert_allclose(values["gt"], [-1.75, -1.75])
    np.testing.assert_allclose(values["max"], [-1.25, -1.25])
    np.testing.assert_allclose(values["select_n"], [-0.5, -0.5])


KEY = jax.random.key(0)


def test_a_host_sampler_is_out_of_reach():
    class Host:
        backend = "host"

        def step(self, rng, x, step_size, estimator):
            return x - step_size * np.asarray(estimator.estimate(rng, (), x)[0].gradient) + rng.normal(size=np.shape(x))

    with pytest.raises(OutOfReach, match="not traced"):
        decide(branches_entered, Host(), PLANE)


def test_a_branch_of_the_target_is_none_of_the_sampler():
    """|x| in the potential of Student's law, minima in the estimator: only the code of the sampler counts."""

    class Plain:
        def step(self, key, x, step_size, estimator):
            return x - step_size * gradient(estimator, x) + jnp.sqrt(2 * step_size) * normal(key, x)

    finding = decide(branches_entered, Plain(), "tiny-gaussian-data")
    assert finding.verdict == "pass"
    assert "0 branches" in finding.reason or "no branch" in finding.reason


def test_a_state_of_many_numbers_is_held_to_no_polynomial_of_them():
    """500 numbers have 3e9 monomials of degree 4: they are counted before they are made."""
    assert _polynomial(lambda z, e: z, np.zeros(500), np.ones(500), 4) is None
