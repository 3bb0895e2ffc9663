"""Tests of the suite itself: double precision throughout, compiled programs kept, and arguments checked against their
annotated shapes.
"""

from collections.abc import Generator

import jax
import pytest
from jaxtyping import config, install_import_hook

from tests.helpers import type_check

jax.config.update("jax_enable_x64", True)

CHECKED = ("targets.numerics", "targets.manifolds", "samplers.numerics", "samplers.dynamics", "checks.statistics")
install_import_hook(CHECKED, f"{type_check.__name__}.checked")


def pytest_configure(config: pytest.Config) -> None:
    """Compile as `pytest checks` does."""
    from checks.core.compilation import configure

    configure(config.option.compilation_cache, first=not hasattr(config, "workerinput"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Skip a test for want of a library, with the command that installs it."""
    from samplers.adapters.common import MissingLibrary  # after the import hook

    try:
        return (yield)
    except MissingLibrary as error:
        pytest.skip(str(error))


@pytest.fixture
def unchecked(monkeypatch):
    """No check of annotations, so that a bad argument meets the validation of the code itself."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)
