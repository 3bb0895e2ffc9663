"""The noise of successive steps is independent: a step reads z and its own draws, and no earlier draw."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.check import Case, Inconclusive, OutOfReach, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import informative
from sgmcmc_verification.checks.tracing.noise_tape import Noise, Program, record
from sgmcmc_verification.checks.tracing.step_map import JaxStep, step_map
from sgmcmc_verification.samplers.interface.claims import IndependentNoise

NUM_STEPS = 8
"""Steps of the history, each of which is compared: what is kept may enter in some of them only."""


@statement(
    tier="law",
    equation="z_(t+1) = F(z_t, xi_(t+1)) with the draws xi of that step alone",
    targets=informative,
    cost=0.5,
    decides="dynamics",
)
def noise_of_successive_steps(case: Case, claim: IndependentNoise) -> Finding:
    """Along a run each step is the one that starts anew from z = unpack(state), at the same draws.

    Independent draws in each step make z a Markov chain if nothing else of the state enters: a step that keeps its
    noise, and adds part of it to the next one, has the autocorrelated noise of another equation. The draws are fed by
    the tape, those of `pack`, which precede them, by zeros.
    """
    step = step_map(case.subject, case.target)
    if not isinstance(step, JaxStep) or not isinstance(step.program, Program):
        raise OutOfReach("steps that are not traced here")
    h, key, sampler = case.step_size, jax.random.key(0), step.sampler
    state = step.template.state
    # the whole state, counts included, which the step map holds fixed
    anew, kept = step.program, record(lambda s: sampler.step(key, s, h, step.estimator), state)
    if anew.unintercepted:
        raise Inconclusive(f"random primitives that the tape cannot feed: {', '.join(anew.unintercepted)}")
    variable = lambda state: ravel_pytree(sampler.unpack(state))[0]

    @jax.jit
    def both(state, noise):
        z, after = variable(state), kept(noise, state)
        return z, after, variable(after), anew(_after_pack(anew, kept, noise), z, h)[0]

    gaps, sizes = [], []
    for noise in _draws(kept, NUM_STEPS):
        z, state, ours, fresh = both(state, noise)
        z, ours, fresh = (np.asarray(values) for values in (z, ours, fresh))
        moved = np.abs(fresh - z).max()
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps.append(float(np.abs(ours - fresh).max() / moved))
            sizes.append(float(np.abs(z).max() / moved))
    worst = int(np.argmax(np.where(np.isnan(gaps), np.inf, gaps)))
    effect, tolerance = gaps[worst], 1e3 * float(np.finfo(float).eps) * (1 + max(sizes))
    return Finding(
        effect=effect,
        tolerance=Tolerance(tolerance, "round-off of two programs, and cancellation of z' - z"),
        reason=f"after {worst} steps the next one differs by {effect:.3g} of its size from one that starts anew",
        statistic="step with a history less that from z alone",
        unit="relative to a step",
        minimum_detectable_effect=2 * tolerance,
        required_sensitivity=1e-6,
        step_size=h,
    )


def _draws(program: Program, count: int) -> list[Noise]:
    """Generic values for the draws of `count` steps."""
    generator = np.random.default_rng(0)
    return [
        Noise(
            generator.standard_normal(program.count("normal")),
            generator.uniform(size=program.count("uniform")),
            np.array([generator.integers(max(n, 1)) for n in program.ranges], int),
        )
        for _ in range(count)
    ]


def _after_pack(anew: Program, kept: Program, draws: Noise) -> Noise:
    """The draws of a step behind zeros for those of `pack`."""
    counts = (anew.count(kind) - kept.count(kind) for kind in ("normal", "uniform", "integer"))
    return Noise(*(jnp.concatenate([jnp.zeros(n, a.dtype), a]) for n, a in zip(counts, draws, strict=True)))
