"""Wrong samplers as strangers write them get the sentence of their mistake, right ones get none."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.lookup import find_row
from sgmcmc_verification.checks.diagnosis.reading import read, read_order
from sgmcmc_verification.checks.faults.registry import find_defect
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source
from sgmcmc_verification.samplers.simple import simple_sampler

EXACT = Claims(Source("", "none"), ExactLaw())


def gradient(estimator, x):
    return estimator.estimate(jax.random.key(0), (), x)[0].gradient


def potential(estimator, x):
    return estimator.estimate(jax.random.key(0), (), x)[0].potential


def normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def subject(sampler):
    """A sampler of a stranger, as a row under an own name."""
    return Subject(dataclasses.replace(find_row("sgld"), name="mine", build=lambda target: sampler, variants=()))


def langevin(slope=1.0, variance=2.0):
    """x - slope h grad U + N(0, variance h)."""
    return lambda key, x, h, estimator: x - slope * h * gradient(estimator, x) + jnp.sqrt(variance * h) * normal(key, x)


def last(x, factor):
    """1 for all coordinates but the last."""
    return jnp.ones_like(x).at[-1].set(factor)


def quadratic_noise(key, x, h, estimator):
    return x - h * gradient(estimator, x) + 2 * h * normal(key, x)


def root_drift(key, x, h, estimator):
    return x - jnp.sqrt(h) * gradient(estimator, x) + jnp.sqrt(2 * h) * normal(key, x)


def one_draw(key, x, h, estimator):
    return x - h * gradient(estimator, x) + jnp.sqrt(2 * h) * jax.random.normal(key, (), x.dtype)


def half_shared(key, x, h, estimator):
    own, common = jax.random.split(key)
    noise = (normal(own, x) + jax.random.normal(common, (), x.dtype)) / jnp.sqrt(2.0)
    return x - h * gradient(estimator, x) + jnp.sqrt(2 * h) * noise


def quiet_coordinate(key, x, h, estimator):
    noise = normal(key, x).at[-1].set(0.0)
    return x - h * gradient(estimator, x) + jnp.sqrt(2 * h) * noise


def cold_coordinate(key, x, h, estimator):
    noise = normal(key, x) * last(x, 0.5)
    return x - h * gradient(estimator, x) + jnp.sqrt(2 * h) * noise


def uphill_coordinate(key, x, h, estimator):
    g = gradient(estimator, x)
    return x - h * g * last(x, -1.0) + jnp.sqrt(2 * h) * normal(key, x)


def metric(x):
    return 1 + x * x


def with_metric(correction):
    def step(key, x, h, estimator):
        D = metric(x)
        drift = -D * gradient(estimator, x) + correction * 2 * x
        return x + h * drift + jnp.sqrt(2 * h * D) * normal(key, x)

    return step


def start(key, x, estimator):
    return {"momentum": normal(key, x), "position": x}


def underdamped(force=1.0, friction=1.5, noise=3.0, speed=1.0):
    """Symplectic Euler with friction; the noise of the momentum has the variance noise h."""

    def step(key, state, h, estimator):
        x, p = state["position"], state["momentum"]
        p = p - h * force * gradient(estimator, x) - h * friction * p + jnp.sqrt(noise * h) * normal(key, p)
        return {"momentum": p, "position": x + h * speed * p}

    return simple_sampler(step, init=start, unpack=lambda state: state, pack=lambda key, z, estimator: z)


def metropolis(heat=1.0, proposed=1.0, sign=1.0, langevin=True):
    """MALA whose log ratio is heat dU + proposed log q, with sign g in the density; or a walk without a drift."""

    def step(key, x, h, estimator):
        move, decide = jax.random.split(key)
        g = lambda y: gradient(estimator, y) if langevin else jnp.zeros_like(y)
        y = x - h * g(x) + jnp.sqrt(2 * h) * normal(move, x)
        q = lambda a, b: -jnp.sum((b - a + sign * h * g(a)) ** 2) / (4 * h)
        ratio = heat * (potential(estimator, x) - potential(estimator, y)) + proposed * (q(y, x) - q(x, y))
        return jnp.where(jnp.log(jax.random.uniform(decide, (), x.dtype)) < ratio, y, x)

    return simple_sampler(step, claims=EXACT, needs=("potential",))


WRONG = {
    "half the noise": (simple_sampler(langevin(variance=1.0)), r"noise is 1 h for 2 h, 0\.5 times"),
    "half the gradient": (simple_sampler(langevin(slope=0.5)), r"drift is -0\.5 grad U.*temperature of 2 for 1"),
    "the sign of the gradient": (simple_sampler(langevin(slope=-1.0)), r"uphill: the sign of the gradient is wrong"),
    "noise of order h": (simple_sampler(quadratic_noise), r"variance of the noise goes like h\^2"),
    "drift of order sqrt h": (simple_sampler(root_drift), r"mean move of x\[0\] in a step goes like h\^\(1/2\)"),
    "one draw for all": (simple_sampler(one_draw), r"noise has rank 1 in x\[0\] and x\[1\]"),
    "a draw in common": (simple_sampler(half_shared), r"noise of x\[0\] and x\[1\] is correlated"),
    "a coordinate without noise": (simple_sampler(quiet_coordinate), r"no noise is injected into x\[1\]"),
    "a cold coordinate": (simple_sampler(cold_coordinate), r"noise in x\[1\] has the factor 0\.25"),
    "a coordinate uphill": (simple_sampler(uphill_coordinate), r"in x\[1\] the drift goes uphill"),
    "Gamma missing": (simple_sampler(with_metric(0.0)), r"Gamma = div D is missing"),
    "Gamma doubled": (simple_sampler(with_metric(2.0)), r"Gamma = div D has the factor 2"),
    "Gamma with the wrong sign": (simple_sampler(with_metric(-1.0)), r"Gamma = div D has the wrong sign"),
    "friction without noise": (underdamped(noise=0.0), r"no noise reaches the state"),
    "noise for half of the friction": (underdamped(noise=1.5), r"friction of 1\.5 needs 3 h \(0\.5 times\)"),
    "noise without friction": (underdamped(friction=0.0), r"noise of variance 3 h without friction"),
    "half of the force": (underdamped(force=0.5), r"force is -0\.5 grad U.*temperature of 2 for 1"),
    "force and velocity of two signs": (underdamped(speed=-1.0), r"signs differ"),
    "no proposal ratio": (metropolis(proposed=0.0), r"lacks the ratio of proposal densities"),
    "proposal ratio upside down": (metropolis(proposed=-1.0), r"proposal densities has the wrong sign"),
    "sign in the proposal density": (metropolis(sign=-1.0), r"gradient has the wrong sign in the density"),
    "half of the energy": (metropolis(heat=0.5, langevin=False), r"difference of energies has the factor 0\.5"),
    "energy upside down": (metropolis(heat=-1.0, langevin=False), r"difference of energies has the wrong sign"),
}
RIGHT = {
    "langevin": simple_sampler(langevin()),
    "twice as fast": simple_sampler(langevin(2.0, 4.0)),
    "metric with Gamma": simple_sampler(with_metric(1.0)),
    "underdamped": underdamped(),
    "underdamped, fast": underdamped(force=4.0, speed=4.0),
    "mala": metropolis(),
    "walk": metropolis(langevin=False),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistake_of_a_stranger_is_named_with_its_polynomial(name):
    sampler, sentence = WRONG[name]
    found = read(subject(sampler), False)
    assert found is not None
    assert re.search(sentence, found.text), found.text
    assert found.polynomial


@pytest.mark.parametrize("name", RIGHT)
def test_right_sampler_has_no_diagnosis(name):
    assert read(subject(RIGHT[name]), False) is None


def cubic(key, x, h, estimator):
    """A restoring force that nobody asked for."""
    return x - h * (gradient(estimator, x) + x**3) + jnp.sqrt(2 * h) * normal(key, x)


def curved(key, x, h, estimator):
    """Noise and drift that belong to no law."""
    return x - h * jnp.sin(gradient(estimator, x)) + jnp.sqrt(2 * h) * normal(key, x)


@pytest.mark.parametrize("step", [cubic, curved])
def test_cause_outside_of_the_vocabulary_is_not_named(step):
    assert read(subject(simple_sampler(step)), False) is None


PLANTED = {
    "sgld-half-speed": r"the time is not: a step moves 0\.5 h",
    "sgld-minibatch-not-rescaled": r"likelihood has the factor n/N",
    "sgld-minibatch-mean": r"likelihood has the factor 1/N",
    "cv-prior-times-batches": r"prior has the factor N/n",
    "sgld-leaves-share-a-key": r"theta\[0\] and theta\[2\]: they share a draw",
    "sgrld-metric-twice": r"multiplied by D twice",
    "psgld-without-gamma": r"Gamma = div \(D \+ Q\) is missing",
    "psgld-noise-not-preconditioned": r"2 h I, without the metric",
    "sgnht-unit-temperature": r"drift of xi: its constant is halved",
    "sgnht-not-divided-by-dimension": r"drift of xi: term in p\^2 is counted twice",
    "sgnht-printed-hamiltonian": r"dH/dxi has the factor 4",
    "sghmc-noise-times-friction": r"factor 2 \(= friction\)",
    "sgld-noise-of-the-trace": r"no noise is drawn",
    "sgrld-naive": r"Gamma = div \(D \+ Q\) is missing",
    "hmc-without-kinetic-energy": r"lacks the ratio of proposal densities",
    "resgld-sign-of-exchange": r"exchange the factor of the difference of energies is wrong",
    "resgld-hot-chain-has-cold-noise": r"noise in y\[0\] and y\[1\] has the factor",
    "cv-centre-not-scaled": r"stored points do not cancel",
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bug_is_named_against_declared_dynamics(name):
    found = read(find_defect(name).subject, True)
    assert found is not None
    assert re.search(PLANTED[name], found.text), found.text


def test_lost_order_is_said_where_the_law_is_right_in_the_limit():
    found = read_order(find_defect("euler-maruyama-claims-order-two").subject)
    assert found is not None
    assert "of order 1" in found.text
    assert found.polynomial.startswith("c_2 = ")


def test_temperature_is_not_said_where_friction_and_noise_are_both_wrong():
    found = read(find_defect("baoab-full-noise-twice").subject, False)
    assert found is not None
    assert "temperature" not in found.text
