"""Root conftest of the clone: its own suite is what is tested, with one thread a process."""

from pathlib import Path

import pytest

import sgmcmc_verification
from sgmcmc_verification.checks.core.compilation import limit_threads

limit_threads()


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a suite that is installed from elsewhere; keep long runs fast."""
    here, found = Path(__file__).resolve().parent, Path(sgmcmc_verification.__path__[0])
    if config.rootpath == here and found != here:
        raise pytest.UsageError(f"the suite that is installed is that of {found}: run `pip install -e .` in {here}")
    if config.rootpath == here:
        from sgmcmc_verification.checks.pytest_plugin.jax_cache import register

        register(config)
