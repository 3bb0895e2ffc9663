"""The corpus of real bugs: complete, alive, with the variances that it states, and a few verdicts anew."""

import ast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.importer import load_object
from sgmcmc_verification.checks.execute import check_sampler
from sgmcmc_verification.reports.pages import corpus
from sgmcmc_verification.reports.records.jsonl import read
from sgmcmc_verification.reports.statistics import rivals
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.sampler import Estimate, Stateless
from sgmcmc_verification.targets.registry import target

BUGS = corpus.bugs()
LINES = read(corpus.PUBLISHED)


def test_there_are_forty_bugs_and_each_is_described_in_full():
    assert len(BUGS) >= 40
    assert len({bug.id for bug in BUGS}) == len(BUGS)
    for bug in BUGS:
        assert bug.link.startswith("https://"), bug.id
        assert bug.title.strip(), bug.id
        assert bug.effect.strip(), bug.id
        assert bug.kind in corpus.NAMED_BY, bug.id
        assert bug.confirmed or bug.reason, bug.id
        assert {bug.before, bug.after} == {f"{bug.id}_before", f"{bug.id}_after"}, bug.id


def names_in(path):
    """Public names that a file of the corpus defines and that end like an object of a bug."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [node]
        names = [getattr(each, "id", getattr(each, "name", "")) for each in targets]
        yield from (n for n in names if n.endswith(("_before", "_after")) and not n.startswith("_"))


def test_the_files_of_the_corpus_hold_the_objects_of_its_bugs_and_no_others():
    held = {(path.name, name) for path in corpus.FOLDER.glob("*.py") for name in names_in(path)}
    assert held == {(bug.file, name) for bug in BUGS for name in (bug.before, bug.after)}


class Normal(Stateless):
    """U = x^2 / 2."""

    def estimate(self, key, estate, position):
        return Estimate(position, jnp.sum(position**2) / 2), estate


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.variance], ids=lambda bug: bug.id)
def test_the_variance_that_is_stated_is_that_of_the_step(bug):
    h, n = 0.2, 20_000
    sampler = load_object(bug.objects[0])
    keys = jax.random.split(jax.random.key(0), n)
    ends = jax.vmap(lambda key, x: sampler.step(key, jnp.full((1,), x), h, Normal()), (0, None))
    at_zero, at_one = (np.asarray(ends(keys, x)) for x in (0.0, 1.0))
    slope = at_one - at_zero
    assert np.ptp(slope) < 1e-12  # affine, with noise that the position does not move
    found = np.var(at_zero) / (1 - slope.mean() ** 2)
    # five standard errors of a variance whose noise has at most the kurtosis of a product of two normals
    assert found == pytest.approx(eval(bug.variance, {"h": h}), rel=5 * np.sqrt((9 - 1) / n))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.id)
def test_both_steps_run_and_keep_shapes(bug):
    for reference in bug.objects:
        value = load_object(reference)
        law = target(rivals.first_target(value))
        sampler = rivals.built(value, law)
        host = on_host(sampler)
        key = np.random.default_rng(0) if host else jax.random.key(0)
        estimator = rivals.HostExact(law) if host else rivals.Exact(law)
        start = law.example
        if bug.file == "particles.py":
            start = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf + 0.5]), start)
        state = sampler.init(key, start, estimator)
        after = sampler.step(key, state, 0.05, estimator)
        assert jax.tree.structure(after) == jax.tree.structure(state)
        for old, new in zip(jax.tree.leaves(state), jax.tree.leaves(after), strict=True):
            assert jnp.shape(old) == jnp.shape(new)
            assert jnp.asarray(old).dtype == jnp.asarray(new).dtype


ANEW = ("edward_722", "fab_jax_14")
"""Noise scale, sign of an acceptance."""


@pytest.mark.parametrize("name", ANEW)
def test_a_few_fail_before_and_pass_after(name):
    (bug,) = (bug for bug in BUGS if bug.id == name)
    assert [check_sampler(reference).conclusion.word for reference in bug.objects] == ["fail", "pass"]


def test_rivals_see_what_they_are_made_for():
    after, before = (load_object(reference) for reference in reversed(BUGS[0].objects))
    assert not rivals.finite_and_shaped(before).sees
    assert rivals.moments_within_tolerance(before).sees
    assert not rivals.moments_within_tolerance(after).sees
    assert rivals.joint_distribution(before).sees
    assert not rivals.joint_distribution(after).sees


def test_a_rival_that_does_not_run_has_no_word(monkeypatch):
    def fails(value):
        raise TypeError("no such argument")

    monkeypatch.setitem(corpus.RIVALS, "fails", fails)
    assert corpus.seen_by_rivals(BUGS[0].objects[1])["fails"] == {"sees": None, "why": "TypeError: no such argument"}


def test_lines_are_of_bugs_and_the_page_is_the_one_of_the_lines():
    decided = [line["id"] for line in LINES]
    assert len(set(decided)) == len(decided)
    assert set(decided) <= {bug.id for bug in BUGS}
    assert corpus.PAGE.read_text(encoding="utf-8") == corpus.page(LINES)


@pytest.mark.release
def test_every_bug_was_run():
    assert {line["id"] for line in LINES} == {bug.id for bug in BUGS}
