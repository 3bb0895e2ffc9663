"""asv sees planted regressions: a scratch repository with good and bad commits, its own runs, compare and publish.

The lost order is measured by asv from the two commits' own code. A step that is 30% slower is one that does 30% more
work; both are timed here in turns, in processor time, and asv is handed the samples.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from asv.results import Results
from asv.runner import BenchmarkResult

from benchmarks.workload import stepper
from sgmcmc_verification.samplers.registry import sampler_row

pytestmark = pytest.mark.xdist_group("regressions")  # what the fixture makes serves one worker

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "samplers/underdamped/splitting.py"
RIGHT, WRONG = "word = self.scheme\n", 'word = "".join(sorted(self.scheme))\n'
"""BAOAB, and AABBO: the same flows in an order that is not symmetric."""
GOOD = BAD = 3
STEPS, ROUNDS = 4000, 60
ORDER, TIME = "order.Order.track_order_deficit", "steps.Steps.time_step"


def samples_of_time() -> tuple[list[float], list[float]]:
    """Processor seconds of STEPS steps of SGLD, and of 30% more, in units of the mean of each round of the two.

    What the machine does beside it slows both of a round, and cancels.
    """
    works = [stepper(sampler_row("sgld"), n, chains=1) for n in (STEPS, STEPS * 13 // 10)]
    found = []
    for _ in range(ROUNDS + 1):
        ticks = [time.process_time()]
        for work in works:
            work()
            ticks.append(time.process_time())
        first, second = ticks[1] - ticks[0], ticks[2] - ticks[1]
        found.append((first / (first + second), second / (first + second)))
    return [a for a, _ in found[1:]], [b for _, b in found[1:]]


class Scratch:
    """A repository with copies of what is measured, and a machine of its own."""

    def __init__(self, folder: Path):
        self.root = folder / "scratch"
        for name in ("targets", "samplers", "checks", "reports", "benchmarks", "docs/namespace"):
            ignored = shutil.ignore_patterns("__pycache__", "test_*", "published")
            shutil.copytree(ROOT / name, self.root / name, symlinks=True, ignore=ignored)
        shutil.copy(ROOT / "asv.conf.json", self.root)
        (self.root / ".gitignore").write_text(".asv/\n__pycache__/\n")
        self.environment = os.environ | {
            "HOME": str(folder),
            "ASV_PYTHONPATH": str(self.root / "docs" / "namespace"),
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@example.org",
        }
        self.run("git", "init", "-q", "-b", "main")
        self.asv("machine", "--yes")
        self.commits = [self.commit(number) for number in range(GOOD)]
        source = (self.root / SOURCE).read_text()
        assert source.count(RIGHT) == 1
        (self.root / SOURCE).write_text(source.replace(RIGHT, WRONG))
        self.commits += [self.commit(number) for number in range(GOOD, GOOD + BAD)]

    def run(self, *command: str) -> str:
        result = subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def asv(self, *arguments: str) -> str:
        return self.run(sys.executable, "-m", "asv", *arguments)

    def commit(self, number: int) -> str:
        self.environment["GIT_COMMITTER_DATE"] = f"2020-01-0{number + 1}T12:00:00+00:00"
        self.run("git", "add", "--all")
        self.run("git", "commit", "-q", "--allow-empty", "-m", f"commit {number}")
        return self.run("git", "rev-parse", "HEAD").strip()

    def measure(self, commit: str) -> None:
        """As CONTRIBUTING says."""
        self.run("git", "checkout", "-q", commit)
        same = ("--python=same", "--set-commit-hash", commit, "--launch-method", "spawn")
        self.asv("run", *same, "-b", "order.Order.*baoab")

    def results(self, commit: str) -> Path:
        (found,) = (self.root / ".asv" / "results").glob(f"*/{commit[:8]}*.json")
        return found


@pytest.fixture(scope="module")
def scratch(tmp_path_factory) -> Scratch:
    """With the results of all commits; those with the same code as another have its results."""
    made = Scratch(tmp_path_factory.mktemp("regressions"))
    first, planted = made.commits[0], made.commits[GOOD]
    for commit in (first, planted):
        made.measure(commit)
    good, bad = samples_of_time()
    benchmark = json.loads((made.root / ".asv/results/benchmarks.json").read_text())[TIME]
    rows = benchmark["params"][0]
    for number, commit in enumerate(made.commits):
        model = made.results(first if number < GOOD else planted)
        lines = json.loads(model.read_text())
        lines["commit_hash"] = commit
        lines["date"] = int(made.run("git", "show", "-s", "--format=%ct", commit)) * 1000
        path = model.with_name(model.name.replace(model.name.split("-")[0], commit[:8]))
        path.write_text(json.dumps(lines))
        found = Results.load(str(path))
        mine = good if number < GOOD else bad
        times = {"'sgld'": mine, "'mala'": good}  # the second does not change
        values = BenchmarkResult(
            [float("nan") if row not in times else min(times[row]) for row in rows],
            [times.get(row) for row in rows],
            [1 if row in times else None for row in rows],
            0,
            "",
            None,
        )
        found.add_result(benchmark, values, record_samples=True)
        found.save(str(made.root / ".asv" / "results"))
    return made


def test_compare_shows_the_lost_order_and_the_slower_step_and_nothing_else(scratch):
    before, after = scratch.commits[GOOD - 1 : GOOD + 1]
    table = scratch.asv("compare", before, after, "--only-changed", "--factor", "1.1")
    worse = [line for line in table.splitlines() if line.startswith("| +")]
    assert len(worse) == 2, table
    assert sum(f"{ORDER}('baoab')" in line for line in worse) == 1
    assert sum(f"{TIME}('sgld')" in line for line in worse) == 1


def test_publish_lists_both_regressions_at_the_planted_commit(scratch):
    scratch.asv("publish")
    html = scratch.root / ".asv" / "html"
    assert (html / "index.html").is_file()
    found = {r[0]: r for r in json.loads((html / "regressions.json").read_text())["regressions"]}
    assert set(found) == {f"{ORDER}('baoab')", f"{TIME}('sgld')"}
    revisions = json.loads((html / "index.json").read_text())["revision_to_hash"]
    for name, (*_, last, best, jumps) in found.items():
        assert [revisions[str(after)] for _, after, *_ in jumps] == [scratch.commits[GOOD]], name
        assert last > 1.2 * best
    # BAOAB has order 2, AABBO order 1
    assert found[f"{ORDER}('baoab')"][4] == pytest.approx(1.0, abs=0.1)
