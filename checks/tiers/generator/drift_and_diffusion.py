"""The generator tier: drift and diffusion of the *code* as the step size goes to 0 are the declared ones."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.check import Case, NotApplicable, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.obligations import of_target
from sgmcmc_verification.checks.core.selection import and_all, informative
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points
from sgmcmc_verification.checks.numerics.drift_terms import diagnose_drift
from sgmcmc_verification.checks.tracing.code_generator import code_generator
from sgmcmc_verification.checks.tracing.kinds import accepts, dynamics_in_z, is_affine
from sgmcmc_verification.checks.tracing.one_step_moments import step_sizes
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.interface.claims import Composite, StochasticEquation


@statement(
    tier="generator",
    equation="(E z' - z) / h -> f and Cov(z') / h -> 2 D as h -> 0",
    targets=and_all(lambda subject: not is_affine(subject) and not accepts(subject), informative),
    cost=0.8,
    decides="dynamics",
    screening=5,
    meets=of_target,
)
def generator_of_code(case: Case, equation: StochasticEquation, composite: Composite | None) -> Finding:
    """The drift and the diffusion extracted from the step equal those derived from the declared H, D and Q.

    Source: the definition of weak consistency, order 1 (talay1990expansion); ma2015complete, equation (2).
    """
    step = step_map(case.subject, case.target)
    if composite is not None:
        raise NotApplicable("a composite step has no generator in the full variable")
    dynamics = dynamics_in_z(step)
    points = generic_points(step)
    drift, drift_error, diffusion, diffusion_error, jump = code_generator(case.subject, case.target, points)
    if jump.max() > 0:
        p, i = np.unravel_index(np.argmax(jump), jump.shape)
        return Finding(
            effect=float(jump.max()),
            tolerance=Tolerance(0.0, "beyond the error of the extrapolation to h = 0"),
            reason=(
                f"a step of size 0 moves {dynamics.names[i]} by at least {jump[p, i]:.3g} at "
                f"z = {np.round(points[p], 3).tolist()}: there is no drift"
            ),
            statistic="limit of E[z'] - z",
            unit="coordinates",
            minimum_detectable_effect=0.0,
            required_sensitivity=1e-4,
            step_size=float(step_sizes(case.subject, case.target)[0]),
        )
    points = points[: len(drift)]
    z = jnp.asarray(points)
    declared = np.asarray(jax.jit(jax.vmap(dynamics.drift))(z))
    declared_d = np.asarray(jax.jit(jax.vmap(dynamics.D))(z))
    f_scale, d_scale = 1 + np.abs(declared).max(), 1 + np.abs(declared_d).max()
    f_gap, d_gap = np.abs(drift - declared) / f_scale, np.abs(diffusion - declared_d) / d_scale
    effect = float(max(f_gap.max(), d_gap.max()))
    # (z' - z) / h at the smallest h loses |z| eps / h; the extrapolation amplifies it by a small factor.
    roundoff = 100 * np.finfo(float).eps * (1 + np.abs(points).max()) / step_sizes(case.subject, case.target)[-1]
    numerical = float(max((drift_error / f_scale).max(), (diffusion_error / d_scale).max()))
    allowance = 10 * numerical + roundoff
    if f_gap.max() >= d_gap.max():
        p, i = np.unravel_index(np.argmax(f_gap), f_gap.shape)
        reason = (
            f"drift of {dynamics.names[i]} at z = {np.round(points[p], 3).tolist()}: "
            f"the code has {drift[p, i]:.6g}, the dynamics {declared[p, i]:.6g}"
        )
        if effect > allowance and isinstance(dynamics, Dynamics):
            reason += diagnose_drift(dynamics, points, drift, tolerance=10 * allowance * f_scale)
    else:
        p, i, j = np.unravel_index(np.argmax(d_gap), d_gap.shape)
        reason = (
            f"diffusion D[{dynamics.names[i]}, {dynamics.names[j]}] at z = {np.round(points[p], 3).tolist()}: "
            f"the code has {diffusion[p, i, j]:.6g}, the dynamics {declared_d[p, i, j]:.6g}"
        )
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "error of the extrapolation to h = 0 and round-off"),
        reason=reason,
        statistic="largest gap of drift and diffusion",
        unit="relative to the largest entry plus one",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-4,
        step_size=float(step_sizes(case.subject, case.target)[0]),
        measurements={"drift_gap": float(f_gap.max()), "diffusion_gap": float(d_gap.max())},
    )
