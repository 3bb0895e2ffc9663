"""Cyclical step sizes: the schedule, which draws the runner keeps, and the stages of the samplers.

Oracles: the formula of the schedule by hand; a plain loop over steps; gradient descent.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.samplers.estimators.basic import FromLogDensity
from sgmcmc_verification.samplers.interface.from_step import simple_sampler
from sgmcmc_verification.samplers.overdamped.cyclical_sgld import CyclicalSGLD
from sgmcmc_verification.samplers.runner.run import run
from sgmcmc_verification.samplers.runner.schedules import cyclical
from sgmcmc_verification.samplers.underdamped.cyclical_sghmc import CyclicalSGHMC

EPS = float(np.finfo(np.float64).eps)
KEY = jax.random.key(3)
CURVATURES = np.array([1.0, 2.5])
QUADRATIC = FromLogDensity(lambda x: -0.5 * jnp.sum(jnp.asarray(CURVATURES, x.dtype) * x**2))
START = jnp.array([1.0, -2.0])
CLOCK = simple_sampler(lambda key, x, h, estimator: x + h, needs=())


def test_step_sizes_fall_along_half_a_cosine_and_start_again():
    root = math.sqrt(0.5)
    expected = [2.0, 1 + root, 1.0, 1 - root] * 2
    np.testing.assert_allclose(cyclical(2.0, 4, 0.5)(np.arange(8)), expected, rtol=0, atol=4 * EPS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("length", "exploration"), [(2, 0.5), (7, 0.3), (50, 0.8), (1000, 0.25), (1000, 0.999)])
def test_size_of_a_step_tells_its_stage_also_in_single_precision(length, exploration, dtype):
    schedule, t = cyclical(0.37, length, exploration), np.arange(3 * length)
    phase = [(k % length) / length for k in t]
    np.testing.assert_array_equal(schedule(t).astype(dtype) > schedule.explore_above, np.array(phase) < exploration)
    assert cyclical(0.37, length, 0.0).explore_above == math.inf


@pytest.mark.parametrize(("thin", "burn_in"), [(1, 0), (2, 3)])
def test_runner_keeps_the_draws_of_the_sampling_stage_and_weights_them_by_their_step(thin, burn_in):
    schedule, steps = cyclical(0.5, 6, 0.4), 20
    run_ = lambda **more: run(
        CLOCK, QUADRATIC, KEY, step_size=schedule, num_steps=steps, thin=thin, burn_in=burn_in, position=START, **more
    )
    x, kept, weights = np.array(START), [], []
    for t in range(burn_in + steps):
        h = 0.25 * (1 + math.cos(math.pi * (t % 6) / 6))
        x = x + h
        if t >= burn_in and (t + 1 - burn_in) % thin == 0 and (t % 6) / 6 >= 0.4:
            kept.append(x)
            weights.append(h)
    samples, averaged = run_(), run_(keep="average")
    np.testing.assert_allclose(samples.samples[0], kept, rtol=0, atol=1e2 * EPS)
    np.testing.assert_allclose(samples.weights, weights, rtol=0, atol=4 * EPS)
    expected = np.average(kept, axis=0, weights=weights)
    for result in (samples, averaged):
        np.testing.assert_allclose(result.average[0], expected, rtol=0, atol=1e3 * EPS)


def test_a_run_that_only_explores_is_refused():
    with pytest.raises(ValueError, match="num_steps: the schedule gives no draw a weight"):
        run(CLOCK, QUADRATIC, KEY, step_size=cyclical(0.5, 10, 0.5), num_steps=5, position=START)


@pytest.mark.parametrize("method", [CyclicalSGLD, CyclicalSGHMC])
def test_first_stage_is_descent_without_noise_and_the_second_has_noise(method):
    schedule = cyclical(0.4, 10, 0.5)
    sampler = method(explore_above=schedule.explore_above)
    momentum = np.array([0.3, 0.1])
    size = lambda t: 0.2 * (1 + math.cos(math.pi * t / 10))

    def end(key, steps):
        state = sampler.init(key, START, QUADRATIC)
        if hasattr(state, "momentum"):
            state = state._replace(momentum=jnp.asarray(momentum))
        for t in range(steps):
            state = sampler.step(jax.random.fold_in(key, t), state, size(t), QUADRATIC)
        return np.asarray(state.position)

    x, r = np.array(START), momentum
    for t in range(5):
        h = size(t)
        r = r - h * CURVATURES * x - h * r
        x = x - h * CURVATURES * x if method is CyclicalSGLD else x + h * r
    np.testing.assert_allclose(end(jax.random.key(1), 5), x, rtol=0, atol=1e2 * EPS)
    np.testing.assert_array_equal(end(jax.random.key(1), 5), end(jax.random.key(2), 5))
    assert np.all(end(jax.random.key(1), 7) != end(jax.random.key(2), 7))


def test_momentum_is_new_in_the_first_exploring_step_and_kept_in_the_second():
    sampler = CyclicalSGHMC(explore_above=0.1)
    flat = FromLogDensity(lambda x: 0.0 * jnp.sum(x))
    state = sampler.init(KEY, START, flat)
    sizes = (0.05, 0.2, 0.2)
    ends = []
    for key in (jax.random.key(4), jax.random.key(5)):
        now, momenta = state, []
        for t, h in enumerate(sizes):
            now = sampler.step(jax.random.fold_in(key, t), now, h, flat)
            momenta.append(np.asarray(now.momentum))
        ends.append(momenta)
        # without a potential an exploring step only loses to friction what it is not given anew
        np.testing.assert_allclose(momenta[2], (1 - 0.2) * momenta[1], rtol=8 * EPS, atol=0)
        assert np.all(np.abs(momenta[1] - (1 - 0.2) * momenta[0]) > 1e-6)
    assert np.all(ends[0][1] != ends[1][1])


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((0.0, 4), "a:"), ((1.0, 1), "length:"), ((1.0, 4, 1.0), "exploration:"), ((1.0, 4, 0.8), "exploration:")],
)
def test_schedule_refuses_what_has_no_sampling_stage(arguments, name):
    with pytest.raises(ValueError, match=name):
        cyclical(*arguments)


@pytest.mark.parametrize("method", [CyclicalSGLD, CyclicalSGHMC])
@pytest.mark.parametrize("options", [{"compensate": True}, {"explore_above": 0.0}])
def test_samplers_refuse_options_that_mean_nothing(method, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        method(**options)
