"""The convergence tier: chains that start far from the target get there, at the speed of the declared dynamics.

Invariance alone says nothing of chains that do not start in the law: a sampler that never leaves one mode, or never
moves one coordinate, keeps every law. Here all chains start at one place, and the null law is that of the declared
dynamics from there, which is known without the sampler (`checks.exact_laws.sde_law`), with the part of the step's own
bias that vanishes as h -> 0 (`checks.exact_laws.null_law.null_law_from`).
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach, require_stationary_law, statement
from sgmcmc_verification.checks.core.finding import Finding
from sgmcmc_verification.checks.core.selection import curved_line, last, several
from sgmcmc_verification.checks.end_points.chains import EndPoints, end_points
from sgmcmc_verification.checks.end_points.comparison import is_variance, judge, ks_tests, moment_tests
from sgmcmc_verification.checks.end_points.error_rates import CHAINS, Sensitivity, stage_seed
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import auxiliary_law
from sgmcmc_verification.checks.exact_laws.exact_draws import Gaussian, gaussian_start
from sgmcmc_verification.checks.exact_laws.null_law import NullLaw, null_law_from
from sgmcmc_verification.checks.exact_laws.sde_law import declared_dynamics, linear_law
from sgmcmc_verification.checks.exact_laws.transfer_operator import GRIDS, grid_axes, require_grid
from sgmcmc_verification.checks.statistics.ksd import stein_features, stein_test
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, step_map
from sgmcmc_verification.targets.target import Target

FAR = 8.0
"""Standard deviations of each coordinate between the start and the mean."""
NUM_STEPS = 200
"""Steps from a bad start."""
MOST = CHAINS // 8
VARIANCE = 0.03
"""Promised: relative error of a variance."""
CROSSING_TIME = 2.5
MOST_STEPS = 400
"""The chains have `CROSSING_TIME` to cross a barrier, but no more steps than this."""
WEIGHT = 0.02
"""Promised: error of the weight of a mode."""
FORGOTTEN = 0.01
"""Standard deviations of the start that are left where the score alone judges."""
LONGEST = 1 << 13
"""Steps after which the start has to be forgotten."""
STEIN_CHAINS = CHAINS // 40
LOCATIONS = 12
DISCREPANCY = 0.05
"""Promised: Stein discrepancy."""


def start_at(step: JaxStep | HostStep, position: np.ndarray, spread: float = 0.0) -> Gaussian:
    """The law of z of chains that start around one position, the rest of z from its claimed law.

    Args:
        position: (d,).
        spread: standard deviation of each coordinate around it.

    Raises:
        NotApplicable: if the law of the auxiliary variables is not declared.
    """
    d = step.target.size
    mean, covariance = np.zeros(step.size), np.zeros((step.size, step.size))
    mean[:d], covariance[:d, :d] = position, spread**2 * np.eye(d)
    if step.size > d:
        points = np.stack([position, position + 0.1])
        mean[d:], covariance[d:, d:] = auxiliary_law(declared_dynamics(step).H, points, step.size - d)
    return Gaussian(mean, covariance)


def _ends(step: JaxStep | HostStep, start: Gaussian, h: float, num_steps: int, seed: int) -> Callable:
    """(stage, n) -> end points of n chains that start from `start`."""
    values, vectors = np.linalg.eigh(start.covariance)
    root = vectors * np.sqrt(np.clip(values, 0, None))

    def ends(stage: int, n: int) -> EndPoints:
        normals = np.random.default_rng(stage_seed(seed, stage, 1)).standard_normal((n, step.size))
        return end_points(step, start.mean + normals @ root.T, h, num_steps, stage_seed(seed, stage, 2))

    return ends


def _prepared(subject: Subject, target: Target) -> JaxStep | HostStep:
    """The step. Raises NotApplicable for samplers without a speed that they claim."""
    step = step_map(subject, target)
    claims = step.sampler.claims
    require_stationary_law(claims)
    declared_dynamics(step)
    return step


@statement(
    tier="convergence",
    equation="E f(z_n) from a point = E f(Z_T) of the declared dynamics + O(h^q)",
    targets=last(several),
    cost=6.0,
    decides="law",
    samples=True,
    once=True,
)
def bad_start(case: Case, seed: int) -> Finding:
    """From a point many standard deviations off, the end points have their exact law: moments, KS of projections."""
    step, h = _prepared(case.subject, case.target), case.step_size
    start = _far(step, case.subject)
    law = null_law_from(step, h, NUM_STEPS, start)
    left = float(np.abs(law.expectations[: law.size]).max())  # Var y^2 = 2 + 4 m^2 for y ~ N(m, 1)
    return judge(
        step=step,
        law=law,
        ends=_ends(step, start, h, NUM_STEPS, seed),
        tests=lambda law, y: moment_tests(law, y) + ks_tests(law, y),
        num_steps=NUM_STEPS,
        step_size=h,
        promised=Sensitivity(VARIANCE * math.sqrt(1 + 2 * left**2), "standardised", MOST, is_variance),
        detail={"start": start.mean.tolist(), "left_of_the_start": left},
    )


def _far(step: JaxStep | HostStep, subject: Subject) -> Gaussian:
    """A point far away on a Gaussian target; at the edge of the grid, and spread over it, on another one."""
    target = step.target
    if target.gaussian is not None:
        scales = np.sqrt(step.sampler.claims.temperature * np.diag(np.linalg.inv(target.gaussian.precision)))
        return start_at(step, target.gaussian.mean + FAR * scales)
    require_grid(step)
    axis, spread = _axis(step)
    return start_at(step, np.array([axis[-1] - 4 * spread]), spread)


def _axis(step: JaxStep | HostStep) -> tuple[np.ndarray, float]:
    """The position axis of the coarse grid, and the standard deviation of a start that it resolves."""
    axis = grid_axes(step.target, step.sampler.claims.temperature, GRIDS[step.size][0])[0]
    return axis, 3 * (axis[1] - axis[0])


@statement(
    tier="convergence",
    equation="the weight of each mode after n steps is that of the declared dynamics at T = n h",
    targets=last(curved_line),
    cost=8.0,
    decides="law",
    samples=True,
    once=True,
)
def separated_modes(case: Case, seed: int) -> Finding:
    """All chains start in one mode; the weight of each mode, and the whole law, are those of the exact n-step law."""
    step, h = _prepared(case.subject, case.target), case.step_size
    require_grid(step)
    axis, spread = _axis(step)
    energy = np.asarray(jax.vmap(case.target.flat_potential)(jnp.asarray(axis[:, None])))
    barriers = np.flatnonzero((energy[1:-1] > energy[:-2]) & (energy[1:-1] >= energy[2:])) + 1
    if not len(barriers):
        raise NotApplicable("the target has one mode")
    last = barriers[-1]
    start = start_at(step, axis[[last + int(np.argmin(energy[last:]))]], spread)
    num_steps = min(MOST_STEPS, math.ceil(CROSSING_TIME / h))
    law = null_law_from(step, h, num_steps, start)
    below = law.standardise(np.repeat(axis[barriers][:, None], law.size, axis=1))[:, 0]
    cdf = law.cdf(np.eye(law.size)[0])
    assert cdf is not None  # of a coordinate

    def tests(law: NullLaw, y: np.ndarray):
        weights = [
            mean_test(
                (y[:, 0] < t).astype(float),
                float(p),
                name=f"weight of x < {axis[b]:.3g}",
                unit="weight",
                allowance=law.cdf_error,
            )
            for t, p, b in zip(below, cdf(below), barriers, strict=True)
        ]
        return weights + ks_tests(law, y)

    return judge(
        step=step,
        law=law,
        ends=_ends(step, start, h, num_steps, seed),
        tests=tests,
        num_steps=num_steps,
        step_size=h,
        promised=Sensitivity(WEIGHT, "weight", MOST, lambda o: o.unit == "weight"),
        detail={"weights": cdf(below).tolist(), "start": start.mean.tolist()},
    )


@statement(
    tier="convergence",
    equation="E [s(z_n) k(z_n, v) + grad k(z_n, v)] = 0 at the target",
    targets=last(several),
    cost=6.0,
    decides="dynamics",
    samples=True,
    once=True,
)
def kernel_stein_discrepancy(case: Case, seed: int) -> Finding:
    """From a bad start the end points have the score of the target: Stein discrepancy with the IMQ kernel.

    It knows the target by its score alone, so it is blind to the weights of modes that are far apart, and a sampler
    needs other checks to pass. The chains run until the start is forgotten; what the exact n-step law leaves of the
    discrepancy is the allowance.
    """
    step, h = _prepared(case.subject, case.target), case.step_size
    start = _far(step, case.subject)
    num_steps = _forgetting(step, start, h)
    law = null_law_from(step, h, num_steps, start)
    temperature, d = step.sampler.claims.temperature, case.target.size
    gradient = jax.jit(jax.vmap(jax.grad(case.target.flat_potential)))
    # positions in units of the claimed law, where the kernel is of the width of the target
    root, centre = law.root[:d, :d], law.centre[:d]
    back = np.linalg.inv(root)
    scores = lambda y: -np.asarray(gradient(jnp.asarray(centre + y @ back.T))) @ back / temperature
    locations = np.random.default_rng(d).standard_normal((LOCATIONS, d))
    mean = law.position(lambda x: stein_features((x - centre) @ root.T, scores((x - centre) @ root.T), locations, 1.0))
    allowance = float(np.linalg.norm(mean)) + law.error

    def tests(law: NullLaw, y: np.ndarray):
        y = y[:, :d]
        return [stein_test(y, scores(y), locations, allowance=allowance)]

    return judge(
        step=step,
        law=law,
        ends=_ends(step, start, h, num_steps, seed),
        tests=tests,
        num_steps=num_steps,
        step_size=h,
        promised=Sensitivity(DISCREPANCY + allowance, "Stein discrepancy", STEIN_CHAINS),
        detail={"start": start.mean.tolist()},
    )


def _forgetting(step: JaxStep | HostStep, start: Gaussian, h: float) -> int:
    """Steps after which the declared dynamics have forgotten a start, up to `FORGOTTEN` standard deviations."""
    claimed = gaussian_start(step)
    root = np.linalg.inv(np.linalg.cholesky(claimed.covariance))
    dynamics, num_steps = declared_dynamics(step), NUM_STEPS
    while num_steps <= LONGEST:
        law = linear_law(dynamics, start, num_steps * h)
        if np.abs(root @ (law.mean - claimed.mean)).max() < FORGOTTEN:
            return num_steps
        num_steps *= 2
    raise OutOfReach(f"the start is not forgotten in {LONGEST} steps")
