"""Stationary law of a step on a one-dimensional target that is not Gaussian, on a grid."""

import numpy as np

from checks.core.check import Case, Inconclusive, check
from checks.core.finding import Finding, Tolerance
from checks.core.selection import curved_line, last
from checks.exact_laws.claimed_law_quadrature import position_rule
from checks.exact_laws.transfer_operator import GRIDS, discrete_law, require_grid
from checks.numerics.convergence_rate import slope
from checks.numerics.observables import observables
from checks.numerics.quadrature import neville
from checks.tracing.one_step_moments import step_sizes
from checks.tracing.step_map import JaxStep, step_map


@check(
    tier="law",
    equation="pi_h P_h = pi_h has a solution that tends to pi as h -> 0",
    targets=last(curved_line),
    cost=1.4,
    decides="law",
    once=True,
    charted="bias",
)
def transfer_operator(case: Case) -> Finding:
    """The exact stationary law of the scheme on a non-Gaussian target tends to it as h -> 0, at the claimed order."""
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
    laws = [discrete_law(step, h, temperature, fine) for h in hs]
    biases = np.array([(law.expectations - exact) / scale for law in laws])
    rough = (discrete_law(step, hs[-1], temperature, coarse).expectations - exact) / scale
    grid_error = float(np.abs(rough - biases[-1]).max())
    if not np.isfinite(grid_error):
        raise Inconclusive("the transfer operator has no unique stationary law on the grid")
    limit, error = neville(hs, biases)
    k = int(np.argmax(np.abs(limit)))
    numerical = float(error.max())
    allowance = 10 * (numerical + grid_error)
    sizes = np.abs(biases).max(axis=1)
    exponent, _ = slope(hs, sizes, floor=20 * grid_error)
    return Finding(
        effect=float(np.abs(limit[k])),
        tolerance=Tolerance(allowance, "error of the extrapolation to h = 0 and of the grid"),
        reason=(
            f"limit of the bias as h -> 0 is {abs(limit[k]):.3g}; at h = {hs[0]:.4g} the bias is {sizes[0]:.3g} "
            f"(KS {laws[0].kolmogorov:.3g}, TV {laws[0].variation:.3g}), order {exponent:.2f}"
        ),
        statistic="largest limit bias of the observables",
        unit="relative to 1 + E|f|",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=0.02,
        step_size=float(hs[0]),
        measurements={
            "kolmogorov": [law.kolmogorov for law in laws],
            "variation": [law.variation for law in laws],
            "bias": sizes.tolist(),
            "step_sizes": hs.tolist(),
            "measured_order": exponent,
        },
    )
