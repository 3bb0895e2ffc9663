"""The law of a chain through the cycles of a cyclical step size: both stages, and what happens between them.

At a constant step size a sampler for cyclical step sizes shows one of its stages only, and the checks of the invariant
law see the one that samples. Here the step size moves as it does in a run. On a Gaussian target each step of the code
is an affine map, found under the noise tape, and so is each step of the published algorithm, written down below.
"""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.check import Case, Inconclusive, NotApplicable, OutOfReach, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import gaussian
from sgmcmc_verification.checks.exact_laws.affine_chain import propagate
from sgmcmc_verification.checks.exact_laws.exact_draws import Gaussian, gaussian_start
from sgmcmc_verification.checks.tracing.noise_tape import Noise, record
from sgmcmc_verification.checks.tracing.step_map import (
    Affine,
    JaxStep,
    fit_affine,
    ravel_floats,
    require_traced,
    step_map,
)
from sgmcmc_verification.samplers.interface.claims import Claims, CyclicalSchedule, Diffusion
from sgmcmc_verification.samplers.runner.schedules import Cyclical
from sgmcmc_verification.targets.target import Target

LENGTH, EXPLORATION, CYCLES = 8, 0.5, 2
"""Steps of a cycle, the share that explores, and how many cycles are followed."""


@statement(
    tier="law",
    equation="m' = A m + c and S' = A S A^T + [h <= h_0] N(h) through the stages of a cyclical step size",
    targets=gaussian,
    cost=0.3,
    decides="law",
)
def cycle_law(case: Case, cycle: CyclicalSchedule, equation: Diffusion) -> Finding:
    """Mean and covariance of z after every step of two cycles are those of the published algorithm.

    Source: zhang2020cyclical, equation (1), Algorithms 1 and 2.
    """
    step = step_map(case.subject, case.target)
    if not np.isfinite(cycle.explore_above):
        raise NotApplicable("not a sampler for cyclical step sizes")
    if case.target.gaussian is None:
        raise NotApplicable("the target is not Gaussian")
    step = require_traced(step)
    schedule = Cyclical(1.0, LENGTH, EXPLORATION)
    schedule = Cyclical(cycle.explore_above / schedule.explore_above, LENGTH, EXPLORATION)
    numbers = np.arange(CYCLES * LENGTH)
    hs, sampling = schedule(numbers), schedule.sampling(numbers)
    claimed = gaussian_start(step)
    start = Gaussian(claimed.mean + np.sqrt(np.diag(claimed.covariance)), claimed.covariance)
    found = laws_of_code(step, hs, start)
    expected = published_laws(step.sampler.claims, case.target, hs, sampling, start)
    scale = np.sqrt(np.diag(claimed.covariance))
    effect, worst, size = 0.0, "every step has the published law", 1.0
    for t, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        gaps = (ours.mean - theirs.mean) / scale, (ours.covariance - theirs.covariance) / np.outer(scale, scale)
        gap = float(max(np.abs(g).max() for g in gaps))
        size = max(size, float(np.abs(theirs.covariance / np.outer(scale, scale)).max()))
        if not gap <= effect:
            stage = "samples" if sampling[t] else "explores"
            effect = gap
            worst = f"step {t % LENGTH} of cycle {t // LENGTH} (h = {hs[t]:.4g}, {stage}) is off by {gap:.3g}"
    # a difference of maps at unit displacements costs a few eps an entry; a product of them is bounded by the law
    allowance = 1e2 * np.finfo(float).eps * len(hs) * len(scale) ** 2 * size
    return Finding(
        effect=effect,
        tolerance=Tolerance(float(allowance), "round-off of a product of affine maps"),
        reason=worst,
        statistic="largest gap of mean and covariance",
        unit="standard deviations of the claimed law",
        minimum_detectable_effect=2 * float(allowance),
        required_sensitivity=1e-8,
        step_size=float(hs[0]),
    )


def laws_of_code(step: JaxStep, hs: np.ndarray, start: Gaussian) -> list[Gaussian]:
    """Mean and covariance of z after each of the steps of sizes `hs`, with all that a state carries along."""
    estimator, sampler = step.estimator, step.sampler
    state = step.template.state
    advance = lambda s, h: sampler.step(jax.random.key(0), s, h, estimator)
    program = record(advance, state, jnp.asarray(hs[0]))
    if program.unintercepted:
        raise Inconclusive(f"random primitives that the tape cannot feed: {', '.join(program.unintercepted)}")
    if program.count("uniform") or any(number > 1 for number in program.ranges):
        raise OutOfReach("the step draws something else than normals")
    count = program.count("normal")
    integers = jnp.zeros(program.count("integer"), int)
    run = jax.jit(lambda s, e, h: program(Noise(e, jnp.zeros(0), integers), s, h))
    law, laws = propagate(step.chain(float(hs[-1])).pack, start), []
    read = step.unpacking()
    for h in hs:
        # flags of the state (not numbers of the law) are those of this step of the chain
        flat, restore = ravel_floats(state)
        one = lambda s, e, restore=restore, h=h: np.asarray(
            ravel_floats(run(restore(jnp.asarray(s)), jnp.asarray(e), jnp.asarray(h)))[0]
        )
        push = lambda states, draws, one=one: np.stack([one(s, e) for s, e in zip(states, draws, strict=True)])
        law = propagate([fit_affine(push, np.asarray(flat), count, 1.0)], law)
        laws.append(Gaussian(read @ law.mean, read @ law.covariance @ read.T))
        state = run(state, jnp.zeros(count), jnp.asarray(h))
    return laws


def published_laws(
    claims: Claims, target: Target, hs: np.ndarray, sampling: np.ndarray, start: Gaussian
) -> list[Gaussian]:
    """The same for the published algorithms on U = (x - m) . P (x - m) / 2.

    Without a momentum x' = x - h P (x - m) + N(0, 2 h T I), with one r' = r - h P (x - m) - h C r + N(0, 2 C T h I) and
    x' = x + h r', where T = 0 in a step that explores; r ~ N(0, T I) where a cycle starts again.
    """
    gaussian, T = target.gaussian, claims.temperature
    if gaussian is None or CyclicalSchedule not in claims or Diffusion not in claims:
        raise NotApplicable("needs a Gaussian target and declared dynamics")
    n, P, one = target.size, gaussian.precision, np.eye(target.size)
    moving = len(start.mean) > n
    centre = np.concatenate([gaussian.mean, np.zeros(len(start.mean) - n)])
    C = float(claims[Diffusion].dynamics(target).D(jnp.asarray(centre))[-1, -1]) / T
    law, laws = start, []
    for t, h in enumerate(hs):
        if claims[CyclicalSchedule].refreshed and t and sampling[t - 1] and not sampling[t]:
            zero = np.zeros((n, n))
            law = Gaussian(
                np.concatenate([law.mean[:n], np.zeros(n)]), np.block([[law.covariance[:n, :n], zero], [zero, T * one]])
            )
        if moving:
            matrix = np.block([[one - h * h * P, h * (1 - h * C) * one], [-h * P, (1 - h * C) * one]])
            noise = np.sqrt(2 * C * T * h * sampling[t]) * np.concatenate([h * one, one])
        else:
            matrix, noise = one - h * P, np.sqrt(2 * T * h * sampling[t]) * one
        law = propagate([Affine(matrix, noise, centre - matrix @ centre, 1.0)], law)
        laws.append(law)
    return laws
