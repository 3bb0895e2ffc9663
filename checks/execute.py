"""One check from Python, as users import it; defined in `checks.pytest_plugin.execute`."""

from checks.pytest_plugin.execute import execute, run_check

__all__ = ["execute", "run_check"]
