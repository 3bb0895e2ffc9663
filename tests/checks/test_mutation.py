"""Mutants are what they say, copies leave the samplers alone, proofs reject what is not equivalent, runs go on."""

import ast
import dataclasses
import json
import sys
from functools import cache

import numpy as np
import pytest

from sgmcmc_verification.checks.mutation.catalogue import Mutant, catalogue
from sgmcmc_verification.checks.mutation.equivalence import GAUSSIAN, METRIC, SAME, SIGNS, proof
from sgmcmc_verification.checks.mutation.load import load
from sgmcmc_verification.checks.mutation.operators import OPERATORS, edits
from sgmcmc_verification.checks.mutation.operators.stages import dropped_stage, swapped_stages
from sgmcmc_verification.checks.mutation.operators.tree import Scope, substitute
from sgmcmc_verification.checks.mutation.source import Place, places
from sgmcmc_verification.checks.mutation.trial import Kill, Outcome, Runner
from sgmcmc_verification.reports.pages import mutation_scores
from sgmcmc_verification.samplers.entry import DETERMINISTIC_TIERS
from sgmcmc_verification.samplers.registry import SAMPLERS, sampler_row

STEP = '''
def step(self, key, state, h, estimator):
    """x' = x - h g + n."""
    gradient_key, noise_key = jax.random.split(key)
    estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
    noise = jnp.sqrt(2 * self.temperature * h) * normal(noise_key, count(state.position))
    x = decay * state.position + noise
    r = x + h * estimate.gradient
    x = x - r
    x = x + r
    return x
'''


def changed(operator: str, source: str = STEP, options=None) -> set[str]:
    """The lines of a function that an operator makes, as text, without those that are there already."""
    module = ast.parse(source)
    function = module.body[0]
    assert isinstance(function, ast.FunctionDef)
    scope = Scope(function, options or {}, {})
    found = set()
    for edit in OPERATORS[operator](scope):
        after = ast.unparse(ast.fix_missing_locations(substitute(module, edit.swaps)))
        found |= set(after.splitlines()) - set(ast.unparse(module).splitlines())
    return {line.strip() for line in found}


@pytest.mark.parametrize(
    ("operator", "line"),
    [
        ("drop-term", "r = x"),
        ("drop-term", "x = noise"),
        ("flip-term", "x = -x + r"),
        ("flip-term", "r = x - h * estimate.gradient"),
        ("scale-term", "x = x - 0.9 * r"),
        ("drop-factor", "noise = jnp.sqrt(self.temperature * h) * normal(noise_key, count(state.position))"),
        ("missing-root", "noise = 2 * self.temperature * h * normal(noise_key, count(state.position))"),
        ("moved-noise", "x = decay * (state.position + noise)"),
        ("reused-key", "noise = jnp.sqrt(2 * self.temperature * h) * normal(gradient_key, count(state.position))"),
        ("wrong-size", "noise = jnp.sqrt(2 * self.temperature * h) * normal(noise_key, count(state.position) - 1)"),
        ("ignored-option", "noise = jnp.sqrt(2 * 1.0 * h) * normal(noise_key, count(state.position))"),
        ("stale-value", "x = x_before + r"),
    ],
)
def test_operator_makes_the_mistake_that_it_is_named_after(operator, line):
    assert line in changed(operator, options={"temperature": 1.0})


def test_stages_change_places_and_are_left_out():
    module = ast.parse(STEP)
    scope = Scope(module.body[0], {}, {})  # type: ignore[arg-type]
    swapped = {(e.before, e.after) for e in swapped_stages(scope)}
    assert ("x = x - r; x = x + r", "x = x + r; x = x - r") in swapped
    # r would be read before it is there
    assert not any(before.startswith("r = ") for before, _ in swapped)
    assert {e.before for e in dropped_stage(scope)} == {"x = x - r", "x = x + r"}


def test_docstrings_raises_and_argument_checks_are_no_code_of_a_step():
    source = 'def step(h):\n    """h * 2 + 1."""\n    require(h + 1 > 0)\n    raise ValueError(h + 1)'
    module = ast.parse(source)
    assert list(edits(Scope(module.body[0], {}, {}))) == []  # type: ignore[arg-type]


@cache
def mutants(name: str) -> tuple[Mutant, ...]:
    """The catalogue of a sampler, made once."""
    return catalogue(sampler_row(name))


def mutant(name: str, operator: str, after: str) -> Mutant:
    """The one mutant of a sampler that an operator makes with a text in what it makes."""
    (found,) = [m for m in mutants(name) if m.operator == operator and m.after == after]
    return found


NOISE = "0.9 * (jnp.sqrt(variance) * n)"


def test_a_step_is_its_method_and_what_it_calls_and_no_claim():
    found = places(sampler_row("sgld"))
    assert Place("sgmcmc_verification.samplers.overdamped.sgld", "SGLD.step") in found
    assert Place("sgmcmc_verification.samplers.numerics.noise", "injected_noise") in found
    assert not any(p.qualname.endswith(("claims", "dynamics", "init", "__post_init__")) for p in found)


def test_ids_are_unique_and_depend_on_no_line_number():
    ids = [m.id for name in ("sgld", "sgnht") for m in mutants(name)]
    assert len(set(ids)) == len(ids) > 50
    first = mutants("sgld")[0]
    assert dataclasses.replace(first, line=999).id == first.id


def test_a_copy_is_changed_and_the_real_modules_are_not():
    real = {name: module for name, module in sys.modules.items() if name.startswith("sgmcmc_verification.samplers.")}
    wrong = mutant("sgld", "scale-term", NOISE)
    row = wrong.row(sampler_row("sgld"))
    assert {
        name: module for name, module in sys.modules.items() if name.startswith("sgmcmc_verification.samplers.")
    } == real
    assert row is not sampler_row("sgld")
    sampler = row.build(None)  # type: ignore[arg-type]
    assert type(sampler) is not type(sampler_row("sgld").build(None))  # type: ignore[arg-type]
    copies = load(wrong.place.module, wrong.swaps)
    shape = np.zeros(3)
    import jax

    from sgmcmc_verification.samplers.numerics import noise

    key = jax.random.key(0)
    right = noise.injected_noise(key, shape, 2.0)
    np.testing.assert_allclose(
        copies["sgmcmc_verification.samplers.numerics.noise"].injected_noise(key, shape, 2.0), 0.9 * right, rtol=1e-14
    )


def test_proofs_accept_the_same_law_and_nothing_else():
    row = sampler_row("sgld-compensated")
    sign = mutant("sgld-compensated", "flip-term", "x - step_size * g - n")
    rotated = mutant("sgld-compensated", "drop-factor", "white")
    unused = mutant("sgld-compensated", "scale-term", NOISE)
    small = mutant("sgld-compensated", "scale-term", "x - step_size * g + 0.9 * n")
    shared = mutant("sgld-compensated", "reused-key", "gradient_key")
    families = [proof(row, m) for m in (sign, rotated, unused, small, shared)]
    # the last one is the same function of the draws: what is wrong is where they come from
    assert families == [SIGNS, GAUSSIAN, SAME, None, None]


def test_another_metric_is_an_equivalent_and_one_that_is_not_positive_is_not():
    """1 + sin / 2 and its changes, of which one goes below zero."""
    waves = [
        m
        for m in mutants("rsvgd-diagonal")
        if m.place == Place("sgmcmc_verification.samplers.riemannian.metrics", "wave")
    ]
    sine = "0.5 * jnp.sin(0.5 * (theta + jnp.roll(theta, -1)))"
    after = {m.after: m for m in waves}
    found = [proof(sampler_row("rsvgd-diagonal"), after[text]) for text in (f"1.0 - {sine}", sine)]
    assert found == [METRIC, None]


def test_trial_tells_the_dead_from_the_unborn_and_the_unchanged():
    runner = Runner(sampler_row("sgld"))
    dead = runner.trial(mutant("sgld", "scale-term", NOISE), DETERMINISTIC_TIERS)
    assert dead.status == "killed"
    assert dead.kills[0].tier in ("generator", "order", "law")
    unreached = next(m for m in mutants("sgld") if "gradient_covariance" in m.before)
    assert runner.trial(unreached, DETERMINISTIC_TIERS).status == "identical"
    again = runner.trial(mutant("sgld", "scale-term", NOISE), DETERMINISTIC_TIERS, programs={dead.program: "other"})
    assert (again.status, again.twin) == ("duplicate", "other")
    step = next(
        m for m in mutants("sgld") if m.place == Place("sgmcmc_verification.samplers.overdamped.sgld", "SGLD.step")
    )
    broken = dataclasses.replace(
        step, swaps={id(_first_name("sgmcmc_verification.samplers.overdamped.sgld")): ast.Name("no", ast.Load())}
    )
    assert runner.trial(broken, DETERMINISTIC_TIERS).status == "stillborn"


def _first_name(module: str) -> ast.expr:
    """A name that the step of SGLD reads."""
    from sgmcmc_verification.checks.mutation.source import definition

    function = definition(Place(module, "SGLD.step"))
    return next(n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == "noise_key" and n.col_offset > 20)


def published() -> list[dict]:
    return mutation_scores.read(mutation_scores.PUBLISHED)


@pytest.mark.release
def test_published_result_has_every_sampler_and_its_page_is_the_one_that_the_lines_make():
    lines = published()
    assert {row.name for row in SAMPLERS} - {line["sampler"] for line in lines} == set()
    assert all(line["commit"] for line in lines)
    assert mutation_scores.PUBLISHED.with_suffix(".md").read_text(encoding="utf-8") == mutation_scores.page(lines)


@pytest.mark.release
def test_every_published_survivor_has_its_reason():
    survivors = {r["change"] for r in mutation_scores.merge(published()).values() if r["status"] == "survived"}
    assert survivors - set(mutation_scores.REASONS) == set()


@pytest.mark.release
def test_published_equivalents_are_proved_again():
    """A sample that is cheap to prove; `reports.pages.mutation_scores --prove` runs all of them."""
    claimed = [r for r in mutation_scores.merge(published()).values() if r["status"] == "equivalent"]
    assert claimed
    for name in ("host-sgld", "sgld"):
        mine = sorted((r for r in claimed if r["sampler"] == name), key=lambda r: mutation_scores.rank(r["mutant"]))[:1]
        for line in mine:
            (found,) = [m for m in mutants(name) if m.id == line["mutant"]]
            assert proof(sampler_row(name), found) == line["proof"]


def test_a_run_goes_on_and_later_tiers_turn_survivors(tmp_path, monkeypatch):
    asked = []

    def decided(self, mutant, tiers, first, programs, budget):
        asked.append(mutant.id)
        if "flip" in mutant.operator:
            kill = Kill("gaussian_limit", "law", "gaussian-1d-scaled", {}, "fail", "wrong")
            return Outcome("killed", kills=[kill], tiers={"law": True}, seconds=1.0, program=mutant.id)
        late = "invariance" in tiers
        kills = [Kill("z_test", "invariance", "double-well", {}, "fail", "wrong")] if late else []
        return Outcome("killed" if late else "survived", kills=kills, tiers={}, seconds=2.0, program=mutant.id)

    monkeypatch.setattr(Runner, "__init__", lambda self, row: setattr(self, "row", row))
    monkeypatch.setattr(Runner, "trial", decided)
    path, rows = tmp_path / "mutation.jsonl", [sampler_row("sgld")]
    mutation_scores.run(mutation_scores.Session(path, DETERMINISTIC_TIERS, None), rows, 1)
    everything, lines = list(asked), path.read_text(encoding="utf-8").splitlines()
    assert sorted(everything) == sorted(m.id for m in mutants("sgld"))
    # an interruption in the middle of a line: that mutant, and what came after it, is run again
    path.write_text("\n".join([*lines[:3], lines[3][:20]]), encoding="utf-8")
    asked.clear()
    mutation_scores.run(mutation_scores.Session(path, DETERMINISTIC_TIERS, None), rows, 1)
    assert asked == everything[3:]
    before = mutation_scores.merge(mutation_scores.read(path))
    survivors = {name for name, line in before.items() if line["status"] == "survived"}
    assert survivors == {m.id for m in mutants("sgld") if "flip" not in m.operator}
    mutation_scores.rerun_survivors(mutation_scores.Session(path, ("invariance",), None), rows)
    after = mutation_scores.merge(mutation_scores.read(path))
    assert all(line["status"] == "killed" for line in after.values())
    assert {line["seconds"] for name, line in after.items() if name in survivors} == {4.0}
    text = mutation_scores.page(mutation_scores.read(path))
    assert f"alone: {mutation_scores.rate(len(before) - len(survivors), len(before))}" in text
    assert json.loads(lines[0])["program"] == everything[0]
    # all of them through every tier, dead or not, and once only
    asked.clear()
    for _ in range(2):
        mutation_scores.by_tier(mutation_scores.Session(path, ("law",), None, fraction=0.5), rows, 1)
    assert sorted(asked) == sorted(everything)
    text = mutation_scores.page(mutation_scores.read(path))
    assert "(the statistical tiers with 0.5 of their chains)" in text
    assert f"| law | {len(before) - len(survivors)} | 100.0%" in text
