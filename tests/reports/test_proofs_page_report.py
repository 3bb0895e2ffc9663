"""Page of proofs: its lines, as published and some anew, and what it says of lines of every kind."""

import pytest

from sgmcmc_verification.checks.core.lookup import find_row
from sgmcmc_verification.reports.pages import proofs
from sgmcmc_verification.reports.records.jsonl import read
from sgmcmc_verification.samplers.registry import SAMPLERS


def setting(outcome, reason="", milliseconds=5):
    verdict = outcome if outcome in ("fail", "undecided") else "pass"
    return {"verdict": verdict, "outcome": outcome, "reason": reason, "milliseconds": milliseconds, "statements": {}}


LINES = [
    {"sampler": "good", "commit": "c", "settings": {name: setting("proved") for name in proofs.SETTINGS}},
    {"sampler": "digits", "commit": "c", "settings": {"d = 1": setting("proved"), "d = 2": setting("verified")}},
    {"sampler": "wrong", "commit": "c", "settings": {"d = 1": setting("fail", "c_1 is not zero")}},
    {"sampler": "dark", "commit": "c", "settings": {"d = 1": setting("proved"), "d = 2": setting("undecided", "a|b")}},
    {"sampler": "far", "commit": "c", "reason": proofs.ELSEWHERE},
]


def test_a_sampler_is_proved_in_all_settings():
    line = proofs.decide(find_row("sgld"), "now")
    assert {name: found["outcome"] for name, found in line["settings"].items()} == dict.fromkeys(
        proofs.SETTINGS, "proved"
    )
    assert line["settings"]["d = 2"]["statements"]["invariant order 1"] == "proved"


def test_a_sampler_that_is_not_read_has_the_reason():
    line = proofs.decide(find_row("csgld"), "now")
    assert line["settings"]["d = 1"]["outcome"] == "undecided"
    assert "a law on a line" in line["settings"]["d = 1"]["reason"]


def test_the_page_counts_and_lists():
    text = proofs.page(LINES)
    assert "In d = 2, 1 of 4 samplers are proved, 1 verified and 1 undecided; 1 fail" in text
    assert "| good | proved | proved | proved | proved | 20 |" in text
    assert "| wrong | fail | – | – | – | 5 |" in text
    assert "- `wrong`, d = 1: c_1 is not zero\n\nUndecided" in text
    assert "- `dark`, d = 2: a|b\n\nNot read, " in text
    assert text.endswith("- `far`: runs in a process of its own\n")


def test_a_page_without_complaints_ends_with_its_table():
    assert proofs.page(LINES[:1]).endswith("| 20 |\n")


def test_a_second_run_repeats_nothing(tmp_path, capsys):
    out = tmp_path / "mine.jsonl"
    assert proofs.main(["--sampler", "sgld", "--out", str(out)]) == 0
    first = out.read_bytes()
    assert proofs.main(["--sampler", "sgld", "--sampler", "csgld", "--out", str(out)]) == 0
    assert out.read_bytes().startswith(first)
    assert [line["sampler"] for line in read(out)] == ["sgld", "csgld"]
    assert capsys.readouterr().out.endswith(out.with_suffix(".md").read_text(encoding="utf-8") + "\n")


def test_the_file_has_to_be_one_of_lines(tmp_path, capsys):
    with pytest.raises(SystemExit):
        proofs.main(["--out", str(tmp_path / "mine.json")])
    assert "must end in .jsonl" in capsys.readouterr().err


def test_the_published_page_is_the_one_of_its_lines():
    lines = read(proofs.PUBLISHED)
    assert proofs.PUBLISHED.with_suffix(".md").read_text(encoding="utf-8") == proofs.page(lines)
    assert len({line["sampler"] for line in lines}) == len(lines)


@pytest.mark.release
def test_every_reference_is_published():
    assert {row.name for row in SAMPLERS} <= {line["sampler"] for line in read(proofs.PUBLISHED)}
