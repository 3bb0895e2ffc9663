from . import checks as checks
from . import reports as reports
from . import samplers as samplers
from . import targets as targets
from .checks import Report as Report
from .checks import check_draws as check_draws
from .checks import check_draws_folder as check_draws_folder
from .checks import check_sampler as check_sampler
from .checks import parametrize_with_checks as parametrize_with_checks
from .checks import run_check as run_check
from .checks import write_problems as write_problems

__all__ = [
    "Report",
    "check_draws",
    "check_draws_folder",
    "check_sampler",
    "checks",
    "parametrize_with_checks",
    "reports",
    "run_check",
    "samplers",
    "targets",
    "write_problems",
]
