from .core.bad_input import BadInput as BadInput
from .core.check import Check as Check
from .core.check import NotApplicable as NotApplicable
from .core.result import Result as Result
from .draws.check_draws import DrawsReport as DrawsReport
from .draws.check_draws import check_draws as check_draws
from .draws.check_draws import check_draws_folder as check_draws_folder
from .draws.problems import write_problems as write_problems
from .execute import LawNotShown as LawNotShown
from .execute import Report as Report
from .execute import check_sampler as check_sampler
from .execute import execute as execute
from .execute import parametrize_with_checks as parametrize_with_checks
from .execute import run_check as run_check
from .registry import CHECKS as CHECKS

__all__ = [
    "CHECKS",
    "BadInput",
    "Check",
    "DrawsReport",
    "LawNotShown",
    "NotApplicable",
    "Report",
    "Result",
    "check_draws",
    "check_draws_folder",
    "check_sampler",
    "execute",
    "parametrize_with_checks",
    "run_check",
    "write_problems",
]
