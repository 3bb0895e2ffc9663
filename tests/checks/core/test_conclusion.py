"""The one conclusion: law, conduct and what was not examined, from results that are written down here by hand."""

import dataclasses
import itertools
from dataclasses import replace

import pytest

from sgmcmc_verification.checks.core.conclusion import RUNS, WORDS, Judged, Plan, conclude, unmet
from sgmcmc_verification.checks.core.obligations import OBLIGATIONS, obligation
from sgmcmc_verification.checks.core.result import Result

DUE = ("gaussian", "line", "closed-state")


def result(verdict, decides="law", name="gaussian_limit", reason="because", meets=(), **facts):
    severity = facts.pop("severity", "major") if decides == "conduct" else None
    line = Result(name, "a_check", "law", f"equation of {name}", "mine", verdict, reason)
    return dataclasses.replace(line, decides=decides, meets=list(meets), severity=severity, **facts)


def judged(verdict, *arguments, kind=None, **facts):
    return Judged(result(verdict, *arguments, **facts), kind or verdict)


def concluded(*results, cases=None, due=DUE, law_only=False, **facts):
    plan = Plan(len(results) if cases is None else cases, due=due, **facts)
    return conclude("mine", results, plan, law_only)


LAW = judged("pass", meets=("gaussian", "line"), name="transfer_operator")
STATE = judged("pass", "premise", "closed_state", meets=("closed-state",))
GOOD = (LAW, STATE)


def test_a_law_holds_if_a_statement_of_it_passes_and_all_that_is_due_was_met():
    conclusion = concluded(*GOOD, order=2)
    assert (conclusion.word, conclusion.law, conclusion.order, conclusion.open) == ("pass", "holds", 2, ())
    assert set(conclusion.met) == set(DUE)
    assert conclusion.good
    assert conclusion.law_in_words() == "holds to order 2"
    assert conclusion.law_in_words(0.5) == "holds to order 2, at temperature 0.5"
    assert concluded(*GOOD).law_in_words() == "holds"


@pytest.mark.parametrize("name", DUE)
def test_an_obligation_that_nothing_met_leaves_the_law_undecided_and_is_named(name):
    results = [
        dataclasses.replace(j, result=dataclasses.replace(j.result, meets=[m for m in j.result.meets if m != name]))
        for j in GOOD
    ]
    conclusion = concluded(*results)
    assert (conclusion.word, conclusion.law) == ("inconclusive", "undecided")
    assert conclusion.open == (f"not shown for {obligation(name).text}",)
    assert not conclusion.good


def test_an_obligation_is_met_by_a_pass_alone():
    """A statement that fails, raises or could not decide has shown nothing, whatever it would have met."""
    for verdict in ("fail", "inconclusive", "error", "out-of-reach", "not-applicable"):
        results = (LAW, judged(verdict, "premise", "closed_state", meets=("closed-state",)))
        assert unmet(results, Plan(2, due=DUE)) == ("closed-state",)
        assert concluded(*results).law == "undecided"


def test_an_obligation_is_met_at_the_options_of_the_sampler_itself():
    """A mirrored walk met that of the boundary at another scale alone, at which no step reached it."""
    elsewhere = judged("pass", "premise", "closed_state", meets=("closed-state",), options={"scale": 0.5})
    plan = Plan(2, DUE)
    assert unmet((LAW, elsewhere), plan) == ("closed-state",)
    given = judged("pass", meets=("gaussian", "line"), name="transfer_operator", options={"scale": 0.5})
    assert unmet((given, elsewhere), plan) == ()


def test_what_is_out_of_reach_says_why_an_obligation_was_not_met():
    far = judged("out-of-reach", "premise", "closed_state", "a long story", detail={"would meet": ["closed-state"]})
    assert concluded(LAW, far).open == (
        f"not shown for {obligation('closed-state').text} (closed_state: a long story)",
    )


def test_what_is_out_of_reach_or_not_applicable_does_no_harm_where_all_is_met_elsewhere():
    assert concluded(*GOOD, judged("out-of-reach"), judged("not-applicable", "order")).word == "pass"


@pytest.mark.parametrize("decides", ["law", "order", "dynamics"])
def test_a_failure_of_law_order_or_dynamics_violates_the_law(decides):
    conclusion = concluded(*GOOD, judged("fail", decides, "weak_order"), judged("fail", decides, "weak_order"))
    assert (conclusion.word, conclusion.law, conclusion.order) == ("fail", "violated", None)
    assert conclusion.violated == (("weak_order", "equation of weak_order"),)
    assert conclusion.law_in_words() == "violated"


def test_a_premise_that_fails_makes_the_law_undecided_not_violated():
    conclusion = concluded(LAW, judged("fail", "premise", "closed_state", "a hidden count", meets=("closed-state",)))
    assert (conclusion.word, conclusion.law, conclusion.violated) == ("inconclusive", "undecided", ())
    assert conclusion.open[0] == "closed_state: a hidden count"


@pytest.mark.parametrize("decides", ["law", "order", "dynamics", "premise"])
@pytest.mark.parametrize("verdict", ["inconclusive", "error"])
def test_what_could_not_decide_or_raised_leaves_the_law_undecided(decides, verdict):
    conclusion = concluded(*GOOD, judged(verdict, decides, "other", "too blunt"))
    assert conclusion.law == "undecided"
    assert conclusion.open == ("other: too blunt",)
    assert conclusion.word == ("error" if verdict == "error" else "inconclusive")


def test_runs_decide_what_others_could_not():
    runs = judged("pass", name=RUNS, meets=("gaussian",))
    blunt = judged("inconclusive", "law", "transfer_operator")
    assert concluded(*GOOD, blunt, runs).word == "pass"
    # but no error, no premise that fails, and no obligation that is still open
    assert concluded(*GOOD, judged("error", "law"), runs).law == "undecided"
    assert concluded(*GOOD, judged("fail", "premise"), runs).law == "undecided"
    assert concluded(STATE, blunt, runs).law == "undecided"
    assert concluded(*GOOD, blunt, judged("fail", name=RUNS)).law == "violated"


def test_dynamics_alone_decide_no_law():
    results = (judged("pass", "dynamics", "generator_of_code", meets=DUE),)
    conclusion = concluded(*results)
    assert (conclusion.word, conclusion.law) == ("inconclusive", "undecided")
    assert conclusion.open == ("no statement that decides the law or its order passed",)


# conduct --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("severity", "word", "good"), [("major", "fault", False), ("minor", "pass", True)])
def test_a_fault_of_conduct_leaves_the_law_as_it_is_and_fails_the_run_if_it_is_major(severity, word, good):
    faults = judged("fail", "conduct", "shapes_and_dtypes", "a dtype", severity=severity)
    conclusion = concluded(*GOOD, faults)
    assert (conclusion.word, conclusion.law, conclusion.good) == (word, "holds", good)
    (fault,) = conclusion.faults
    assert (fault.statement, fault.severity, fault.reason) == ("shapes_and_dtypes", severity, "a dtype")


def test_with_law_only_a_fault_is_listed_and_does_not_fail_the_run():
    fault = judged("fail", "conduct", "key_discipline")
    conclusion = concluded(*GOOD, fault, law_only=True)
    assert (conclusion.word, conclusion.good, len(conclusion.faults)) == ("pass", True, 1)
    assert concluded(*GOOD, fault, judged("fail"), law_only=True).word == "fail"
    assert concluded(LAW, fault, law_only=True).word == "inconclusive"


def test_the_severest_fault_of_a_statement_stands_for_it():
    minor, major = (judged("fail", "conduct", "dtypes", s, severity=s) for s in ("minor", "major"))
    for pair in itertools.permutations((minor, major)):
        assert [f.severity for f in concluded(*GOOD, *pair).faults] == ["major"]


def test_an_error_in_conduct_is_an_error_and_leaves_the_law():
    conclusion = concluded(*GOOD, judged("error", "conduct", "jit_vmap_loop_agree"))
    assert (conclusion.word, conclusion.law, conclusion.good) == ("error", "holds", False)


# parts ----------------------------------------------------------------------------------------------------------------


def test_fewer_results_than_were_planned_are_a_part_however_good():
    """Ctrl-C, -k, -x, a worker that died: nothing is wrong in the part, and the law was not examined."""
    conclusion = concluded(*GOOD, cases=3)
    assert (conclusion.word, conclusion.law, conclusion.open) == ("part", "not examined", ())
    assert conclude("mine", [], Plan(3, due=DUE)).word == "part"


def test_a_part_that_was_asked_for_is_a_part_however_complete():
    assert concluded(*GOOD, part="--target banana").word == "part"
    assert concluded(*GOOD, part="--target banana").law != "holds"


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (judged("fail"), "fail"),
        (judged("fail", "conduct", "dtypes"), "fault"),
        (judged("error", "conduct"), "error"),
        (judged("inconclusive"), "inconclusive"),
        (judged("fail", "premise"), "inconclusive"),
    ],
)
def test_what_is_wrong_in_a_part_is_wrong(wrong, word):
    assert concluded(wrong, cases=5).word == word


def test_a_file_that_does_not_say_what_was_planned_is_decided_by_what_is_in_it():
    assert conclude("mine", GOOD).law == "holds"
    assert conclude("mine", [judged("pass", "conduct", "dtypes")]).law == "not examined"
    assert conclude("mine", [judged("pass", "conduct", "dtypes")]).word == "inconclusive"
    assert conclude("mine", []).word == "inconclusive"


# deviations -----------------------------------------------------------------------------------------------------------


def test_a_known_violation_does_not_fail_the_run_and_the_law_does_not_hold():
    conclusion = concluded(*GOOD, judged("fail", kind="known"), order=1)
    assert (conclusion.word, conclusion.law, conclusion.order, conclusion.good) == ("known", "violated", None, True)
    assert conclusion.known == ("gaussian_limit",)
    assert conclusion.law_in_words() == "violated (known)"


@pytest.mark.parametrize("decides", ["law", "order", "dynamics", "premise"])
@pytest.mark.parametrize("verdict", ["fail", "inconclusive", "error"])
def test_no_deviation_makes_a_law_hold(decides, verdict):
    """Whatever it covers: what is known to fail, or to be undecided, was not shown."""
    assert concluded(*GOOD, judged(verdict, decides, "other", kind="known")).law != "holds"


def test_a_deviation_excuses_a_fault_and_nothing_else():
    dtype = judged("fail", "conduct", "shapes_and_dtypes", kind="known")
    conclusion = concluded(*GOOD, dtype)
    assert (conclusion.word, conclusion.law, conclusion.faults) == ("pass", "holds", ())
    assert conclusion.excused == ("shapes_and_dtypes",)
    assert concluded(*GOOD, dtype, judged("fail", "conduct", "key_discipline")).word == "fault"


def test_a_known_violation_hides_no_other_failure():
    known = judged("fail", kind="known")
    assert concluded(*GOOD, known, judged("fail", "order", "weak_order")).word == "fail"
    assert concluded(*GOOD, known, judged("error", "conduct")).word == "error"
    assert concluded(*GOOD, known, judged("fail", "conduct", "dtypes")).word == "fault"


@pytest.mark.parametrize("decides", ["law", "conduct"])
def test_an_entry_that_is_not_needed_any_more_fails_the_run(decides):
    assert not concluded(*GOOD, judged("pass", decides, "other", kind="unexpected pass")).good


# what is said beside it -----------------------------------------------------------------------------------------------


def test_what_was_not_examined_is_collected_once():
    twice = judged("pass", "dynamics", "branches_entered", detail={"not entered": ["max at mine.py:3"]})
    far = judged("pass", "dynamics", "far_field", detail={"not examined": "a clip at 1e6"})
    conclusion = concluded(*GOOD, twice, twice, far, notes=("the option mode has one value",))
    assert conclusion.not_examined == (
        "the option mode has one value",
        "the other side of max at mine.py:3",
        "a clip at 1e6",
    )
    assert conclusion.word == "pass"


def test_the_smallest_effect_of_a_check_is_that_of_its_bluntest_pass():
    passes = [judged("pass", "law", detectable=d, unit="of a variance") for d in (1e-6, 3e-4, 1e-5)]
    blunt = judged("fail", "conduct", "dtypes", detectable=0.5, unit="of a variance")
    smallest = concluded(*GOOD, *passes, blunt).smallest
    assert smallest == {"a_check": (3e-4, "of a variance")}


def test_every_word_has_its_sentence_and_every_obligation_its_text():
    assert set(WORDS) == {"pass", "fail", "inconclusive", "fault", "error", "known", "part"}
    assert len({o.name for o in OBLIGATIONS}) == len(OBLIGATIONS)
    assert all(o.text for o in OBLIGATIONS)


# option values that were made up ------------------------------------------------------------------------------------


def at_options(verdict: str, decides: str = "law"):
    found = judged(verdict, decides, "other")
    return replace(found, result=replace(found.result, options={"scale": 2.0}))


@pytest.mark.parametrize("verdict", ["inconclusive", "error"])
def test_what_is_open_at_a_made_up_value_is_named_and_leaves_the_law_alone(verdict):
    found = conclude("file.py:Mine", [*GOOD, at_options(verdict)])
    assert (found.word, found.law) == ("pass", "holds")
    assert [each.startswith("scale=2.0 (other:") for each in found.not_examined] == [True]


def test_what_is_violated_at_a_made_up_value_is_violated():
    assert conclude("file.py:Mine", [*GOOD, at_options("fail")]).word == "fail"


@pytest.mark.parametrize("decides", ["law", "dynamics", "premise"])
def test_another_law_with_an_option_turned_on_leaves_it_undecided(decides):
    """A weight decay that is 0.0 by default changes the law on purpose, a momentum does not: its author has to say."""
    found = concluded(*GOOD, at_options("fail", decides), off=("scale",))
    assert (found.word, found.law, found.violated) == ("inconclusive", "undecided", ())
    assert [each.startswith("other with scale=2.0, off by default: because") for each in found.open] == [True]
    assert concluded(*GOOD, at_options("pass", decides), off=("scale",)).word == "pass"
    assert concluded(*GOOD, judged("fail", name="other"), off=("scale",)).word == "fail"


def test_values_of_a_row_and_those_that_a_user_asks_for_count():
    assert conclude("mine", [*GOOD, at_options("inconclusive")]).law == "undecided"
    assert conclude("file.py:Mine", [at_options("pass"), at_options("inconclusive")]).law == "undecided"
