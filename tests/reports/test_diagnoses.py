"""Diagnoses of planted bugs, as published and a few anew."""

import pytest

from sgmcmc_verification.checks.faults.registry import find_defect
from sgmcmc_verification.reports.pages import diagnoses
from sgmcmc_verification.reports.records.jsonl import read

LINES = read(diagnoses.PUBLISHED)


@pytest.mark.release
def test_every_planted_bug_of_law_order_and_dynamics_was_diagnosed_once():
    assert sorted(line["defect"] for line in LINES) == sorted(defect.name for defect in diagnoses.concerned())


def test_four_of_five_violations_of_a_first_order_identity_are_named_and_none_is_named_otherwise():
    first = [line for line in LINES if line["statement"] in diagnoses.FIRST_ORDER]
    right = [line for line in first if diagnoses.named(find_defect(line["defect"]), line)]
    assert len(right) >= 0.8 * len(first)
    assert [line["defect"] for line in LINES if line["diagnosis"] and line in first and line not in right] == []


def test_the_page_is_the_one_of_the_lines():
    assert diagnoses.PUBLISHED.with_suffix(".md").read_text(encoding="utf-8") == diagnoses.page(LINES)


@pytest.mark.parametrize("name", ["sgld-temperature-as-deviation", "sgld-half-gradient", "sgld-minibatch-mean"])
def test_some_of_them_anew(name):
    line = diagnoses.decide(find_defect(name), "now")
    assert diagnoses.named(find_defect(name), line), line["diagnosis"]
