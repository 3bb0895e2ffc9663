"""Coins are known by what they do: right samplers that toss them are not failed, wrong ones do not pass."""

import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.importer import load_object
from sgmcmc_verification.checks.core.third_party import builder
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.runner.fallback import by_sampling
from sgmcmc_verification.reports.pages.strangers import entries
from sgmcmc_verification.samplers.entry import Row

RIGHT = [entry for entry in entries() if entry.kind == "right" and entry.file == "coins.py"]
WRONG = [entry for entry in entries() if entry.kind == "wrong" and entry.file == "c20_coins.py"]
LINE = "anharmonic"
SAMPLED = ("barker", "lazy_lattice", "signed_sghmc", "walk_barker")
BY_SAMPLING = ("barker_half_slope", "centred_coin", "lattice_leans", "walk_half")


def subject(entry) -> Subject:
    build = builder(entry.name, load_object(entry.reference))
    return Subject(Row(entry.name, build, targets=("gaussian-1d-scaled", LINE), step_size=0.05))


@pytest.mark.parametrize("entry", RIGHT, ids=lambda entry: entry.name)
def test_no_statement_about_inputs_keys_or_balance_fails_a_right_sampler(entry):
    mine = subject(entry)
    for seed in (0, 7):
        for name in ("every_input_matters", "key_discipline", "movement"):
            result = execute(find_statement(name), mine, LINE, seed)
            assert result.verdict == "pass", result.reason
    for name in ("detailed_balance", "acceptance_limit", "finite_potential"):
        result = execute(find_statement(name), mine, LINE, 0)
        assert result.verdict in ("pass", "not-applicable", "out-of-reach"), result.reason


# of each kind of coin and of each kind of test one; the page of the strangers has the verdicts on all
@pytest.mark.parametrize("entry", [e for e in RIGHT if e.name in SAMPLED], ids=lambda entry: entry.name)
def test_by_sampling_a_right_sampler_has_the_law(entry):
    result = by_sampling(subject(entry), LINE, 0)
    assert result.verdict in ("pass", "inconclusive"), result.reason


@pytest.mark.parametrize("entry", [e for e in WRONG if e.name in BY_SAMPLING], ids=lambda entry: entry.name)
def test_by_sampling_a_wrong_sampler_has_not(entry):
    result = by_sampling(subject(entry), LINE, 0)
    assert result.verdict == "fail", result.reason
