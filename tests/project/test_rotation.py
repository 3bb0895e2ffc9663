"""Rotation of costly tests: what may be left out by a commit, and what may not."""

import subprocess
import sys

import pytest

from tests.helpers.rotation import (
    EVEN,
    PARTS,
    RECORD,
    ROOT,
    Collected,
    NoCommit,
    Recorded,
    left_out,
    measured,
    of_commit,
    read,
    sums_of,
)

TESTS = [
    Collected(f"tests/a/test_b.py::test_{i}[{c}]", f"group-{i}", "tests/a/test_b.py") for i in range(40) for c in "xy"
]
RECORDED = {test.group: Recorded(int(test.group.split("-")[1]) % PARTS, 9.0, 2) for test in TESTS}


def test_each_costly_group_runs_in_one_part_and_as_a_whole():
    ran = [{t.node for t in TESTS} - left_out(TESTS, part, RECORDED, set()) for part in range(PARTS)]
    assert sorted(node for nodes in ran for node in nodes) == sorted(t.node for t in TESTS)
    assert all(ran)
    for nodes in ran:
        assert all((a.node in nodes) == (b.node in nodes) for a, b in zip(TESTS[::2], TESTS[1::2], strict=True))


@pytest.mark.parametrize(
    ("recorded", "touched"),
    [
        pytest.param({}, set(), id="cheap"),
        pytest.param({group: each._replace(tests=1) for group, each in RECORDED.items()}, set(), id="one-test-is-new"),
        pytest.param(RECORDED, {"tests/a/test_b.py"}, id="changed-itself"),
        pytest.param(RECORDED, {"a/b.py"}, id="its-subject-changed"),
    ],
)
def test_nothing_else_is_left_out(recorded, touched):
    assert not any(left_out(TESTS, part, recorded, touched) for part in range(PARTS))


def test_other_changes_do_not_bring_it_back():
    assert left_out(TESTS, 0, RECORDED, {"a/c.py", "b.py", "README.md"}) == left_out(TESTS, 0, RECORDED, set())


def test_a_report_tells_what_is_costly(tmp_path):
    group = '<properties><property name="group" value="{}"/></properties>'
    case = lambda name, time, of: f'<testcase name="{name}" time="{time}">{group.format(of)}</testcase>'
    (tmp_path / "tests.xml").write_text(
        f"<testsuites>{case('a', 1.5, 'g')}{case('b', 1.25, 'g')}{case('c', 0.4, 'h')}</testsuites>", encoding="utf-8"
    )
    report = str(tmp_path / "tests.xml")
    assert measured(report, {}) == {"g": Recorded(0, 2.8, 2)}
    left_out, as_it_was = Recorded(0, 5.0, 1), Recorded(3, 7.0, 2)
    assert measured(report, {"k": left_out}) == {"k": left_out, "g": Recorded(1, 2.8, 2)}
    assert measured(report, {"g": as_it_was}) == {"g": as_it_was}
    assert measured(report, {"g": as_it_was._replace(tests=3)}) == {"g": Recorded(0, 2.8, 2)}


def test_groups_are_shared_out_anew_where_one_that_grew_leaves_no_room(tmp_path):
    group = '<properties><property name="group" value="grown"/></properties>'
    (tmp_path / "tests.xml").write_text(
        f'<testsuites><testcase name="a" time="30">{group}</testcase></testsuites>', encoding="utf-8"
    )
    others = {f"{part}, {i}": Recorded(part, 1.0, 1) for part in range(PARTS) for i in range(20)}
    found = measured(str(tmp_path / "tests.xml"), {**others, "grown": Recorded(0, 1.0, 2)})
    assert {group: each for group, each in found.items() if each.seconds > 1} == {"grown": Recorded(0, 30.0, 1)}
    assert found.keys() == {*others, "grown"}
    rest = sums_of(found)[1:]
    assert max(rest) < EVEN * min(rest)


def test_a_folder_without_a_commit_is_told_in_one_line(tmp_path):
    with pytest.raises(
        NoCommit, match=r"^--costly rotate: a commit says which part .*\(fatal: not a git repository[^\n]*$"
    ):
        of_commit(tmp_path)


def test_the_parts_are_of_one_size():
    """Within a tenth of one another, so that no commit waits long."""
    seconds = sums_of(read(RECORD))
    assert max(seconds) < EVEN * min(seconds)


def test_a_run_by_the_option_leaves_out_other_parts_and_says_so():
    """Collected twice, with all tests and in rotation: what is missing is costly, recorded, and of another part."""
    command = [sys.executable, "-m", "pytest", "tests/targets", "--collect-only", "-q"]
    run = lambda *more: subprocess.run([*command, *more], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    everything, rotated = run(), run("--costly", "rotate")
    nodes = lambda output: {line for line in output.splitlines() if "::" in line}
    assert nodes(rotated) < nodes(everything)
    assert f"part {of_commit()[0] + 1} of {PARTS}" in rotated
