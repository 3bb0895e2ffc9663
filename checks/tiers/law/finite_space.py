"""Laws on finitely many states: the matrix of a step, P(x, y), from every state and each way its draws can fall."""

import numpy as np

from sgmcmc_verification.checks.core.check import Case, Inconclusive, require_stationary_law, statement
from sgmcmc_verification.checks.core.finding import EPS, Finding, Tolerance
from sgmcmc_verification.checks.core.obligations import BRANCHES, FINITE, REACHED
from sgmcmc_verification.checks.core.selection import everywhere
from sgmcmc_verification.checks.exact_laws.transition_matrix import (
    Transition,
    classes,
    law_at,
    period,
    stationary,
    transition,
)
from sgmcmc_verification.samplers.interface.claims import ExactLaw, Reversal
from sgmcmc_verification.targets.target import FiniteLaw

PROMISED = 1e-6
"""Probability whose wrong place is seen."""
HALVINGS = 5
"""Step sizes h, h/2, .. of a limit, less one."""


def _law(case: Case, temperature: float) -> tuple[FiniteLaw, np.ndarray]:
    assert case.target.finite is not None
    return case.target.finite, law_at(case.target.finite, temperature)


def _roundoff(found: Transition, pi: np.ndarray) -> float:
    """Relative error of an entry of P: each factor is an exponential of differences of U or a sum of K such."""
    return 8 * EPS * (found.draws + 1) * (2 + np.ptp(np.log(pi)))


def _named(law: FiniteLaw, number: int) -> str:
    return str(tuple(int(v) for v in law.states[number]))


@statement(
    tier="law",
    equation="sum_x pi(x) P(x, y) = pi(y) for every state y; for a claimed order, in the limit h -> 0",
    targets=everywhere,
    cost=2.0,
    decides="law",
    meets=lambda target: (FINITE, BRANCHES),
    finite=True,
)
def stationary_on_states(case: Case) -> Finding:
    """The law is stationary under the matrix of one step, which is exact: all states, and all ways of its draws.

    Where a law is claimed for h -> 0 alone, and is not kept at the usual step size, the exact stationary laws at h,
    h/2, .., extrapolated by the claimed order, have to tend to pi.
    """
    claims = case.subject.sampler(case.target).claims
    require_stationary_law(claims)
    law, pi = _law(case, claims.temperature)
    h = case.step_size
    found = transition(case.subject, case.target, h)
    gaps = pi @ found.matrix - pi
    lost, worst = float(pi @ found.outside), int(np.argmax(np.abs(gaps)))
    effect, allowance = 0.5 * (float(np.abs(gaps).sum()) + lost), _roundoff(found, pi)
    reason = (
        f"one step from pi has the state {_named(law, worst)} with probability {pi[worst] + gaps[worst]:.6g}, "
        f"pi has it with {pi[worst]:.6g}; {found.ways} ways from {len(pi)} states"
    )
    if lost > allowance:
        reason = f"a step leaves the states with probability {lost:.3g}"
    tolerance = Tolerance(allowance, "round-off of the probabilities of a step")
    if effect > allowance and lost <= allowance and ExactLaw not in claims:
        effect, tolerance, reason = _limit(case, pi, claims.invariant_order or 1)
    return Finding(
        effect=effect,
        tolerance=tolerance,
        required_sensitivity=PROMISED if ExactLaw in claims else LIMIT_SEEN,
        reason=reason,
        statistic="total variation distance between pi P and pi",
        unit="probability",
        step_size=h,
        measurements={"ways": found.ways, "states": len(pi)},
    )


LIMIT_SEEN = 1e-2
"""Distance of the limit h -> 0 from pi that is seen."""


def _limit(case: Case, pi: np.ndarray, order: int) -> tuple[float, Tolerance, str]:
    """Distance from pi of the limit h -> 0 of the stationary laws, the error of the extrapolation, and a reason.

    With A(h) = (2^q pi(h/2) - pi(h)) / (2^q - 1) the power h^q cancels; the next one is bounded by the last difference.
    Proposals of discrete Langevin steps have rates exp(-c / h) (zhang2022langevin): their bias vanishes faster than any
    power, and the limit is the same for every claimed order.
    """
    sizes = case.step_size / 2.0 ** np.arange(HALVINGS + 1)
    laws = []
    for h in sizes:
        found = transition(case.subject, case.target, float(h))
        if classes(found.matrix).max():
            raise Inconclusive(f"at the step size {h:.3g} not all states reach each other: no limit of stationary laws")
        laws.append(stationary(found.matrix))
    laws = np.stack(laws)
    limits = (2.0**order * laws[1:] - laws[:-1]) / (2.0**order - 1)
    distance = lambda a, b: 0.5 * float(np.abs(a - b).sum())
    effect, error = distance(limits[-1], pi), distance(limits[-1], limits[-2])
    reason = (
        f"the stationary law at the step size {sizes[-1]:.3g} is {distance(laws[-1], pi):.3g} from pi in total "
        f"variation, its limit h -> 0 by the order {order} is {effect:.3g} from it"
    )
    return (
        effect,
        Tolerance.numerical(error, "the last correction of the extrapolation", roundoff=len(pi) * 1e2),
        reason,
    )


@statement(
    tier="law",
    equation="P^n(x, y) > 0 for all states x, y and some n, the same for all large n",
    targets=everywhere,
    cost=0.5,
    decides="law",
    meets=lambda target: (REACHED,),
    finite=True,
)
def every_state_reached(case: Case) -> Finding:
    """Every state is reached from every other, at no period: the chain forgets its start, and pi is its only law.

    Decided by the graph of the positive entries of the matrix of one step.
    """
    law, _ = _law(case, 1.0)
    matrix = transition(case.subject, case.target, case.step_size).matrix
    labels = classes(matrix)
    apart = int(np.sum(labels != labels[0]))
    cycle = 1 if apart else period(matrix)
    still = [i for i in range(case.target.size) if not np.any(matrix[law.states[:, None, i] != law.states[None, :, i]])]
    reason = f"{len(labels)} states reach each other, at no period"
    if apart:
        other = int(np.argmax(labels != labels[0]))
        reason = f"{_named(law, 0)} and {_named(law, other)} do not reach each other"
    if cycle > 1:
        reason = f"the chain has the period {cycle}: its law at time n depends on n for ever"
    if still:
        reason = f"no step changes the coordinate {', '.join(map(str, still))}"
    return Finding(
        effect=float(apart + (cycle - 1)),
        tolerance=Tolerance.identity("a graph"),
        minimum_detectable_effect=1.0,
        required_sensitivity=1.0,
        reason=reason,
        statistic="states apart from the first one, or periods more than one",
        unit="states",
        step_size=case.step_size,
    )


@statement(
    tier="law",
    equation="pi(x) P(x, y) = pi(R y) P(R y, R x) for all states x, y",
    targets=everywhere,
    cost=0.5,
    decides="law",
    finite=True,
)
def balance_on_states(case: Case, reversal: Reversal, law: ExactLaw) -> Finding:
    """The matrix of one step is in balance with pi, up to the claimed involution R."""
    states, pi = _law(case, law.temperature)
    found = transition(case.subject, case.target, case.step_size)
    turned = np.stack([np.asarray(case.target.ravel(reversal.map(case.target.unravel(x)))) for x in states.states])
    place = states.place(turned)
    flow = pi[:, None] * found.matrix
    gaps = np.abs(flow - flow[place][:, place].T)
    x, y = (int(i) for i in np.unravel_index(np.argmax(gaps), gaps.shape))
    return Finding(
        effect=0.5 * float(gaps.sum()),
        tolerance=Tolerance(_roundoff(found, pi), "round-off of the probabilities of a step"),
        required_sensitivity=PROMISED,
        reason=(
            f"pi(x) P(x, y) = {flow[x, y]:.6g} and pi(R y) P(R y, R x) = {flow[place[y], place[x]]:.6g} "
            f"for x = {_named(states, x)}, y = {_named(states, y)}"
        ),
        statistic="half of the sum of all |pi(x) P(x, y) - pi(R y) P(R y, R x)|",
        unit="probability",
        step_size=case.step_size,
    )
