"""Estimators of the gradient: unbiased, for all data, all batches and every state that a run can leave them in.

    E g(x, e) = grad U(x),   U = U_0 + sum_i L_i,          E V^(x, e) = Cov g(x, e) where a covariance is reported

for uninterpreted U_0, L_1, .., L_N and every e of the family of states (`memory`). The expectation is over all batches,
which are enumerated, and over the draws of the estimator.

Source: welling2011bayesian, equation (3), for the batch; dubey2016variance and baker2019control for memories.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from sgmcmc_verification.checks.proof.draws import Expectation
from sgmcmc_verification.checks.proof.errors import PrecisionLost, Unreadable
from sgmcmc_verification.checks.proof.expansion import Expansion
from sgmcmc_verification.checks.proof.memory import Estimation, Family, Vector, family_of, short_runs
from sgmcmc_verification.checks.proof.potential import Jet, is_memory
from sgmcmc_verification.checks.proof.reader.taylor import multi_indices
from sgmcmc_verification.checks.proof.ring import Polynomial
from sgmcmc_verification.checks.proof.statements.result import Result, of_polynomials, power_of_step
from sgmcmc_verification.samplers.interface.sampler import Estimator
from sgmcmc_verification.targets.target import Target

UNBIASED, COVARIANCE, STATES, FORGOTTEN = (
    "unbiased gradient",
    "covariance of the gradient",
    "states of the estimator",
    "memory",
)
MOST_STATES = 30
"""States of short runs at which a refutation is looked for."""
IS_GRADIENT = "E g(x, e) = grad U(x)"
Named = tuple[str, Polynomial]


def data_statements(estimator: Estimator, target: Target) -> tuple[tuple[Result, ...], Family | None, tuple[str, ...]]:
    """Decide if an estimator is unbiased. Returns the results, the family of its states if one was found, and notes."""
    estimation = Estimation(estimator, target)
    x = estimation.point("x")
    if not estimation.remembers:
        return _decided(estimation, [], x), None, tuple(sorted(estimation.notes))
    family, results = None, []
    try:
        family, state = family_of(estimation)
        found = Result(STATES, f"init and every batch stay in {family.words}", "proved")
        results = [found, *_decided(estimation, state("a"), x)]
    except (Unreadable, PrecisionLost) as error:
        results = [Result(STATES, "a family of states that init and every batch stay in", "undecided", str(error))]
    if not all(result.holds for result in results):
        family = None
        results = _refuted(estimation, x) or [_softened(result) for result in results]
    return tuple(results), family, tuple(sorted(estimation.notes))


def _decided(estimation: Estimation, state: Vector, x: Vector) -> tuple[Result, ...]:
    """Both statements at a state, on all regions."""
    try:
        found = list(_expected(estimation, state, x))
    except (Unreadable, PrecisionLost) as error:
        return (Result(UNBIASED, IS_GRADIENT, "undecided", str(error)),)
    results = [of_polynomials(UNBIASED, IS_GRADIENT, bias, region) for region, bias, _ in found]
    equation = "E V^(x, e) = Cov g(x, e)"
    results += [of_polynomials(COVARIANCE, equation, excess, region) for region, _, excess in found if excess]
    return tuple(results)


def _softened(result: Result) -> Result:
    """Leave open what fails with symbols: it may fail at a state that no run reaches."""
    if result.outcome != "violated":
        return result
    reason = "not for all states of the family, of which a run may not reach all"
    return replace(result, outcome="undecided", reason=reason)


def _refuted(estimation: Estimation, x: Vector) -> list[Result]:
    """The results at a state that a short run reaches and at which one is violated; nothing if there is none."""
    try:
        for state in itertools.islice(short_runs(estimation), MOST_STATES):
            found = _decided(estimation, state, x)
            if any(result.outcome == "violated" for result in found):
                return list(found)
    except (Unreadable, PrecisionLost):
        return []
    return []


def _expected(
    estimation: Estimation, state: Vector, x: Vector
) -> Iterator[tuple[tuple[str, ...], list[Named], list[Named]]]:
    """(region, the bias, the excess of the reported covariance) on each region."""
    ring, expectation = estimation.ring, Expectation(estimation.ring)
    n = range(len(x))
    sums: dict[tuple[str, ...], list[list[Polynomial]]] = {}
    weights: dict[tuple[str, ...], Fraction] = {}
    for path, found in estimation.estimates(state, x):
        g = found.gradient
        entries = [*g, *(g[i] * g[j] for i in n for j in n), *(p for row in found.covariance for p in row)]
        weighted = [expectation(p).scaled(path.weight) for p in entries]
        region = tuple(path.region)
        sums.setdefault(region, []).append(weighted)
        weights[region] = weights.get(region, Fraction(0)) + path.weight
    if any(weight != 1 for weight in weights.values()):
        raise Unreadable("a branch on the state that the outcome of a draw has chosen")
    for region, rows in sums.items():
        total = [ring.sum(column) for column in zip(*rows, strict=True)]
        mean, squares, reported = total[: len(n)], total[len(n) : len(n) + len(n) ** 2], total[len(n) + len(n) ** 2 :]
        slope = [ring.generator(Jet("U", index, tuple(x))) for index in multi_indices(len(n), 1)]
        bias = [(f"E g_{i + 1} - dU/dx{i + 1}", mean[i] - slope[i]) for i in n]
        own = [squares[i * len(n) + j] - mean[i] * mean[j] for i in n for j in n]
        excess = [
            (f"V^_{k // len(n) + 1}{k % len(n) + 1} less what it should be", v - own[k]) for k, v in enumerate(reported)
        ]
        yield region, bias, excess


def forgotten(expansion: Expansion, order: int | Fraction) -> Result:
    """Decide if memory, of the estimator or of the sampler, is in no operator A_k that an order rests on.

    One step changes E f(z) by sum_k h^k E[(A_k f)(z, e)]. If A_k f does not depend on e for all k <= order + 1/2, only
    the law of z enters, however it hangs together with e, and c_k = 0 decides as it does without a memory.
    """
    count = int(2 * order + 1)
    equation = f"A_k does not depend on what is beyond z for k <= {power_of_step(count)}"
    for region in expansion.regions:
        for row in region.moments.values():
            for k, p in enumerate(row[: count + 1]):
                if is_memory(p):
                    reason = f"A_{power_of_step(k)} depends on memory: {p.text(3)}"
                    return Result(FORGOTTEN, equation, "undecided", reason, region=region.conditions)
    return Result(FORGOTTEN, equation, "proved")
