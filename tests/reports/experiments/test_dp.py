"""Experiments on the Dirichlet-process mixture: a killed run goes on to the same samples, published lines."""

import json
from dataclasses import replace

import numpy as np
import pytest

from sgmcmc_verification.reports.experiments.baker2018 import figure3b as figure
from sgmcmc_verification.reports.experiments.common.grid import PUBLISHED, load
from sgmcmc_verification.reports.experiments.original import dp_bias as tiny
from sgmcmc_verification.samplers.runner import checkpoint
from sgmcmc_verification.samplers.runner.loop import Loop
from sgmcmc_verification.samplers.topic_models.dp.run import run_dp
from sgmcmc_verification.samplers.topic_models.dp.slice import StepSizes, log_predictive
from sgmcmc_verification.targets.datasets.files import CACHE_VARIABLE

CELLS = {s.method: figure.Cell(s, 60, 0, "generated") for s in (figure.SCIR, figure.SGRLD, figure.GIBBS)}
LOOP = Loop(evaluate_every=10, checkpoint_every=20)


class Killed(Exception):
    """Stands for the end of a process."""


def arguments(cell):
    sampler, users, sizes = figure.sampler_of(cell)
    test = figure.problem(cell.data)[1]
    return (sampler, users, sizes), {
        "iterations": cell.iterations,
        "seed": cell.seed,
        "score": lambda state: (log_predictive(state, test),),
    }


@pytest.mark.parametrize("method", CELLS)
def test_a_killed_run_goes_on_to_the_same_samples_bit_for_bit(method, tmp_path):
    given, options = arguments(CELLS[method])
    whole = run_dp(*given, **options, loop=LOOP)
    calls, score = [], options["score"]

    def dies(state):
        calls.append(1)
        if len(calls) == 5:  # at iteration 40, after the checkpoint of 20 and before that of 40
            raise Killed
        return score(state)

    file = tmp_path / "run.npz"
    with pytest.raises(Killed):
        run_dp(*given, **{**options, "score": dies}, loop=replace(LOOP, checkpoint=file))
    steps = []
    counted = lambda state: steps.append(1) or score(state)
    resumed = run_dp(*given, **{**options, "score": counted}, loop=replace(LOOP, checkpoint=file))
    assert len(steps) == 4  # iterations 30, 40, 50 and 60 alone
    np.testing.assert_array_equal(resumed.scores, whole.scores)
    for one, two in zip(resumed.state, whole.state, strict=True):
        np.testing.assert_array_equal(one, two)
    assert np.all(np.diff(resumed.seconds) > 0)
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


def test_a_checkpoint_of_another_run_or_a_damaged_one_is_refused_with_a_remedy(tmp_path):
    given, options = arguments(CELLS["SCIR"])
    file = tmp_path / "run.npz"
    run_dp(*given, **{**options, "iterations": 20}, loop=replace(LOOP, checkpoint=file))
    for change in ({"seed": 1}, {"fingerprint": {"cell": "another"}}):
        with pytest.raises(checkpoint.CheckpointError, match="belongs to another run"):
            run_dp(*given, **{**options, **change}, loop=replace(LOOP, checkpoint=file))
    with pytest.raises(checkpoint.CheckpointError, match="step_size"):
        run_dp(given[0], given[1], StepSizes(0.1, 0.2), **options, loop=replace(LOOP, checkpoint=file))
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(checkpoint.CheckpointError, match=r"run\.npz.* truncated .* delete it"):
        run_dp(*given, **options, loop=replace(LOOP, checkpoint=file))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"iterations": 15}, "iterations: must be a multiple"),
        ({"loop": Loop(checkpoint_every=15)}, "checkpoint_every: must be"),
    ],
)
def test_bad_arguments_of_a_run_are_named(change, words):
    given, options = arguments(CELLS["SCIR"])
    with pytest.raises(ValueError, match=words):
        run_dp(*given, **{**options, **change})


def test_a_run_shows_its_progress(capsys):
    given, options = arguments(replace(CELLS["SCIR"], iterations=10))
    run_dp(*given, **options, loop=replace(LOOP, progress=True))
    assert "10/10" in capsys.readouterr().err


def test_the_quick_figure_is_made_without_data_and_a_second_run_adds_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    out = tmp_path / "out"
    assert figure.main(["--quick", "--out", str(out)]) == 0
    before = (out / f"{figure.NAME}.jsonl").read_text(encoding="utf-8")
    assert len(before.splitlines()) == len(figure.plan(True))
    assert (out / f"{figure.NAME}.png").stat().st_size > 10_000
    monkeypatch.setattr(figure, "measured", lambda cell: pytest.fail("computed again"))
    figure.main(["--quick", "--resume", "--out", str(out)])
    assert (out / f"{figure.NAME}.jsonl").read_text(encoding="utf-8") == before
    scores = [json.loads(line)["result"]["score"] for line in before.splitlines()]
    assert all(score[-1] < score[0] for score in scores)
    assert list((tmp_path / "cache" / "runs").iterdir()) == []


def test_the_published_figure_has_five_seeds_and_the_gibbs_sampler_below_scir():
    found = figure.results(load(PUBLISHED / f"{figure.NAME}.jsonl"), quick=False)
    assert {s: len(runs) for s, runs in found.items()} == {
        **dict.fromkeys(figure.MAIN, 5),
        **dict.fromkeys(figure.ASIDE, 2),
    }
    assert {len(r["score"]) for runs in found.values() for r in runs} == {101}
    worst = {s: max(map(figure.final, runs)) for s, runs in found.items()}
    best = {s: min(map(figure.final, runs)) for s, runs in found.items()}
    assert worst[figure.SCIR] < best[figure.SGRLD]
    assert worst[figure.GIBBS] < best[figure.SCIR]


def test_the_published_table_calls_gibbs_and_scir_exact_with_all_users_and_minibatches_biased():
    lines = load(PUBLISHED / f"{tiny.NAME}.jsonl")
    beyond = {}
    for c in tiny.plan(False):
        value, error = lines[c.key]["result"]["components"]
        beyond[c.method, c.step_size, c.batch, c.fixed] = abs(value) / error
    assert beyond["Gibbs", 0.0, 8, True] < tiny.QUANTILE
    assert beyond["Gibbs", 0.0, 8, False] < tiny.QUANTILE
    assert beyond["SCIR", 10.0, 8, True] < tiny.QUANTILE
    assert beyond["Gibbs", 0.0, 2, True] > tiny.QUANTILE


def test_the_summary_of_exact_draws_is_explained_by_chance():
    generator = np.random.default_rng(0)
    draws = tiny.posterior(False).draw(generator, 2000)
    labels = np.array([z for _, z in draws]).reshape(tiny.BLOCKS, -1, len(tiny.TABLE))
    same = (labels[..., :, None] == labels[..., None, :]).mean(axis=1)
    counts = np.array([[np.bincount([len(set(z.tolist())) - 1 for z in block], minlength=8)] for block in labels])
    blocks = counts[:, 0] / labels.shape[1]
    alphas = np.array([a for a, _ in draws]).reshape(tiny.BLOCKS, -1).mean(axis=1)
    found = tiny.summary(same, blocks, alphas, fixed=False)
    assert all(abs(found[name][0]) < tiny.QUANTILE * found[name][1] for name in ("pair", "components", "alpha"))
