"""The Dirichlet-process mixture: its enumerated posterior against closed forms, samplers against the posterior."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy import integrate, special, stats

from sgmcmc_verification.checks.faults.dp_mixture import OneWeightForBoth, TailKept, UnscaledUsers
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.outcome import bonferroni
from sgmcmc_verification.checks.statistics.proportion import proportion_test
from sgmcmc_verification.checks.tiers.workload.dp import joint_outcomes, partition_test
from sgmcmc_verification.samplers.positive.gamma_updates import (
    CIRUpdate,
    ExactGamma,
    ExpandedMeanUpdate,
    log_gamma_draws,
)
from sgmcmc_verification.samplers.topic_models.dp import slice
from sgmcmc_verification.samplers.topic_models.dp.kernels import log_mixture, reassigned
from sgmcmc_verification.samplers.topic_models.dp.slice import (
    DPSlice,
    StepSizes,
    Users,
    log_predictive,
    log_stick_weights,
    normalised,
)
from sgmcmc_verification.targets.numerics.ragged import sparse_rows
from sgmcmc_verification.targets.topic_models.dp_mixture import (
    DPMixture,
    PartitionPosterior,
    canonical,
    labels_of_sticks,
    set_partitions,
)

LEVEL = 1e-6
INFINITE = 600.0
"""A time after which a CIR process has forgotten its start: e^-600 of it is left."""
TABLE = [[2, 0, 1], [3, 0, 0], [0, 2, 0], [0, 1, 2]]
ROWS = sparse_rows(TABLE)


@cache
def posterior(concentration=None):
    return PartitionPosterior(DPMixture(3, 0.5, concentration), ROWS)


# The oracle --------------------------------------------------------------------------------------------------------


def test_partitions_are_as_many_as_bell_numbers_and_each_is_its_own_canonical_form():
    for n, bell in ((1, 1), (2, 2), (3, 5), (5, 52), (8, 4140)):
        strings = set_partitions(n)
        assert len(strings) == len({tuple(s) for s in strings}) == bell
        np.testing.assert_array_equal(canonical(strings), strings)
    np.testing.assert_array_equal(canonical(np.array([[7, 2, 7, 0, 2]])), [[0, 1, 0, 2, 1]])


def test_evidence_of_a_block_is_its_integral_over_the_prior():
    model, counts = DPMixture(2, 0.7), np.array([3, 1])
    beta = stats.beta(0.7, 0.7)
    value, error = integrate.quad(lambda p: beta.pdf(p) * p**3 * (1 - p), 0, 1)
    assert abs(math.exp(model.log_evidence(counts)) - value) <= error + 1e-12 * value


@pytest.mark.parametrize("concentration", [None, 0.4, 3.0])
def test_two_users_share_a_component_with_the_probability_of_its_closed_form(concentration):
    model, x = DPMixture(3, 0.5, concentration), np.array(TABLE[:2])
    together = math.exp(model.log_evidence(x.sum(axis=0)))
    apart = math.exp(model.log_evidence(x).sum())
    if concentration is None:
        link = integrate.quad(lambda a: math.exp(-a) / (1 + a), 0, np.inf)[0]
        weights = link * together, (1 - link) * apart
    else:
        weights = together / (1 + concentration), apart * concentration / (1 + concentration)
    found = PartitionPosterior(model, sparse_rows(x)).probabilities
    # quad is good to 1e-8 of the integral
    assert found == pytest.approx(np.array(weights) / sum(weights), rel=1e-7)


def test_the_largest_enumeration_sums_to_one_and_has_bell_8_partitions():
    rows = sparse_rows(np.random.default_rng(0).integers(0, 3, (8, 3)))
    p = PartitionPosterior(DPMixture(3, 0.5), rows).probabilities
    assert p.shape == (4140,)
    assert p.sum() == pytest.approx(1, abs=4140 * np.finfo(float).eps)


def log_labels(z, alpha):
    """log p(z | alpha) of labels of sticks: prod_j B(1 + m_j, alpha + M_j) / B(1, alpha)."""
    used = np.bincount(z)
    beyond = len(z) - np.cumsum(used)
    return float(np.sum(special.betaln(1 + used, alpha + beyond) - special.betaln(1, alpha)))


@pytest.mark.parametrize("source", ["partition, then labels of its sticks", "labels of sticks"])
def test_labels_of_sticks_have_their_closed_form(source):
    # without data the posterior is the prior, so that both ways of drawing have the same law
    alpha, n, count = 1.3, 3, 6000
    generator = np.random.default_rng(1)
    if source == "labels of sticks":
        drawn = [labels_of_sticks(generator, n, alpha) for _ in range(count)]
    else:
        nothing = PartitionPosterior(DPMixture(2, 0.5, alpha), sparse_rows(np.zeros((n, 2))))
        drawn = [z for _, z in nothing.draw(generator, count)]
    seen = {z: sum(1 for d in drawn if tuple(d) == z) for z in itertools.product(range(4), repeat=n)}
    outcomes = [
        proportion_test(k, count, math.exp(log_labels(np.array(z), alpha)), name=str(z)) for z, k in seen.items()
    ]
    worst = bonferroni("labels", outcomes)
    assert not worst.rejects(LEVEL), worst


def test_exact_draws_have_the_enumerated_partitions_and_the_mean_of_alpha():
    draws = posterior().draw(np.random.default_rng(2), 8000)
    partitions = canonical(np.array([z for _, z in draws]))
    outcomes = [
        proportion_test(int(np.all(partitions == s, axis=1).sum()), len(draws), float(p))
        for s, p in zip(posterior().strings, posterior().probabilities, strict=True)
    ]
    assert not bonferroni("partitions", outcomes).rejects(LEVEL)
    mean, deviation = posterior().concentration_moments()
    assert not mean_test([a for a, _ in draws], mean, scale=deviation).rejects(LEVEL)


def test_an_exact_binomial_test_has_the_level_that_it_says_and_sees_what_it_says():
    n, p, alpha = 400, 0.3, 1e-3
    law = stats.binom(n, p)
    k = np.arange(n + 1)
    rejected = np.array([proportion_test(int(i), n, p).rejects(alpha) for i in k])
    assert law.pmf(k) @ rejected <= alpha
    other = p + proportion_test(0, n, p).detectable(alpha, 0.99)
    assert stats.binom(n, other).pmf(k) @ rejected >= 0.99
    with pytest.raises(ValueError, match="expected is 1"):
        proportion_test(1, 2, 1.0)
    with pytest.raises(ValueError, match="successes is 3 of 2"):
        proportion_test(3, 2, 0.5)


# Exact samplers ----------------------------------------------------------------------------------------------------


def test_scir_with_all_users_tends_to_the_exact_posterior_as_the_step_size_grows():
    law = posterior(0.8)
    outcomes = partition_test(DPSlice(law.model, CIRUpdate()), law, INFINITE, seed=6, replicates=2000, sweeps=2)
    assert not any(o.rejects(LEVEL) for o in outcomes), outcomes


def test_a_sampler_that_ignores_the_data_fails_gewekes_test_through_the_likelihood():
    class Prior(DPSlice):
        def counts(self, labels, rows, components, scale):
            sticks, totals = super().counts(labels, rows, components, scale)
            return sticks, 0 * totals

    outcomes = joint_outcomes(Prior(DPMixture(3, 0.5)), [3, 2, 1, 3], 1.0, seed=8, replicates=800)
    assert any(o.rejects(LEVEL / len(outcomes)) for o in outcomes)


def test_alpha_given_fixed_sticks_is_its_conjugate_gamma_law():
    sampler, generator = DPSlice(DPMixture(3, 0.5)), np.random.default_rng(9)
    state = sampler.start(generator, 1.0, np.array([0, 1, 4]))
    left = log_stick_weights(state.log_sticks)[1]
    draws = np.array([sampler.concentration(generator, state, left) for _ in range(20_000)])
    v = np.exp(state.log_sticks[:, 0]) / np.exp(state.log_sticks).sum(axis=1)
    # p(alpha | v) ~ e^-alpha prod_j alpha (1 - v_j)^(alpha - 1), by quadrature
    density = lambda a, k=0: a ** (5 + k) * math.exp(-a + (a - 1) * np.log1p(-v).sum())
    norm = integrate.quad(density, 0, np.inf)[0]
    mean = integrate.quad(lambda a: density(a, 1), 0, np.inf)[0] / norm
    square = integrate.quad(lambda a: density(a, 2), 0, np.inf)[0] / norm
    for values, expected in ((draws, mean), (draws**2, square)):
        assert not mean_test(values, expected, scale=expected).rejects(LEVEL)


# Planted bugs ------------------------------------------------------------------------------------------------------


def ends_at_the_last_label(sampler):
    generator = np.random.default_rng(4)
    state, users = sampler.start(generator, 2.0, np.zeros(4, int)), Users(ROWS)
    for _ in range(50):
        state = sampler.step(generator, state, 1.0, users)
        if not len(state.log_sticks) == len(state.log_atoms) == 1 + state.labels.max():
            return False
    return True


def test_components_beyond_the_last_label_are_forgotten_and_a_sampler_that_keeps_them_is_seen():
    assert ends_at_the_last_label(DPSlice(DPMixture(3, 0.5)))
    assert not ends_at_the_last_label(TailKept(DPMixture(3, 0.5)))


def mean_counts(make):
    """Counts of sticks and atoms, averaged over all batches of 2 of 4 users."""
    sampler, labels, users = DPSlice(DPMixture(3, 0.5)), np.array([0, 2, 0, 3]), make(ROWS, 2)
    batches = [np.array(b) for b in itertools.combinations(range(4), 2)]
    found = [sampler.counts(labels[b], ROWS.take(b), 4, users.scale) for b in batches]
    return [np.mean([f[k] for f in found], axis=0) for k in range(2)]


def test_counts_of_batches_are_unbiased_and_unscaled_ones_are_not():
    sticks = [[2, 2], [0, 2], [1, 1], [1, 0]]
    atoms = [[2, 2, 1], [0, 0, 0], [3, 0, 0], [0, 1, 2]]
    for found, expected in zip(mean_counts(Users), (sticks, atoms), strict=True):
        np.testing.assert_allclose(found, expected, rtol=8 * np.finfo(float).eps)
    assert not np.allclose(mean_counts(UnscaledUsers)[0], sticks)


def test_a_batch_holds_distinct_users_each_as_often_as_the_others():
    users, generator, count = Users(sparse_rows(np.eye(5)), 2), np.random.default_rng(10), 4000
    batches = np.sort([users.draw(generator) for _ in range(count)], axis=1)
    outcomes = [
        proportion_test(int(np.all(batches == pair, axis=1).sum()), count, 0.1)
        for pair in itertools.combinations(range(5), 2)
    ]
    assert not bonferroni("pairs", outcomes).rejects(LEVEL)
    np.testing.assert_array_equal(Users(ROWS).draw(generator), np.arange(4))


def drift_outcomes(update):
    """Mean and variance of one step of a row of two, (40, 25), against Euler's method written out."""
    theta, prior, counts, h, size = np.array([40.0, 25.0]), np.array([1.0, 2.5]), np.array([12.0, 30.0]), 1e-3, 100_000
    generator = np.random.default_rng(11)
    new = np.exp(update(generator, np.log(np.tile(theta, (size, 1))), prior, np.tile(counts, (size, 1)), h))
    v = 40 / 65
    # the mirror is 100 standard deviations away
    mean = [40 + h * (1 - 40 + 12 - v * 42), 25 + h * (2.5 - 25 + 30 - (1 - v) * 42)]
    for k in range(2):
        yield mean_test(new[:, k], mean[k])
        yield mean_test((new[:, k] - mean[k]) ** 2, 2 * h * theta[k])


def test_sgrld_sticks_have_the_drift_of_the_two_weights_and_those_of_the_released_program_do_not():
    assert not any(o.rejects(LEVEL) for o in drift_outcomes(ExpandedMeanUpdate()))
    assert any(o.rejects(LEVEL) for o in drift_outcomes(OneWeightForBoth()))


# Pieces ------------------------------------------------------------------------------------------------------------


def test_log_gamma_draws_have_the_law_of_a_gamma_variate_and_stay_finite_where_it_underflows():
    for shape in (0.03, 0.5, 7.0):
        draws = log_gamma_draws(np.random.default_rng(12), np.full(20_000, shape))
        # E log Gamma(a) is the digamma function, its variance the trigamma function
        assert not mean_test(draws, float(special.psi(shape))).rejects(LEVEL)
        assert not mean_test((draws - special.psi(shape)) ** 2, float(special.polygamma(1, shape))).rejects(LEVEL)
    tiny = log_gamma_draws(np.random.default_rng(12), np.full(1000, 1e-4))
    assert np.all(np.isfinite(tiny))
    assert np.mean(np.exp(tiny) == 0) > 0.9


def components(count=6):
    generator = np.random.default_rng(13)
    log_theta = normalised(log_gamma_draws(generator, np.full((count, 3), 0.5)))
    sticks = log_gamma_draws(generator, np.ones((count, 2)))
    return log_theta, sticks


def test_weights_of_sticks_and_what_is_left_sum_to_one():
    log_weights, left = log_stick_weights(components()[1])
    assert math.isclose(np.exp(log_weights).sum() + math.exp(left), 1, rel_tol=64 * np.finfo(float).eps)


def test_the_compiled_likelihood_of_a_mixture_is_that_of_dense_algebra():
    log_theta, sticks = components()
    log_weights = log_stick_weights(sticks)[0]
    expected = special.logsumexp(np.array(TABLE) @ log_theta.T + log_weights, axis=1)
    found = log_mixture(ROWS.starts, ROWS.columns, ROWS.counts, log_theta, log_weights)
    np.testing.assert_allclose(found, expected, rtol=64 * np.finfo(float).eps)
    state = slice.DPState(np.arange(6), sticks, log_theta + 3.0, 1.0)  # atoms need not be normalised
    assert log_predictive(state, ROWS) == pytest.approx(-expected.mean(), rel=64 * np.finfo(float).eps)


def test_compiled_labels_have_the_probabilities_of_the_likelihood_above_the_slice():
    log_theta, sticks = components()
    log_weights = log_stick_weights(sticks)[0]
    slices, count = np.sort(log_weights)[2], 10_000
    grid = (np.arange(count) + 0.5) / count
    for row in TABLE:
        rows = sparse_rows([row] * count)
        found = reassigned(
            rows.starts,
            rows.columns,
            rows.counts,
            log_theta,
            log_weights,
            np.full(count, slices),
            grid,
            np.zeros(count, np.int64),
        )
        scores = np.where(log_weights >= slices, log_theta @ row, -np.inf)
        # inversion on a grid: each probability is met up to one point of the grid at each end
        expected = np.exp(scores - special.logsumexp(scores))
        assert np.abs(np.bincount(found, minlength=6) / count - expected).max() <= 2 / count


def test_a_user_whom_no_component_can_have_made_keeps_its_label():
    log_theta = np.log(np.array([[1.0, 1e-300, 1.0], [0.5, 1e-300, 0.5]]))
    log_theta[:, 1] = -np.inf
    rows = sparse_rows([[0, 2, 0], [1, 0, 0]])
    found = reassigned(
        rows.starts,
        rows.columns,
        rows.counts,
        log_theta,
        np.log([0.5, 0.4]),
        np.full(2, -9.0),
        np.zeros(2),
        np.array([1, 1]),
    )
    np.testing.assert_array_equal(found, [1, 0])


@pytest.mark.parametrize("update", [ExactGamma(), CIRUpdate(), ExpandedMeanUpdate()], ids=lambda u: type(u).__name__)
def test_a_step_leaves_its_arguments_alone_and_repeats_itself_from_the_state_of_its_generator(update):
    sampler, users = DPSlice(DPMixture(3, 0.5), update, 4), Users(ROWS, 2)
    generator = np.random.default_rng(14)
    state = sampler.init(generator, users)
    for _ in range(5):
        before, kept = generator.bit_generator.state, [np.copy(part) for part in state]
        new = sampler.step(generator, state, StepSizes(0.01, 0.02), users)
        again = np.random.default_rng(0)
        again.bit_generator.state = before
        for one, two in zip(new, sampler.step(again, state, StepSizes(0.01, 0.02), users), strict=True):
            np.testing.assert_array_equal(one, two)
        for one, two in zip(kept, state, strict=True):
            np.testing.assert_array_equal(one, two)
        state = new
    assert state.labels.shape == (4,)


def test_users_outside_of_the_batch_keep_their_labels():
    sampler, users = DPSlice(DPMixture(3, 0.5)), Users(sparse_rows(np.tile(TABLE, (50, 1))), 3)
    generator = np.random.default_rng(15)
    state = sampler.init(generator, users)
    for _ in range(20):
        new = sampler.step(generator, state, 1.0, users)
        assert np.count_nonzero(new.labels != state.labels) <= 3
        state = new


# Bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: DPMixture(1), "width"),
        (lambda: DPMixture(3, 0.0), "base"),
        (lambda: DPMixture(3, 0.5, -1.0), "concentration"),
        (lambda: Users(ROWS, 0), "batch_size: must lie between 1 and 4"),
        (lambda: Users(ROWS, 5), "batch_size: must lie between 1 and 4"),
        (lambda: Users(sparse_rows(np.zeros((0, 3)))), "rows: must hold a user"),
        (lambda: DPSlice(DPMixture(4)).init(np.random.default_rng(0), Users(ROWS)), "users: must have 4 columns"),
        (lambda: DPSlice(DPMixture(3), components=0), "components"),
        (lambda: PartitionPosterior(DPMixture(4), ROWS), "rows: 3 categories"),
        (lambda: set_partitions(9), "n: partitions of 1 to 8"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("step_size", [0.0, -1.0, StepSizes(0.1, 0.0)])
def test_a_step_size_that_is_not_positive_is_named(step_size):
    sampler, generator = DPSlice(DPMixture(3)), np.random.default_rng(0)
    state = sampler.start(generator, 1.0, np.zeros(4, int))
    with pytest.raises(ValueError, match="step_size: must be positive"):
        sampler.step(generator, state, step_size, Users(ROWS))


def test_a_chain_that_runs_away_is_stopped_with_a_remedy(monkeypatch):
    monkeypatch.setattr(slice, "MOST", 100)
    sampler, generator = DPSlice(DPMixture(3, 0.5, 500.0)), np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"step_size: more than 100 components .* alpha = 500"):
        sampler.step(generator, sampler.start(generator, 500.0, np.zeros(4, int)), 1.0, Users(ROWS))
