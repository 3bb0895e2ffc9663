"""The diffusion of the code is that of the published equation, written down a second time.

A metric or a friction that is wrong in the step and in the declared dynamics alike is another diffusion with the same
stationary law: no check of the law sees it, and none that compares the code with what the sampler declares.
"""

import numpy as np

from sgmcmc_verification.checks.core.check import Case, NotApplicable, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import informative
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points
from sgmcmc_verification.checks.tiers.generator.proposal import proposal_limits
from sgmcmc_verification.checks.tracing.code_generator import code_generator
from sgmcmc_verification.checks.tracing.kinds import rejects
from sgmcmc_verification.checks.tracing.one_step_moments import step_sizes
from sgmcmc_verification.checks.tracing.step_map import JaxStep, step_map
from sgmcmc_verification.samplers.interface.claims import Composite


@statement(
    tier="generator",
    equation="Cov(z') / h -> 2 D as h -> 0 with the D of the method's paper",
    targets=lambda subject: informative(subject) if subject.row.diffusion else (),
    cost=0.3,
    decides="dynamics",
    about=("sgmcmc_verification.samplers.riemannian.metrics",),
)
def published_diffusion(case: Case, composite: Composite | None) -> Finding:
    """Cov(z') / h -> 2 D as h -> 0 with the D of the method's paper (for a Metropolis kernel, that of its proposal).

    D is computed in NumPy from the position and the options of the row, not from what the sampler declares. Where it
    is right, drift and Q follow from the law and from the other checks of the generator and the recipe.
    """
    published = case.subject.row.diffusion
    if published is None:
        raise NotApplicable("no published diffusion is on file for this row")
    step = step_map(case.subject, case.target)
    if composite is not None:
        raise NotApplicable("a composite step has no generator in the full variable")
    points, hs = generic_points(step), step_sizes(case.subject, case.target)
    if isinstance(step, JaxStep) and not step.exchanging and rejects(step):
        *_, found, error = proposal_limits(step, points, hs)
    else:
        _, _, found, error, _ = code_generator(case.subject, case.target, points)
    expected = np.stack([published.matrix(z, case.target, case.subject.options) for z in points])
    scale = 1 + np.abs(expected).max()
    gap = np.abs(found - expected)
    p, i, j = np.unravel_index(np.argmax(gap), gap.shape)
    # (z' - z) / h at the smallest h loses |z| eps / h; the extrapolation amplifies it by a small factor.
    roundoff = 100 * np.finfo(float).eps * (1 + np.abs(points).max()) / hs[-1]
    allowance = float(10 * error.max() / scale + roundoff)
    return Finding(
        effect=float(gap.max() / scale),
        tolerance=Tolerance(allowance, "error of the extrapolation to h = 0 and round-off"),
        reason=f"D[{i}, {j}] at z = {np.round(points[p], 3).tolist()}: the code has {found[p, i, j]:.6g}, "
        f"the published equation ({published.name}) {expected[p, i, j]:.6g}",
        statistic="largest gap of the diffusion",
        unit="relative to the largest entry plus one",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-4,
        step_size=float(hs[0]),
    )
