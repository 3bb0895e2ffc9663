"""The law of runs: decided by sampling where no other statement reaches, in the same command.

From exact draws of the target independent runs are averaged over time. An exact kernel keeps every expectation at every
step size, and is run where about half of its proposals are rejected; so is one that tests its proposals and claims
nothing, first. Of any other sampler the averages at two step sizes are extrapolated to h = 0, everything else held
fixed. What the start of a run, an exact draw, tells of its average is taken off.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from sgmcmc_verification.checks.core.accept_step import tests_proposals
from sgmcmc_verification.checks.core.check import Case, Inconclusive, OutOfReach, require_stationary_law, statement
from sgmcmc_verification.checks.core.error_origin import RAISED
from sgmcmc_verification.checks.core.finding import Finding
from sgmcmc_verification.checks.core.obligations import BRANCHES, KNOWN_DRAWS, of_target
from sgmcmc_verification.checks.core.selection import nowhere
from sgmcmc_verification.checks.end_points.budget import joined, pieces
from sgmcmc_verification.checks.end_points.error_rates import (
    Sensitivity,
    decide_statistically,
    enough,
    not_finite,
    stage_seed,
)
from sgmcmc_verification.checks.end_points.functions import PER_VARIANCE, Functions, functions_of, of_one
from sgmcmc_verification.checks.end_points.runs import (
    FEW,
    Runs,
    pilot,
    position_is_all,
    step_sizes_of,
)
from sgmcmc_verification.checks.end_points.step_size_limit import coarse_extrapolation, order_of, outcomes_of
from sgmcmc_verification.checks.end_points.walkers import laws_of_walkers, of_position, of_walkers
from sgmcmc_verification.checks.statistics.outcome import Outcome, normal_quantile
from sgmcmc_verification.samplers.interface.claims import Composite, ExactLaw

RUNS, HOST_RUNS, OF_MANY = 1 << 14, 480, 3 << 10
"""The most runs of the first stage: of compiled steps, of those that Python takes one by one, in many dimensions."""
LEAST, HOST_LEAST = 1 << 10, 384
"""Runs that are always made: compiled ones, and in Python in many dimensions."""
LEAST_OF_WALKERS = 192
"""The same where each is of several walkers, whose mean is less skewed."""
AGAIN = 1 << 12
"""The most runs at a further step size: what is wrong there alone, as a scale that follows the position, is far off."""
STEPS, HOST_STEPS = 200, 60
"""Steps of a run of the largest size; as many before, where the state holds more than the position."""
CALLS, FEWEST = 10_000, 8
"""Functions that a run of an exact kernel in Python calls at most, but for steps that are left out, and steps that it
has at least: a sweep over fifty coordinates, each with a loop of its own, moves them all in one."""
LONGER, LATER = 8, (2, 8)
"""Factors of the latter where runs of a kernel that tests its proposals have not the law of the target: of one that
does not claim to be exact, and of one that does, in turn."""
DOUBT = 1e-4
"""Level at which pilots have runs that leave out steps take the place of a hypothesis on what a state holds beside the
position; nothing is said of the sampler."""
SETTLED = 0.7
"""Part of a gap that is left where more steps are left out, unless it is one that goes by."""
WIDER = 4.0
"""Factor between the sizes of the steps that such a run leaves out."""
PROMISED, HOST_PROMISED = 0.5, 1.5
"""Relative error of a variance that is seen."""
AIMS = ((1, 0.03), (8, 0.15), (math.inf, 0.4))
"""Part of it that runs are made to see, as many as pilots say are needed, by dimension, of an exact kernel."""
OTHER_AIMS = ((FEW, 0.4), (math.inf, 0.7))
"""The same of any other kernel, and of all in Python."""


UNIT = "of a characteristic function"


class Beginning(NamedTuple):
    """The steps that a run leaves out where the state holds more than the position, and what is looked for after them.

    `longer` is a factor of their number, 0 for none, and `wider` that between their sizes. `gap` is what was found
    with fewer of them: runs that see half of it say if it goes by.
    """

    longer: int = 1
    wider: float = 1.0
    gap: float = 0.0


@statement(
    tier="invariance",
    equation="time averages of f along runs from the target -> pi(f) as h -> 0",
    targets=nowhere,
    cost=5.0,
    decides="law",
    meets=lambda target: (*of_target(target), KNOWN_DRAWS, BRANCHES),
    samples=True,
)
def law_of_runs(case: Case, seed: int) -> Finding:
    """Time averages along independent runs from exact draws are the expectations of the target, as h -> 0.

    It runs by itself where an obligation is left that no other statement could meet.
    """
    claims = case.subject.sampler(case.target).claims
    require_stationary_law(claims)
    functions = functions_of(case.target, claims.temperature)
    tests = tests_proposals(case.subject, claims)
    if (ExactLaw in claims or tests) and (found := _of_walkers(case, functions, seed, tests)) is not None:
        return found
    runs = Runs(case.subject, case.target, functions)
    (h, rejected), *others = step_sizes_of(runs, case.step_size, stage_seed(seed, 0, 30), tests)
    if ExactLaw in claims:
        found = _exactly(case, runs, seed, h, rejected)
        again = (_exactly(case, runs, seed, other, share, math.sqrt(h / other)) for other, share in others)
        return found if found.verdict == "fail" else next((each for each in again if each.verdict == "fail"), found)
    judge = lambda exact, longer=1: _judge(case, runs, seed, h, rejected, exact, Beginning(longer))
    if not tests:
        return judge(False)
    # What tests its proposals is likely to be exact, claimed or not: that is seen at one step size, with less noise.
    # Walkers, weights or temperatures beside the position are not in equilibrium at the start of a run.
    for longer in (1, LONGER):
        found = judge(True, longer)
        assert found.significance is not None
        if not found.significance.rejected:
            return found
        if position_is_all(runs):
            return judge(False)
    return judge(False, LONGER)


def _of_walkers(case: Case, functions: Functions, seed: int, tests: bool) -> Finding | None:
    """Runs of all walkers from exact draws, none of whose steps are left out; None if they do not keep that law.

    That walkers are independent draws of the target, each at its temperature, is a hypothesis: what fails there says
    nothing. The position is that of a kernel that claims to be exact all the same, and whatever ladder the others began
    at, what is off by as much however many steps are left out is off.
    """
    for copies in laws_of_walkers(case.subject, case.target):
        begin = lambda looked_at, copies=copies: Runs(case.subject, case.target, looked_at, auxiliary=copies)
        try:
            runs = begin(of_walkers(functions, copies))
            (h, rejected), *_ = step_sizes_of(runs, case.step_size, stage_seed(seed, 0, 30), tests)
            with suppress(OutOfReach):
                found = _judge(case, runs, seed, h, rejected, True, Beginning(0))
                if found.significance is not None and not found.significance.rejected:
                    return found
            if len(set(copies.temperatures)) > 1 and ExactLaw in runs.sampler.claims:
                found = _exactly(case, begin(of_position(functions, case.target.size)), seed, h, rejected)
                if found.verdict == "fail":
                    return found
        except RAISED:  # such a state may be none of the sampler's
            continue
    return None


def steps_of_host(calls: int) -> int:
    """Steps of a run of an exact kernel in Python whose step calls so many functions."""
    return min(HOST_STEPS, max(FEWEST, CALLS // calls))


def _exactly(case: Case, runs: Runs, seed: int, h: float, rejected: float, wider: float = 1.0) -> Finding:
    """A kernel that claims to be exact, at one step size; it should keep its law at sizes up to `wider`^2 h as well.

    Walkers or temperatures that begin at the position of the first one are far from their law for long: steps that are
    left out take them there, and what fails is run again, with more of them. A gap that becomes smaller shows nothing.
    """
    found = _judge(case, runs, seed, h, rejected, True, Beginning(wider=wider))
    if found.verdict != "fail" or position_is_all(runs):
        return found
    before = found
    for longer in LATER:
        if found.verdict != "fail":
            return found
        beginning = Beginning(longer, max(wider, WIDER), found.effect)
        before, found = found, _judge(case, runs, seed, h, rejected, True, beginning)
    if found.verdict == "fail" and found.effect < SETTLED * before.effect:
        raise Inconclusive(
            f"what the state holds beside the position has not come to rest: with {LATER[0]} and {LATER[1]} times the "
            f"steps left out {before.statistic} is off by {before.effect:.3g}, {found.statistic} by {found.effect:.3g}"
        )
    return found


def _judge(case: Case, runs: Runs, seed: int, h: float, rejected: float, exact: bool, beginning: Beginning) -> Finding:
    """Averages along runs at the step size h against the target, or their limit h -> 0 if the kernel is not exact."""
    claims, functions = runs.sampler.claims, runs.functions
    count, steps = (HOST_RUNS, HOST_STEPS) if runs.host else (RUNS, STEPS)
    count = min(count, OF_MANY) if case.target.size > FEW else count
    all_known = position_is_all(runs)
    alone = all_known or runs.auxiliary is not None
    walkers = functions.walkers
    discard = 0 if all_known else beginning.longer * steps
    if runs.host and exact:
        steps = steps_of_host(runs.calls(h)[1])
    # a momentum that is drawn afresh in every step carries the position by h, hence as a time of h^2 does
    more = 4 if Composite in claims or (alone and case.subject.row.step_power < 1) else 2
    share, spread, gap = pilot(runs, stage_seed(seed, 0, 31), h, steps + discard, discard)

    promised = PER_VARIANCE * (HOST_PROMISED if runs.host else PROMISED)
    order, tests = order_of(claims), len(functions.names)
    if beginning.longer == 0 and gap > normal_quantile(math.log(DOUBT / (2 * tests))):
        raise OutOfReach(f"walkers that are no draws of the target: pilots are off by {gap:.1f} standard errors")
    amplified = 1.0 if exact else float(np.linalg.norm(coarse_extrapolation(order)[0]))
    if beginning.wider > 1 and beginning.longer == 1:
        count = min(count, AGAIN)
    if np.isfinite(spread).all() and (not runs.host or case.target.size > FEW or walkers > 1):
        aims = AIMS if exact and not runs.host else OTHER_AIMS
        aim = next(part for most, part in aims if case.target.size <= most)
        sees = min(promised, max(promised * aim, beginning.gap / 2))
        # averages of few steps are skewed, and few of them show nothing
        least = HOST_LEAST if runs.host else LEAST
        least = least if walkers == 1 else LEAST_OF_WALKERS
        widest = spread[: tests // 2 if walkers > 1 else tests].max()  # means of all walkers come first
        count = min(count, max(least, enough(amplified * widest, sees, tests)))

    def run(stage: int, n: int) -> Sequence[Outcome]:
        sizes = (0,) if exact else (0, 2)
        starts = {k: runs.starts(stage_seed(seed, stage, 10 + k), n) for k in sizes}
        parts = []
        for piece in pieces(n, runs.piece, "runs"):
            values = []
            for k in sizes:
                x, lengths = starts[k][piece], ((steps + discard) * more**k, discard * more**k)
                stream = stage_seed(seed, stage, 20 + k)
                means, _ = runs.means(stream, x, h / 2**k, *lengths, made=piece.start, wider=beginning.wider)
                if not np.isfinite(means).all():
                    return [not_finite("averages that are not finite", n, UNIT)]
                values.append(means - share * (functions.values(x) - functions.expected))
            parts.append(np.stack(values))
        return outcomes_of(joined(parts), order, functions.expected, functions.names, UNIT)

    what = f"{rejected:.0%} of the steps rejected, " if rejected else ""
    return decide_statistically(
        run,
        first_n=count,
        promised=Sensitivity(promised, chains=count, primary=lambda o: of_one(o.name, "y")),
        allowance_source="nothing" if exact else "the correction of order h^q, extrapolated away",
        reason=lambda o: (
            f"by sampling, {what}the {'average' if exact else 'limit h -> 0'} of {o.name} is "
            f"{o.measured:.5g}, exact {o.expected:.5g}"
            if o.measured is not None
            else f"by sampling, {what}{o.name}"
        ),
        steps=steps,
        step_size=h,
        detail={"rejected": rejected} | ({"walkers": walkers} if walkers > 1 else {}),
    )
