"""The table of samplers on manifolds: what is run, what is skipped when it is started again, what the page says."""

import pytest

from sgmcmc_verification.reports.pages import manifolds
from sgmcmc_verification.samplers.registry import sampler_row


def line(cell, fraction, revision):
    """A result without the work: orders of 2 and distances that shrink with the step size."""
    sampled = cell.statement == manifolds.SAMPLED
    return {
        "sampler": cell.row.name,
        "target": cell.target,
        "statement": cell.statement,
        "verdict": "inconclusive" if cell.statement == "manifold_limit" else "pass",
        "effect": 0.01 * cell.factor,
        "unit": "KS distance" if cell.target == "vmf-s2" else "standardised",
        "n": 1000 if sampled else None,
        "detail": {"factor": cell.factor, "fraction": fraction, "commit": revision}
        | ({} if sampled else {"measured_order": 2.0, "bias": [0.03]}),
    }


def test_flat_targets_are_left_out_and_a_run_goes_on(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(manifolds, "decide", lambda *a: asked.append(a[0].key) or line(*a))
    path, rows = tmp_path / "m.jsonl", [sampler_row("sggmc"), sampler_row("sgld")]
    manifolds.run(rows, path, 0.5)
    curved = {name for name in rows[0].targets if not name.startswith("gaussian")} | set(manifolds.BESIDES["sggmc"])
    assert {key[1] for key in asked} == curved
    assert {key[0] for key in asked} == {"sggmc"}
    assert len(asked) == len(curved) * (2 + 3)
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + '\n{"cut', encoding="utf-8")
    manifolds.run(rows, path, 0.5)
    assert asked[-1] == asked[-2]
    assert len(asked) == len(curved) * (2 + 3) + 1
    text = manifolds.page(manifolds.read(path))
    assert "| sggmc | vmf-s2 | sphere(2) | 2.00 | 2.00 [inconclusive] (0.03) | 0.01 | 0.005 | 0.0025 | 1000 |" in text
    assert "0.01 (limit)" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--fraction", "2"], "at most 1"), (["--out", "x.txt"], ".jsonl"), (["--sampler", "sggm"], "sggmc")],
)
def test_bad_arguments_are_refused_before_any_work(arguments, words, capsys):
    with pytest.raises(SystemExit):
        manifolds.main(arguments)
    assert words in capsys.readouterr().err
