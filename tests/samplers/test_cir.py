"""The exact CIR transition and its draws. Oracles: scipy's noncentral chi-square, Gamma, Poisson and normal laws."""

import numpy as np
import pytest
from numba import njit
from scipy import special, stats

from sgmcmc_verification.samplers.positive import cir_transition as cir
from sgmcmc_verification.samplers.positive.cir_transition import cir_transition, streams

RATE = 1e-6
COUNT = 200_000


def transition(log_theta, shape, h, count=COUNT, seed=5):
    return cir_transition(np.random.default_rng(seed), np.full(count, log_theta), shape, h)


@pytest.mark.parametrize("h", [0.05, 0.7])
@pytest.mark.parametrize("shape", [0.1, 0.5, 0.8, 1.5, 40.0])
@pytest.mark.parametrize("theta", [0.02, 1.3, 60.0])
def test_the_law_is_the_noncentral_chi_square(theta, shape, h):
    """All branches: counts by products of uniforms and by PTRS, shapes below and above 1, the normal form."""
    law = stats.ncx2(2 * shape, 2 * theta / np.expm1(h))
    draws = np.exp(transition(np.log(theta), shape, h))
    assert stats.kstest(draws / (-np.expm1(-h) / 2), law.cdf).pvalue > RATE


@pytest.mark.parametrize("shape", [0.3, 0.5, 4.0])
@pytest.mark.parametrize(("theta", "h"), [(1e6, 1e-3), (1e6, 1e-6), (1.0, 1e-13), (1e10, 1e-8)])
def test_rates_beyond_the_integers_keep_the_law(theta, h, shape):
    """Rates 1e9, 1e12, 1e13 and 1e18. theta' is normal up to a skewness below 3 / sqrt(2 rate) <= 7e-5, which changes
    a distribution function by less than skewness / 6 phi(0) < 5e-6."""
    change = np.expm1(transition(np.log(theta), shape, h) - np.log(theta))
    mean, variance = -np.expm1(-h) * (shape / theta - 1), 2 * -np.expm1(-h) * np.exp(-h) / theta
    distance = stats.kstest((change - mean) / np.sqrt(variance), "norm").statistic
    assert distance < np.sqrt(np.log(2 / RATE) / (2 * COUNT)) + 5e-6


def test_a_sparse_law_is_left_invariant_where_its_draws_underflow():
    """Gamma(1e-4): 93% of the variates are below 1e-308. P(theta < x) = x^a / Gamma(a + 1) up to a relative x."""
    a, rng = 1e-4, np.random.default_rng(8)
    start = np.log(rng.standard_gamma(a + 1, COUNT)) - rng.standard_exponential(COUNT) / a
    end = cir_transition(rng, start, a, 0.5)
    small = end < -40
    bound = float(np.exp(-40 * a) / special.gamma(a + 1))
    assert stats.binomtest(int(small.sum()), COUNT, bound).pvalue > RATE
    assert stats.kstest(np.exp(a * (end[small] + 40)), "uniform").pvalue > RATE
    assert np.mean(end < -708) > 0.9


def test_zero_is_left_in_one_step_to_a_gamma_law():
    end = np.exp(transition(-np.inf, 2.5, 0.3))
    assert stats.kstest(end / -np.expm1(-0.3), stats.gamma(2.5).cdf).pvalue > RATE


@pytest.mark.parametrize("h", [50.0, 1e4])
def test_a_long_step_ends_in_the_stationary_law(h):
    assert stats.kstest(np.exp(transition(np.log(7.0), 1.7, h)), stats.gamma(1.7).cdf).pvalue > RATE


def test_shapes_are_broadcast_and_samples_depend_on_the_seed_alone():
    rng = lambda: np.random.default_rng(3)
    log_theta = np.log(np.random.default_rng(1).standard_gamma(1.0, (3, 7000)))
    shape = np.array([[0.1], [1.0], [30.0]])
    whole = cir_transition(rng(), log_theta, shape, 0.4)
    assert whole.shape == (3, 7000)
    assert np.array_equal(whole, cir_transition(rng(), log_theta, np.broadcast_to(shape, (3, 7000)), 0.4))
    assert cir_transition(rng(), np.float64(0.0), 1.0, 0.4).shape == ()
    assert not np.array_equal(whole, cir_transition(np.random.default_rng(4), log_theta, shape, 0.4))


def test_threads_change_no_number_and_the_first_number_that_is_refused_is_named(monkeypatch):
    log_theta = np.random.default_rng(0).normal(size=3 * cir.LEAST * cir.BLOCK + 5)
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(cir.config, "NUMBA_NUM_THREADS", threads)
        found.append(cir_transition(np.random.default_rng(1), log_theta, 0.4, 0.1))
    np.testing.assert_array_equal(*found)
    log_theta[[20 * cir.BLOCK, 9 * cir.BLOCK + 3]] = np.inf, np.nan
    with pytest.raises(ValueError, match="nan"):
        cir_transition(np.random.default_rng(1), log_theta, 0.4, 0.1)


def test_the_interpreted_kernel_has_the_law_of_the_compiled_one():
    """One text, run by Python with NumPy's draws and compiled with its own."""
    out = np.empty(20000)
    theta, a, h = 1.3, 0.4, 0.6
    generator = np.random.default_rng(2)
    assert cir._block.py_func(generator, np.full(out.size, theta), np.full(out.size, a), h, out) == -1
    law = stats.ncx2(2 * a, 2 * theta / np.expm1(h))
    assert stats.kstest(np.exp(out) / (-np.expm1(-h) / 2), law.cdf).pvalue > RATE


@pytest.mark.parametrize(
    ("log_theta", "shape", "h", "named"),
    [
        (0.0, 0.0, 0.1, "shape"),
        (0.0, -1.0, 0.1, "shape"),
        (0.0, np.nan, 0.1, "shape"),
        (np.nan, 1.0, 0.1, "theta"),
        (np.inf, 1.0, 0.1, "theta"),
        (0.0, 1.0, 0.0, "step_size"),
        (0.0, 1.0, np.nan, "step_size"),
        (700.0, 1.0, 1e-9, "overflows"),
    ],
)
def test_bad_input_is_named(log_theta, shape, h, named):
    with pytest.raises(ValueError, match=named):
        cir_transition(np.random.default_rng(0), np.array([0.0, log_theta]), shape, h)


@njit
def _draws(which, state, parameter, out):
    for i in range(out.size):
        if which == 0:
            out[i] = cir._normal(state)
        elif which == 1:
            out[i] = cir._gamma(state, parameter)
        elif which == 2:
            out[i] = cir._poisson(state, parameter)
        elif which == 4:
            out[i] = cir._log_gamma(state, parameter)
        else:
            out[i] = cir._exponential(state)


def drawn(which, parameter=1.0, count=1_000_000):
    out = np.empty(count)
    _draws(which, streams(np.random.default_rng(6), 1)[0], parameter, out)
    return out


def test_normal_and_exponential_draws_have_their_laws_in_the_tail_too():
    z = drawn(0)
    assert stats.kstest(z, "norm").pvalue > RATE
    beyond = np.abs(z)[np.abs(z) > cir.TAIL]
    assert stats.binomtest(len(beyond), len(z), 2 * float(stats.norm.sf(cir.TAIL))).pvalue > RATE
    assert stats.kstest(stats.norm.sf(beyond) / stats.norm.sf(cir.TAIL), "uniform").pvalue > RATE
    x, tail = drawn(3), cir.EXPONENTIAL_TAIL
    assert stats.kstest(x, "expon").pvalue > RATE
    assert stats.binomtest(int((x > tail).sum()), len(x), float(np.exp(-tail))).pvalue > RATE
    assert stats.kstest(x[x > tail] - tail, "expon").pvalue > RATE


@pytest.mark.parametrize("shape", [0.5, 0.9, 1.0, 1.0001, 3.3, 1e4])
def test_gamma_draws_have_their_law(shape):
    assert stats.kstest(drawn(1, shape), stats.gamma(shape).cdf).pvalue > RATE


@pytest.mark.parametrize("shape", [1e-4, 0.1, 0.3, 0.499, 0.5, 0.9, 1.0, 3.3])
def test_log_gamma_draws_have_their_law_where_the_variate_underflows_too(shape):
    """The distribution function at x -> 0 is x^a / Gamma(a + 1), up to a relative x."""
    logs = drawn(4, shape)
    below = np.exp(np.minimum(shape * logs, 0)) / special.gamma(shape + 1)
    found = np.where(logs < -40, below, special.gammainc(shape, np.exp(np.maximum(logs, -40))))
    assert stats.kstest(found, "uniform").pvalue > RATE


@pytest.mark.parametrize("rate", [1e-3, 0.8, 9.9, 10.1, 25.0, 3e4])
def test_poisson_draws_have_their_law(rate):
    """The Kolmogorov-Smirnov statistic of a discrete law is smaller than of a continuous one: the level is kept."""
    k = drawn(2, rate)
    values, counts = np.unique(k, return_counts=True)
    assert np.array_equal(values, np.floor(values))
    gap = np.abs(np.cumsum(counts) / len(k) - stats.poisson(rate).cdf(values)).max()
    assert gap < np.sqrt(np.log(2 / RATE) / (2 * len(k)))


def test_the_weight_of_a_poisson_count_is_exact_where_the_textbook_form_is_not():
    """Against mpmath, at most sqrt(rate) eps; terms of the size rate log rate would lose all digits at 1e15."""
    import mpmath

    for rate in (12.0, 1e6, 1e15):
        for z in (-5.0, 0.3, 6.0):
            k = float(np.floor(rate + z * np.sqrt(rate)))
            if k < 0:
                continue
            with mpmath.workdps(50):
                exact = float(mpmath.mpf(k) * mpmath.log(rate) - rate - mpmath.loggamma(mpmath.mpf(k) + 1))
            allowed = 20 * np.finfo(float).eps * (np.sqrt(rate) + 20)
            assert abs(cir._log_weight(k, rate) - exact) < allowed
