"""The law tier: the exact stationary law of the scheme, without simulation.

On a Gaussian target a linear scheme has a Gaussian law that a discrete Lyapunov equation gives exactly. It is compared
with the scheme's published closed form where there is one, and its limit h -> 0, everything else held fixed, has to be
the target. In one dimension the law on a target that is not Gaussian comes from the transfer operator.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotAffine, NotApplicable, OutOfReach, statement
from sgmcmc_verification.checks.core.conclusion import USUAL
from sgmcmc_verification.checks.core.finding import Finding, Tolerance, absent
from sgmcmc_verification.checks.core.obligations import DATA, GRADIENT_NOISE, of_target
from sgmcmc_verification.checks.core.selection import gaussian, gaussian_line, spread, with_data
from sgmcmc_verification.checks.diagnosis.cause import Diagnosis, explained
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points
from sgmcmc_verification.checks.exact_laws.fourth_cumulants import fourth_cumulants
from sgmcmc_verification.checks.exact_laws.lyapunov import position_law, stability_limit, variable_law
from sgmcmc_verification.checks.numerics.convergence_rate import order_of
from sgmcmc_verification.checks.numerics.quadrature import neville
from sgmcmc_verification.checks.programs.operations import rounds_to_single
from sgmcmc_verification.checks.tiers.law.usual_step import at_usual_step
from sgmcmc_verification.checks.tracing.code_generator import code_generator
from sgmcmc_verification.checks.tracing.counted import reads_a_count
from sgmcmc_verification.checks.tracing.host_branching import ScriptedGenerator
from sgmcmc_verification.checks.tracing.kinds import is_affine
from sgmcmc_verification.checks.tracing.noise_tape import Noise, Program, record
from sgmcmc_verification.checks.tracing.noisy_step import HostNoise, compensates
from sgmcmc_verification.checks.tracing.one_step_moments import moments_of, step_sizes
from sgmcmc_verification.checks.tracing.outcomes.enumerated import EnumeratedHostStep
from sgmcmc_verification.checks.tracing.potential_estimator import with_energy
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, step_map
from sgmcmc_verification.samplers.estimators.basic import KnownNoise, Minibatch
from sgmcmc_verification.samplers.interface.capabilities import MinibatchEstimator
from sgmcmc_verification.samplers.interface.claims import (
    CyclicalSchedule,
    ExactLaw,
    StationaryMoments,
    StochasticEquation,
)
from sgmcmc_verification.samplers.interface.sampler import Estimator
from sgmcmc_verification.targets.target import Target

EPS = np.finfo(float).eps
Bias = Callable[[float], tuple[np.ndarray, float, float]]
STABLE = 1 - 1e-12
"""Spectral radius below which a stationary law exists."""
SMALLER = 14
"""Halvings of the usual step size, two at a time, among which one is looked for at which the scheme is stable."""
FOURTH = (
    "mean and variance are right to the claimed order, the fourth moment is not: the draws that take the place of "
    "normal ones have another fourth moment"
)
BY_RUNS = "host samplers meet gradient noise in the statistical tier"
PROMISED = 1e-4
"""Limit of a bias that is seen, in standard deviations of the target."""


def whitened(target: Target, mean: np.ndarray, covariance: np.ndarray, temperature: float) -> np.ndarray:
    """Bias of mean and covariance of the position in units of the target, the entries in one vector.

    With the target N(m, S) at temperature T and S = L L^T they are L^-1 (mean - m) / sqrt(T) and L^-1 cov L^-T / T - I.

    Raises:
        NotApplicable: if the target is not Gaussian.
    """
    gaussian = target.gaussian
    if gaussian is None:
        raise NotApplicable("the target is not Gaussian")
    root = np.linalg.cholesky(gaussian.precision).T  # root S root^T = I
    shift = root @ (mean - gaussian.mean) / np.sqrt(temperature)
    spread = root @ covariance @ root.T / temperature - np.eye(len(shift))
    return np.concatenate([shift, spread.ravel()])


def whitened_bias(step: JaxStep | HostStep, h: float, temperature: float) -> tuple[np.ndarray, float, float]:
    """The bias of the stationary law at step size h: (`whitened` entries, spectral radius, condition)."""
    if step.target.gaussian is None:
        raise NotApplicable("the target is not Gaussian")
    mean, covariance, law = position_law(step, h)
    return whitened(step.target, mean, covariance, temperature), law.radius, law.condition


@statement(
    tier="law",
    equation="A S A^T + N = S has the published closed form as its solution",
    targets=gaussian_line,
    cost=0.1,
    decides="law",
    screening=0,
)
def stationary_covariance(case: Case, claim: StationaryMoments) -> Finding:
    """The exact stationary covariance equals the closed form that the scheme's theory gives, at three step sizes.

    One-dimensional Gaussian targets only: the closed forms are for U = curvature x^2 / 2.
    """
    step = step_map(case.subject, case.target)
    if case.target.gaussian is None or case.target.size != 1:
        raise NotApplicable("closed forms are for one-dimensional Gaussian targets")
    curvature = float(case.target.gaussian.precision[0, 0])
    effect, allowance, worst = 0.0, 0.0, "all entries agree"
    # a learning rate that is rounded to single precision is another one, and no other law
    program = step.program if isinstance(step, JaxStep) else None
    single = isinstance(program, Program) and rounds_to_single(program.jaxpr)
    roundoff = 16 * float(np.finfo(np.float32).eps) if single else 1e3 * EPS
    for h in case.step_size * np.array([0.2, 1.0, 3.0]):
        expected = claim.values(float(h), curvature)
        try:
            _, covariance, law = position_law(step, h)
        except NotAffine as error:
            return Finding(
                effect=np.inf,
                tolerance=Tolerance.identity("a closed form is that of a linear recursion"),
                reason=f"the step cannot have the claimed closed form at h = {h:.4g}: {error}",
                statistic="largest gap of stationary variances and covariance",
                unit="relative",
                required_sensitivity=1e-8,
                step_size=float(h),
            )
        found = {"position": covariance[0, 0]}
        if {"momentum", "covariance"} & set(expected):
            full, _ = variable_law(step, h)
            found |= {"momentum": full[1, 1], "covariance": full[0, 1]}
        allowance = max(allowance, roundoff * law.condition)
        for name, value in expected.items():
            scale = max(abs(expected.get("position", 1.0)), abs(value))
            gap = abs(found[name] - value) / scale
            if not gap <= effect:
                effect = float(gap)
                worst = f"{name} at h = {h:.4g}: the code has {found[name]:.12g}, the theory {value:.12g}"
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "round-off times the condition of the Lyapunov equation"),
        reason=worst,
        statistic="largest gap of stationary variances and covariance",
        unit="relative",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-3 if single else 1e-8,
        step_size=case.step_size,
    )


@statement(
    tier="law",
    equation="pi_h -> N(m, T P^-1) as h -> 0, at the claimed order",
    targets=spread,
    cost=0.1,
    decides="law",
    screening=1,
    charted="bias",
    meets=of_target,
)
def gaussian_limit(case: Case) -> Finding:
    """With everything else fixed, the exact stationary law of the position tends to the target as h -> 0.

    The bias has to vanish at least at the claimed order of the invariant law. In one dimension it is that of the fourth
    cumulant as well, where discrete draws take the place of normal ones.
    """
    step = step_map(case.subject, case.target)
    claims = step.sampler.claims
    bias = functools.cache(lambda h: whitened_bias(step, h, claims.temperature))
    judged = lambda bias: limit_of_bias(case.subject, case.target, bias, claims.invariant_order or 1)
    found = judged(bias)
    largest = step_sizes(case.subject, case.target, 8)[0]
    if found.verdict == "pass" and case.target.size == 1 and fourth_cumulants(step, largest).size:
        found = judged(_with_fourth(step, bias, claims.temperature))
        if found.verdict == "fail":
            said = explained(Diagnosis("second order", FOURTH))
            found = dataclasses.replace(found, measurements={**found.measurements, **said})
    entries, radius, _ = bias(case.step_size)
    if case.subject.options or not radius < STABLE:
        return found
    d = case.target.size
    usual = at_usual_step(entries[d : d + d * d].reshape(d, d), case.step_size, case.target, -(-step.size // d))
    return dataclasses.replace(found, measurements={**found.measurements, USUAL: usual})


def _with_fourth(step: JaxStep | HostStep, bias: Bias, temperature: float) -> Bias:
    """A bias on a Gaussian in one dimension with that of the fourth cumulant, in the unit of its variance squared."""
    assert step.target.gaussian is not None
    variance = temperature / step.target.gaussian.precision[0, 0]

    @functools.cache
    def longer(h: float) -> tuple[np.ndarray, float, float]:
        entries, radius, condition = bias(h)
        return np.concatenate([entries, fourth_cumulants(step, h) / variance**2]), radius, condition

    return longer


def limit_of_bias(subject: Subject, target: Target, bias: Bias, order: int, extra: str = "") -> Finding:
    """The finding that a bias vanishes as h -> 0, and at the claimed order, or does not.

    Args:
        subject: whose step sizes are used.
        target: that is sampled.
        bias: h -> (entries, spectral radius, condition).
        order: that is claimed.
        extra: that is added to the reason.
    """
    hs = step_sizes(subject, target, 8)
    radius_at = lambda h: bias(h)[1]
    # A drift that turns is stiffer than the potential: the usual step size may be too large for it.
    hs = hs * next((2.0**-k for k in range(0, SMALLER, 2) if radius_at(hs[0] * 2.0**-k) < STABLE), 1.0)
    # a momentum of a long memory moves by many steps at once: the usual step size may be too large for a series too
    usual = _ladder(bias, hs)
    smaller = (_ladder(bias, hs * 2.0**-k) for k in range(4, SMALLER, 4))
    ladder = next((each for each in itertools.chain([usual], smaller) if each.is_enough), usual)
    if ladder.unstable is not None:
        return ladder.unstable
    hs, values, effect, allowance, roundoff = ladder.hs, ladder.values, ladder.effect, ladder.allowance, ladder.roundoff
    sizes = np.abs(values).max(axis=1)

    def size_at(h: float) -> float | None:
        entries, radius, condition = bias(h)
        size = float(np.abs(entries).max())
        small = radius < STABLE and 1e2 * EPS * condition <= roundoff and size < 0.3
        return size if small else None

    exponent, doubt = order_of(hs, sizes, 1e2 * roundoff, roundoff, size_at)
    slow = doubt < 0.4 and exponent + doubt < order - 0.1
    detail = {"bias": sizes.tolist(), "step_sizes": hs.tolist(), "measured_order": exponent}
    measured = f"order {exponent:.2f}" if np.isfinite(exponent) else "too small for an order"
    reason = (
        f"limit of the bias as h -> 0 is {effect:.3g} (bias {sizes[0]:.3g} at the usual step size, "
        f"{measured}, claimed {order}){extra}"
    )
    # a bias that is lost in round-off at the usual step size has no order, and needs none
    unsure = not (slow or exponent - doubt >= order - 0.5 or sizes.max() <= 1e2 * roundoff)
    if (slow or unsure) and effect <= allowance:
        # The limit is right, but the bias decays too slowly, or too little of it can be measured.
        return Finding(
            effect=float(order - exponent) if slow else 0.0,
            tolerance=Tolerance(0.1, "orders are integers"),
            reason=f"the bias vanishes at order {exponent:.2f} +- {doubt:.2f}, claimed {order}{extra}",
            statistic="claimed minus measured order of the invariant law",
            unit="power of h",
            minimum_detectable_effect=0.1 if slow else 0.1 + doubt,
            required_sensitivity=0.5,
            step_size=float(hs[0]),
            measurements=detail,
        )
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "error of the extrapolation to h = 0 and round-off"),
        reason=reason,
        statistic="largest limit bias of mean and covariance",
        unit="standard deviations of the target",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=PROMISED,
        step_size=float(hs[0]),
        measurements=detail,
    )


class _Ladder(NamedTuple):
    """Biases at decreasing step sizes, and what they tell of h = 0.

    Attributes:
        hs: step sizes.
        values: entries of the bias, a row for each of them.
        effect: largest entry of the limit.
        numerical: error of the extrapolation.
        roundoff: of the limit.
        unstable: the finding that there is no stationary law at one of them.
    """

    hs: np.ndarray
    values: np.ndarray
    effect: float
    numerical: float
    roundoff: float
    unstable: Finding | None = None

    @property
    def allowance(self) -> float:
        """Largest difference of a limit from 0 that is none."""
        return 10 * self.numerical + self.roundoff

    @property
    def is_enough(self) -> bool:
        """True if no smaller step sizes are asked for."""
        return self.unstable is not None or 2 * self.allowance <= PROMISED or self.numerical < self.roundoff


def _ladder(bias: Bias, hs: np.ndarray) -> _Ladder:
    rows = [bias(h) for h in hs]
    values, radius = np.array([row[0] for row in rows]), max(row[1] for row in rows)
    if not radius < STABLE:
        bad = next(h for h, row in zip(hs, rows, strict=True) if not row[1] < STABLE)
        return _Ladder(hs, values, np.inf, np.inf, 0.0, _without_law(bad, radius))
    limit, error = neville(hs, values)
    roundoff = 1e3 * EPS * max(row[2] for row in rows)
    return _Ladder(hs, values, float(np.abs(limit).max()), float(error.max()), roundoff)


def _without_law(h: float, radius: float) -> Finding:
    """The finding that a step grows without bound."""
    return Finding(
        effect=np.inf,
        tolerance=Tolerance(0.0, "a stationary law has to exist"),
        reason=f"no stationary law at h = {h:.4g}: spectral radius {radius:.12g}",
        statistic="bias of the position",
        unit="standard deviations",
        minimum_detectable_effect=0.0,
        required_sensitivity=1e-6,
        step_size=float(h),
    )


@statement(
    tier="law",
    equation="the spectral radius of the step is below 1 at the usual step size",
    targets=gaussian,
    cost=0.1,
    decides="conduct",
)
def stability(case: Case) -> Finding:
    """The usual step size lies inside the stability region on the Gaussian target; its limit is reported."""
    step = step_map(case.subject, case.target)
    if case.target.gaussian is None:
        raise NotApplicable("the target is not Gaussian")
    h = case.step_size
    _, _, law = position_law(step, h)
    limit = stability_limit(step, h)
    return Finding(
        effect=law.radius,
        tolerance=Tolerance(1 - 1e-12, "second moments have to contract"),
        reason=f"spectral radius {law.radius:.6g} at h = {h:.4g}; stable up to h = {limit:.6g}",
        statistic="spectral radius of the recursion of second moments",
        unit="per step",
        minimum_detectable_effect=1.0,
        required_sensitivity=1.0,
        step_size=h,
        measurements={"stability_limit": limit},
    )


@statement(
    tier="law",
    equation="pi_h -> pi as h -> 0 with gradient noise N(0, V), which is present",
    targets=gaussian,
    cost=0.3,
    decides="law",
    screening=6,
    meets=lambda target: (GRADIENT_NOISE,),
)
def gradient_noise_limit(case: Case, equation: StochasticEquation | None) -> Finding:
    """Gradient noise of known covariance enters the step, and the law still tends to the target as h -> 0.

    Of a step that is not affine drift and diffusion take the place of the law: the limits of E z' - z and of
    Cov(z') per step size do not know the noise. With compensation (the estimator reports its covariance and the sampler
    subtracts it) the law is the one without gradient noise.
    """
    if case.target.gaussian is None:
        raise NotApplicable("the target is not Gaussian")
    plain = step_map(case.subject, case.target)
    _require_diffusion(plain)
    root = np.linalg.cholesky(case.target.gaussian.precision)
    covariance = case.target.curvature * root @ root.T  # full, of the scale at which h V is of the order of h curvature
    on_jax = isinstance(plain, JaxStep)
    if not on_jax and not is_affine(case.subject):
        raise OutOfReach(BY_RUNS)
    known = lambda covariance: (
        with_energy(case.subject, case.target, KnownNoise(case.target, covariance))
        if on_jax
        else HostNoise(case.target, covariance)
    )
    clean = step_map(case.subject, case.target, known(np.zeros_like(covariance)))
    noisy = step_map(case.subject, case.target, known(covariance))
    if isinstance(noisy, HostStep) and _packs_with_draws(noisy):
        raise OutOfReach(BY_RUNS)  # a gradient that is kept has the noise of the step before
    if equation is not None and not is_affine(case.subject):
        return _noisy_generator(case, equation, known(np.zeros_like(covariance)), known(covariance))
    claims, h = noisy.sampler.claims, case.step_size
    gap = np.abs(whitened_bias(noisy, h, claims.temperature)[0] - whitened_bias(clean, h, claims.temperature)[0]).max()
    active = [int(np.count_nonzero(s.affine(h)[0].noise.any(axis=0))) for s in (clean, noisy)]
    compensated = compensates(noisy.sampler)
    if active[1] <= active[0] or (not compensated and gap < 1e3 * EPS):
        return absent(case.step_size, "the gradient noise does not enter the step: the estimate is not used")
    # No scheme keeps second order with noise of order one in the gradient: the bias is O(h V).
    bias = lambda h: whitened_bias(noisy, h, claims.temperature)
    return limit_of_bias(case.subject, case.target, bias, 1, f"; gradient noise changes the law by {gap:.3g}")


def _packs_with_draws(step: HostStep) -> bool:
    """True if the state of z is one of several: an estimate, or more, is drawn for it."""
    generator = ScriptedGenerator(np.zeros(0))
    step.sampler.pack(generator, step.template.unravel(np.asarray(step.template.flat)), step.estimator)
    return generator.used > 0


def _noisy_generator(case: Case, equation: StochasticEquation, clean: Estimator, noisy: Estimator) -> Finding:
    """Drift and diffusion of the code with gradient noise, which is present at the usual step size."""
    steps = [step_map(case.subject, case.target, estimator) for estimator in (clean, noisy)]
    points, h = generic_points(steps[0]), np.array([case.step_size])
    (plain, first), (moved, second) = (moments_of(step, points, h) for step in steps)
    if max(np.abs(moved - plain).max(), np.abs(second - first).max()) < 1e3 * EPS:
        return absent(case.step_size, "the gradient noise does not enter the step: the estimate is not used")
    drift, drift_error, diffusion, error, _ = code_generator(case.subject, case.target, points, noisy)
    dynamics = equation.dynamics(case.target)
    f, D = (np.asarray(jax.vmap(g)(jnp.asarray(points[: len(drift)]))) for g in (dynamics.drift, dynamics.D))
    scales = 1 + np.abs(f).max(), 1 + np.abs(D).max()
    gaps = np.abs(drift - f).max() / scales[0], np.abs(diffusion - D).max() / scales[1]
    numerical = float(max(drift_error.max() / scales[0], error.max() / scales[1]))
    return Finding(
        effect=float(max(gaps)),
        tolerance=Tolerance.numerical(
            numerical,
            "error of the extrapolation to h = 0 and round-off",
            100 * (1 + np.abs(points).max()) / step_sizes(case.subject, case.target)[-1],
        ),
        reason=f"with gradient noise the drift is off by {gaps[0]:.3g}, the diffusion by {gaps[1]:.3g} as h -> 0",
        statistic="largest gap of drift and diffusion",
        unit="relative to the largest entry plus one",
        required_sensitivity=1e-4,
        step_size=case.step_size,
    )


def _require_diffusion(step: JaxStep | HostStep) -> None:
    """Raise for samplers that gradient noise is no business of."""
    if ExactLaw in step.sampler.claims:
        raise NotApplicable("an exact kernel needs exact gradients")


def estimate_bias(estimator, target: Target) -> tuple[float, float]:
    """Largest |E grad U~ - grad U| over all minibatches, and what round-off allows, relative to the largest entry.

    The estimator's state is that of `init` at the example; the estimate is at a point half a standard deviation away.
    """
    start = jnp.asarray(target.example, float)
    x = start + 0.5 / np.sqrt(target.curvature)
    program = record(lambda y: estimator.estimate(jax.random.key(0), estimator.init(jax.random.key(1), start), y)[0], x)
    outcomes = np.array(list(itertools.product(*(range(r) for r in program.ranges))))
    none = jnp.zeros(0)
    gradients = jax.vmap(lambda k: program(Noise(none, none, k), x).gradient)(jnp.asarray(outcomes))
    exact = jax.grad(target.potential)(x)
    scale = 1 + float(jnp.abs(gradients).max())
    return float(jnp.abs(gradients.mean(axis=0) - exact).max()) / scale, 1e2 * EPS * len(outcomes)


def _own_minibatches(case: Case, step: HostStep) -> Finding:
    """The limit of a host sampler whose minibatches are among the draws of its step."""
    own = EnumeratedHostStep(step.target, step.sampler, step.estimator, step.template, subject=step.subject)
    if not own.draws_numbers(case.step_size):
        raise OutOfReach("host samplers meet minibatches in the statistical tier")
    if own.counts(case.step_size):
        raise OutOfReach("the state counts, and data are chosen by its count: no recursion in z alone")
    bias = functools.cache(lambda h: whitened_bias(own, h, step.sampler.claims.temperature))
    return limit_of_bias(case.subject, case.target, bias, 1, "; its minibatches are enumerated")


@statement(
    tier="law",
    equation="pi_h -> pi as h -> 0 with all minibatches enumerated",
    targets=with_data,
    cost=0.4,
    decides="law",
    once=True,
    screening=2,
    meets=lambda target: (GRADIENT_NOISE, DATA),
)
def minibatch_limit(case: Case) -> Finding:
    """With every minibatch of a tiny data set enumerated, the exact law tends to the posterior as h -> 0.

    Minibatches of two data: those of the row's own estimator if it has a memory (SAGA, with replacement, so that a
    datum may be drawn twice; its estimate has to be unbiased whatever the memory holds), without replacement otherwise.
    """
    if case.target.terms is None or case.target.gaussian is None:
        raise NotApplicable("needs a Gaussian posterior with its data")
    clean = step_map(case.subject, case.target)
    _require_diffusion(clean)
    if isinstance(clean, HostStep):
        return _own_minibatches(case, clean)
    # an estimator of ours with a memory, and a declared schedule, are chains of maps that know their place
    known = isinstance(clean.estimator, MinibatchEstimator) or CyclicalSchedule in clean.sampler.claims
    if isinstance(clean, JaxStep) and not known and reads_a_count(clean, case.step_size):
        raise OutOfReach("the state counts, and data are chosen by its count: no recursion in z alone")
    if isinstance(clean.estimator, MinibatchEstimator):
        own: Any = clean.estimator  # a dataclass
        estimator = dataclasses.replace(own, batch_size=2, replace=True)
        bias, allowance = estimate_bias(estimator, case.target)
        if not bias <= allowance:
            return Finding(
                effect=bias,
                tolerance=Tolerance(allowance, "round-off of a mean over all minibatches"),
                reason=f"the estimate is biased by {bias:.3g} away from where its memory was filled",
                statistic="|E grad U~ - grad U|",
                unit="relative to the largest entry",
                minimum_detectable_effect=2 * allowance,
                required_sensitivity=1e-6,
            )
    else:
        estimator = with_energy(
            case.subject,
            case.target,
            Minibatch(case.target.terms, 2, replace=False, fisher="covariance" in clean.sampler.needs),
        )
    noisy = step_map(case.subject, case.target, estimator)
    temperature = noisy.sampler.claims.temperature
    gap = np.abs(
        whitened_bias(noisy, case.step_size, temperature)[0] - whitened_bias(clean, case.step_size, temperature)[0]
    ).max()
    # a sampler that draws minibatches of its own reads no estimate: they are among the draws of its step
    reads = bool(clean.sampler.needs & {"gradient", "potential"})
    if reads and not compensates(clean.sampler) and gap < 1e3 * EPS:
        return absent(case.step_size, "the minibatch does not enter the step: the law is that of all data")
    bias = lambda h: whitened_bias(noisy, h, temperature)
    return limit_of_bias(case.subject, case.target, bias, 1, f"; minibatches change the law by {gap:.3g}")
