from .core.check import Check as Check
from .core.check import NotApplicable as NotApplicable
from .core.result import Result as Result
from .execute import execute as execute
from .execute import run_check as run_check
from .execute import verify as verify
from .registry import CHECKS as CHECKS

__all__ = [
    "CHECKS",
    "Check",
    "NotApplicable",
    "Result",
    "execute",
    "run_check",
    "verify",
]
