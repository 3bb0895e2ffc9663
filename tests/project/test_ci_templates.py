"""Templates for the CI of others: YAML whose commands are scripts that the tests execute, with inputs that exist."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / ".github" / "actions" / "verify" / "action.yml"
WORKFLOW = ROOT / ".github" / "workflows" / "verify.yml"
GITLAB = ROOT / ".gitlab" / "verify.yml"
TESTS = (ROOT / "tests" / "reports" / "test_continuous_integration.py").read_text(encoding="utf-8")
FOLDER = r"(?:\$GITHUB_ACTION_PATH/\.\./\.\./\.\./|\.sgmcmc-verification/)"
CALL = re.compile(rf'^"?{FOLDER}\.ci/([\w-]+)"?(?: (?:shards/\*|verification-\*|"\$BRANCH"))?$')
"""A script of `.ci`, and what follows it."""
FETCH = ('git clone --quiet "$SUITE" .sgmcmc-verification', 'git -C .sgmcmc-verification checkout --quiet "$REF"')


def load(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def values(node: Any, key: str) -> list[Any]:
    """All values of a key, at any depth."""
    if isinstance(node, dict):
        return [value for name, own in node.items() for value in ([own] if name == key else values(own, key))]
    return [value for each in node for value in values(each, key)] if isinstance(node, list) else []


def commands() -> list[str]:
    """Every command of the templates."""
    github = [run for path in (ACTION, WORKFLOW) for run in values(load(path), "run")]
    lab = [
        line
        for key in ("before_script", "script", "after_script")
        for lines in values(load(GITLAB), key)
        for line in lines
    ]
    return [*github, *(line for line in lab if line not in FETCH)]


def test_every_command_is_a_script_that_the_tests_execute():
    found = [CALL.match(command) for command in commands()]
    assert all(found), commands()
    names = {match.group(1) for match in found if match}
    assert names == {"verify", "merge", "comment", "publish-badge"}
    for name in names:
        script = ROOT / ".ci" / name
        assert script.stat().st_mode & 0o111
        assert f'repository.run("{name}"' in TESTS


def test_no_command_contains_an_expression_that_a_shell_would_read():
    assert [command for command in commands() if "${{" in command or "$[[" in command] == []


def test_variables_of_the_templates_are_those_of_the_scripts():
    given = {n for path in (ACTION, WORKFLOW) for env in values(load(path), "env") for n in env}
    given |= {name for variables in values(load(GITLAB), "variables") for name in variables}
    scripts = "".join(
        (ROOT / ".ci" / n).read_text(encoding="utf-8") for n in ("verify", "merge", "comment", "environment.sh")
    )
    own = {"BRANCH", "SUITE", "REF", "SGMCMC_CACHE_DIR"}  # of the commands above, and of the suite itself
    assert {name for name in given - own if name not in scripts} == set()
    assert {"SAMPLERS", "PACKAGE", "OPTIONS", "SHARD", "OUT", "VENV", "SGMCMC_CACHE_DIR", "GH_TOKEN"} <= given


@pytest.mark.parametrize("path", [ACTION, WORKFLOW, GITLAB], ids=lambda path: path.parts[-2])
def test_inputs_that_are_used_are_declared_and_described(path):
    text = path.read_text(encoding="utf-8")
    document = load(path)[0]
    declared = document.get("inputs") or values(document, "inputs")[0]
    used = set(re.findall(r"\$(?:\{\{[^}]*?|\[\[ )inputs\.([\w-]+)", text)) | set(re.findall(r"inputs\.([\w-]+)", text))
    assert used == set(declared)
    assert all(each["description"] for each in declared.values())


def test_the_workflow_gives_the_action_inputs_that_it_has():
    (given,) = [s["with"] for s in values(load(WORKFLOW), "steps")[0] if s.get("uses", "").startswith("./")]
    assert set(given) <= set(load(ACTION)[0]["inputs"])
    assert ACTION.parent.relative_to(ROOT).as_posix() in WORKFLOW.read_text(encoding="utf-8")


def test_the_hook_calls_the_console_script():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (hook,) = load(ROOT / ".pre-commit-hooks.yaml")[0]
    assert hook["entry"] in project["scripts"]
    assert hook["pass_filenames"] is False
