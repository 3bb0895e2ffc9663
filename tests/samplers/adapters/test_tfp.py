"""The adapters of TensorFlow Probability call the library's own step, and its conventions are the stated ones."""

import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.tracing.noise_tape import Noise, record
from sgmcmc_verification.samplers.adapters import tfp as adapters
from sgmcmc_verification.samplers.adapters.registry import ADAPTERS, UNSUPPORTED
from sgmcmc_verification.samplers.estimators.basic import Exact, KnownNoise
from sgmcmc_verification.samplers.overdamped.mala import MALA
from sgmcmc_verification.samplers.underdamped.hmc import HMC
from sgmcmc_verification.targets.registry import target as find_target
from tests.helpers.closeness import assert_close

TARGET = find_target("gaussian-correlated-2d")
ESTIMATOR = Exact(TARGET)
KEY = jax.random.key(7)
H = 0.1
XI = np.array([0.7, -1.3])


def tape(sampler):
    """(state, (normals, uniforms) -> position after a step of size H), the draws of the step fed from outside."""
    state = sampler.init(jax.random.key(0), TARGET.example, ESTIMATOR)
    program = record(lambda s: sampler.position(sampler.step(KEY, s, H, ESTIMATOR)), state)
    assert program.unintercepted == ()
    run = jax.jit(lambda normal, uniform: program(Noise(normal, uniform, jnp.zeros(0, int)), state))
    return lambda normal, uniform=(): np.asarray(run(jnp.asarray(normal), jnp.asarray(uniform, float)))


def test_langevin_step_is_the_library_step():
    from tensorflow_probability.substrates import jax as tfp

    sampler = adapters.UncalibratedLangevin(TARGET)
    state = sampler.init(KEY, TARGET.example, ESTIMATOR)
    kernel = tfp.mcmc.UncalibratedLangevin(lambda x: -TARGET.potential(x), 2 * H)
    expected, _ = kernel.one_step(
        TARGET.example, kernel.bootstrap_results(TARGET.example), seed=jax.random.split(KEY)[1]
    )
    assert_close(sampler.step(KEY, state, H, ESTIMATOR).position, expected)


@pytest.mark.parametrize("volatility", ["one", "constant", "position"])
def test_langevin_step_size_drift_and_noise_are_the_stated_ones(volatility):
    x = np.asarray(TARGET.example)
    gradient = -TARGET.gaussian.precision @ (x - TARGET.gaussian.mean)
    square = {"one": 1.0, "constant": 0.49, "position": 1 / (1 + x @ x / 4)}[volatility]
    # d / dx_i of 1 / (1 + |x|^2 / 4)
    divergence = -(x / 2) * square**2 if volatility == "position" else 0.0
    expected = x + H * (square * gradient + divergence) + np.sqrt(2 * H * square) * XI
    assert_close(tape(adapters.UncalibratedLangevin(TARGET, volatility))(XI), expected)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (adapters.MALA, MALA()),
        (lambda on: adapters.HMC(on, num_leapfrog_steps=3), HMC(num_steps=3)),
    ],
    ids=["mala", "hmc"],
)
def test_fed_with_the_same_draws_the_kernel_is_the_one_of_this_suite(theirs, ours):
    theirs, ours = tape(theirs(TARGET)), tape(ours)
    start = np.asarray(TARGET.example)
    moved = set()
    for uniform in (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.99, 0.9999):
        for xi in (XI, 3 * XI, -XI):
            end = theirs(xi, [uniform])
            assert_close(end, ours(xi, [uniform]), 1000)
            moved.add(bool(np.any(end != start)))
    assert moved == {True, False}, "both outcomes of the accept step must be met"


def test_uncalibrated_hmc_is_leapfrog():
    x, r = np.asarray(TARGET.example), XI.copy()
    drift = lambda x: -TARGET.gaussian.precision @ (x - TARGET.gaussian.mean)
    for _ in range(3):
        r = r + H / 2 * drift(x)
        x = x + H * r
        r = r + H / 2 * drift(x)
    assert_close(tape(adapters.UncalibratedHMC(TARGET))(XI), x, 1000)


def test_gradient_noise_reaches_the_step_and_is_one_draw_a_trajectory():
    noisy = KnownNoise(TARGET, np.diag([1.0, 4.0]))
    ends = []
    for estimator in (ESTIMATOR, noisy):
        sampler = adapters.UncalibratedHMC(TARGET, num_leapfrog_steps=1)
        state = sampler.init(KEY, TARGET.example, estimator)
        ends.append(np.asarray(sampler.step(KEY, state, H, estimator).position))
    gradient = noisy.estimate(jax.random.split(KEY)[0], (), TARGET.example)[0].gradient
    eta = np.asarray(gradient - jax.grad(TARGET.potential)(TARGET.example))
    assert_close(ends[1] - ends[0], -(H**2) / 2 * eta)


def test_results_of_a_step_hold_the_drift_of_their_own_step_size():
    """Why every step of the adapters starts from fresh results: a kernel of another step size takes over the drift."""
    from tensorflow_probability.substrates import jax as tfp

    log_density = lambda x: -TARGET.potential(x)
    old, new = (tfp.mcmc.UncalibratedLangevin(log_density, s) for s in (1.0, 1e-12))
    stale, _ = new.one_step(TARGET.example, old.bootstrap_results(TARGET.example), seed=KEY)
    fresh, _ = new.one_step(TARGET.example, new.bootstrap_results(TARGET.example), seed=KEY)
    gradient = -np.asarray(jax.grad(TARGET.potential)(TARGET.example))
    assert np.abs(np.asarray(fresh) - TARGET.example).max() < 1e-4
    assert_close(stale - fresh, 0.5 * (1.0 - 1e-12) * gradient)


def test_missing_library_and_bad_options_are_one_error(monkeypatch):
    with pytest.raises(ValueError, match="volatility: unknown"):
        adapters.MALA(TARGET, "two")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="num_leapfrog_steps: must be positive"):
        adapters.HMC(TARGET, num_leapfrog_steps=0)
    monkeypatch.setitem(sys.modules, "tensorflow_probability.substrates.jax", None)
    with pytest.raises(ImportError, match=r"needs tfp-nightly: pip install 'sgmcmc-verification\[tfp\]'"):
        adapters.MALA(TARGET)


def test_unsupported_samplers_have_a_reason_and_no_row():
    rows = {row.name for row in ADAPTERS}
    libraries = {name.partition("/")[0] for name in rows}
    for name, reason in UNSUPPORTED.items():
        assert name not in rows
        assert name.partition("/")[0] in libraries
        assert len(reason) > 20


def _where_in_the_interval(seed):
    """Where a point lies in the interval that five doublings make around it, as a share of its width, (100000,)."""
    of_slices = pytest.importorskip("tensorflow_probability.substrates.jax.mcmc.internal.slice_sampler_utils")
    x = jnp.zeros(100_000)
    nowhere = lambda a: 0 * a  # every end is inside of the slice, so that all doublings are made
    found = of_slices.slice_bounds_by_doubling(x, nowhere, x - 1, 5, jnp.float64(0.1), seed=jax.random.PRNGKey(seed))
    return np.asarray(-found[1] / (found[0] - found[1]))


def test_slices_are_doubled_to_the_left_more_often_and_the_correction_of_one_word_mends_it(monkeypatch):
    """neal2003slice, figure 4: to either side with probability 1/2; `Bernoulli(0.5)` takes 0.5 for a logit."""
    of_slices = pytest.importorskip("tensorflow_probability.substrates.jax.mcmc.internal.slice_sampler_utils")
    halves = lambda share: np.abs(np.mean(share > 0.5) - 0.5) * 2 * np.sqrt(len(share))  # in standard deviations
    installed = _where_in_the_interval(1)
    assert np.mean(installed > 0.5) == pytest.approx(1 / (1 + np.exp(-0.5)), abs=0.01)
    assert halves(installed) > 50
    bernoulli = of_slices.bernoulli_lib.Bernoulli
    corrected = types.SimpleNamespace(Bernoulli=lambda p, dtype: bernoulli(probs=p, dtype=dtype))
    monkeypatch.setattr(of_slices, "bernoulli_lib", corrected)
    assert halves(_where_in_the_interval(1)) < 4
