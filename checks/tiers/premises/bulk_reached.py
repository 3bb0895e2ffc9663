"""The bulk is reached: a chain that keeps a law need not come to all of it."""

import functools

import numpy as np
from scipy.special import erfi

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach, require_stationary_law, statement
from sgmcmc_verification.checks.core.conclusion import USUAL
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import structured_targets
from sgmcmc_verification.checks.tiers.premises.closed_state import Run, runs_of
from sgmcmc_verification.checks.tiers.premises.passes import LEVELS, Passes, units_of
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import StationaryLaw
from sgmcmc_verification.samplers.interface.copied import copied

UNLIKELY = 1e-12
"""Chance with which an Ornstein-Uhlenbeck process goes so often between two levels and never to a third one."""
SHORTER, TIMES = 8, 32
"""Factor by which the second step size is smaller, and by which its run has more steps."""
LONGER = 10_000
"""Steps in Python that are added, as many as are needed, where those of `closed_state` have not come to all of the
bulk."""


def _targets(subject: Subject) -> tuple[str, ...]:
    return () if subject.options else structured_targets(subject)


@statement(
    tier="contract",
    equation="inf x_i < E x_i - 1.5 sd x_i and sup x_i > E x_i + 1.5 sd x_i along a run, for each i",
    targets=_targets,
    cost=0.1,
    decides="law",
    finite=None,
)
def bulk_reached(case: Case) -> Finding:
    """A run on a Gaussian comes to all of the bulk of each coordinate.

    A kernel whose moves multiply a coordinate, or that turns back where the law has mass, may keep the law, and
    balance: it keeps others as well, which have one part of the mass alone. The run is the one at the usual step size
    that `closed_state` takes. A diffusion that is at the nearer of two levels comes to a third one before it comes to
    the other with a chance that its scale function tells; where it has gone between them so often that this is most
    unlikely not to have happened, it does not come there.

    A law that has a bias may be narrow at the usual step size: what is missed there has to be missed at an eighth of
    it as well, in four times as much time. If it is not, that is said of the usual step size.

    Source: tierney1994markov, section 3.1 (irreducibility).
    """
    require_stationary_law(case.subject.sampler(case.target).claims)
    if case.target.gaussian is None:
        raise NotApplicable("the law is not Gaussian: its mean and its scale are not on file")
    run = runs_of(case.subject, case.target)(case.step_size, True)
    if not run.finite or run.first >= 0:
        raise OutOfReach("the run ended before its time")
    passes, steps = _until_seen(case, run)
    missed = missed_levels(passes)
    if not missed and not _seen(passes).all():
        still = np.flatnonzero(~_seen(passes))[0]
        raise OutOfReach(f"in {steps} steps x[{still}] moved too little to come to all of the bulk")
    reason, usual = f"in {steps} steps all of {passes.lowest.size} coordinates came to all of the bulk", {}
    if missed:
        coordinate, side, level, count = missed[0]
        if _is_bias(case):
            words = (
                f"at the usual step size {case.step_size:.3g} x[{coordinate}] on {case.target.name} never comes {side} "
                f"{level:+.1f} standard deviations of its mean"
            )
            reason, missed = f"{words}; at an eighth of that all coordinates came to all of the bulk", []
            usual = {USUAL: {"error": None, "step_size": case.step_size, "text": words}}
        else:
            reason = (
                f"in {steps} steps x[{coordinate}] never came {side} {level:+.1f} standard deviations of its mean,"
                f" though it went {count} times between two levels that are nearer to it"
            )
    return Finding(
        effect=float(len(missed)),
        tolerance=Tolerance(0.0, "an identity"),
        minimum_detectable_effect=1.0,
        required_sensitivity=1.0,
        reason=reason,
        statistic="coordinates that miss a part of the bulk",
        unit="coordinates",
        step_size=case.step_size,
        measurements=usual,
    )


def _is_bias(case: Case) -> bool:
    """True if what is missed at the usual step size is not at a smaller one. Raises OutOfReach if that is not known."""
    sampler = case.subject.sampler(case.target)
    if not isinstance(sampler.claims.law, StationaryLaw) or on_host(sampler):
        return False
    shorter = runs_of(case.subject, case.target)(case.step_size / SHORTER, True, TIMES)
    if not shorter.finite or missed_levels(shorter.passes):
        return False
    if not _seen(shorter.passes).all():
        raise OutOfReach("the bulk is missed at the usual step size; at an eighth of that it moved too little to tell")
    return True


def _seen(passes: Passes) -> np.ndarray:
    """For each coordinate, if it came to both ends of the bulk."""
    return (passes.lowest <= LEVELS[0]) & (passes.highest >= LEVELS[-1])


def _until_seen(case: Case, run: Run) -> tuple[Passes, int]:
    """The passes of a run, in Python of one that goes on until it is known what it comes to; and its steps."""
    sampler, estimator = case.subject.sampler(case.target), case.subject.estimator(case.target)
    units = units_of(case.target)
    state, passes, steps = copied(run.state), run.passes, run.steps
    if not on_host(sampler):
        return passes, steps
    generator = np.random.default_rng(2)
    while steps < run.steps + LONGER and not _seen(passes).all() and not missed_levels(passes):
        state = sampler.step(generator, state, case.step_size, estimator)
        passes, steps = passes.after(units(sampler.position(state))), steps + 1
    return passes, steps


def missed_levels(passes: Passes) -> list[tuple[int, str, float, int]]:
    """(coordinate, side, level, passes beside it) of what a run never came to, one for each coordinate."""
    found: dict[int, tuple[int, str, float, int]] = {}
    for goal in range(len(LEVELS)):
        below, above = passes.lowest > LEVELS[goal], passes.highest < LEVELS[goal]
        for j in range(len(LEVELS) - 1):
            chance = _chance_of_goal(goal, j)
            if chance == 0.0:
                continue
            side, never = ("below", below) if goal < j else ("above", above)
            count = passes.count[:, j]
            for i in np.flatnonzero(never & (count * np.log1p(-chance) < np.log(UNLIKELY))):
                found.setdefault(int(i), (int(i), side, float(LEVELS[goal]), int(count[i])))
    return list(found.values())


@functools.cache
def _chance_of_goal(goal: int, j: int) -> float:
    """Chance of coming to a level from the nearer one of a pair j, j + 1 before coming to the other; 0 in between.

    With the scale function S' = exp(u^2 / 2) of du = -u dt + sqrt(2) dW it is that of a martingale.
    """
    scale = erfi(LEVELS / np.sqrt(2))
    if goal < j:
        return float((scale[j + 1] - scale[j]) / (scale[j + 1] - scale[goal]))
    return float((scale[j + 1] - scale[j]) / (scale[goal] - scale[j])) if goal > j + 1 else 0.0
