"""What is printed of a sampler: the conclusion first, at most 12 lines for a pass and 40 for a failure."""

import dataclasses
from types import SimpleNamespace

import pytest

from sgmcmc_verification.checks.core.conclusion import Judged, conclude
from sgmcmc_verification.checks.core.conclusion import Plan as Record
from sgmcmc_verification.checks.core.obligations import OBLIGATIONS
from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.checks.pytest_plugin.plugin import shown_on
from sgmcmc_verification.checks.pytest_plugin.terminal import table, worst
from sgmcmc_verification.checks.runner.expected_failures import ExpectedFailure
from sgmcmc_verification.checks.runner.plan import Plan
from sgmcmc_verification.checks.runner.text import MOST_FAILING, MOST_LINES, Outcome, block, conclusions, report

FAILED = Result(
    *("gaussian_limit", "gaussian_law", "law", "pi P = pi", "mine", "fail", "too hot"),
    target="plane",
    step_size=0.1,
    effect=0.3,
    unit="variance",
    allowance=0.1,
    allowance_source="theory",
    detectable=0.01,
    reproduction="pytest checks --sampler mine\nfrom sgmcmc_verification.checks.execute import run_check",
    seed=1,
    decides="law",
)
PASSED = dataclasses.replace(
    FAILED, verdict="pass", reason="fine", effect=1e-9, detectable=1e-6, meets=[o.name for o in OBLIGATIONS]
)
FAULT = dataclasses.replace(
    FAILED, statement="shapes_and_dtypes", check="interface", decides="conduct", severity="minor", reason="a dtype"
)
KNOWN = ExpectedFailure("mine", "*", "as published", "https://example.org/1")


def printed(*results, law_only=False, claims=("ExactLaw", "Reversal"), expected=None, **record):
    """The lines of a sampler that has these results."""
    facts = {"cases": len(results), "due": tuple(o.name for o in OBLIGATIONS), "order": 1} | record
    outcomes = [Outcome("mine", result, expected) for result in results]
    plan = Plan((), {"mine": Record(**facts)}, {"mine": claims}, ("law",), law_only=law_only)
    (conclusion,) = conclusions(plan, outcomes)
    return report(conclusion, plan, outcomes)


def squeezed(lines):
    """The lines without the spaces that align them."""
    return [" ".join(line.split()) for line in lines]


def renamed(result, number, **facts):
    return dataclasses.replace(result, statement=f"{result.statement}_{number}", **facts)


class Screen:
    """A reporter of pytest that keeps what it is told to write."""

    def __init__(self, isatty):
        self.isatty, self.written = isatty, []

    def rewrite(self, line, **markup):
        self.written.append((line, markup))

    def flush(self):
        self.written.append("flush")


@pytest.mark.parametrize("isatty", [True, False])
def test_runs_show_how_far_they_are_on_a_terminal_alone(isatty):
    screen = Screen(isatty)
    config = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda name: screen))
    show = shown_on(config)
    if show:
        show("runs: 8 of 480, 3 s")
    assert screen.written == ([("runs: 8 of 480, 3 s", {"erase": True}), "flush"] if isatty else [])


def test_a_pass_says_what_holds_to_which_order_and_what_would_have_been_seen():
    lines = printed(PASSED)
    text = " ".join(" ".join(lines).split())
    assert lines[0].startswith("PASS  mine")
    assert "law holds to order 1: a correlated Gaussian in two or more dimensions, fifty coordinates" in text
    assert "conduct clean" in text
    assert "would see gaussian_law 1e-06 variance" in text
    assert "not claimed" not in text
    assert len(lines) <= MOST_LINES


def test_a_pass_prints_at_most_twelve_lines_however_much_there_is_to_say():
    many = [
        renamed(PASSED, i, check=f"a_check_of_a_long_name_{i}", detail={"not entered": [f"max at a.py:{i}"]})
        for i in range(40)
    ]
    lines = printed(*many, notes=tuple(f"the option number {i} has one value only" for i in range(9)))
    assert lines[0].startswith("PASS")
    assert len(lines) <= MOST_LINES
    assert any("not examined" in line and "option number 0" in line for line in lines)
    assert any("more" in line for line in lines)


def test_a_failure_begins_with_what_is_violated_and_shows_the_first_finding_in_full():
    lines = printed(PASSED, FAILED)
    assert lines[0].startswith("FAIL  mine  (the law is violated)")
    assert squeezed(lines)[1] == "law violated"
    assert lines[2].split(": ") == ["              gaussian_limit", "pi P = pi"]
    for part in block(FAILED).split("\n"):
        assert part in lines
    # a claim that is not made explains what is undecided, and nothing about what is violated
    assert "not claimed" not in " ".join(squeezed(lines))


def test_the_same_finding_elsewhere_is_one_line():
    elsewhere = [dataclasses.replace(FAILED, target=name) for name in ("line", "banana")]
    lines = printed(FAILED, *elsewhere)
    assert sum("too hot" in line for line in lines) == 1
    assert "the same gaussian_limit on banana, gaussian_limit on line" in squeezed(lines)


def test_findings_without_room_are_named():
    lines = printed(*(renamed(FAILED, i) for i in range(6)))
    shown = [i for i in range(6) if any(f"gaussian_law/gaussian_limit_{i}" in line for line in lines)]
    rest = [i for i in range(6) if i not in shown]
    assert 0 in shown
    assert rest
    more = " ".join(squeezed(lines)).split("and more")[1]
    assert all(f"gaussian_limit_{i} on plane" in more for i in rest)


LONG = "a reason that goes on for a while, " * 12


@pytest.mark.parametrize("expected", [None, KNOWN], ids=["new", "known"])
@pytest.mark.parametrize("fails", [1, 3, 12])
@pytest.mark.parametrize("blunt", [0, 8])
@pytest.mark.parametrize("faults", [0, 6])
def test_a_failure_prints_at_most_forty_lines_however_much_is_wrong(fails, blunt, faults, expected):
    results = [renamed(FAILED, i, reason=LONG) for i in range(fails)]
    results += [renamed(FAILED, 100 + i, verdict="inconclusive", reason=f"{i} {LONG}") for i in range(blunt)]
    results += [renamed(FAULT, i, reason=LONG) for i in range(faults)]
    results += [renamed(PASSED, 50, detail={"not entered": [f"max at a_file_of_a_long_name.py:{i}" for i in range(9)]})]
    lines = printed(*results, claims=tuple(f"Claim{i}OfALongName" for i in range(20)), expected=expected)
    assert len(lines) <= MOST_FAILING


def test_a_fault_is_said_with_its_severity_and_law_only_keeps_it_in_the_text():
    major = dataclasses.replace(FAULT, severity="major")
    lines = printed(PASSED, major)
    assert lines[0].startswith("FAULT")
    assert "conduct major: shapes_and_dtypes: a dtype" in squeezed(lines)
    lines = printed(PASSED, major, law_only=True)
    assert lines[0].startswith("PASS")
    assert "do not count here" in lines[0]
    assert any("major: shapes_and_dtypes: a dtype" in line for line in lines)


def test_a_minor_fault_is_said_and_fails_nothing():
    lines = printed(PASSED, FAULT)
    assert lines[0] == "PASS  mine  (the law holds, with every obligation met, and the conduct has minor faults)"
    assert "conduct minor: shapes_and_dtypes: a dtype" in squeezed(lines)
    assert (Outcome("mine", FAULT).ok, Outcome("mine", FAULT).label) == (True, "minor fault")


def test_what_is_undecided_says_what_was_not_shown():
    few = dataclasses.replace(PASSED, meets=[o.name for o in OBLIGATIONS if o.name != "plane"])
    lines = printed(few)
    assert lines[0].startswith("INCONCLUSIVE")
    assert any("not shown for a law in two dimensions that is not Gaussian" in line for line in lines)
    assert "not claimed ExactLaw, Reversal" in squeezed(lines)


def test_a_part_says_so_in_its_first_lines():
    lines = printed(PASSED, part="--target plane")
    assert lines[0].startswith("PART")
    assert squeezed(lines)[1] == "law not examined as a whole (--target plane)"
    assert printed(PASSED, cases=2)[0].startswith("PART")


def test_a_known_violation_is_no_success_in_words():
    lines = printed(FAILED, expected=KNOWN)
    assert lines[0].startswith("KNOWN")
    assert "law violated (known)" in squeezed(lines)


def test_block_names_equation_effect_allowance_and_reproduction():
    text = block(FAILED)
    for words in ("pi P = pi", "0.3 variance", "0.1, from theory", "step size 0.1", "0.01", "seed 1", "too hot"):
        assert words in text
    assert "gaussian_law/gaussian_limit  plane" in text
    shell, python = text.split("\n")[-2:]
    assert shell.endswith("pytest checks --sampler mine")
    assert python.strip().startswith("from sgmcmc_verification.checks.execute")


def test_block_of_an_unexpected_pass_says_what_to_remove():
    text = block(PASSED, KNOWN)
    assert text.startswith("UNEXPECTED PASS")
    assert "as published (https://example.org/1)" in text
    assert "remove the entry" in text
    assert block(FAILED, KNOWN).startswith("KNOWN  FAIL")


@pytest.mark.parametrize(
    ("verdict", "kind", "ok"),
    [
        ("fail", "known", True),
        ("error", "known", True),
        ("inconclusive", "known", True),
        ("pass", "unexpected pass", False),
        ("not-applicable", "not-applicable", True),
        ("out-of-reach", "out-of-reach", True),
    ],
)
def test_a_deviation_changes_what_an_outcome_is(verdict, kind, ok):
    outcome = Outcome("mine", dataclasses.replace(FAILED, verdict=verdict), KNOWN)
    assert (outcome.kind, outcome.ok) == (kind, ok)
    plain = Outcome("mine", outcome.result)
    assert plain.kind == verdict
    assert plain.ok == (verdict in ("pass", "not-applicable", "out-of-reach"))


def test_the_table_counts_every_verdict():
    plan = Plan((), {"mine": Record(3), "yours": Record(1)}, {}, ("law",))
    timed = dataclasses.replace(FAILED, seconds=1.25)
    head, mine, yours = table(plan, [Outcome("mine", r) for r in (timed, timed, PASSED)])
    row = dict(zip(head.replace("unexpected pass", "unexpected_pass").split(), mine.split(), strict=True))
    assert (row["sampler"], row["fail"], row["pass"], row["error"], row["seconds"]) == ("mine", "2", "1", "0", "2.5")
    assert set(yours.split()[1:]) == {"0", "0.0"}


def test_an_item_is_shown_as_the_worst_of_its_statements():
    order = ["fail", "error", "inconclusive", "out-of-reach", "pass", "not-applicable"]
    results = [dataclasses.replace(FAILED, verdict=v) for v in order]
    for i in range(len(order)):
        assert worst(reversed(results[i:])).verdict == order[i]


def test_the_conclusion_of_a_report_is_the_one_of_the_core():
    outcomes = [Outcome("mine", PASSED), Outcome("mine", FAULT), Outcome("yours", FAILED)]
    plan = Plan((), {"mine": Record(2), "yours": Record(1)}, {}, ("law",), law_only=True)
    expected = [
        conclude("mine", [Judged(PASSED, "pass"), Judged(FAULT, "fail")], Record(2), law_only=True),
        conclude("yours", [Judged(FAILED, "fail")], Record(1), law_only=True),
    ]
    assert conclusions(plan, outcomes) == expected


def test_what_decides_the_law_comes_before_faults_of_conduct():
    lines = printed(PASSED, dataclasses.replace(FAULT, severity="major"), FAILED)
    blocks = [line.split("/")[-1].split()[0] for line in lines[1:] if line.startswith("FAIL")]
    assert blocks == ["gaussian_limit", "shapes_and_dtypes"]
