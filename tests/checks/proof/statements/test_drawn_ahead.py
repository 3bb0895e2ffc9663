"""Noisy gradients that the next step uses once more: what a proof says of them, beside what they do on a Gaussian."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.lookup import resolve_object
from sgmcmc_verification.checks.proof.of_subject import proofs_of
from sgmcmc_verification.checks.proof.settings import LINE, NOISY
from sgmcmc_verification.samplers.interface.claims import Claims, Source, StationaryLaw
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.samplers.simple import simple_sampler


@pytest.mark.parametrize("name", ["baoab", "aboba", "obabo", "bub", "badodab"])
def test_splittings_that_keep_a_gradient_are_right_under_noise_of_any_variance(name):
    found = proofs_of(Subject(sampler_row(name)))[NOISY.name]
    assert found.verdict == "pass", str(found)


def noise_of(key, like):
    return jax.random.normal(key, like.shape, like.dtype)


def kept(step, start=lambda g, key: g):
    """A sampler on (x, p) that keeps what `start` makes of the gradient at the new position."""

    def of(key, z, estimator):
        first, second = jax.random.split(key)
        x, p = z
        return {"x": x, "p": p, "kept": start(estimator.estimate(first, (), x)[0].gradient, second)}

    return simple_sampler(
        step,
        init=lambda key, x, estimator: of(key, (x, noise_of(key, x)), estimator),
        position=lambda state: state["x"],
        unpack=lambda state: (state["x"], state["p"]),
        pack=of,
        claims=Claims(Source("", "none"), StationaryLaw(order=1)),
    )


def of_noise(sampler):
    (subject, *_) = resolve_object("mine", sampler)
    found = proofs_of(subject)
    return found.get(NOISY.name, found[LINE.name])


def kicks(first, second, keeps=lambda g: g, friction=1.0, heat=1.0):
    """Kicks by the kept gradient and by the new one, with the shares `first` and `second`, and friction and noise."""

    def step(key, state, h, estimator):
        a, b = jax.random.split(key)
        p = state["p"] - first * h * state["kept"]
        x = state["x"] + h / 2 * p
        p = p - friction * h * p + jnp.sqrt(2 * friction * heat * h) * noise_of(a, p)
        x = x + h / 2 * p
        g = estimator.estimate(b, (), x)[0].gradient
        return {"x": x, "p": p - second * h * g, "kept": keeps(g)}

    return kept(step, lambda g, key: keeps(g))


RIGHT = {
    "a half kick on both sides": kicks(0.5, 0.5),
    "unequal kicks": kicks(0.25, 0.75),
    "the kept gradient alone": kicks(1.0, 0.0),
    "more friction": kicks(0.5, 0.5, friction=3.0),
    "half of it is kept": kicks(1.0, 0.5, keeps=lambda g: g / 2),
}
WRONG = {
    "kicks of one and a half": kicks(0.5, 1.0),
    "noise of twice the temperature": kicks(0.5, 0.5, heat=2.0),
    "the kept gradient with the wrong sign": kicks(-0.5, 0.5),
    "the size of the kept gradient": kicks(0.5, 0.5, keeps=jnp.abs),
    "a power of the kept gradient": kicks(0.5, 0.5, keeps=lambda g: g**3),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_ones_of_others_are_proved_under_noise(name):
    found = of_noise(RIGHT[name])
    assert found.verdict == "pass", str(found)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_ones_of_others_are_not(name):
    assert of_noise(WRONG[name]).verdict != "pass"


def with_kept_normal(key, state, h, estimator):
    """Half of the noise is that of the last step: what moves z by s and is used again at s is felt."""
    a, b = jax.random.split(key)
    new = noise_of(a, state["p"])
    g = estimator.estimate(b, (), state["x"])[0].gradient
    p = state["p"] - h * g - h * state["p"] + jnp.sqrt(h / 2) * (new + state["kept"])
    return {"x": state["x"] + h * p, "p": p, "kept": new}


def test_a_normal_that_is_kept_is_felt_with_the_noise_that_it_was():
    sampler = kept(with_kept_normal, lambda g, key: noise_of(key, g))
    assert of_noise(sampler).verdict != "pass"


def _decides(key, state, h, estimator):
    """A clip that the kept gradient decides."""
    a, b = jax.random.split(key)
    size = jnp.where(jnp.sum(state["kept"] ** 2) > 1.0, 0.5, 1.0)
    p = state["p"] - h * size * state["kept"] - h * state["p"] + jnp.sqrt(2 * h) * noise_of(a, state["p"])
    x = state["x"] + h * p
    return {"x": x, "p": p, "kept": estimator.estimate(b, (), x)[0].gradient}


def test_a_branch_on_a_kept_gradient_is_not_proved():
    assert of_noise(kept(_decides)).verdict != "pass"


def _variance_of_baoab(h, variance, curvature=1.0):
    """The variance of x over 1 / k for BAOAB whose gradients have noise, from the law of (x, p, g): linear."""
    c = np.exp(-h)
    half = np.array([[1, 0, 0], [0, 1, -h / 2], [0, 0, 1]])
    drift = np.array([[1, h / 2, 0], [0, 1, 0], [0, 0, 1]])
    rub = np.diag([1, c, 1])
    fresh = np.array([[1, 0, 0], [0, 1, 0], [curvature, 0, 0]])  # the gradient at the new position
    after = half @ fresh @ drift
    step = after @ rub @ drift @ half
    noise = np.sqrt(1 - c**2) * after[:, 1:2], np.sqrt(variance) * half[:, 2:3]
    covariance = solve_discrete_lyapunov(step, sum(n @ n.T for n in noise))
    return covariance[0, 0] * curvature


def test_baoab_with_noisy_gradients_is_of_order_one_on_a_gaussian():
    """The oracle of what is proved: the bias is c h with c from the noise, where without noise there is none."""
    biases = [_variance_of_baoab(h, 4.0) - 1 for h in (0.02, 0.01)]
    assert biases[0] / biases[1] == pytest.approx(2, rel=0.02)
    assert biases[1] > 1e-3
    assert abs(_variance_of_baoab(0.02, 0.0) - 1) < 1e-10
