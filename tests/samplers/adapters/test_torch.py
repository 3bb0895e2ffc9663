"""The adapters of torch libraries: the library's own step with the stated conventions, chains at once as one at a time.

Oracles: formulas written out in NumPy, closed forms, and the library called plainly.
"""

import dataclasses
import math
from importlib.util import find_spec

import jax
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.exact_laws.lyapunov import position_law
from sgmcmc_verification.checks.exact_laws.null_law import null_law
from sgmcmc_verification.checks.tracing.host_branching import ScriptedGenerator, branches
from sgmcmc_verification.checks.tracing.noisy_step import HostNoise
from sgmcmc_verification.checks.tracing.step_map import HostStep, step_map
from sgmcmc_verification.samplers.adapters.torch import devinterp, geoopt, posteriors
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.estimators.basic import KnownNoise
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.targets.registry import target as find_target

# Found, not loaded: that takes seconds, in every worker that collects this file.
for module, command in {
    "torch": "'sgmcmc-verification[torch]'",
    "posteriors": "'sgmcmc-verification[posteriors]'",
    "geoopt": "'sgmcmc-verification[geoopt]'",
    "devinterp": "--no-deps devinterp==2.0.1",
}.items():
    if find_spec(module) is None:
        pytest.skip(f"needs {module}: pip install {command}", allow_module_level=True)

LINE, PLANE = find_target("gaussian-1d-scaled"), find_target("gaussian-correlated-2d")
LAMBDA = float(LINE.gaussian.precision[0, 0])
EPS = np.finfo(float).eps
H, T = 0.03, 0.7
X, R, XI = np.array([0.4, -1.1]), np.array([0.9, 0.2]), 0.35
NORMALS = np.array([0.3, -1.7, 0.8, 1.1, -0.6, 0.2, -0.4, 1.9])


def gradient(x):
    return PLANE.gaussian.precision @ (np.asarray(x) - PLANE.gaussian.mean)


def one_step(sampler, z, normals=NORMALS, estimator=None, h=H):
    """z after one step with given normals, as a flat vector, and how many of them were used."""
    generator = ScriptedGenerator(normals)
    estimator = estimator or HostExact(PLANE)
    state = sampler.step(generator, sampler.pack(generator, z, estimator), h, estimator)
    leaves = jax.tree.leaves(sampler.unpack(state))
    return np.concatenate([np.ravel(leaf) for leaf in leaves]), generator.used


def step_of(sampler, target, points=6):
    """The step as the checks see it, with that many nodes for a draw."""
    step = step_map(Subject(Row("one", lambda _: sampler, estimator=HostExact)), target)
    assert isinstance(step, HostStep)
    return dataclasses.replace(step, points=points)


def assert_close(actual, *expected):
    expected = np.concatenate([np.ravel(e) for e in expected])
    np.testing.assert_allclose(actual, expected, rtol=0, atol=200 * EPS * (1 + np.abs(expected).max()))


# -------------------------------------------------------------------------------------------------------- conventions


def test_posteriors_sgld_is_the_stated_step():
    beta, n = 0.2, NORMALS[:2]
    new, used = one_step(posteriors.SGLD(PLANE, beta=beta, temperature=T), X)
    assert_close(new, X - H * gradient(X) + math.sqrt(T * H * (2 - T * H * beta)) * n)
    assert used == 2


def test_posteriors_sghmc_is_the_stated_step():
    alpha, beta, sigma, n = 0.6, 0.2, 1.3, NORMALS[:2]
    sampler = posteriors.SGHMC(PLANE, alpha=alpha, beta=beta, sigma=sigma, temperature=T)
    new, _ = one_step(sampler, posteriors.PhasePoint(X, R))
    e, m = sigma * H, sigma * R
    m_new = m - e * gradient(X) - e * alpha * m / sigma**2 + math.sqrt(T * e * (2 * alpha - T * e * beta)) * n
    assert_close(new, X + e * m / sigma**2, m_new / sigma)


def test_posteriors_sgnht_is_the_stated_step():
    alpha, beta, sigma, n = 0.6, 0.2, 1.3, NORMALS[:2]
    sampler = posteriors.SGNHT(PLANE, alpha=alpha, beta=beta, sigma=sigma, temperature=T)
    new, _ = one_step(sampler, posteriors.ThermostatPoint(X, R, XI))
    e, m, xi = sigma * H, sigma * R, sigma * XI
    m_new = m - e * gradient(X) - e * xi * m / sigma**2 + math.sqrt(T * e * (2 * alpha - T * e * beta)) * n
    assert_close(new, X + e * m / sigma**2, m_new / sigma, (xi + e * (m @ m / (2 * sigma**2) - T)) / sigma)


def test_posteriors_baoa_is_the_stated_step():
    alpha, sigma, n = 0.6, 1.3, NORMALS[:2]
    new, _ = one_step(posteriors.BAOA(PLANE, alpha=alpha, sigma=sigma, temperature=T), posteriors.PhasePoint(X, R))
    e, gamma = sigma * H, alpha / sigma**2
    m = sigma * R - e * gradient(X)
    x = X + e / 2 * m / sigma**2
    m = math.exp(-gamma * e) * m + sigma * math.sqrt(T * (1 - math.exp(-2 * gamma * e))) * n
    assert_close(new, x + e / 2 * m / sigma**2, m / sigma)


def test_posteriors_sglrw_moves_by_the_stated_coin():
    sampler, step = posteriors.SGLRW(PLANE, temperature=T), math.sqrt(2 * T * H)
    found = step_of(sampler, PLANE).moments(X[None], H)
    assert_close(found.increment[0], -H * gradient(X))
    assert_close(np.diag(found.square[0]), [step**2, step**2])


def test_a_zero_first_thermostat_is_ignored_by_the_library():
    estimator = HostExact(PLANE)
    state = posteriors.SGNHT(PLANE, alpha=0.6, xi=0.0).init(np.random.default_rng(0), X, estimator)
    assert float(state.inner.xi) == 0.6  # `xi or alpha`; see reports/findings


@pytest.mark.parametrize("adapter", [devinterp.SGMCMCSGLD, devinterp.SGLD])
def test_devinterp_sgld_is_the_stated_step(adapter):
    nbeta, sigma, gamma, decay, n = 2.0, 0.8, 5.0, 3.0, NORMALS[:2]
    sampler = adapter(PLANE, nbeta=nbeta, noise_level=sigma, localization=gamma, weight_decay=decay)
    new, used = one_step(sampler, X)
    # the prior's gradient is taken off the loss and put back by the library: what is left is the target's
    assert_close(new, X - H * gradient(X) + math.sqrt(2 * H / nbeta) * sigma * n)
    assert used == 2


def test_devinterp_localisation_adds_the_documented_prior(monkeypatch):
    gamma, decay = 5.0, 3.0
    sampler = devinterp.SGMCMCSGLD(PLANE, localization=gamma, weight_decay=decay)
    monkeypatch.setattr(devinterp.SGMCMCSGLD, "_change", lambda self: None)
    new, _ = one_step(sampler, X)
    centre = np.asarray(PLANE.example)
    expected = X - H * (gradient(X) + gamma * (X - centre) + decay * X) + math.sqrt(2 * H) * NORMALS[:2]
    assert_close(new, expected)


def test_devinterp_sgnht_is_the_stated_step():
    nbeta, A, n = 2.0, 0.6, NORMALS[:2]
    new, _ = one_step(devinterp.SGNHT(PLANE, nbeta=nbeta, diffusion=A), devinterp.ThermostatPoint(X, R, XI))
    lr, v, s = H**2 / nbeta, H * R, H * XI
    v = (1 - s) * (v - lr * nbeta * gradient(X)) + math.sqrt(2 * lr * H * A) * n
    assert_close(new, X + v, v / H, (s + v @ v / 2 - lr) / H)


def test_devinterp_rmsprop_is_the_stated_step():
    nbeta, sigma, alpha, eps, V = 2.0, 0.8, 0.9, 0.3, np.array([0.5, 2.0])
    sampler = devinterp.SGMCMCRMSprop(PLANE, nbeta=nbeta, noise_level=sigma, alpha=alpha, eps=eps)
    new, _ = one_step(sampler, devinterp.RMSpropPoint(X, V))
    V = alpha * V + (1 - alpha) * gradient(X) ** 2
    G, lr = 1 / (np.sqrt(V) + eps), 2 * H / nbeta
    assert_close(new, X - lr / 2 * G * nbeta * gradient(X) + np.sqrt(lr * G) * sigma * NORMALS[:2], V)


def test_devinterp_sgmcmc_sgnht_is_sgld_of_the_wrong_temperature():
    A, nbeta = 0.3, 2.0
    sampler = devinterp.SGMCMCSGNHT(PLANE, nbeta=nbeta, diffusion_factor=A)
    new, used = one_step(sampler, X)
    lr = 2 * H / nbeta
    # two draws: a momentum that nothing uses, then the noise
    assert_close(new, X - lr / 2 * nbeta * gradient(X) + math.sqrt(2 * A * lr) * NORMALS[2:4])
    assert used == 4


def test_geoopt_rsgld_is_the_stated_step():
    new, _ = one_step(geoopt.RSGLD(PLANE), X)
    assert_close(new, X - H * gradient(X) + math.sqrt(2 * H) * NORMALS[:2])


def test_geoopt_sgrhmc_is_the_stated_step():
    alpha, e = 0.3, H**2
    new, used = one_step(geoopt.SGRHMC(PLANE, n_steps=2, alpha=alpha), X)
    x, v = X, e * NORMALS[:2]
    for j in (2, 4, 6):
        x, v = x + v, (1 - alpha) * v - e * gradient(x) + math.sqrt(2 * alpha * e) * NORMALS[j : j + 2]
    assert_close(new, x)
    assert used == 8


def test_geoopt_rhmc_is_the_stated_proposal_and_coin():
    step, h, x0 = step_of(geoopt.RHMC(LINE, n_steps=2), LINE, points=5), 0.3, np.array([0.6])
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    mean = float(LINE.gaussian.mean[0])
    expected = 0.0
    for r0, w in zip(nodes, weights / weights.sum(), strict=True):
        x, r = x0[0], r0
        for _ in range(2):
            r -= h * LAMBDA * (x - mean)
            x += h * r
        r -= h / 2 * LAMBDA * (x - mean)
        before, after = (LAMBDA * (a - mean) ** 2 / 2 + b**2 / 2 for a, b in ((x0[0], r0), (x, r)))
        expected += w * min(1.0, math.exp(before - after)) * (x - x0[0])
    assert_close(step.moments(x0[None], h).increment[0], [expected])


# ------------------------------------------------------------------------------------------------------ laws and chains


@pytest.mark.parametrize(("alpha", "n_steps"), [(0.1, 1), (0.5, 3), (1.0, 2)])
def test_geoopt_sgrhmc_has_the_temperature_of_the_closed_form(alpha, n_steps):
    """As h -> 0 at fixed alpha and n_steps: T = alpha sum a_m^2 / sum a_m, a_m = (1 - (1 - alpha)^m) / alpha."""
    a = (1 - (1 - alpha) ** np.arange(1, n_steps + 1)) / alpha
    step = step_of(geoopt.SGRHMC(LINE, n_steps=n_steps, alpha=alpha), LINE)
    h = 1e-3 / math.sqrt(LAMBDA)
    variance = LAMBDA * position_law(step, h)[1][0, 0]
    # the next term is a few n^2 h^2 lambda / alpha
    assert variance == pytest.approx(alpha * (a @ a) / a.sum(), abs=10 * n_steps**2 * 1e-6 / alpha)


def test_the_null_law_does_not_grant_the_limit_of_a_chain_that_moves_by_h_squared_a_step():
    """With one inner step the variance tends to alpha = 0.1; the largest limit bias is that of y^4, 3 alpha^2 - 3."""
    law = null_law(step_of(geoopt.SGRHMC(LINE, n_steps=1, alpha=0.1), LINE), 0.1 / math.sqrt(LAMBDA))
    assert law.limit == pytest.approx(3 - 3 * 0.1**2, rel=1e-6)


MANY = {
    "posteriors/sgld": lambda: posteriors.SGLD(LINE, beta=0.2, temperature=T),
    "posteriors/sglrw": lambda: posteriors.SGLRW(LINE, temperature=T),
    "posteriors/sghmc": lambda: posteriors.SGHMC(LINE, alpha=1.0, sigma=1.3, temperature=T),
    "posteriors/baoa": lambda: posteriors.BAOA(LINE, alpha=1.0, sigma=1.3, temperature=T),
    "posteriors/sgnht": lambda: posteriors.SGNHT(LINE, alpha=1.0, sigma=1.3, temperature=T),
    "geoopt/rsgld": lambda: geoopt.RSGLD(LINE),
    "geoopt/sgrhmc": lambda: geoopt.SGRHMC(LINE, n_steps=1),
    "devinterp/sgmcmc-sgld": lambda: devinterp.SGMCMCSGLD(LINE, localization=2.0, weight_decay=1.0),
    "devinterp/sgmcmc-rmsprop": lambda: devinterp.SGMCMCRMSprop(LINE),
    "devinterp/sgmcmc-sgnht": lambda: devinterp.SGMCMCSGNHT(LINE),
    "devinterp/sgld": lambda: devinterp.SGLD(LINE),
}


@pytest.mark.parametrize("name", MANY)
def test_chains_at_once_are_independent_and_have_the_law_of_chains_one_at_a_time(name):
    """Exact moments of two chains over all paths of a quadrature, against those of two single ones."""
    sampler, estimator, starts = MANY[name](), HostExact(LINE), np.array([[0.3], [-0.8]])
    steps = 2 if name == "posteriors/sgnht" else 1  # its thermostats show in the second step

    def alone(generator, start):
        state = sampler.init(generator, start, estimator)
        for _ in range(steps):
            state = sampler.step(generator, state, H, estimator)
        return np.ravel(sampler.position(state))[0]

    def both(generator):
        return sampler.chains(generator, starts, H, steps, estimator)[:, 0]

    monomials = lambda x: np.array([x, x**2, x**3])
    single = [sum(w * monomials(x) for w, x in branches(lambda g, s=s: alone(g, s), points=2)) for s in starts]
    pairs = list(branches(both, points=2))
    together = [sum(w * monomials(x[i]) for w, x in pairs) for i in (0, 1)]
    cross = sum(w * x[0] * x[1] for w, x in pairs)
    assert_close(np.concatenate(together), *single)
    assert_close([cross], [single[0][0] * single[1][0]])


@pytest.mark.parametrize("name", ["posteriors/sghmc", "posteriors/baoa", "posteriors/sgnht"])
def test_chains_from_given_variables_have_the_law_of_the_step(name):
    sampler, estimator = MANY[name](), HostExact(LINE)
    step = step_of(sampler, LINE, points=2)
    z = np.array([[0.3, -1.1, 0.4], [-0.8, 0.6, 1.7]])[:, : step.size]
    pairs = list(branches(lambda g: sampler.chain_variables(g, z, H, 1, estimator), points=2))
    expected = step.moments(z, H)
    assert_close(sum(w * ends for w, ends in pairs).ravel(), z + expected.increment)
    moved = [ends - z for _, ends in pairs]
    square = sum(w * np.einsum("pi,pj->pij", m, m) for (w, _), m in zip(pairs, moved, strict=True))
    assert_close(square.ravel(), expected.square)


@pytest.mark.parametrize("name", ["posteriors/sgld", "geoopt/rsgld", "devinterp/sgmcmc-sgld"])
def test_gradient_noise_reaches_the_step_and_differs_between_chains(name):
    """h^2 V = 4 against an injected variance of at most 2 h = 0.06: 400 chains show it beyond doubt."""
    covariance, variances = np.array([[4 / H**2]]), []
    noisy = KnownNoise(LINE, covariance)
    for estimator in (HostExact(LINE), noisy, HostNoise(LINE, covariance)):
        rng = np.random.default_rng(3)
        ends = MANY[name]().chains(rng, np.full((400, 1), 0.3), H, 1, estimator)
        variances.append(ends.var())
        assert len(np.unique(ends)) == 400
    assert variances[0] < 0.12
    assert 2 < variances[1] < 8
    assert 2 < variances[2] < 8
    sampler = MANY[name]()
    state = sampler.init(rng, np.array([0.3]), noisy)
    moves = [np.ravel(sampler.position(sampler.step(rng, state, H, noisy)))[0] for _ in range(20)]
    assert 0.5 < np.var(moves) < 20


def test_an_estimator_of_the_host_that_is_not_exact_serves_no_chains_at_once():
    class Stub:
        backend = "host"

    with pytest.raises(ValueError, match="one chain at a time"):
        MANY["geoopt/rsgld"]().chains(np.random.default_rng(0), np.zeros((2, 1)), H, 1, Stub())


# -------------------------------------------------------------------------------------------------- the plain library


def test_an_in_place_update_of_posteriors_is_the_other_one_but_counts_in_a_shared_default():
    """The counter of a state made afterwards starts where the in-place one stands; see reports/findings."""
    import torch

    sgmcmc = posteriors.library()
    log_posterior = lambda p, batch: (-0.5 * (p**2).sum(), torch.tensor([]))
    transform = sgmcmc.sghmc.build(log_posterior, lr=0.1, alpha=1.0)
    before = int(transform.init(torch.zeros(2)).step)
    ends = []
    for inplace in (False, True):
        torch.manual_seed(0)
        state = transform.init(torch.full((2,), 0.3))
        state, _ = transform.update(state, None, inplace=inplace)
        ends.append((state.params.clone(), state.momenta.clone()))
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))
    assert int(transform.init(torch.zeros(2)).step) == before + 1
