"""Tags of a sampler: what they leave out is listed, and is never the law."""

import json
from pathlib import Path

import jax
import pytest

from sgmcmc_verification import checks
from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.tags import TAGS
from sgmcmc_verification.reports.pages.summary import summary
from sgmcmc_verification.samplers import simple_sampler

FEW = {"tiers": ["contract"], "targets": ["gaussian-1d-scaled"]}


def step(key, x, h, estimator):
    """Uses its key twice."""
    gradient = estimator.estimate(key, (), x)[0].gradient
    return x - h * gradient + (2 * h) ** 0.5 * jax.random.normal(key, x.shape, x.dtype)


class Plain:
    step = staticmethod(step)


class Tagged(Plain):
    verification_tags = ("shared-keys",)


def test_a_tag_leaves_out_statements_about_conduct_alone():
    found = [find_statement(name).decides for tag in TAGS for name in tag.statements]
    assert set(found) == {"conduct"}
    assert len({tag.name for tag in TAGS}) == len(TAGS)


def test_the_documentation_has_each_tag_with_what_it_leaves_out():
    page = (Path(__file__).resolve().parents[3] / "docs" / "pages" / "running.md").read_text(encoding="utf-8")
    for tag in TAGS:
        assert f"- `{tag.name}` ({tag.meaning}): {', '.join(f'`{name}`' for name in tag.statements)}\n" in page


def test_what_a_tag_leaves_out_is_not_run_and_is_listed_in_conclusion_text_document_and_summary(tmp_path):
    plain, tagged = checks.check_sampler(Plain, **FEW), checks.check_sampler(Tagged(), **FEW)
    assert {r.statement for r in plain.results} - {r.statement for r in tagged.results} == {"key_discipline"}
    assert (plain.conclusion.word, tagged.conclusion.word) == ("fault", "part")
    listed = ("key_discipline (shared-keys: keys are used more than once on purpose)",)
    assert (plain.conclusion.left_out, tagged.conclusion.left_out) == ((), listed)
    assert f"left out    {listed[0]}" in str(tagged)
    assert json.loads(tagged.to_json())["plan"]["Tagged"]["left_out"] == list(listed)
    tagged.write(tmp_path / "tagged.jsonl")
    text, _ = summary(tmp_path / "tagged.jsonl", None, ())
    assert f"left out: {listed[0]}" in text


def test_a_step_and_a_function_can_carry_tags():
    def tagged(*arguments):
        return step(*arguments)

    tagged.verification_tags = ("one-chain", "inert-options")
    make = lambda target: Plain()
    make.verification_tags = ("one-precision",)
    for value, names in ((simple_sampler(tagged), tagged.verification_tags), (make, make.verification_tags)):
        report = checks.check_sampler(value, ["gaussian-1d-scaled"], ["contract"], name="mine")
        expected = {name for tag in TAGS if tag.name in names for name in tag.statements}
        found = {text.split()[0] for text in report.conclusion.left_out}
        assert found
        assert found <= expected
        assert not {r.statement for r in report.results} & expected


@pytest.mark.parametrize(
    ("tags", "words"),
    [
        (("shared-key",), "verification_tags has 'shared-key'; did you mean 'shared-keys'"),
        ("shared-keys", "verification_tags must be a tuple of names, got 'shared-keys'"),
        ((1,), "must be a tuple of names"),
        (3, "must be a tuple of names"),
    ],
)
def test_a_tag_that_there_is_not_is_bad_input(tags, words):
    wrong = type("Wrong", (Plain,), {"verification_tags": tags})
    with pytest.raises(BadInput, match=words):
        checks.check_sampler(wrong, **FEW)
