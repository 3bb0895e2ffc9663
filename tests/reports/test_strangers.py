"""Samplers of strangers: the catalogues, the published verdicts, and a few of them anew."""

import importlib.util

import pytest

from sgmcmc_verification.checks.core.importer import load_object
from sgmcmc_verification.reports.pages import strangers
from sgmcmc_verification.reports.records.jsonl import read

LINES = read(strangers.PUBLISHED)


def test_every_sampler_of_the_catalogues_exists():
    for entry in strangers.entries():
        if entry.kind == "reference":
            continue
        if "numba" in entry.name and importlib.util.find_spec("numba") is None:
            continue
        adapter = entry.file.rpartition(":")[0]
        library = adapter or ("torch" if "torch" in entry.file else "jax")
        if importlib.util.find_spec(library) is None:
            continue
        assert load_object(entry.reference.removeprefix(f"{adapter}:")) is not None


def test_the_lines_are_of_the_catalogues_and_no_sampler_is_decided_twice():
    decided = [(line["kind"], line["file"], line["name"]) for line in LINES]
    assert len(set(decided)) == len(decided)
    assert set(decided) <= {tuple(entry) for entry in strangers.entries()}


FALSE_ALARMS = {
    "reference": {"cyclical-sghmc"},
    "right": {"irreversible", "sgnht_claimed"},
}
"""Right samplers that fail or end in an error on the published page: the list is to become empty."""


@pytest.mark.parametrize(("kind", "least"), [("reference", 79), ("right", 60)])
@pytest.mark.release
def test_published_right_samplers_raise_no_other_false_alarm(kind, least):
    right = [line for line in LINES if line["kind"] == kind]
    assert len(right) >= least
    assert {line["name"] for line in right if line["word"] in ("fail", "error", "refused")} == FALSE_ALARMS[kind]


@pytest.mark.release
def test_no_published_wrong_sampler_passes():
    wrong = [line for line in LINES if line["kind"] == "wrong"]
    assert len(wrong) >= 10
    passed = [line for line in wrong if line["word"] in ("pass", "known", "part")]
    # right at its default options, and the verdict names the option that it says nothing of
    assert [line["name"] for line in passed if not any("the option" in text for text in line["not examined"])] == []


def test_the_page_is_the_one_of_the_lines():
    assert strangers.PUBLISHED.with_suffix(".md").read_text(encoding="utf-8") == strangers.page(LINES)


@pytest.mark.parametrize(
    ("kind", "file", "name", "word"),
    [
        ("right", "underdamped_sghmc.py", "cold", "pass"),
        ("right", "ula_layout.py", "key_ahead", "pass"),
        ("wrong", "c01_memory.py", "rmsprop_hidden", "fail"),
        ("wrong", "c13_options.py", "TemperatureSquared", "fail"),
    ],
)
def test_some_of_them_anew(kind, file, name, word):
    assert strangers.decide(strangers.Entry(kind, file, name), "now")["word"] == word
