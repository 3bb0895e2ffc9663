"""The machinery of `pytest checks`: order of the cases, overall verdicts, deviations, execution, reports."""

import dataclasses
import itertools
import json
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from checks.core.candidate import Subject
from checks.core.check import Check, Inconclusive, NotApplicable
from checks.core.result import Result
from checks.end_points.error_rates import fraction_of_chains
from checks.pytest_plugin.execute import default_seed, execute, run_check
from checks.pytest_plugin.known_failures import Deviation
from checks.pytest_plugin.plan import make_plan
from checks.pytest_plugin.terminal import Outcome, block, detectables, overall, reasons
from checks.registry import CHECKS, find_check
from checks.tiers.contract.interface import chains_and_leaves_independent, every_input_matters, key_discipline, movement
from checks.tiers.invariance.end_points import MOVING
from samplers.entry import TIERS, Row
from samplers.overdamped.sgld import SGLD
from samplers.registry import SAMPLERS, sampler_row
from targets.registry import TARGETS, target

ROOT = Path(__file__).resolve().parents[3]


def check_of(run, tier="law"):
    return Check("planted", tier, "1 = 1", run, lambda subject: subject.row.targets, cost=0.1, decides="law")


def subject_of(sampler, name="planted"):
    return Subject(Row(name, lambda target, **options: sampler, targets=("gaussian-1d-scaled",)))


def test_names_are_unique_and_targets_exist():
    for names in ([row.name for row in SAMPLERS], [check.name for check in CHECKS]):
        assert len(names) == len(set(names))
    known = {row.name for row in TARGETS}
    assert {name for row in SAMPLERS for name in row.targets} <= known
    assert {tier for row in SAMPLERS for tier in (*row.tiers, *row.unsupported)} <= set(TIERS)


def test_a_check_whose_claim_is_not_made_says_so():
    plan = make_plan(["sgld"], tiers=["generator"])
    why = {case.check.name: case.unsupported for case in plan.cases if case.target is None}
    assert why["proposal_generator"] == "claims no ExactLaw"
    assert "published_diffusion" not in {name for name, reason in why.items() if reason.startswith("claims no")}


def test_claims_that_are_not_made_share_a_line():
    lacks = [
        Result("a", "law", "1 = 1", "s", "not-applicable", f"claims no {kind}") for kind in ("Exchange", "Reversal")
    ]
    other = Result("b", "law", "1 = 1", "s", "not-applicable", "too large a grid")
    lines = reasons([Outcome("s", result) for result in (*lacks, other, lacks[0])])
    assert [line.strip() for line in lines] == [
        "1  s: b: too large a grid",
        "s: claims that are not made: Exchange, Reversal",
    ]


def test_every_option_is_exercised_at_values_that_are_not_the_default():
    seen: dict[type, dict[str, set]] = {}
    for row in SAMPLERS:
        sampler = row.build(target(row.targets[0]))
        if type(sampler) is not SGLD:
            continue
        for variant in ({}, *row.variants):
            built = row.build(target(row.targets[0]), **variant)
            for field in dataclasses.fields(built):
                if field.default is not dataclasses.MISSING and getattr(built, field.name) != field.default:
                    seen.setdefault(type(sampler), {}).setdefault(field.name, set()).add(getattr(built, field.name))
    assert seen[SGLD]["temperature"] >= {0.5, 2.0}
    assert seen[SGLD]["compensate"] == {True}


def test_cases_of_one_subject_are_contiguous():
    names = [case.subject.name for case in make_plan(["sgld", "sghmc"], tiers=["contract", "law"]).cases]
    assert len(set(names)) == 1 + sum(a != b for a, b in itertools.pairwise(names))


def test_default_seed_depends_on_the_sampler_only():
    assert default_seed("sgld") == default_seed("sgld") != default_seed("sghmc")


def test_exceptions_become_verdicts_and_name_the_place():
    def fails(case):
        raise Inconclusive("too blunt")

    def odd(case):
        raise NotApplicable("no such thing")

    def broken(case):
        return case.subject.row.build(case.target, nonsense=1)

    subject = Subject(sampler_row("sgld"))
    results = [execute(check_of(run), subject, "gaussian-1d-scaled", 3) for run in (fails, odd, broken)]
    assert [r.verdict for r in results] == ["inconclusive", "not-applicable", "error"]
    assert results[0].reason == "too blunt"
    assert "test_plugin.py:" in results[2].reason
    assert "\n" not in results[2].reason
    assert all(r.seconds is not None and r.versions["jax"] and r.reproduction and r.seed == 3 for r in results)
    assert json.loads(results[2].to_json())["verdict"] == "error"


def outcome(verdict, tier="law", known=None):
    return Outcome("sgld", Result("gaussian_limit", tier, "e", "sgld", verdict, "r"), known)


def test_overall_verdict_needs_a_passing_check_of_the_law():
    plan = make_plan(["sgld"], tiers=["contract", "law"])
    decide = lambda *outcomes: overall(plan, outcomes)[0].verdict
    known = Deviation("sgld", "gaussian_limit", "why", "link")
    assert decide(outcome("pass", "contract"), outcome("pass")) == "pass"
    assert decide(outcome("pass", "contract"), outcome("not-applicable")) == "inconclusive"
    assert decide(outcome("pass"), outcome("inconclusive")) == "inconclusive"
    assert decide(outcome("pass"), outcome("fail")) == "fail"
    assert decide(outcome("pass"), outcome("error")) == "error"
    assert decide(outcome("pass"), outcome("fail", known=known)) == "pass"
    assert decide(outcome("pass", known=known)) == "fail"


def test_overall_verdict_needs_a_statistical_check_too_where_such_a_tier_was_selected():
    plan = make_plan(["sgld"], tiers=["law", "invariance"])
    decide = lambda *outcomes: overall(plan, outcomes)[0].verdict
    assert decide(outcome("pass")) == "inconclusive"
    assert decide(outcome("pass", "invariance")) == "inconclusive"
    assert decide(outcome("pass"), outcome("pass", "invariance")) == "pass"


def test_overall_verdict_asks_nothing_statistical_of_a_flow_without_noise():
    """As long as a deterministic check of its law passed."""

    def decide(row, tiers, *tier_verdicts):
        outcomes = [
            Outcome(row, Result("gaussian_limit", tier, "e", row, verdict, "r")) for tier, verdict in tier_verdicts
        ]
        return overall(make_plan([row], tiers=tiers), outcomes)[0]

    both = ["law", "convergence"]
    silent = ("convergence", "not-applicable")
    passed = decide("w-sgld", both, ("law", "pass"), silent)
    assert passed.verdict == "pass"
    assert "no noise" in passed.reason
    assert decide("svgd", both, ("law", "pass"), silent).verdict == "inconclusive"
    assert decide("w-sgld", both, ("law", "not-applicable"), silent).verdict == "inconclusive"
    assert decide("w-sgld", ["convergence"], silent).verdict == "inconclusive"
    assert decide("w-sgld", both, ("law", "pass"), ("convergence", "inconclusive")).verdict == "inconclusive"


def test_detectable_effects_of_statistical_passes_are_printed_and_the_worst_is_named():
    def passed(sampler, tier, effect, alpha=1e-10):
        return Outcome(
            sampler,
            Result(
                "ks",
                tier,
                "e",
                sampler,
                "pass",
                "r",
                target="t",
                unit="KS distance",
                detectable=effect,
                power=0.99,
                alpha=alpha,
                n=1000,
            ),
        )

    noise_free = passed("d", "geometry", 9.0, alpha=None)
    sampled = [passed("a", "invariance", 0.003), passed("b", "invariance", 0.004)]
    (line,) = detectables([*sampled, passed("c", "law", 9.0), noise_free])
    for word in ("ks", "0.004 KS distance", "0.99", "1e-10", "b on t", "1,000 chains"):
        assert word in line


def test_every_tier_with_checks_is_collected_from_a_file_of_its_own():
    files = {path.stem.removeprefix("test_") for path in (ROOT / "checks").glob("test_*.py")}
    assert files == {check.tier for check in CHECKS}


def test_a_fraction_of_the_chains_is_run_and_reproduced():
    subject, check = Subject(sampler_row("sgld")), find_check("chains_move")
    with fraction_of_chains(0.01):
        result = execute(check, subject, "double-well", 3)
    assert result.n == pytest.approx(0.01 * MOVING, rel=0.01)
    assert result.reproduction is not None
    assert "--chains 0.01" in result.reproduction
    again = run_check("sgld", "chains_move", "double-well", seed=3, chains=0.01)
    assert (again.n, again.effect) == (result.n, result.effect)


def test_block_names_equation_effect_allowance_and_reproduction():
    result = Result(
        "c",
        "law",
        "pi P = pi",
        "sgld",
        "fail",
        "too hot",
        target="t",
        step_size=0.1,
        effect=0.3,
        unit="variance",
        allowance=0.1,
        allowance_source="theory",
        detectable=0.01,
        reproduction="pytest checks",
        seed=1,
    )
    text = block(result)
    for word in ("pi P = pi", "0.3 variance", "0.1, from theory", "step size 0.1", "0.01", "pytest checks", "seed 1"):
        assert word in text


class Frozen(SGLD):
    def step(self, key, state, step_size, estimator):
        return state


class SameNoise(SGLD):
    """One draw for all leaves."""

    def step(self, key, state, step_size, estimator):
        move = lambda x: x + (2 * step_size) ** 0.5 * jax.random.normal(key, x.shape, x.dtype)
        return state._replace(position=jax.tree.map(move, state.position))


class KeyTwice(SGLD):
    def step(self, key, state, step_size, estimator):
        state = super().step(key, state, step_size, estimator)
        again = jax.random.uniform(key)
        return state._replace(position=jax.tree.map(lambda x: x + 0 * again, state.position))


@pytest.mark.parametrize(
    ("sampler", "run", "where", "words"),
    [
        (Frozen(), movement, "gaussian-1d-scaled", "frozen"),
        (Frozen(), every_input_matters, "gaussian-1d-scaled", "the key does not change"),
        (SameNoise(), chains_and_leaves_independent, "gaussian-pytree", "identical draws"),
        (SameNoise(), every_input_matters, "gaussian-1d-scaled", "the gradient of the estimator does not change"),
        (KeyTwice(), key_discipline, "gaussian-1d-scaled", "consumes a key twice"),
    ],
)
def test_contract_sees_the_planted_defect(sampler, run, where, words):
    result = execute(run, subject_of(sampler), where, 1)
    assert result.verdict == "fail"
    assert words in result.reason


def test_a_deviation_can_be_of_the_default_options_alone():
    entry = Deviation("a/b[]", "stability", "reason", "issue")
    assert entry.matches("a/b", "a/b", "stability", "any")
    assert not entry.matches("a/b[alpha=2.0]", "a/b", "stability", "any")


def test_end_to_end_report_deviation_and_exit_code(tmp_path):
    known = tmp_path / "known.toml"
    known.write_text('[[deviation]]\nsampler="sgld"\ncheck="movement"\nreason="r"\nissue="i"\n', encoding="utf-8")
    report = tmp_path / "report.jsonl"
    command = [sys.executable, "-m", "pytest", "checks", "-p", "no:cacheprovider", "-n", "1", "--sampler", "sgld"]
    command += ["--tier", "contract", "-k", "movement", "--report", str(report), "--deviations", str(known)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "UNEXPECTED PASS" in run.stdout
    rows = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert {row["check"] for row in rows} == {"movement"}
    assert {row["verdict"] for row in rows} == {"pass"}
