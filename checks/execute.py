"""Checks from Python, as users import them; defined in `checks.pytest_plugin`."""

from checks.pytest_plugin.execute import execute, run_check
from checks.pytest_plugin.verify import verify

__all__ = ["execute", "run_check", "verify"]
