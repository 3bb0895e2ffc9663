"""Coins: uniform draws that are compared with smooth numbers, as the signs of Barker's proposal are.

Oracles: c_1 of a step by hand, from the mean and the variance of an increment; a mean by Gauss-Hermite quadrature.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import expit

from sgmcmc_verification.checks.proof.expansion import expand
from sgmcmc_verification.checks.proof.prove import prove, prove_everywhere
from sgmcmc_verification.checks.proof.settings import of_dimension
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source
from sgmcmc_verification.samplers.interface.from_step import complete
from sgmcmc_verification.samplers.metropolis.barker import SGBD, Barker


class Signed:
    """x + z or x - z for z ~ N(0, 2 h), the sign by a coin: `up(z g, key)` says where it is +."""

    def __init__(self, up):
        self.up = up

    def step(self, key, x, step_size, estimator):
        draw, coin, estimate = jax.random.split(key, 3)
        z = jnp.sqrt(2 * step_size) * jax.random.normal(draw, x.shape, x.dtype)
        g = estimator.estimate(estimate, (), x)[0].gradient
        return x + jnp.where(self.up(z * g, coin), z, -z)


def below(chance):
    """True where a uniform draw is below the chance at z g."""
    return lambda a, key: jax.random.uniform(key, a.shape) < chance(a)


def twice_used(a, key):
    u = jax.random.uniform(key, a.shape)
    return jnp.where(u < expit(-a), u < expit(2 * a), u < expit(-a))


RIGHT = {
    "logistic": below(lambda a: expit(-a)),
    "a quotient": below(lambda a: 1 / (1 + jnp.exp(a))),
    "from above": lambda a, key: jax.random.uniform(key, a.shape) > expit(a),
    "one less the draw": lambda a, key: 1 - jax.random.uniform(key, a.shape) < expit(-a),
    "bernoulli": lambda a, key: jax.random.bernoulli(key, expit(-a)),
    "not": lambda a, key: ~(jax.random.uniform(key, a.shape) < expit(a)),
}
WRONG = {
    "twice the slope": below(lambda a: expit(-2 * a)),
    "the other sign": below(expit),
    "no slope": below(lambda a: expit(0 * a)),
    "an unfair coin": below(lambda a: 0.25 + 0 * a),
    "tanh for the logistic function": below(lambda a: (1 - jnp.tanh(a)) / 2),
}


@pytest.mark.parametrize("name", RIGHT)
def test_barkers_dynamics_are_proved(name):
    found = prove_everywhere(lambda _: complete(Signed(RIGHT[name])))
    assert (found.verdict, found.reason, found.limits) == ("pass", "", ())


@pytest.mark.parametrize("name", WRONG)
def test_a_coin_with_another_chance_is_refuted(name):
    """c_1 = d (m rho) + d^2 (v rho) for the mean m and half the variance v of the increment over h: 0 for m = -U'."""
    found = prove(lambda _: complete(Signed(WRONG[name])), 1)
    assert found.verdict == "fail"
    assert found.reason.startswith("invariant order 1: c_1 is not zero")


def test_a_chance_that_leaves_its_range_holds_for_small_steps_only():
    found = prove(lambda _: complete(Signed(below(lambda a: 0.5 - a / 4))), 1)
    assert found.verdict == "pass"
    assert len(found.limits) == 1
    assert found.limits[0].startswith("0 < ")


@pytest.mark.parametrize(
    "up",
    [
        twice_used,
        lambda a, key: jax.random.uniform(key, a.shape) + 1e-3 * a < jax.random.uniform(key, a.shape) ** 2 + 0.4,
        lambda a, key: (jax.random.uniform(key, a.shape) < expit(-a)) & (jax.random.uniform(key, a.shape) < 0.9),
    ],
    ids=["two chances", "no coin", "a chance and a number"],
)
def test_one_draw_for_two_coins_is_not_read(up):
    assert prove(lambda _: complete(Signed(up)), 1).verdict == "undecided"


class ByValue:
    """The draw that gives the sign is used for its value too."""

    def step(self, key, x, step_size, estimator):
        draw, coin, estimate = jax.random.split(key, 3)
        z = jnp.sqrt(2 * step_size) * jax.random.normal(draw, x.shape, x.dtype)
        u, g = jax.random.uniform(coin, x.shape), estimator.estimate(estimate, (), x)[0].gradient
        return x + jnp.where(u < expit(-z * g), z, -z) + step_size * (u - 0.5)


def test_a_coin_whose_value_is_used_too_is_not_read():
    assert prove(lambda _: complete(ByValue()), 1).verdict == "undecided"


def test_all_that_sgbd_claims_is_proved():
    found = prove_everywhere(lambda _: SGBD(0.7))
    assert found.verdict == "pass", found.reason
    assert {"invariant order 1", "weak order 1", "generator"} <= {result.statement for result in found.results}


class Corrected(Signed):
    """Barker's proposal, accepted with the ratio that `correction` makes of (slopes at x, slopes at y, y - x, draw)."""

    def __init__(self, correction, one_draw=False, up=RIGHT["logistic"], size=lambda n, g: n):
        super().__init__(up)
        self.correction, self.one_draw, self.size = correction, one_draw, size

    claims = Claims(Source("livingstone2022barker", "algorithm 2"), ExactLaw())

    def step(self, key, x, step_size, estimator):
        draw, coin, last, estimate = jax.random.split(key, 4)
        at = lambda y: estimator.estimate(estimate, (), y)[0]
        start = at(x)
        z = jnp.sqrt(2 * step_size) * self.size(jax.random.normal(draw, x.shape, x.dtype), start.gradient)
        y = x + jnp.where(self.up(z * start.gradient, coin), z, -z)
        end = at(y)
        log_ratio = start.potential - end.potential + self.correction(start.gradient, end.gradient, y - x)
        u = jax.random.uniform(coin, x.shape)[0] if self.one_draw else jax.random.uniform(last)
        return jnp.where(u < jnp.exp(jnp.minimum(log_ratio, 0)), y, x)


def densities(g, back, w):
    """log q(y, x) - log q(x, y) of Barker's proposal."""
    return jnp.sum(jnp.logaddexp(0, w * g) - jnp.logaddexp(0, -w * back))


@pytest.mark.parametrize("d", [1, 2])
def test_barkers_proposal_with_its_test_balances(d):
    for sampler in (complete(Corrected(densities)), Barker(0.7)):
        found = prove(lambda _, sampler=sampler: sampler, d)
        assert found.verdict == "pass", found.reason


@pytest.mark.parametrize(
    "sampler",
    [
        Corrected(lambda g, back, w: 0.0),
        Corrected(lambda g, back, w: -densities(g, back, w)),
        Corrected(lambda g, back, w: densities(g, g, w)),
        Corrected(lambda g, back, w: densities(2 * g, 2 * back, w)),
        Corrected(densities, one_draw=True),
    ],
    ids=["no density", "upside down", "one slope", "twice the slopes", "one draw for sign and test"],
)
def test_barkers_proposal_with_another_test_is_not_proved(sampler):
    assert prove(lambda _: complete(sampler), 1).verdict == "undecided"


def uphill(correction, **given):
    """Moves of sizes about 1 or -1, which lead back with the other side of their coin alone."""
    return complete(Corrected(correction, size=lambda n, g: 1 + 0.3 * n, **given))


def one_coin(a, key):
    """The same side for all coordinates."""
    return jax.random.uniform(key) < expit(-jnp.sum(a))


@pytest.mark.parametrize("d", [1, 2])
def test_moves_of_two_sizes_lead_back_with_the_other_sides_of_the_coins(d):
    found = prove(lambda _: uphill(densities), d)
    assert found.verdict == "pass", found.reason


def test_one_coin_for_all_coordinates_is_turned_as_a_whole():
    whole = lambda g, back, w: jnp.logaddexp(0, jnp.sum(w * g)) - jnp.logaddexp(0, -jnp.sum(w * back))
    assert prove(lambda _: uphill(whole, up=one_coin), 2).verdict == "pass"
    assert prove(lambda _: uphill(densities, up=one_coin), 2).verdict != "pass"


@pytest.mark.parametrize(
    "sampler",
    [
        uphill(lambda g, back, w: jnp.sum(w * (g + back)) / 2),
        uphill(lambda g, back, w: densities(g, back, -w)),
        uphill(lambda g, back, w: 0.0),
        uphill(densities, up=below(lambda a: 0.3 + 0 * a)),
        uphill(densities, up=below(lambda a: expit(-2 * a))),
        complete(Corrected(densities, size=lambda n, g: 1 + 0.3 * n + 0.1 * g)),
    ],
    ids=["MALA's", "the other sign", "no ratio", "an unfair coin", "twice the slope", "a size by the slope"],
)
def test_moves_of_two_sizes_with_another_test_or_coin_are_not_proved(sampler):
    assert prove(lambda _: sampler, 1).verdict != "pass"


def test_the_mean_increment_is_the_one_of_quadrature():
    """E z b at s^2 and s^4 with U' = g, from the proof's moments and from quadrature at two small step sizes."""
    target = of_dimension(1).target(False)
    found = expand(complete(Signed(RIGHT["logistic"])), target, Exact(target), 4)
    (region,) = found.regions
    mean = [p.text() for p in region.moments[(1,)]]
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    g, h = 0.8, 1e-3
    z = np.sqrt(2 * h) * nodes
    drift = weights @ (z * np.tanh(-z * g / 2)) / weights.sum()
    assert mean[:4] == ["0", "0", "- U'", "0"]
    assert drift + h * g == pytest.approx(h**2 * g**3 / 2, rel=10 * h)
    assert mean[4] == "1/2 U'^3"
