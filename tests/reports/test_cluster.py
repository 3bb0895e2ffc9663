"""Sweeps on dask.distributed: the lines of a plain sweep, each once, whatever happens to the workers."""

import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest
from distributed import LocalCluster

from sgmcmc_verification.reports.__main__ import main
from sgmcmc_verification.reports.records.jsonl import appended, read
from sgmcmc_verification.reports.runs import cluster, sweep

pytestmark = pytest.mark.xdist_group("reports_cluster")  # what the fixture makes serves one worker

FACTORS = [round(0.5 + 0.05 * i, 2) for i in range(4)]
CELLS = ["--sampler", "sgld", "--target", "gaussian-1d-scaled", "--check", "stability", "--seed", "3"]
ARGUMENTS = ["run", *CELLS, *(word for f in FACTORS for word in ("--factor", str(f)))]


def queue():
    return list(sweep.cells(["sgld"], ["gaussian-1d-scaled"], [], ["stability"], FACTORS, [3]))


@pytest.fixture(scope="module")
def local():
    """Two workers with nannies, which start a worker that died again."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as running:
        yield running


def without_time(line):
    return {key: value for key, value in line.items() if key != "seconds"}


def test_a_worker_that_is_killed_loses_nothing_and_no_cell_is_written_twice(local, tmp_path):
    path, victims = tmp_path / "sweep.jsonl", []

    def kill():
        while len(read(path)) < 2:
            time.sleep(0.01)
        time.sleep(random.random() / 10)
        victims.append(random.choice([nanny.pid for nanny in local.workers.values()]))
        os.kill(victims[0], signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    assert main([*ARGUMENTS, "--scheduler", local.scheduler_address, "--out", str(path)]) == 0
    thread.join(timeout=60)
    assert len(victims) == 1
    found = read(path)
    assert sorted(map(sweep.key_of, found)) == sorted(cell.key for cell in queue())
    # the same numbers as without a cluster
    plain = tmp_path / "plain.jsonl"
    sweep.run(queue()[:2], plain, 1.0)
    lines = {sweep.key_of(line): without_time(line) for line in found}
    assert len(read(plain)) == 2
    for line in read(plain):
        assert lines[sweep.key_of(line)] == without_time(line)


def test_a_cluster_goes_on_where_a_sweep_stopped(local, tmp_path, capsys):
    path = tmp_path / "sweep.jsonl"
    sweep.run(queue()[:4], path, 1.0)
    path.write_text(path.read_text() + '{"sampler": "sg')
    command = [*ARGUMENTS, "--scheduler", local.scheduler_address, "--out", str(path)]
    assert main(command) == 0
    assert f"{len(queue()) - 4} computed now" in capsys.readouterr().out
    assert len(read(path)) == len(queue())
    assert main(command) == 0
    assert "0 computed now" in capsys.readouterr().out


def test_two_writers_of_one_cell_write_it_once(tmp_path):
    path = tmp_path / "shared.jsonl"
    line = lambda i: json.dumps({"i": i})
    key = lambda line: line["i"]
    with appended(path, key) as one, appended(path, key) as other:
        assert [one(line(1)), other(line(1)), other(line(2)), one(line(2)), one(line(3))] == [
            True,
            False,
            True,
            False,
            True,
        ]
    assert [key(line) for line in read(path)] == [1, 2, 3]


def test_a_worker_of_another_commit_is_refused(local, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cluster, "commit", lambda: "another")
    path = tmp_path / "sweep.jsonl"
    assert main([*ARGUMENTS, "--scheduler", local.scheduler_address, "--out", str(path)]) == 2
    assert "this clone has another" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--workers", "0"], "--workers 0: must be at least 1"),
        (["--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], "not given beside --scheduler"),
    ],
)
def test_mistakes_are_named_before_a_cluster_starts(flags, message, tmp_path: Path, capsys):
    assert main([*ARGUMENTS, *flags, "--out", str(tmp_path / "sweep.jsonl")]) == 2
    assert message in capsys.readouterr().err
