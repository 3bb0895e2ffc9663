"""Is the order still there? The weak order and the leading defect of every sampler, without sampling.

asv takes lower for better, so a lost order must be a larger number: what is tracked is the *deficit* of the order.
Verdicts belong to `pytest checks`; here a change between two commits shows, also one that no verdict sees.
"""

import math

import jax

from benchmarks.subjects import SMALL_LAWS, WITH_DEFECT, WITH_ORDER, preferred
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Statement
from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import default_seed, execute
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.registry import sampler_row

RESOLUTION = 0.01
"""Deficits below this are reported as this: asv compares ratios, and extrapolated slopes carry errors up to 1e-5."""


def result_of(row: Row, statement: Statement) -> Result:
    """The result of a statement on the row's target of `SMALL_LAWS`.

    Raises:
        RuntimeError: if the statement measured nothing, which makes the benchmark fail.
    """
    jax.config.update("jax_enable_x64", True)
    result = execute(statement, Subject(row), preferred(row, SMALL_LAWS), default_seed(row.name))
    if not result.detail:
        raise RuntimeError(f"{row.name}, {statement.name} on {result.target}: {result.verdict}, {result.reason}")
    return result


def finite(value: float, row: Row) -> float:
    """A plain float; asv cannot draw one that is not finite."""
    if not math.isfinite(value):
        raise RuntimeError(f"{row.name}: the value is {value}")
    return float(value)


def order_deficit(row: Row) -> float:
    """max(p - measured, RESOLUTION), p the claimed local weak order; RESOLUTION if the step has no error at all."""
    result = result_of(row, find_statement("local_weak_order"))
    if result.effect is None:
        raise RuntimeError(f"{row.name}: {result.reason}")
    return max(finite(result.effect, row), RESOLUTION)


def defect_coefficient(row: Row) -> float:
    """max over observables f of |c_{p+1}|, in E_{z ~ pi} f(z_h) - pi(f) = c_{p+1} h^(p+1) + .., p the claimed order."""
    return finite(result_of(row, find_statement("defect")).detail["leading_coefficient"], row)


class Order:
    """Claimed minus measured local weak order."""

    params = WITH_ORDER
    param_names = ("sampler",)
    timeout = 600.0
    version = "1"
    unit = "power of h"

    def track_order_deficit(self, sampler):
        return order_deficit(sampler_row(sampler))


class Defect:
    """Size of the leading coefficient of the defect of the invariant law."""

    params = WITH_DEFECT
    param_names = ("sampler",)
    timeout = 600.0
    version = "1"
    unit = "h^-(p+1), relative to 1 + E|f|"

    def track_defect_coefficient(self, sampler):
        return defect_coefficient(sampler_row(sampler))
