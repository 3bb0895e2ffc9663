"""Pointwise detailed balance decides Metropolis kernels from their code, whatever the form of the acceptance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from checks.core.candidate import Subject
from checks.core.check import Case, Inconclusive, NotApplicable
from checks.tiers.law.detailed_balance import _kernel, detailed_balance
from checks.tracing.step_map import JaxStep, step_map
from samplers.entry import Row
from samplers.interface.from_step import simple_sampler
from samplers.registry import sampler_row
from targets.registry import target

CHECK = detailed_balance
H = 0.25


def local(step):
    return Subject(Row("local", lambda _: simple_sampler(step, needs=("gradient", "potential")), step_size=H))


def langevin(sign=1.0, drift=1.0, barker=False, energy=1.0):
    """MALA; `sign` of the gradient in the density of the proposal, `energy` the weight of U in the ratio."""

    def step(key, x, h, estimator):
        noise_key, accept_key = jax.random.split(key)
        here = estimator.estimate(key, (), x)[0]
        y = x - drift * h * here.gradient + jnp.sqrt(2 * h) * jax.random.normal(noise_key, x.shape)
        there = estimator.estimate(key, (), y)[0]
        log_q = lambda a, g, b: -jnp.sum((b - a + sign * drift * h * g) ** 2) / (4 * h)
        ratio = energy * (here.potential - there.potential) + log_q(y, there.gradient, x) - log_q(x, here.gradient, y)
        probability = jax.nn.sigmoid(ratio) if barker else jnp.exp(jnp.minimum(ratio, 0.0))
        return jnp.where(jax.random.uniform(accept_key) < probability, y, x)

    return local(step)


def hamiltonian(kinetic=1.0):
    """Two leapfrog steps; `kinetic` is the weight of the kinetic energy in the acceptance."""

    def step(key, x, h, estimator):
        momentum_key, accept_key = jax.random.split(key)
        r = start = jax.random.normal(momentum_key, x.shape)
        gradient = lambda q: estimator.estimate(key, (), q)[0].gradient
        potential = lambda q: estimator.estimate(key, (), q)[0].potential
        y = x
        for _ in range(2):
            r = r - 0.5 * h * gradient(y)
            y = y + h * r
            r = r - 0.5 * h * gradient(y)
        ratio = potential(x) - potential(y) + kinetic * 0.5 * (jnp.sum(start**2) - jnp.sum(r**2))
        return jnp.where(jax.random.uniform(accept_key) < jnp.exp(jnp.minimum(ratio, 0.0)), y, x)

    return local(step)


@pytest.mark.parametrize("name", ["hmc", "mala"])
@pytest.mark.parametrize("on", ["anharmonic", "gaussian-correlated-2d"])
def test_the_reference_kernels_balance(name, on):
    result = detailed_balance(Case(Subject(sampler_row(name)), target(on)))
    assert result.verdict == "pass", result.reason


def test_the_reference_kernel_balances_at_another_temperature():
    result = detailed_balance(Case(Subject(sampler_row("mala"), {"temperature": 2.0}), target("anharmonic")))
    assert result.verdict == "pass", result.reason


@pytest.mark.parametrize(
    ("kernel", "on"),
    [
        (langevin(), "anharmonic"),
        (hamiltonian(), "anharmonic"),
        (langevin(barker=True), "anharmonic"),
        # the acceptance corrects any proposal whose density it knows
        (langevin(drift=0.5), "anharmonic"),
        (langevin(drift=0.0), "gaussian-correlated-2d"),
    ],
    ids=["MALA", "HMC", "Barker's acceptance", "half the drift", "random walk"],
)
def test_kernels_that_are_reversible_for_other_reasons_pass(kernel, on):
    result = detailed_balance(Case(kernel, target(on)))
    assert result.verdict == "pass", result.reason


@pytest.mark.parametrize(
    "kernel",
    [
        langevin(sign=-1.0),
        hamiltonian(kinetic=0.0),
        langevin(energy=1.0001),
    ],
    ids=[
        "MALA, gradient flipped in the density of the proposal",
        "HMC, no kinetic energy",
        "energy off by 1e-4",
    ],
)
def test_a_wrong_acceptance_fails(kernel):
    result = detailed_balance(Case(kernel, target("anharmonic")))
    assert result.verdict == "fail", result.reason
    assert "log pi(x) k(x, y)" in result.reason


def test_an_unadjusted_kernel_is_not_applicable():
    with pytest.raises(NotApplicable, match="no single uniform"):
        detailed_balance(Case(Subject(sampler_row("sgld")), target("anharmonic")))


def test_randomness_that_escapes_the_tape_is_inconclusive():
    kernel = local(lambda key, x, h, estimator: x + jax.random.gamma(key, 1.0, x.shape))
    with pytest.raises(Inconclusive, match="random_gamma"):
        detailed_balance(Case(kernel, target("anharmonic")))


def test_density_and_acceptance_of_the_proposal_are_those_of_mala_by_hand():
    """On U = 5 (x - 7/10)^2 / 4: y = x - h U' + sqrt(2 h) xi, density N(y; x - h U', 2 h)."""
    line = target("gaussian-1d-scaled")
    step = step_map(Subject(sampler_row("mala")), line)
    assert isinstance(step, JaxStep)
    h = 0.3
    proposal, log_density, acceptance, invert = _kernel(step, h)
    x, xi = np.array([1.3]), np.array([-1.9])
    U, slope = lambda q: 1.25 * (q - 0.7) ** 2, lambda q: 2.5 * (q - 0.7)
    y = x - h * slope(x) + np.sqrt(2 * h) * xi
    log_q = lambda a, b: -((b - a + h * slope(a)) ** 2) / (4 * h)
    np.testing.assert_allclose(proposal(x, xi), y, rtol=1e-14)
    # up to log sqrt(2 pi), the same on both sides of the balance
    np.testing.assert_allclose(log_density(x, xi), (log_q(x, y) - 0.5 * np.log(2 * h))[0], rtol=1e-13)
    alpha = np.exp(min(0.0, (U(x) - U(y) + log_q(y, x) - log_q(x, y))[0]))
    assert alpha < 1
    np.testing.assert_allclose(acceptance(x, xi), alpha, rtol=1e-13)
    np.testing.assert_allclose(invert(x, y, np.zeros(1)), xi, rtol=1e-12)
