"""README and documentation are true: the example runs as printed; every path, option and name in them exists."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sgmcmc_verification.checks.core.conclusion import WORDS
from sgmcmc_verification.checks.core.result import VERDICTS
from sgmcmc_verification.checks.pytest_plugin import plugin
from sgmcmc_verification.checks.registry import STATEMENTS
from sgmcmc_verification.checks.runner.expected_failures import read
from sgmcmc_verification.samplers.entry import TIERS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ROOT / "docs" / "pages"
DOCUMENTS = ("README.md", "CONTRIBUTING.md", *(f"docs/pages/{page.name}" for page in sorted(PAGES.glob("*.md"))))
LONGEST = 120
"""Lines of the README."""
EXAMPLE = "my_sampler.py:mine"
NUMBERS = ("  tolerance ", "  minimum detectable effect ", "  would see ")
"""Lines whose numbers are round-off, and so differ from one processor to another."""


def fenced(language: str, text: str = README) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    """Text of a page of the documentation."""
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def words_of(line: str) -> str:
    """The line without its numbers if they are round-off."""
    return re.sub(r"\d+(\.\d+)?(e-?\d+)?", "#", line) if line.startswith(NUMBERS) else line.rstrip()


def excerpts(text: str) -> list[str]:
    """The parts of a printed block, which `...` lines separate."""
    return ["\n".join(map(words_of, part.strip("\n").splitlines())) for part in re.split(r"^\.\.\.$", text, flags=re.M)]


def checked(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """`pytest checks` of the sampler of the README, from a folder that holds it."""
    (folder / "my_sampler.py").write_text(source, encoding="utf-8")
    (folder / "checks").symlink_to(ROOT / "checks")  # as in the clone, from which the README runs
    arguments = [
        str(ROOT / "checks"),
        "-c",
        str(ROOT / "pyproject.toml"),
        "-p",
        "no:cacheprovider",
        "--sampler",
        EXAMPLE,
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "docs" / "namespace")}
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_example_fails_as_printed(tmp_path):
    done = checked(tmp_path, fenced("python")[0])
    assert done.returncode == 1, done.stdout + done.stderr
    found = "\n".join(map(words_of, done.stdout.splitlines()))
    printed = [part for text in (README, page("reading-a-failure")) for part in excerpts(fenced("text", text)[0])]
    assert [part for part in printed if part not in found] == []
    assert len(printed) > 2


def test_the_example_passes_with_the_printed_remedy(tmp_path):
    remedy = re.search(r"With `(.*?)` it passes: `law holds to order 1`, `conduct clean`", README)
    assert remedy
    example = fenced("python")[0]
    assert example.count("step_size**0.5") == 1
    done = checked(tmp_path, example.replace("step_size**0.5", remedy.group(1)))
    assert done.returncode == 0, done.stdout + done.stderr
    found = "\n".join(map(words_of, done.stdout.splitlines()))
    assert [part for part in excerpts(fenced("text", page("reading-a-failure"))[1]) if part not in found] == []
    assert re.search(r"law +holds to order 1", found)
    assert re.search(r"conduct +clean", found)


def test_the_expected_failures_of_the_documentation_are_read(tmp_path):
    file = tmp_path / "known.toml"
    file.write_text(fenced("toml", page("reading-a-failure"))[0], encoding="utf-8")
    (entry,) = read(file)
    assert entry.matches("blackjax/sghmc[temperature=0.5]", "blackjax/sghmc", "gaussian_limit", "any")
    assert entry.statement in {check.name for check in STATEMENTS}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_exists(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    beside = Path(document).parent
    links = {str(beside / link) for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link}
    links = {link for link in links if "docs/pages/reference/" not in link}  # made by the build
    folders = "targets|samplers|checks|reports|benchmarks|tests"
    paths = set(re.findall(rf"(?<![\w/.])((?:{folders})/[\w./-]*\w/?)", text))
    commands = {
        m.removeprefix("sgmcmc_verification.").replace(".", "/")
        for m in re.findall(r"python -m ([\w.]+)", text)
        if m not in ("venv", "mkdocs")
    }
    modules = {m + ("/__main__.py" if (ROOT / m).is_dir() else ".py") for m in commands}
    classes = re.findall(rf"`(?:sgmcmc_verification\.)?((?:{folders})\.\w+)(?:\.[A-Z]\w*)?`", text)
    modules |= {m.replace(".", "/") + ".py" for m in classes}
    modules |= {"asv.conf.json"} if "`asv run`" in text else set()
    assert {p for p in links | paths | modules if not (ROOT / p).exists()} == set()


def test_the_readme_is_short():
    assert len(README.splitlines()) <= LONGEST


def test_options_are_those_of_the_plugin():
    added: list[str] = []

    class Parser:
        def getgroup(self, *args):
            return self

        def addoption(self, name, **kwargs):
            added.append(name)

    plugin.pytest_addoption(Parser())
    plugin._add_options(Parser())
    described = re.findall(r"^\| `(--[\w-]+)[ `]", page("running"), re.MULTILINE)
    assert sorted(described) == sorted(added)
    others = {
        "--benchmark-only",
        "--collect-only",
        "--costly",  # of tests/conftest.py
        "--dist",
        "--set-commit-hash",
        "--launch-method",
        "--yes",
        "--python",
        "--no-deps",
        "--hook-type",
    }
    from sgmcmc_verification.reports.__main__ import parser as reports_parser  # it loads pandas

    commands = next(a for a in reports_parser()._actions if isinstance(a.choices, dict)).choices
    of_reports = {flag for command in commands.values() for a in command._actions for flag in a.option_strings}
    of_reports |= {
        "--method",
        "--quick",
        "--resume",
    }  # of reports.statistics.multiple_tests, reports.experiments.common.cli
    for text in (README, *(file.read_text(encoding="utf-8") for file in PAGES.glob("*.md"))):
        assert set(re.findall(r"(?<![\w-])(--[a-z][\w-]+)", text)) <= {*added, *others, *of_reports}


def test_tables_name_the_words_the_verdicts_and_the_tiers_that_exist():
    rows = r"^\| `([a-z][\w-]*)` \|"
    assert dict(re.findall(r"^\| `(\w+)` \| (.*?) \|$", README, re.MULTILINE)) == WORDS
    assert re.findall(rows, page("reading-a-failure").split("## Results")[1].split("\n## ")[0], re.MULTILINE) == list(
        VERDICTS
    )
    assert re.findall(rows, page("running"), re.MULTILINE) == list(dict.fromkeys(check.tier for check in STATEMENTS))
    assert {check.tier for check in STATEMENTS} == set(TIERS)


def test_continuous_integration_runs_the_test_command_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    command = re.search(r"pip install (-e '\.\[dev,peers,bridges\]') && \.venv/bin/(pytest tests) -n auto(.*)", README)
    assert command
    assert f"{command.group(1)}\n" in script
    assert re.search(rf'^run "[^"]+" {command.group(2)} -n 2{command.group(3)} ', script, re.MULTILINE)
