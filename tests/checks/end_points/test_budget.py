"""The budget: runs end with it, what they have shown by then is judged as a smaller sample, and a line says so."""

import itertools
import sys

import numpy as np
import pytest

from sgmcmc_verification.checks.core.check import Inconclusive
from sgmcmc_verification.checks.end_points import budget as module
from sgmcmc_verification.checks.end_points.budget import budget, is_spent, joined, pieces, share
from sgmcmc_verification.checks.end_points.error_rates import Sensitivity, decide_statistically, not_finite
from sgmcmc_verification.checks.end_points.step_size_limit import outcomes_of


@pytest.fixture
def clock(monkeypatch):
    """CPU time that goes on by 1 s whenever it is read."""
    ticks = itertools.count()
    monkeypatch.setattr(sys.modules[module.__name__].time, "process_time", lambda: float(next(ticks)))


def decided(mean, n=1 << 12, promised=0.1):
    """The finding on values of this mean, made in pieces of 256, where 0 is exact."""

    def run(stage, count):
        rng = np.random.default_rng([7, stage])
        parts = [mean + rng.standard_normal((1, p.stop - p.start, 1)) for p in pieces(count, 256, "values")]
        return outcomes_of(joined(parts), 1, np.zeros(1), ["x"])

    return decide_statistically(
        run, first_n=n, promised=Sensitivity(promised), allowance_source="nothing", reason=lambda o: o.name
    )


def test_all_pieces_are_made_without_a_budget():
    assert [(p.start, p.stop) for p in pieces(10, 4, "")] == [(0, 4), (4, 8), (8, 10)]
    assert not is_spent()


@pytest.mark.usefixtures("clock")
def test_pieces_end_with_the_budget_and_what_follows_makes_none():
    with budget(4):
        assert len(list(pieces(1000, 1, ""))) < 5
        assert list(pieces(1000, 1, "")) == []
        with pytest.raises(Inconclusive, match="budget"):
            joined([])


@pytest.mark.usefixtures("clock")
def test_a_share_is_a_part_of_what_is_left():
    with budget(100):
        with share(10):
            some = len(list(pieces(1000, 1, "")))
        assert 5 <= some <= 10
        assert len(list(pieces(1000, 1, ""))) > 5 * some


@pytest.mark.usefixtures("clock")
def test_each_piece_says_how_far_it_is():
    lines = []
    with budget(None, lines.append):
        list(pieces(10, 4, "runs"))
    assert [line.split(",")[0] for line in lines] == ["runs: 4 of 10", "runs: 8 of 10", "runs: 10 of 10"]


def test_enough_values_pass_and_the_reason_says_nothing_of_a_budget():
    found = decided(0.0, n=1 << 14)
    assert (found.verdict, found.samples, found.explanation) == ("pass", 1 << 14, "x")


@pytest.mark.usefixtures("clock")
def test_a_cut_run_that_sees_too_little_is_undecided_and_says_what_it_saw():
    with budget(6):
        found = decided(0.0)
    assert found.verdict == "inconclusive"
    assert found.samples < 1 << 12
    assert f"could be seen, 0.1 was promised; x (the budget (--budget) ended after {found.samples} of 4096)" in (
        found.explanation
    )


@pytest.mark.usefixtures("clock")
def test_a_cut_run_that_sees_what_is_promised_passes():
    with budget(6):
        found = decided(0.0, promised=0.5)
    assert found.verdict == "pass"
    assert found.minimum_detectable_effect < 0.5


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("mean", [1.0, -1.0])
def test_a_cut_run_that_sees_an_error_fails(mean):
    with budget(6):
        assert decided(mean).verdict == "fail"


@pytest.mark.usefixtures("clock")
def test_a_cut_run_in_doubt_is_undecided():
    """Six standard errors: neither at the level of a rejection, nor what a right sampler shows."""
    with budget(6), pytest.raises(Inconclusive, match=r"budget \(--budget\)"):
        decided(6 / 1024**0.5)


def test_values_that_are_not_finite_fail_whatever_was_promised():
    found = decide_statistically(
        lambda stage, count: [not_finite("averages that are not finite", count, "of a variance")],
        first_n=1 << 10,
        promised=Sensitivity(0.1, primary=lambda outcome: outcome.name == "x"),
        allowance_source="nothing",
        reason=lambda outcome: outcome.name,
    )
    assert (found.verdict, found.explanation) == ("fail", "averages that are not finite")
