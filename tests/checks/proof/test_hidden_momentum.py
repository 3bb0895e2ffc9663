"""States that show no full variable: a proof reads the momentum that is in them, and is none of an open state."""

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.core.lookup import resolve_object
from sgmcmc_verification.checks.proof.of_subject import proofs_of
from sgmcmc_verification.checks.proof.settings import LINE, NOISY, PLANE
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
