"""Tests of the suite itself: double precision throughout, and arguments checked against their annotated shapes."""

import jax
import pytest
from jaxtyping import config, install_import_hook

from tests.helpers import type_check

jax.config.update("jax_enable_x64", True)

CHECKED = ("targets.numerics", "targets.manifolds", "samplers.numerics", "samplers.dynamics", "checks.statistics")
install_import_hook(CHECKED, f"{type_check.__name__}.checked")


@pytest.fixture
def unchecked(monkeypatch):
    """No check of annotations, so that a bad argument meets the validation of the code itself."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)
