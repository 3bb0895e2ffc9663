"""Checks from Python, as users import them; defined in `checks.runner`."""

from sgmcmc_verification.checks.runner.check_sampler import check_sampler
from sgmcmc_verification.checks.runner.execute import execute, run_check
from sgmcmc_verification.checks.runner.parametrize import parametrize_with_checks
from sgmcmc_verification.checks.runner.report import LawNotShown, Report

__all__ = ["LawNotShown", "Report", "check_sampler", "execute", "parametrize_with_checks", "run_check"]
