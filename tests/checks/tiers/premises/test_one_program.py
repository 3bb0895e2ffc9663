"""What is proved for one and for two coordinates is shown for more by a program that is the same; so it is for data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.tiers.premises.coordinates import equal_coordinates
from sgmcmc_verification.checks.tiers.premises.data import every_datum_enters
from sgmcmc_verification.checks.tiers.proofs.for_every_potential import invariant_law_for_every_potential
from sgmcmc_verification.samplers.simple import simple_sampler
from tests.helpers.strangers import decide, gradient, normal

LINE = "gaussian-1d-scaled"


def thermostatted(step):
    """A sampler of x with a momentum and one thermostat."""
    init = lambda key, x, estimator: {"x": x, "p": normal(key, x), "a": jnp.ones(())}
    return simple_sampler(step, init=init, position=lambda state: state["x"])


def heated(noise=lambda size: 1.0, count=lambda p: p.size, drive=lambda p: jnp.sum(p * p)):
    """SGNHT: what multiplies its noise, the degrees of freedom and twice the kinetic energy."""

    def step(key, s, h, estimator):
        p = s["p"] - h * gradient(estimator, s["x"]) - h * s["a"] * s["p"]
        p = p + jnp.sqrt(2 * h) * noise(p.size) * normal(key, p)
        return {"x": s["x"] + h * p, "p": p, "a": s["a"] + h * (drive(p) / count(p) - 1)}

    return thermostatted(step)


def scaled(draw):
    """SGLD with the noise `draw(key, x)`."""
    step = lambda key, x, h, estimator: x - h * gradient(estimator, x) + jnp.sqrt(2 * h) * draw(key, x)
    return simple_sampler(step)


def tamed(key, x, h, estimator):
    """A step that is not affine on a Gaussian."""
    g = gradient(estimator, x)
    return x - h * g / (1 + h * jnp.sum(g * g)) + jnp.sqrt(2 * h) * normal(key, x)


def met(sampler, statement):
    """Names of the obligations that a pass meets beside those of the statement."""
    found = decide(statement, sampler, LINE)
    assert found.verdict == "pass", found
    return [obligation.name for obligation in found.meets]


@pytest.mark.parametrize(
    "right",
    [
        heated(),
        heated(noise=lambda size: 1.1),
        heated(count=lambda p: 2 * p.size, drive=lambda p: 2 * jnp.sum(p * p)),
        heated(count=lambda p: 1, drive=lambda p: jnp.mean(p * p)),
        simple_sampler(tamed),
        scaled(lambda key, x: jnp.sqrt(12.0) * (jax.random.uniform(key, x.shape) - 0.5)),
        scaled(lambda key, x: normal(key, x) * np.sqrt(x.size) / np.sqrt(x.size)),
    ],
)
def test_a_proved_law_is_that_of_fifty_coordinates_and_of_any_number_of_data(right):
    assert met(right, equal_coordinates) == ["high-dimension"]
    assert met(right, every_datum_enters) == ["data"]


@pytest.mark.parametrize(
    "wrong",
    [
        # right for one and two coordinates, where it is proved
        scaled(lambda key, x: normal(key, x) * (1 + 0.1 * max(x.size - 2, 0))),
        scaled(lambda key, x: normal(key, x) * (1.0 if x.size <= 20 or x.size > 60 else 1.1)),
        scaled(lambda key, x: normal(key, x) * np.sqrt(min(x.size, 2) / max(min(x.size, 2), 1) * max(x.size / 2, 1))),
        heated(drive=lambda p: jnp.sum(p * p) * (1.2 if p.size > 3 else 1.0)),
        heated(count=lambda p: p.size + max(0, p.size - 2) ** 2),
        # wrong for two
        heated(drive=lambda p: 2 * jnp.sum(p * p)),
        heated(count=lambda p: 1),
        # a bend that a proof takes for what it is for small steps
        scaled(lambda key, x: jnp.clip(normal(key, x), -1e3, 1e3)),
    ],
)
def test_what_is_another_program_or_not_proved_is_not(wrong):
    found = decide(equal_coordinates, wrong, LINE)
    assert found.verdict == "fail" or found.meets == ()


def by_number(noise):
    """A function of a Target: SGLD whose noise is multiplied by what its number of data makes."""
    return lambda target: scaled(lambda key, x: normal(key, x) * noise(target.terms.size if target.terms else 3, x))


def without_data(key, x, h, estimator):
    """A test of the change of the potential: nothing is proved of its length, which a coin decides."""
    k_move, k_coin, k_test = jax.random.split(key, 3)
    y = x + jnp.sqrt(2 * h) * jnp.where(jax.random.bernoulli(k_coin), 1.0, 2.0) * normal(k_move, x)
    values = [estimator.estimate(key, (), z)[0].potential for z in (x, y)]
    return jnp.where(jnp.log(jax.random.uniform(k_test)) < values[0] - values[1], y, x)


def test_a_step_that_knows_of_the_potential_alone_has_its_law_with_data_too():
    """Proved or not: data enter by the potential, whatever their number."""
    assert met(simple_sampler(without_data), every_datum_enters) == ["data"]


def test_what_is_done_with_data_alone_is_seen():
    assert decide(every_datum_enters, lambda target: scaled(normal) if target.terms else ANOTHER, LINE).meets == ()


ANOTHER = scaled(lambda key, x: 2.0 * normal(key, x))


@pytest.mark.parametrize(
    "wrong",
    [
        by_number(lambda size, x: 1 + 0.1 * (size > 3)),
        by_number(lambda size, x: np.sqrt(3 / size)),
        by_number(lambda size, x: jnp.full(x.shape, 1 + 0.001 * (size - 3))),
        by_number(lambda size, x: jnp.asarray(1 + 0.001 * (size - 3))),
        by_number(lambda size, x: jnp.exp(x * 0) if size <= 3 else jnp.exp(0.1 + x * 0)),
    ],
)
def test_what_its_number_of_data_changes_is_not_shown_for_any(wrong):
    assert decide(every_datum_enters, wrong, LINE).meets == ()


def by_index(scale, root=jnp.sqrt):
    """A step that is not affine, whose coordinates have factors of their own."""

    def step(key, x, h, estimator):
        factor = jnp.where(jnp.arange(x.size).reshape(x.shape) % 3 == 2, scale, 1.0)
        g = jnp.tanh(h * gradient(estimator, x)) / h
        return x - h * factor * g + jnp.sqrt(2 * h) * root(factor) * normal(key, x)

    return simple_sampler(step)


def swirl(correct):
    """SGLD with a field along the level sets of U in three coordinates, of which one has a divergence."""

    def step(key, x, h, estimator):
        g = gradient(estimator, x)
        if x.ndim == 1 and x.size >= 3:
            # b = a x grad U: div b = -grad U . curl a, and curl (y, z, x) = (-1, -1, -1), curl (x, y, z) = 0
            axis = x[:3] if correct else jnp.roll(x[:3], -1)
            g = g.at[:3].add(0.5 * jnp.cross(axis, g[:3]))
        return x - h * g + jnp.sqrt(2 * h) * normal(key, x)

    return simple_sampler(step)


def test_coordinates_that_are_not_alike_have_their_law_in_fifty_proved():
    assert met(by_index(1.2), equal_coordinates) == ["high-dimension"]
    assert decide(equal_coordinates, by_index(1.2, lambda factor: factor), LINE).verdict == "fail"


def test_another_program_in_fifty_coordinates_is_proved_or_refuted():
    found = {right: decide(invariant_law_for_every_potential, swirl(right), LINE) for right in (True, False)}
    assert (found[True].verdict, found[False].verdict) == ("pass", "fail")
    assert "high-dimension" in [each.name for each in found[True].meets]
    assert "d = 50" in found[False].reason
