"""Tests of the suite itself: double precision throughout, compiled programs kept, and arguments checked against their
annotated shapes.
"""

import os
from collections.abc import Generator
from typing import Any

import jax
import pytest
from jaxtyping import config, install_import_hook

from tests.helpers import rotation, type_check

jax.config.update("jax_enable_x64", True)

CHECKED = (
    "sgmcmc_verification.targets.numerics",
    "sgmcmc_verification.targets.manifolds",
    "sgmcmc_verification.samplers.numerics",
    "sgmcmc_verification.samplers.dynamics",
    "sgmcmc_verification.checks.statistics",
)
install_import_hook(CHECKED, f"{type_check.__name__}.checked")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer the rotation of costly tests."""
    text = f"all costly tests (the default), or one of {rotation.PARTS} parts of them, by the commit"
    parser.getgroup("sgmcmc").addoption("--costly", choices=("all", "rotate"), default="all", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Compile as `pytest checks` does."""
    from sgmcmc_verification.checks.core.compilation import configure

    configure(config.option.compilation_cache, first=not hasattr(config, "workerinput"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of a module that have one parameter in one worker: what they cache by it is computed once.

    The fixtures of a whole module need `pytestmark = pytest.mark.xdist_group(__name__)` for that. If costly tests
    rotate, groups are left out as a whole.
    """
    for item in items:
        if (
            isinstance(item, pytest.Function)
            and hasattr(item, "callspec")
            and not any(item.iter_markers("xdist_group"))
        ):
            item.add_marker(pytest.mark.xdist_group(f"{item.module.__name__}-{item.callspec.id}"))
        item.user_properties.append(("group", _group(item)))
    if config.option.costly == "rotate":
        _rotate(config, items)


def _group(item: pytest.Item) -> str:
    marker = item.get_closest_marker("xdist_group")
    return str(marker.args[0]) if marker else item.nodeid


def _rotate(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the costly tests of the other parts."""
    try:
        part, touched = rotation.of_commit()
    except rotation.NoCommit as error:
        raise pytest.UsageError(str(error)) from None
    tests = [rotation.Collected(i.nodeid, _group(i), i.path.relative_to(config.rootpath).as_posix()) for i in items]
    without = rotation.left_out(tests, part, rotation.read(), touched)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in without])
    items[:] = [item for item in items if item.nodeid not in without]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say that a part of the tests was run."""
    if config.option.costly == "rotate":
        part, _ = rotation.of_commit()
        terminalreporter.write_line(f"costly tests: part {part + 1} of {rotation.PARTS}; all of them: pytest tests")


class AtOnce:
    """Writes a failure as soon as it is there: a run of an hour says it in the minute in which it happens."""

    def __init__(self, terminal: Any) -> None:
        self.terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Name the test and the line that failed."""
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.terminal.write_line("")
            self.terminal.write_line(f"FAILED {report.nodeid} ({report.when}): {crash or report.longrepr}")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Say failures at once where the results of all processes arrive."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(AtOnce(terminal))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Skip a test for want of a library, with the command that installs it."""
    from sgmcmc_verification.samplers.adapters.common import MissingLibrary  # after the import hook

    try:
        return (yield)
    except MissingLibrary as error:
        pytest.skip(str(error))


SETTINGS = ("enable_compilation_cache", "compilation_cache_dir", "disable_most_optimizations", "enable_x64")
FOUND = pytest.StashKey[dict[str, Any]]()


def compilation_settings() -> dict[str, Any]:
    """All that decides whether a program is found among those compiled before."""
    settings = {name: jax.config.values[f"jax_{name}"] for name in SETTINGS}
    return settings | {"XLA_FLAGS": os.environ.get("XLA_FLAGS")}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note the settings of compilation that a test finds."""
    item.stash[FOUND] = compilation_settings()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that leaves other settings of compilation: all later ones of its process would compile anew."""
    result = yield
    if item.stash[FOUND] != compilation_settings():
        pytest.fail(f"{item.nodeid} left {compilation_settings()}, where it found {item.stash[FOUND]}", pytrace=False)
    return result


@pytest.fixture
def unchecked(monkeypatch):
    """No check of annotations, so that a bad argument meets the validation of the code itself."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)
