"""Rotation of costly tests: continuous integration runs a part of them, another one for each commit.

    pytest tests --costly rotate
    python -m tests.helpers.rotation TESTS.xml

The first leaves out all but one of `PARTS` parts of the groups that `rotation.tsv` lists. What is cheap, new, or was
changed lately always runs. The second adds to that list what `pytest tests --junit-xml TESTS.xml` measured; without the
list it is that of a run of all tests.

A group is what runs in one process and shares what it computes: the tests of one `xdist_group`, or one test.
"""

import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

RECORD = Path(__file__).with_name("rotation.tsv")
ROOT = Path(__file__).resolve().parents[2]
PARTS = 16
"""Parts of the costly groups, of which one commit runs one."""
COSTLY = 0.5
"""Seconds from which a group is costly."""
EVEN = 1.1
"""Ratio of the dearest part to the cheapest from which all groups are shared out anew."""
RECENT = 5
"""Commits whose changes are run by all tests that bear the name of a file that they touch."""


class Recorded(NamedTuple):
    """What a costly group was when it was measured.

    Attributes:
        part: the commits that run it; all parts take about as long.
        seconds: of all its tests together, their fixtures included.
        tests: their number; a group with another number is new.
    """

    part: int
    seconds: float
    tests: int


class Collected(NamedTuple):
    """A test that was collected: its node, its group, and the file that holds it, relative to the root."""

    node: str
    group: str
    file: str


def read(path: Path = RECORD) -> dict[str, Recorded]:
    """Name of each costly group -> what it was."""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line[:1] != "#")
    return {group: Recorded(int(part), float(seconds), int(tests)) for part, seconds, tests, group in rows}


def left_out(tests: Iterable[Collected], part: int, recorded: dict[str, Recorded], touched: set[str]) -> set[str]:
    """Nodes of the tests that a commit leaves out.

    Args:
        tests: all that were collected.
        part: of the commit.
        recorded: of the costly groups.
        touched: files, relative to the root, that were changed lately.
    """
    groups: dict[str, list[Collected]] = defaultdict(list)
    for test in tests:
        groups[test.group].append(test)
    names = {_subject(path) for path in touched}
    return {
        test.node
        for group, members in groups.items()
        if group in recorded
        and recorded[group].part != part
        and recorded[group].tests == len(members)
        and not any(test.file in touched or _subject(test.file) in names for test in members)
        for test in members
    }


def _subject(path: str) -> str:
    """The subject of a module, which `tests/a/test_b.py` and `a/b.py` share."""
    parts = Path(path).with_suffix("").parts
    if parts[0] != "tests":
        return "/".join(parts)
    return "/".join((*parts[1:-1], parts[-1].removeprefix("test_")))


class NoCommit(Exception):
    """Raised where no commit is checked out, as in a folder that was downloaded; the message is one line."""


def of_commit(root: Path = ROOT) -> tuple[int, set[str]]:
    """The part of the commit that is checked out, and the files that the latest commits have changed.

    Raises:
        NoCommit: if there is none.
    """
    commit = _git(root, "rev-parse", "HEAD").strip()
    changed = _git(root, "log", f"--max-count={RECENT}", "--name-only", "--format=")
    return int(commit, 16) % PARTS, set(changed.split())


def _git(root: Path, *arguments: str) -> str:
    try:
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[0]
        raise NoCommit(
            f"--costly rotate: a commit says which part of the tests runs, and there is none ({said})"
        ) from None


def measured(path: str, recorded: dict[str, Recorded]) -> dict[str, Recorded]:
    """The costly groups of a run, by the report that it wrote, and those that were recorded and that it left out.

    A group that has as many tests as were recorded stays what it was: what a run takes depends on what is compiled.
    """
    seconds: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for case in ElementTree.parse(path).iter("testcase"):
        found = [each.get("value") or "" for each in case.iter("property") if each.get("name") == "group"]
        for group in found:
            seconds[group] += float(case.get("time") or 0)
            tests[group] += 1
    found = {group: each for group, each in recorded.items() if tests[group] in (0, each.tests)}
    new = {group: (s, tests[group]) for group, s in seconds.items() if s >= COSTLY and group not in found}
    together = _shared_out(found, new)
    if _uneven(together):  # a group that grew may leave no part that has room for it
        together = _shared_out({}, {group: (each.seconds, each.tests) for group, each in together.items()})
    return together


def _shared_out(found: dict[str, Recorded], new: dict[str, tuple[float, int]]) -> dict[str, Recorded]:
    """What was found, and new groups by seconds and tests, the costly ones first, each in the part that has least."""
    together, sums = dict(found), sums_of(found)
    for group, (s, number) in sorted(new.items(), key=lambda item: -item[1][0]):
        part = sums.index(min(sums))
        sums[part] += s
        together[group] = Recorded(part, round(s, 1), number)
    return together


def sums_of(recorded: dict[str, Recorded]) -> list[float]:
    """Seconds of each part."""
    return [sum(each.seconds for each in recorded.values() if each.part == part) for part in range(PARTS)]


def _uneven(recorded: dict[str, Recorded]) -> bool:
    sums = sums_of(recorded)
    return 0 < EVEN * min(sums) <= max(sums)


def main(path: str) -> None:
    """Write the list of costly groups, by their names."""
    found = measured(path, read() if RECORD.exists() else {})
    lines = [f"{each.part}\t{each.seconds}\t{each.tests}\t{group}\n" for group, each in sorted(found.items())]
    RECORD.write_text("# part, seconds, tests, group\n" + "".join(lines), encoding="utf-8")
    print(f"{len(found)} costly groups, {sum(each.seconds for each in found.values()):.0f} s")


if __name__ == "__main__":
    main(sys.argv[1])
