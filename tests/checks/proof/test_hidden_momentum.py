"""States that show no full variable: a proof reads the momentum that is in them, and is none of an open state."""

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.core.lookup import resolve_object
from sgmcmc_verification.checks.proof.of_subject import proofs_of
from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.checks.proof.settings import LINE, NOISY, PLANE
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.simple import simple_sampler


def started(key, position, estimator):
    del estimator
    return {"p": normal_like(key, position), "x": position}


def kick(key, state, size, estimator):
    gradient = estimator.estimate(key, (), state["x"])[0].gradient
    return jax.tree.map(lambda p, g: p - size * g, state["p"], gradient)


def symmetric(key, state, h, estimator, heat=1.0):
    """O(h/2) B(h/2) A(h) B(h/2) O(h/2), friction 1."""
    k = jax.random.split(key, 4)
    a = jnp.exp(-h / 2)
    rub = lambda k, p: jax.tree.map(lambda p, n: a * p + jnp.sqrt(heat * (1 - a * a)) * n, p, normal_like(k, p))
    p = kick(k[1], {**state, "p": rub(k[0], state["p"])}, h / 2, estimator)
    x = jax.tree.map(lambda x, p: x + h * p, state["x"], p)
    return {"p": rub(k[3], kick(k[2], {"x": x, "p": p}, h / 2, estimator)), "x": x}


def no_rub(key, state, h, estimator):
    """A friction without noise."""
    p = jax.tree.map(lambda p: p * (1 - h), kick(key, state, h, estimator))
    x = jax.tree.map(lambda x, p: x + h * p, state["x"], p)
    return {"p": jax.tree.map(lambda p, n: p + jnp.sqrt(h) * n, p, normal_like(jax.random.fold_in(key, 1), p)), "x": x}


def sampler(step):
    return simple_sampler(step, init=started, position=lambda state: state["x"])


def proofs(step):
    (subject, *_) = resolve_object("mine", sampler(step))
    with jax.enable_x64(True):
        return proofs_of(subject)


def test_a_momentum_that_is_not_shown_is_part_of_what_is_read():
    found = proofs(symmetric)
    assert {found[setting.name].verdict for setting in (LINE, PLANE, NOISY)} == {"pass"}


@pytest.mark.parametrize("step", [lambda *a: symmetric(*a, heat=2.0), no_rub])
def test_a_wrong_momentum_that_is_not_shown_passes_nowhere(step):
    assert all(proof.verdict != "pass" for proof in proofs(step).values())


def test_noise_is_asked_of_a_closed_state_alone(monkeypatch):
    """A stand-in that cannot be run leaves the momentum hidden: nothing is proved then, for noisy gradients neither."""
    from sgmcmc_verification.checks.core import third_party

    def refused(*arguments):
        raise ValueError(arguments)

    monkeypatch.setattr(third_party, "whole_state", refused)
    assert all(proof.verdict != "pass" for proof in proofs(symmetric).values())


def leap(key, x, p, size, estimator):
    """One leapfrog step of the position and the momentum, and the change of H."""
    before, after = jax.random.split(key)
    here = estimator.estimate(before, (), x)[0]
    half = jax.tree.map(lambda p, g: p - size / 2 * g, p, here.gradient)
    y = jax.tree.map(lambda x, p: x + size * p, x, half)
    there = estimator.estimate(after, (), y)[0]
    q = jax.tree.map(lambda p, g: p - size / 2 * g, half, there.gradient)
    square = lambda tree: sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree))
    return y, q, there.potential - here.potential, (square(q) - square(p)) / 2


def partly(
    keeps=0.7, noise=None, kinetic=1.0, ends=lambda q: q, stays=jnp.negative, beside=0.0, uniform=lambda u: u, heat=1.0
):
    """A generalised HMC that claims to be exact; the momentum after an accepted and after a rejected proposal."""

    def step(key, state, h, estimator):
        refresh, energies, test = jax.random.split(key, 3)
        fresh = (1 - keeps**2) ** 0.5 if noise is None else noise
        xi = normal_like(refresh, state["p"])
        p = jax.tree.map(lambda p, n: keeps * p + fresh * n, state["p"], xi)
        x = jax.tree.map(lambda x, n: x + beside * h * n, state["x"], xi)
        y, q, potential, change = leap(energies, x, p, jnp.sqrt(2 * h), estimator)
        accept = jnp.log(uniform(jax.random.uniform(test))) < -(potential + kinetic * change) / heat
        choose = lambda a, b: jax.tree.map(lambda a, b: jnp.where(accept, a, b), a, b)
        return {"p": choose(jax.tree.map(ends, q), jax.tree.map(stays, p)), "x": choose(y, x)}

    claims = Claims(Source("", "own"), ExactLaw(temperature=heat))
    needs = ("potential", "gradient")
    return simple_sampler(step, init=started, position=lambda state: state["x"], claims=claims, needs=needs)


def kernel_proof(kernel):
    (subject, *_) = resolve_object("mine", kernel)
    with jax.enable_x64(True):
        return prove(subject.row.build, 1, subject.row.estimator)


@pytest.mark.parametrize(
    "kernel",
    [
        partly(),
        partly(ends=jnp.negative, stays=lambda p: p),
        partly(keeps=-0.4),
        partly(keeps=0.0),
        partly(keeps=0.6, noise=0.8),
        partly(uniform=lambda u: 1 - u),
        partly(keeps=0.6, noise=0.8 * 2, heat=4.0),
    ],
)
def test_a_momentum_that_is_drawn_afresh_in_part_is_taken_for_a_new_one(kernel):
    proof = kernel_proof(kernel)
    assert proof.verdict == "pass", str(proof)


@pytest.mark.parametrize(
    "kernel",
    [
        partly(stays=lambda p: p),  # a momentum that is not turned where it is rejected
        partly(noise=0.9),  # c^2 + s^2 is not 1
        partly(keeps=0.6, noise=0.8, heat=4.0),  # the noise of another temperature
        partly(kinetic=0.5),
        partly(beside=1.0),  # the noise is met beside the momentum that it makes
        partly(keeps=1.0),  # no energy is ever exchanged
        partly(ends=lambda q: 0.9 * q),
        partly(stays=lambda p: -1.1 * p),
    ],
)
def test_a_momentum_that_is_kept_or_turned_wrongly_is_not_proved(kernel):
    proof = kernel_proof(kernel)
    assert proof.verdict != "pass", str(proof)
