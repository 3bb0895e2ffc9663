"""Hamiltonians that are solved for: samplers with a momentum that declare nothing."""

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.proof.expansion import expand
from sgmcmc_verification.checks.proof.potential import any_target
from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.simple import simple_sampler


def sampler(mass=1.0, noise=1.0, friction=1.5):
    """Symplectic Euler of the underdamped Langevin equation with a mass, in a dictionary whose momentum is first."""

    def init(key, x, estimator):
        return {"momentum": jnp.zeros_like(x), "position": x}

    def step(key, state, h, estimator):
        x, p = state["position"], state["momentum"]
        g = estimator.estimate(jax.random.key(0), (), x)[0].gradient
        xi = jax.random.normal(key, x.shape, x.dtype)
        p = p - h * g - h * friction * p / mass + noise * jnp.sqrt(2 * friction * h) * xi
        return {"momentum": p, "position": x + h * p / mass}

    pack = lambda key, z, estimator: {"momentum": z["momentum"], "position": z["position"]}
    return simple_sampler(
        step, init=init, position=lambda s: s["position"], unpack=lambda s: dict(s), pack=pack, needs=("gradient",)
    )


@pytest.mark.parametrize("mass", [1.0, 2.0, 0.25])
def test_the_mass_is_found(mass):
    target = any_target(1)
    expansion = expand(sampler(mass), target, Exact(target), 3)
    (region,) = expansion.regions
    p, x = expansion.variables  # the momentum sorts first
    H = region.density.hamiltonian
    assert H.derivative(p).derivative(p).rational == pytest.approx(1 / mass)
    assert str(H.derivative(x)).startswith("U'")
    proof = prove(sampler(mass), 2)
    assert proof.verdict == "pass", str(proof)
    assert any(result.statement == "Hamiltonian" and "solved for" in result.reason for result in proof.results)


def test_what_keeps_no_such_law_is_undecided_and_does_not_fail():
    proof = prove(sampler(noise=0.5), 2)
    assert proof.verdict == "undecided"
    assert "none was found" in proof.reason


def started_with(*names):
    """Zeros for a momentum and what else there is, beside the position."""
    return lambda key, x, estimator: {"x": x} | {name: jnp.zeros_like(x) for name in names}


def shown(step, *names):
    """A sampler of x whose z is all of its state."""
    keep = lambda s: {name: s[name] for name in ("x", *names)}
    init = started_with(*names)
    return simple_sampler(
        step, init=init, position=lambda s: s["x"], unpack=keep, pack=lambda k, z, e: keep(z), needs=("gradient",)
    )


def gradient_at(x, estimator):
    return estimator.estimate(jax.random.key(0), (), x)[0].gradient


def third_order(drag=1.0):
    """x' = p, p' = -g + 3 m / 2, m' = -3 p / 2 - 2 m + noise: a momentum that meets the bath through m alone."""

    def step(key, s, h, estimator):
        x, p, m = s["x"], s["p"], s["m"]
        p, m = p + h * (1.5 * m - gradient_at(x, estimator)), m - 1.5 * h * drag * p
        m = m - 2 * h * m + jnp.sqrt(4 * h) * jax.random.normal(key, x.shape, x.dtype)
        return {"x": x + h * p, "p": p, "m": m}

    return shown(step, "p", "m")


def thermostats(inner=2.0, outer=3.0, drive=1.0):
    """A chain of two thermostats, one pair for each coordinate, the first one with a noise of its own."""

    def step(key, s, h, estimator):
        x, p, a, b = s["x"], s["p"], s["a"], s["b"]
        xi = jax.random.normal(key, x.shape, x.dtype)
        p, a, b = (
            p - h * (gradient_at(x, estimator) + a * p) - h * p + jnp.sqrt(2 * h) * xi,
            a + h * ((p * p - drive) / inner - a * b),
            b + h * (inner * a * a - 1) / outer,
        )
        return {"x": x + h * p, "p": p, "a": a, "b": b}

    return shown(step, "p", "a", "b")


def absorbing(mean=1.0, level=1.0):
    """SGNHT of one coordinate each: a thermostat about the friction that its noise asks for."""

    def step(key, s, h, estimator):
        x, p, a = s["x"], s["p"], s["a"]
        xi = jax.random.normal(key, x.shape, x.dtype)
        p = p - h * gradient_at(x, estimator) - h * a * p + jnp.sqrt(2 * mean * h) * xi
        x = x + h * p
        return {"x": x, "p": p, "a": a + h * (p * p - level)}

    return shown(step, "p", "a")


@pytest.mark.parametrize(
    ("right", "stiffness", "pulls"),
    [
        (third_order(), {"p": 1, "m": 1}, {}),
        (thermostats(), {"p": 1, "a": 2, "b": 3}, {}),
        (absorbing(mean=0.5), {"p": 1, "a": 1}, {"a": -0.5}),
    ],
)
def test_the_law_of_what_stands_beside_a_momentum_is_found(right, stiffness, pulls):
    target = any_target(1)
    expansion = expand(right, target, Exact(target), 3)
    (region,) = expansion.regions
    names = sorted({"x", *stiffness})
    H = region.density.hamiltonian
    for name, variable in zip(names, expansion.variables, strict=True):
        if name != "x":
            slope = H.derivative(variable)
            assert slope.derivative(variable).rational == stiffness[name]
            left = slope - expansion.ring.power(variable, 1).scaled(stiffness[name])
            assert left.rational == pulls.get(name, 0)
    proof = prove(right, 2)
    assert proof.verdict == "pass", str(proof)


@pytest.mark.parametrize("wrong", [third_order(drag=-1.0), thermostats(drive=2.0), absorbing(level=2.0)])
def test_what_drives_a_thermostat_wrongly_is_not_proved(wrong):
    assert prove(wrong, 2).verdict == "undecided"
