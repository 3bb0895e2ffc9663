"""The command line that all experiments share: computed anew by default, resumed on demand, with an estimate."""

import dataclasses
import json

import pytest

from sgmcmc_verification.reports.__main__ import main
from sgmcmc_verification.reports.experiments.common import grid
from sgmcmc_verification.reports.experiments.liu2016 import figure4, table1

NAME = "some-figure"


@dataclasses.dataclass(frozen=True)
class Cell(grid.Keyed):
    number: int
    seed: int = 0


def computed(folder, *cells: Cell) -> list[int]:
    """Numbers of the cells that `append` evaluates."""
    seen: list[int] = []

    def evaluate(cell):
        seen.append(cell.number)
        return {"square": cell.number**2}

    grid.append(cells, folder / f"{NAME}.jsonl", evaluate, "abc", {})
    return seen


def started(folder, *arguments: str):
    return grid.command_line([*arguments, "--out", str(folder)], __file__, NAME, "a minute")


def test_a_run_computes_anew_and_sets_the_earlier_lines_aside_unless_it_resumes(tmp_path):
    cells = Cell(1), Cell(2)
    assert started(tmp_path) == (False, tmp_path)
    assert computed(tmp_path, cells[0]) == [1]
    assert started(tmp_path, "--resume", "--quick") == (True, tmp_path)
    assert computed(tmp_path, *cells) == [2]
    before = (tmp_path / f"{NAME}.jsonl").read_text()
    started(tmp_path)
    assert (tmp_path / f"{NAME}.jsonl.earlier").read_text() == before
    assert computed(tmp_path, *cells) == [1, 2]


def test_the_default_folder_is_not_that_of_the_published_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in ([], ["--quick"]):
        folder = grid.command_line(arguments, __file__, NAME, "a minute")[1]
        assert grid.PUBLISHED not in (tmp_path / folder, *(tmp_path / folder).parents)
    assert grid.command_line(["--quick"], __file__, NAME, "")[1] != grid.command_line([], __file__, NAME, "")[1]


@pytest.mark.parametrize("experiment", [figure4, table1])
def test_a_file_is_refused_where_a_folder_is_asked_for(experiment, tmp_path, capsys):
    with pytest.raises(SystemExit):
        experiment.main(["--out", str(tmp_path / "mine.jsonl")])
    assert f"name a folder; {experiment.NAME}.jsonl" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["run", "liu2016_table1", "--out", str(tmp_path / "mine.jsonl")])
    assert list(tmp_path.iterdir()) == []


def test_the_estimate_is_what_the_published_run_took(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(grid, "PUBLISHED", tmp_path / "published")
    (tmp_path / "published").mkdir()
    lines = [{"cell": json.loads(Cell(n).key), "result": {}, "commit": "", "versions": {}} for n in (1, 2)]
    text = "".join(json.dumps(line | {"seconds": s}) + "\n" for line, s in zip(lines, (60.0, 180.0), strict=True))
    (tmp_path / "published" / f"{NAME}.jsonl").write_text(text)
    cells = [Cell(n) for n in (1, 2, 3)]
    assert (
        grid.announcement(cells, 5, NAME)
        == f"{NAME}: 3 of 5 cells to compute, which took 6 min where they were published"
    )
    assert grid.announcement([Cell(7)], 1, NAME) == f"{NAME}: 1 of 1 cells to compute"
    computed(tmp_path, *cells)
    assert "3 of 3 cells to compute, which took 6 min" in capsys.readouterr().err
