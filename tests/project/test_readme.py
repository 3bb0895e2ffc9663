"""README and documentation are true: the example runs as printed; every path, option and name in them exists."""

import re
from pathlib import Path

import pytest

from checks.core.result import VERDICTS
from checks.pytest_plugin import plugin
from checks.pytest_plugin.execute import default_seed, run_check
from checks.pytest_plugin.known_failures import read
from checks.pytest_plugin.terminal import block
from checks.registry import CHECKS
from reports.__main__ import parser as reports_parser
from samplers.entry import TIERS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ROOT / "docs" / "pages"
DOCUMENTS = ("README.md", "CONTRIBUTING.md", *(f"docs/pages/{page.name}" for page in sorted(PAGES.glob("*.md"))))
LONGEST = 120
"""Lines of the README."""
EXAMPLE = "my_sampler.py:mine"
NUMBERS = ("  tolerance ", "  minimum detectable effect ")
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


@pytest.fixture
def example(tmp_path, monkeypatch):
    """The sampler of the README in a file of the printed name, in the current folder."""
    source = fenced("python")[0]
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_sampler.py").write_text(source, encoding="utf-8")
    return source


def test_the_example_fails_with_the_printed_finding(example):
    result = run_check(EXAMPLE, "gaussian_limit", "gaussian-1d-scaled")
    assert result.verdict == "fail"
    found, printed = block(result).splitlines(), fenced("text")[0].splitlines()
    assert [words_of(line) for line in found] == [words_of(line) for line in printed]
    assert result.seed == default_seed(EXAMPLE)


def test_the_example_passes_with_the_printed_remedy(example, tmp_path):
    remedy = re.search(r"With `(.*?)` it passes", README)
    assert remedy
    assert example.count("step_size**0.5") == 1
    right = example.replace("step_size**0.5", remedy.group(1))
    (tmp_path / "right.py").write_text(right, encoding="utf-8")
    assert run_check("right.py:mine", "gaussian_limit", "gaussian-1d-scaled").verdict == "pass"


def test_the_deviations_file_of_the_documentation_is_read(tmp_path):
    file = tmp_path / "known.toml"
    file.write_text(fenced("toml", page("reading-a-failure"))[0], encoding="utf-8")
    (entry,) = read(file)
    assert entry.matches("blackjax/sghmc[temperature=0.5]", "blackjax/sghmc", "gaussian_limit", "any")
    assert entry.check in {check.name for check in CHECKS}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_exists(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    beside = Path(document).parent
    links = {str(beside / link) for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link}
    links = {link for link in links if "docs/pages/reference/" not in link}  # made by the build
    folders = "targets|samplers|checks|reports|benchmarks|tests"
    paths = set(re.findall(rf"(?<![\w/.])((?:{folders})/[\w./-]*\w/?)", text))
    commands = {m.replace(".", "/") for m in re.findall(r"python -m ([\w.]+)", text) if m not in ("venv", "mkdocs")}
    modules = {m + ("/__main__.py" if (ROOT / m).is_dir() else ".py") for m in commands}
    classes = re.findall(rf"`((?:{folders})\.\w+)(?:\.[A-Z]\w*)?`", text)
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
    described = re.findall(r"^\| `(--[\w-]+) ", page("running"), re.MULTILINE)
    assert sorted(described) == sorted(added)
    others = {
        "--benchmark-only",
        "--collect-only",
        "--set-commit-hash",
        "--launch-method",
        "--yes",
        "--python",
        "--no-deps",
    }
    commands = next(a for a in reports_parser()._actions if isinstance(a.choices, dict)).choices
    of_reports = {flag for command in commands.values() for a in command._actions for flag in a.option_strings}
    of_reports |= {"--method"}  # of reports.statistics.multiple_tests
    for text in (README, *(file.read_text(encoding="utf-8") for file in PAGES.glob("*.md"))):
        assert set(re.findall(r"(?<![\w-])(--[a-z][\w-]+)", text)) <= {*added, *others, *of_reports}


def test_tables_name_the_verdicts_and_the_tiers_that_exist():
    rows = r"^\| `([\w-]+)` \|"
    assert re.findall(rows, README, re.MULTILINE) == list(VERDICTS)
    assert re.findall(rows, page("running"), re.MULTILINE) == list(dict.fromkeys(check.tier for check in CHECKS))
    assert {check.tier for check in CHECKS} == set(TIERS)


def test_continuous_integration_runs_the_test_command_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    command = re.search(r"pip install (-e '\.\[dev,peers,bridges\]') && \.venv/bin/(pytest tests)", README)
    assert command
    assert f"{command.group(1)}\n" in script
    assert f"\n{command.group(2)} " in script
