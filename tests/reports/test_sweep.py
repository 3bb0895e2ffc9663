"""The sweep: its cells, that it goes on, that two of them share a file."""

import json
from pathlib import Path

import pytest

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.reports import experiments
from sgmcmc_verification.reports.__main__ import main
from sgmcmc_verification.reports.records.jsonl import read
from sgmcmc_verification.reports.runs import sweep

FEW = ["run", "--sampler", "sgld", "--target", "gaussian-1d-scaled", "--check", "stability", "--seed", "3"]


def few(factors=(1.0,), seeds=(3,)):
    return list(sweep.cells(["sgld"], ["gaussian-1d-scaled"], [], ["stability"], factors, seeds))


def test_cells_are_the_product_of_cases_factors_and_seeds():
    one = few()
    found = few((0.5, 1.0), (3, 4))
    assert len(found) == 4 * len(one) > 0
    assert len({cell.key for cell in found}) == len(found)
    assert {cell.case.statement.name for cell in found} == {"stability"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"checks": ["stabilty"]}, "--check stabilty: no such check runs here; did you mean"),
        ({"factors": [0.0]}, "--factor 0.0: must be positive"),
        ({"samplers": ["sglt"]}, "--sampler sglt"),
    ],
)
def test_mistakes_are_named_before_work_starts(arguments, message):
    full = {"samplers": ["sgld"], "targets": [], "tiers": [], "checks": [], "factors": [1.0], "seeds": []}
    with pytest.raises(BadInput, match=message):
        list(sweep.cells(**(full | arguments)))


def test_a_check_stands_for_its_statements_and_a_former_name_for_its_successor(monkeypatch):
    names = lambda check: {c.case.statement.name for c in sweep.cells(["sgld"], [], ["law"], [check], [1.0], [3])}
    assert {"gaussian_limit", "stationary_covariance"} <= names("gaussian_law")
    monkeypatch.setitem(sweep.SUCCESSORS, "covariance_limit", "gaussian_limit")
    assert names("covariance_limit") == {"gaussian_limit"}


def test_a_sweep_goes_on_where_it_stopped_and_takes_what_another_run_wrote(tmp_path, monkeypatch):
    """The checks themselves are left out: what is computed is counted."""
    path, queue = tmp_path / "sweep.jsonl", few((0.5, 1.0, 2.0), (3, 4))
    computed = []

    def line(cell, chains, revision):
        name, statement, target, seed, factor = cell.key
        computed.append(cell.key)
        made = {"sampler": name, "statement": statement, "target": target, "seed": seed}
        return made | {"options": dict(cell.case.subject.options), "detail": {"factor": factor}}

    monkeypatch.setattr(sweep, "compute", line)
    first = queue[: len(queue) // 3]
    assert sweep.run(first, path, 1.0) == len(first)
    path.write_text(path.read_text() + '{"sampler": "sg')  # killed in the middle of a line
    assert sweep.run(queue, path, 1.0) == len(queue) - len(first)
    assert sorted(map(sweep.key_of, read(path))) == sorted(cell.key for cell in queue)
    assert len(computed) == len(queue)

    # another run finishes a later cell in the meantime
    other = tmp_path / "other.jsonl"

    def slow(cell, chains, revision):
        if cell is queue[0]:
            with other.open("a") as file:
                file.write(json.dumps(line(queue[1], chains, revision)) + "\n")
        return line(cell, chains, revision)

    monkeypatch.setattr(sweep, "compute", slow)
    assert sweep.run(queue[:3], other, 1.0) == 2
    assert sorted(map(sweep.key_of, read(other))) == sorted(cell.key for cell in queue[:3])


def test_the_command_writes_results_that_the_checks_would_write(tmp_path, capsys):
    path = tmp_path / "sweep.jsonl"
    assert main([*FEW, "--factor", "0.5", "--out", str(path)]) == 0
    found = read(path)
    assert {line["verdict"] for line in found} == {"pass"}
    assert {line["detail"]["factor"] for line in found} == {0.5}
    assert main([*FEW, "--factor", "0.5", "--out", str(path)]) == 0
    assert "0 computed now" in capsys.readouterr().out


def test_the_command_needs_a_file_and_knows_the_experiments(capsys):
    assert main(FEW) == 2
    assert "--out None: name a file" in capsys.readouterr().err
    assert main(["run", "liu2016_figure33"]) == 2
    assert "did you mean 'liu2016_figure3'" in capsys.readouterr().err
    assert {"ma2015_figure2", "liu2016_figure3", "liu2016_figure4", "liu2016_table1"} <= set(experiments.names())


def test_every_module_with_a_command_line_is_an_experiment():
    folder = Path(experiments.__file__).parent
    sources = {f"{path.parent.name}.{path.stem}": path.read_text(encoding="utf-8") for path in folder.glob("*/*.py")}
    assert {name for name, text in sources.items() if "\ndef main(" in text} == set(experiments.EXPERIMENTS)
    assert len(experiments.names()) == len(experiments.EXPERIMENTS)
