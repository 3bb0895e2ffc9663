"""Stationary law of a step on a one-dimensional target that is not Gaussian, on a grid."""

import numpy as np

from sgmcmc_verification.checks.core.check import Case, Inconclusive, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.obligations import of_target
from sgmcmc_verification.checks.core.selection import curved_line, last
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import position_rule
from sgmcmc_verification.checks.exact_laws.transfer_operator import GRIDS, auxiliary_spread, discrete_law, require_grid
from sgmcmc_verification.checks.numerics.convergence_rate import order_of
from sgmcmc_verification.checks.numerics.observables import observables
from sgmcmc_verification.checks.numerics.quadrature import neville
from sgmcmc_verification.checks.tracing.one_step_moments import step_sizes
from sgmcmc_verification.checks.tracing.step_map import JaxStep, step_map

SEEN = 0.01
"""Share of a variance that is seen."""
SLOW = 0.25
"""Distance of a measured order from the claimed one that the step sizes of a grid decide."""


@statement(
    tier="law",
    equation="pi_h P_h = pi_h has a solution that tends to pi as h -> 0",
    targets=last(curved_line),
    cost=1.4,
    decides="law",
    once=True,
    charted="bias",
    meets=of_target,
)
def transfer_operator(case: Case) -> Finding:
    """The exact stationary law of the scheme on a non-Gaussian target tends to it as h -> 0, at the claimed order.

    The order is that of the bias at the step sizes whose bias is well above the error of the grid, with the change from
    one to the next as its error; where that is large, the limit alone is decided.
    """
    step = step_map(case.subject, case.target)
    claims = step.sampler.claims
    require_grid(step)
    assert isinstance(step, JaxStep)
    temperature = claims.temperature
    points, weights = position_rule(case.target, temperature)
    exact = observables(points)
    scale, exact = 1 + weights @ np.abs(exact), weights @ exact
    hs = step_sizes(case.subject, case.target, 4 if step.size == 1 else 3)
    coarse, fine = GRIDS[step.size]
    spread = auxiliary_spread(step)
    laws = [discrete_law(step, h, temperature, fine, spread) for h in hs]
    biases = np.array([(law.expectations - exact) / scale for law in laws])
    rough = (discrete_law(step, hs[-1], temperature, coarse, spread).expectations - exact) / scale
    grid_error = float(np.abs(rough - biases[-1]).max())
    if not np.isfinite(grid_error):
        raise Inconclusive("the transfer operator has no unique stationary law on the grid")
    limit, error = neville(hs, biases)
    k = int(np.argmax(np.abs(limit)))
    numerical = float(error.max())
    allowance = 10 * (numerical + grid_error)
    sizes = np.abs(biases).max(axis=1)

    def size_at(h: float) -> float | None:
        found = discrete_law(step, h, temperature, fine, spread).expectations
        bias = np.abs((found - exact) / scale).max()
        return float(bias) if bias < 0.3 else None  # above, the law is no longer that of a small step

    exponent, doubt = order_of(hs, sizes, 10 * grid_error, grid_error, size_at, larger=4, between=2)
    order = claims.invariant_order
    reason = (
        f"limit of the bias as h -> 0 is {abs(limit[k]):.3g}; at h = {hs[0]:.4g} the bias is {sizes[0]:.3g} "
        f"(KS {laws[0].kolmogorov:.3g}, TV {laws[0].variation:.3g}), order {exponent:.2f} +- {doubt:.2f}"
    )
    detail = {
        "kolmogorov": [law.kolmogorov for law in laws],
        "variation": [law.variation for law in laws],
        "bias": sizes.tolist(),
        "step_sizes": hs.tolist(),
        "measured_order": exponent,
    }
    if order is not None and exponent + doubt < order - SLOW and np.abs(limit[k]) <= allowance:
        return Finding(
            effect=float(order - exponent),
            tolerance=Tolerance(SLOW, "orders are integers"),
            reason=f"the bias vanishes at order {exponent:.2f} +- {doubt:.2f}, claimed {order}; {reason}",
            statistic="claimed minus measured order of the invariant law",
            unit="power of h",
            minimum_detectable_effect=SLOW + doubt,
            required_sensitivity=0.5,
            step_size=float(hs[0]),
            measurements=detail,
        )
    return Finding(
        effect=float(np.abs(limit[k])),
        tolerance=Tolerance(allowance, "error of the extrapolation to h = 0 and of the grid"),
        reason=reason,
        statistic="largest limit bias of the observables",
        unit="relative to 1 + E|f|",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=SEEN,
        step_size=float(hs[0]),
        measurements=detail,
    )
