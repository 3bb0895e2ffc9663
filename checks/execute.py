"""Checks from Python, as users import them; defined in `checks.runner`."""

from checks.runner.execute import execute, run_check
from checks.runner.verify import verify

__all__ = ["execute", "run_check", "verify"]
