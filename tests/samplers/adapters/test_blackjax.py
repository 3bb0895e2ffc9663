"""The BlackJAX adapters call the library's own step, and its conventions are the ones that they state."""

import math
import sys

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from sgmcmc_verification.samplers.adapters import blackjax as adapters
from sgmcmc_verification.samplers.adapters.registry import ADAPTERS
from sgmcmc_verification.samplers.entry import DETERMINISTIC_TIERS
from sgmcmc_verification.samplers.estimators.basic import Exact, KnownNoise
from sgmcmc_verification.targets.registry import target as find_target
from tests.helpers.closeness import assert_close

TARGET = find_target("gaussian-correlated-2d")
ESTIMATOR = Exact(TARGET)
KEY = jax.random.key(7)
H = 0.1


def log_density(position, minibatch):
    del minibatch
    return -TARGET.potential(position)


gradient = jax.grad(log_density)


def one_step(sampler, position, estimator=ESTIMATOR, key=KEY):
    state = sampler.init(jax.random.key(0), position, estimator)
    return state, sampler.step(key, state, H, estimator)


def library_key(key=KEY):
    """The second key of the split that every adapter makes: the first one is the estimator's."""
    return jax.random.split(key)[1]


def test_sgld_step_is_the_library_step():
    _, after = one_step(adapters.SGLD(temperature=2.0), TARGET.example)
    expected = blackjax.sgld(gradient).step(library_key(), TARGET.example, None, H, 2.0)
    assert np.array_equal(after.position, expected)


def test_sghmc_step_is_the_library_step():
    sampler = adapters.SGHMC(TARGET, num_integration_steps=3, alpha=0.7, beta=0.2, temperature=2.0)
    _, after = one_step(sampler, TARGET.example)
    expected = blackjax.sghmc(gradient, 3, 0.7, 0.2).step(library_key(), TARGET.example, None, H, 2.0)
    assert_close(after.position, expected)


def test_sgnht_step_is_the_library_step():
    sampler = adapters.SGNHT(alpha=0.7, beta=0.2, temperature=2.0, init_xi=0.3)
    state, after = one_step(sampler, TARGET.example)
    expected = blackjax.sgnht(gradient, 0.7, 0.2).step(library_key(), state.inner, None, H, 2.0)
    assert state.inner.xi == 0.3
    assert jax.tree.all(jax.tree.map(np.array_equal, after.inner, expected))


def test_contour_step_is_the_library_step():
    sampler = adapters.ContourSGLD(TARGET, zeta=0.75, num_partitions=6, energy_gap=0.5, step_size_stoch=0.1)
    state, after = one_step(sampler, TARGET.example)
    direct = blackjax.csgld(log_density, gradient, 0.75, 6, 0.5)
    expected = direct.step(library_key(), state.inner, None, H, 0.1, 1.0)
    for mine, theirs in zip(jax.tree.leaves(after.inner), jax.tree.leaves(expected), strict=True):
        assert_close(mine, theirs)


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
def test_svgd_steps_are_the_library_steps(optimizer):
    particles = TARGET.sample(jax.random.key(3), 5)
    sampler = adapters.SVGD(TARGET, optimizer=optimizer)
    _, after = one_step(sampler, particles)
    after = sampler.step(KEY, after, H, ESTIMATOR)
    direct = blackjax.svgd(jax.grad(lambda x: -TARGET.potential(x)), getattr(optax, optimizer)(H))
    expected = direct.step(direct.step(direct.init(particles, {"length_scale": 1.0})))
    assert_close(after.inner.particles, expected.particles)


def test_sgld_drift_and_noise_have_the_stated_step_size():
    T = 2.0
    _, after = one_step(adapters.SGLD(temperature=T), TARGET.example)
    xi = jax.random.normal(library_key(), TARGET.example.shape)
    drift = TARGET.gaussian.precision @ (np.asarray(TARGET.example) - TARGET.gaussian.mean)
    assert_close(after.position, np.asarray(TARGET.example) - H * drift + math.sqrt(2 * T * H) * xi)


def test_sgnht_conventions_are_the_stated_ones():
    T, alpha, beta = 2.0, 0.7, 0.2
    state, after = one_step(adapters.SGNHT(alpha=alpha, beta=beta, temperature=T, init_xi=0.3), TARGET.example)
    x, r, xi = map(np.asarray, state.inner)
    drift = TARGET.gaussian.precision @ (x - TARGET.gaussian.mean)
    noise = math.sqrt(H * T * (2 * alpha - H * T * beta)) * jax.random.normal(library_key(), x.shape)
    new_r = r - H * drift - H * xi * r + noise
    assert_close(after.inner.position, x + H * r)
    assert_close(after.inner.momentum, new_r)
    assert_close(after.inner.xi, xi + H * (new_r @ new_r / 2 - T))


def test_sghmc_conventions_are_the_stated_ones():
    T, alpha, beta, L = 2.0, 0.7, 0.2, 3
    sampler = adapters.SGHMC(TARGET, num_integration_steps=L, alpha=alpha, beta=beta, temperature=T)
    _, after = one_step(sampler, TARGET.example)
    x, r = np.asarray(TARGET.example), np.asarray(jax.random.normal(library_key(), TARGET.example.shape))
    for key in jax.random.split(library_key(), L):
        drift = TARGET.gaussian.precision @ (x - TARGET.gaussian.mean)
        noise = math.sqrt(H * T * (2 * alpha - H * T * beta)) * np.asarray(jax.random.normal(key, x.shape))
        x, r = x + H * r, r - H * drift - H * alpha * r + noise
    assert_close(after.position, x)


def test_svgd_with_sgd_is_the_published_direction():
    particles, scale = np.asarray(TARGET.sample(jax.random.key(3), 5)), 0.8
    _, after = one_step(adapters.SVGD(TARGET, length_scale=scale), jnp.asarray(particles))
    scores = -(particles - TARGET.gaussian.mean) @ TARGET.gaussian.precision
    phi = np.zeros_like(particles)
    for j, x in enumerate(particles):
        for y, score in zip(particles, scores, strict=True):
            k = np.exp(-np.sum((y - x) ** 2) / scale)
            phi[j] += (k * score - 2 / scale * (y - x) * k) / len(particles)
    assert_close(after.inner.particles, particles + H * phi)


@pytest.mark.parametrize(
    "sampler",
    [
        adapters.SGLD(),
        adapters.SGHMC(TARGET, num_integration_steps=3),
        adapters.SGNHT(),
        adapters.ContourSGLD(TARGET),
        adapters.SVGD(TARGET),
    ],
    ids=lambda s: type(s).__name__,
)
def test_gradient_noise_reaches_the_step(sampler):
    position = TARGET.sample(jax.random.key(3), 5) if isinstance(sampler, adapters.SVGD) else TARGET.example
    noisy = KnownNoise(TARGET, np.diag([1.0, 4.0]))
    outcomes = []
    for estimator in (ESTIMATOR, noisy):
        state, after = one_step(sampler, position, estimator)
        outcomes.append(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(sampler.unpack(after))]))
        assert jax.tree.structure(sampler.unpack(state)) == jax.tree.structure(sampler.unpack(after))
    assert not np.allclose(outcomes[0], outcomes[1], rtol=1e-3)


def test_svgd_is_not_shielded_from_what_the_library_writes():
    state, after = one_step(adapters.SVGD(TARGET), TARGET.sample(jax.random.key(3), 5))
    assert state.inner.kernel_parameters is after.inner.kernel_parameters
    fresh = adapters.SVGD(TARGET).init(KEY, TARGET.sample(jax.random.key(3), 5), ESTIMATOR)
    assert fresh.inner.kernel_parameters["length_scale"] == 1.0, "another start must not see it"


@pytest.mark.parametrize("zeta", [0.0, 0.75])
def test_contour_variable_holds_the_energy_law_where_it_counts(zeta):
    sampler = adapters.ContourSGLD(TARGET, zeta=zeta, num_partitions=6, energy_gap=0.5, step_size_stoch=0.1)
    _, after = one_step(sampler, TARGET.example)
    z = sampler.unpack(after)
    again = sampler.pack(KEY, z, ESTIMATOR)
    assert jax.tree.all(jax.tree.map(np.array_equal, sampler.unpack(again), z))
    assert np.array_equal(again.inner.energy_pdf, after.inner.energy_pdf) == (zeta > 0)


def test_sghmc_sees_one_noise_in_all_inner_gradients():
    sampler = adapters.SGHMC(TARGET, num_integration_steps=3)
    noisy = KnownNoise(TARGET, np.eye(2))
    _, clean = one_step(sampler, TARGET.example)
    _, after = one_step(sampler, TARGET.example, noisy)
    gradient_key = jax.random.split(KEY)[0]
    eta = np.asarray(
        noisy.estimate(gradient_key, (), TARGET.example)[0].gradient - jax.grad(TARGET.potential)(TARGET.example)
    )
    # two kicks by -h eta: the first moves theta in the last two position updates, the second in the last one
    shift = -(H**2) * ((1 - 0.01 * H) + 1 + 1) * eta
    assert_close(after.position - clean.position, shift)


def test_every_deterministic_tier_is_run_or_has_a_reason():
    for row in ADAPTERS:
        assert set(row.tiers) | set(row.unsupported) >= set(DETERMINISTIC_TIERS), row.name
        assert not set(row.tiers) & set(row.unsupported), row.name


def test_missing_library_is_one_error_that_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "blackjax", None)
    with pytest.raises(ImportError, match=r"needs blackjax: pip install 'sgmcmc-verification\[blackjax\]'"):
        adapters.SGLD()
