"""Checksums of published results: those of the folder, in the form of sha256sum, and every change of a file is seen."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from sgmcmc_verification.reports.pages.checksums import NAME, differences, main
from sgmcmc_verification.reports.site.build import PUBLISHED

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    """Two files with their checksums."""
    (tmp_path / "experiments").mkdir()
    (tmp_path / "a.jsonl").write_text("abc")
    (tmp_path / "experiments" / "b c.md").write_text("")
    assert main(["--write"], tmp_path) == 0
    return tmp_path


def test_digests_are_those_of_the_standard_and_sha256sum_reads_them(folder):
    """FIPS 180-2, appendix B.1: SHA-256 of `abc`; that of nothing is its initial value for one empty block."""
    lines = (folder / NAME).read_text().splitlines()
    assert lines == [
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a.jsonl",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  experiments/b c.md",
    ]
    done = subprocess.run(["sha256sum", "-c", NAME], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_file_that_was_changed_added_or_removed_is_named(folder, capsys):
    (folder / "a.jsonl").write_text("abd")
    (folder / "new.md").write_text("")
    (folder / "experiments" / "b c.md").unlink()
    assert main([], folder) == 1
    assert capsys.readouterr().out.splitlines() == [
        "a.jsonl: was changed",
        "experiments/b c.md: is not there",
        "new.md: has no checksum",
    ]


@pytest.mark.release
def test_published_results_are_those_of_their_checksums():
    assert differences(PUBLISHED) == [], "run python -m sgmcmc_verification.reports.pages.checksums --write"


def test_the_version_is_the_same_wherever_it_is_said():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE).group(1) == version
    assert re.search(
        rf"^## \[{re.escape(version)}\] - ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
