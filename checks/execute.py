"""Checks from Python, as users import them; defined in `checks.runner`."""

from checks.runner.check_sampler import check_sampler
from checks.runner.execute import execute, run_check
from checks.runner.parametrize import parametrize_with_checks
from checks.runner.report import LawNotShown, Report

__all__ = ["LawNotShown", "Report", "check_sampler", "execute", "parametrize_with_checks", "run_check"]
