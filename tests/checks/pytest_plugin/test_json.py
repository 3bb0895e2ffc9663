"""The document of `--json`: valid by its schema, the same text each time, alone on standard output, from Python too."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import msgspec
import pytest

from sgmcmc_verification.checks import check_sampler
from sgmcmc_verification.checks.core.importer import load_object
from sgmcmc_verification.checks.runner.document import Document
from tests.checks.pytest_plugin.test_exit_codes import CODE, ROOT

SCHEMA = msgspec.json.schema(Document)
PART = ("--target", "gaussian-1d-scaled", "-k", "gaussian_limit or shapes_and_dtypes")


@pytest.fixture
def sampler(tmp_path):
    """Path of a file with samplers."""
    path = tmp_path / "mine.py"
    path.write_text(CODE, encoding="utf-8")
    return path


def run(path, *arguments):
    """`pytest checks` in its own process: (exit code, standard output, standard error)."""
    command = [sys.executable, "-m", "pytest", str(ROOT / "checks"), "-p", "no:cacheprovider", "--sampler", *arguments]
    found = subprocess.run(command, capture_output=True, text=True, cwd=path.parent, env={**os.environ}, check=False)
    return found.returncode, found.stdout, found.stderr


def test_standard_output_is_the_document_alone_and_the_same_when_the_same_is_run_again(sampler):
    first, second = (run(sampler, f"{sampler}:wrong", *PART, "--json", "-") for _ in range(2))
    assert first[1] == second[1]
    code, out, rest = first
    found = json.loads(out)
    jsonschema.validate(found, SCHEMA)
    assert (code, found["good"]) == (1, False)
    (conclusion,) = found["conclusions"]
    assert (conclusion["word"], conclusion["law"]) == ("fail", "violated")
    assert conclusion["diagnosis"] in " ".join(rest.split())
    assert list(found)[:2] == ["schema", "command"]
    assert {r["statement"] for r in found["results"]} >= {"gaussian_limit", "shapes_and_dtypes"}
    assert found["plan"][conclusion["sampler"]]["part"]


def test_it_can_be_a_file_and_comes_from_two_processes_in_the_same_order(sampler, tmp_path, capsys):
    texts = []
    for workers in ("0", "2"):
        path = tmp_path / f"{workers}.json"
        options = ["-p", "no:cacheprovider", "-n", workers, "--sampler", "sgld", "--sampler", f"{sampler}:right"]
        assert pytest.main([str(ROOT / "checks"), *options, *PART, "--json", str(path)]) == 0, capsys.readouterr().out
        found = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.validate(found, SCHEMA)
        texts.append([(r["sampler"], r["statement"], r["target"], r["effect"]) for r in found["results"]])
    assert texts[0] == texts[1]
    assert {r[0] for r in texts[0]} > {"sgld"}


def test_a_mistake_on_the_command_line_writes_no_document(sampler, tmp_path):
    code, out, rest = run(sampler, f"{sampler}:right", "--target", "no-such", "--json", "-")
    assert (code, out) == (4, "")
    assert "ERROR: --target no-such" in rest
    code, out, rest = run(sampler, f"{sampler}:right", "--json", str(tmp_path / "no" / "file"))
    assert code == 4
    assert "--json" in rest


def test_a_run_that_was_cut_short_says_so(sampler, tmp_path, capsys):
    path = tmp_path / "cut.json"
    options = ["-p", "no:cacheprovider", "-x", "--sampler", f"{sampler}:wrong", "--tier", "law", "-k", "gaussian_l"]
    assert pytest.main([str(ROOT / "checks"), *options, "--json", str(path)]) == 1, capsys.readouterr().out
    found = json.loads(path.read_text(encoding="utf-8"))
    ((_, plan),) = found["plan"].items()
    assert 0 < len(found["results"]) < plan["cases"]


def test_from_python_it_is_the_same_document(sampler):
    report = check_sampler(load_object(f"{sampler}:right"), ["gaussian-1d-scaled"], ["contract"])
    found = json.loads(report.to_json())
    jsonschema.validate(found, SCHEMA)
    assert [r["statement"] for r in found["results"]] == [r.statement for r in report.results]
    assert Path(found["command"]).name.startswith("checks.check_sampler")
