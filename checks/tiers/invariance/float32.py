"""Single precision: chains in float32 have the law of chains in float64, up to a bound of the round-off."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.check import Case, NotApplicable, require_stationary_law, statement
from sgmcmc_verification.checks.core.finding import Finding
from sgmcmc_verification.checks.core.precision import in_dtype
from sgmcmc_verification.checks.core.selection import last, several
from sgmcmc_verification.checks.end_points.chains import end_points
from sgmcmc_verification.checks.end_points.comparison import is_variance
from sgmcmc_verification.checks.end_points.error_rates import (
    CHAINS,
    Sensitivity,
    chains_for,
    decide_statistically,
    not_finite,
    stage_seed,
)
from sgmcmc_verification.checks.exact_laws.exact_draws import draw_variables
from sgmcmc_verification.checks.numerics.observables import observable_names, observables
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.outcome import Outcome
from sgmcmc_verification.checks.tracing.step_map import JaxStep, step_map

HALVINGS = 7
"""The step size is the smallest of the ladder of the law tier, h / 2^HALVINGS."""
NUM_STEPS = 128
"""Steps: so much drift of size h, lost below one unit in the last place, would show."""
OPERATIONS = 16
"""Roundings of a coordinate in one step, each of at most half a unit in the last place of the largest operand."""
MOST = CHAINS // 8
VARIANCE = 0.03
"""Promised: relative change of a variance."""


@statement(
    tier="invariance",
    equation="E f(z_n) in single precision = E f(z_n) in double precision, up to round-off",
    targets=last(several),
    cost=6.0,
    decides="conduct",
    samples=True,
    once=True,
)
def float32_law(case: Case, seed: int) -> Finding:
    """At the smallest step size of the ladder the law in single precision is that in double precision.

    Chain i starts at the same point in both, so that the difference of f at the two end points has a small variance. A
    coordinate is rounded `OPERATIONS` times a step, so that after n steps it is off by at most

        delta = n k (u / 2) max |x| / sigma,   u = 2^-23

    standard deviations, and E f(y) by at most E |f(y + delta sign y) - f(y)|. Smaller steps lose the drift where
    h |f| < u |x| / 2, larger ones show nothing of it.
    """
    double = step_map(case.subject, case.target)
    if double.sampler.backend == "host":
        raise NotApplicable("a host sampler computes in the precision of its own arrays")
    claims = double.sampler.claims
    require_stationary_law(claims)
    single = step_map(case.subject, in_dtype(case.target, jnp.float32))
    assert isinstance(single, JaxStep)
    h = case.step_size / 2**HALVINGS
    count = chains_for(double, MOST)

    def run(stage: int, n: int) -> Sequence[Outcome]:
        starts = draw_variables(double, np.random.default_rng(stage_seed(seed, stage, 1)), n)
        starts = starts.astype(np.float32).astype(float)  # the same points in both precisions
        x, y = (
            end_points(step, starts, h, NUM_STEPS, stage_seed(seed, stage, 2 + k)).variable.astype(float)
            for k, step in enumerate((double, single))
        )
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            return [not_finite("end points that are not finite", n, "standardised")]
        centre, spread = x.mean(axis=0), x.std(axis=0)
        names = observable_names(tuple(f"z[{i}]" for i in range(len(centre))))
        largest = np.abs(x).max(axis=0)
        x, y = (x - centre) / spread, (y - centre) / spread
        delta = _roundoff() * largest / spread
        first, second = np.asarray(observables(x)), np.asarray(observables(y))
        moved = np.abs(np.asarray(observables(x + delta * np.sign(x))) - first).mean(axis=0)
        return [
            mean_test(second[:, j] - first[:, j], 0.0, name=name, unit="standardised", allowance=float(moved[j]))
            for j, name in enumerate(names)
        ]

    return decide_statistically(
        run,
        first_n=count,
        promised=Sensitivity(VARIANCE, chains=MOST, primary=is_variance).of(count),
        allowance_source=f"{OPERATIONS} roundings of each coordinate in each of {NUM_STEPS} steps",
        reason=lambda o: f"{o.name} in single less that in double precision is {o.effect:.3g} (h = {h:.3g})",
        steps=2 * NUM_STEPS,
        step_size=h,
    )


def _roundoff() -> float:
    """Largest relative error of a coordinate after all steps."""
    return NUM_STEPS * OPERATIONS * float(jnp.finfo(jnp.float32).eps) / 2
