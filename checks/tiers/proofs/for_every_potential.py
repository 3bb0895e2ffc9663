"""Proofs as statements: a polynomial in derivatives of an unknown potential is zero, or it is not.

A proof that could not be finished decides nothing: the statement is then out of reach, with the place, and numbers
decide. What one of these shows stands for the numerical statements that it names, on the targets that its potentials
include; two of them still run at the default options, as witnesses by code that shares nothing with the reader. A proof
that took a comparison of h with a number as it is for small h stands for nothing, and meets no obligation.

Source: talay1990expansion; vollmer2016exploration; hastings1970monte; the derivations are in `checks.proof.statements`.
"""

import dataclasses
from collections.abc import Callable, Mapping

from sgmcmc_verification.checks.core import obligations as o
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach, require_stationary_law, statement
from sgmcmc_verification.checks.core.conclusion import SHOWN
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import PYTREE, claims_of, runs_on
from sgmcmc_verification.checks.proof.of_subject import proofs_of
from sgmcmc_verification.checks.proof.prove import HIDDEN, Proof
from sgmcmc_verification.checks.proof.settings import FEW_LEAVES, FIFTY, LINE, MATRIX, NOISY, PLANE, TREE
from sgmcmc_verification.checks.proof.statements.balance import BALANCE, REJECTION
from sgmcmc_verification.checks.proof.statements.data import COVARIANCE, FORGOTTEN, STATES, UNBIASED
from sgmcmc_verification.checks.proof.statements.result import Result
from sgmcmc_verification.samplers.interface.claims import (
    DensityEstimate,
    ExactLaw,
    ParticleVelocity,
    StochasticEquation,
)

FLAT: dict[str, tuple[o.Obligation, ...]] = {
    LINE.name: (o.LINE,),
    PLANE.name: (o.GAUSSIAN, o.PLANE),
    TREE.name: (o.PYTREE,),
    FEW_LEAVES.name: (o.PYTREE,),
    MATRIX.name: (o.PYTREE,),
    FIFTY.name: (o.HIGH_DIMENSION,),
    NOISY.name: (o.GRADIENT_NOISE,),
}
"""Setting -> the obligations of a law that a proof for it meets, on R^n."""
POSITIVE = FLAT | {PLANE.name: (o.MANIFOLD,)}
USUAL = (LINE.name, PLANE.name, TREE.name, FEW_LEAVES.name, MATRIX.name, FIFTY.name)
ALL_SIDES = (LINE.name, PLANE.name)
"""Settings in which a proof that holds at every h, on each side of each branch, has entered all of them."""

Part = Callable[[Result], bool]


def once(subject: Subject) -> tuple[str, ...]:
    """The first target of the row: a proof is about none of them."""
    return subject.row.targets[:1]


def part_of_proof(proof: Proof, concerns: Part) -> tuple[str, str]:
    """The outcome of some statements of a proof: `pass`, `fail`, `undecided` or `nothing`, and the reason.

    They fail only where the proof as a whole does, and pass only where nothing hidden was found in the state.
    """
    found = [result for result in proof.results if concerns(result)]
    if proof.verdict == "undecided":
        return "undecided", proof.reason
    if not found:
        return "nothing", "not claimed"
    if proof.verdict == "fail":
        wrong = [result for result in found if result.outcome == "violated"]
        if wrong:
            return "fail", ": ".join(text for text in (wrong[0].reason, wrong[0].polynomial) if text)
        if not all(result.holds for result in (*found, *(r for r in proof.results if r.statement == HIDDEN))):
            return "undecided", proof.reason
    return "pass", "verified to 50 digits" if any(r.outcome == "verified" for r in found) else "proved"


def finding(case: Case, settings: tuple[str, ...], concerns: Part, of_the_law: bool = False) -> Finding:
    """The finding of a statement from the proofs for some kinds of positions.

    Args:
        case: a sampler on a target.
        settings: kinds of positions.
        concerns: which statements of a proof it is about.
        of_the_law: whether it says which law the step keeps.

    Raises:
        NotApplicable: if nothing of the kind is claimed.
        OutOfReach: if no proof was finished.
    """
    sampler = case.subject.sampler(case.target)
    proofs = proofs_of(case.subject)  # none after the first one that fails
    parts = {name: part_of_proof(proofs[name], concerns) for name in settings if name in proofs}
    if not parts:
        raise OutOfReach("a proof of another statement fails")
    milliseconds = {name: round(1e3 * proofs[name].seconds) for name in parts}
    of = lambda word: {name: reason for name, (found, reason) in parts.items() if found == word}
    failed, passed, undecided = of("fail"), of("pass"), of("undecided")
    if failed:
        name, reason = next(iter(failed.items()))
        return _decided(1.0, f"{name}: {reason}", (), {"milliseconds": milliseconds})
    if not passed:
        name, reason = next(iter(undecided.items()), ("", ""))
        raise OutOfReach(f"{name}: {reason}") if undecided else NotApplicable("nothing of the kind is claimed")
    limits = list(dict.fromkeys(limit for name in passed for limit in proofs[name].limits))
    left = [f"{name} is not read ({reason})" for name, reason in undecided.items()]
    small = [f"for small h only: {limit}" for limit in limits]
    shown = [f"{way} for every smooth potential, {name}" for name, way in passed.items()]
    shows = FLAT if "euclidean" in sampler.claims.spaces else POSITIVE
    whole = {name: way for name, way in passed.items() if not proofs[name].limits}
    meets = tuple(obligation for name in whole for obligation in shows[name])
    if {TREE.name, FEW_LEAVES.name} & set(undecided) and runs_on(case.subject, PYTREE):
        # a matrix stands for all trees of a sampler that takes no others
        meets = tuple(obligation for obligation in meets if obligation != o.PYTREE)
    meets += (o.BRANCHES,) if of_the_law and set(ALL_SIDES) <= set(whole) else ()
    more: dict[str, object] = {"milliseconds": milliseconds, SHOWN: whole, "not read": undecided}
    more |= {"not examined": f"step sizes at which not {' and '.join(limits)}"} if limits else {}
    return _decided(0.0, "; ".join([*shown, *left, *small]), meets, more)


def _decided(effect: float, reason: str, meets: tuple[o.Obligation, ...], more: Mapping[str, object]) -> Finding:
    return Finding(
        effect=effect,
        tolerance=Tolerance.identity("a polynomial that has to be zero"),
        required_sensitivity=0.0,
        reason=reason,
        statistic="polynomials that are not zero",
        unit="yes or no",
        meets=meets,
        measurements=more,
    )


def _about(*words: str) -> Part:
    return lambda result: result.statement.startswith(words)


@statement(
    tier="generator",
    equation="A_1 = L for every smooth U; Q = -Q^T, D >= 0, f = -(D + Q) grad H + Gamma",
    targets=once,
    cost=0.2,
    decides="dynamics",
    stands_for=("generator_of_code", "autodiff_recipe"),
)
def generator_for_every_potential(case: Case, equation: StochasticEquation) -> Finding:
    """The first coefficient of E f(z_h) in h is the declared generator, which has the form of the recipe.

    Source: talay1990expansion; ma2015complete, equation (3).
    """
    del equation  # that it is claimed
    return finding(case, USUAL, _about("generator", "recipe"))


@statement(
    tier="order",
    equation="A_j = L^j / j! for every smooth U, j <= p",
    targets=once,
    cost=0.0,
    decides="order",
    stands_for=("local_weak_order",),
)
def weak_order_for_every_potential(case: Case, equation: StochasticEquation) -> Finding:
    """The coefficients of E f(z_h) in h are powers of the declared generator.

    Source: talay1990expansion; milstein2004stochastic, theorem 2.2.1.
    """
    del equation
    return finding(case, (LINE.name, PLANE.name), _about("weak order"))


@statement(
    tier="order",
    equation="integral of A_j f dpi = 0, j <= q, for every smooth U and f",
    targets=once,
    cost=0.0,
    decides="order",
    stands_for=("defect", "gaussian_limit", "transfer_operator"),
)
def invariant_law_for_every_potential(case: Case) -> Finding:
    """The law that the step keeps is the claimed one up to O(h^q), by integration by parts against exp(-H).

    With gradient noise of any variance V(x) it is right as h -> 0: such noise adds O(h^2) to the covariance of a step.

    Source: vollmer2016exploration, theorem 3.3; talay1990expansion.
    """
    claims = claims_of(case.subject)
    require_stationary_law(claims)
    if ExactLaw in claims:
        raise NotApplicable("an exact kernel has its balance instead")
    own = (
        "invariant order",
        "law of the position",
        "noise reaches",
        "continuity",
        "Hamiltonian",
        "exchange",
        FORGOTTEN,
        BALANCE,  # of a kernel that tests its proposals and does not say so
        REJECTION,
    )
    return finding(case, (*USUAL, NOISY.name), _about(*own), of_the_law=True)


@statement(
    tier="law",
    equation="log a = H(z) - H(z') + log q(z' -> z) - log q(z -> z') + log |Jacobian| for every smooth U and h",
    targets=once,
    cost=0.2,
    decides="law",
    stands_for=("detailed_balance", "skew_detailed_balance", "defect", "transfer_operator", "gaussian_limit"),
)
def balance_for_every_potential(case: Case) -> Finding:
    """The ratio that a Metropolis step accepts by is the one that its proposal needs, and a rejection gives R z.

    Source: hastings1970monte; lelievre2019hybrid.
    """
    if ExactLaw not in claims_of(case.subject):
        raise NotApplicable("no law that is exact at a finite step size is claimed")
    return finding(case, USUAL, lambda result: True, of_the_law=True)


@statement(
    tier="law",
    equation="E g(x, e) = grad U(x) for all data, batches and states e of the estimator, for every smooth U_0, L_i",
    targets=once,
    cost=0.0,
    decides="dynamics",
)
def estimator_for_every_potential(case: Case) -> Finding:
    """The gradient of an estimator is unbiased over all batches, at every state that a run can leave it in.

    Source: welling2011bayesian, equation (3); dubey2016variance; baker2019control.
    """
    return finding(case, (LINE.name, PLANE.name), _about(UNBIASED, COVARIANCE, STATES))


@statement(
    tier="law",
    equation="x_j' - x_j = (h / M) sum_i xi(x_i, x_j) and E_p xi(x, y) = 0 for every smooth U, p = exp(-U)",
    targets=once,
    cost=0.5,
    decides="law",
)
def velocity_for_every_potential(case: Case, velocity: ParticleVelocity) -> Finding:
    """A step is the mean of what each particle gives the others, which vanishes at the target by Stein's identity.

    It is that of the declared kernel, the kernelised Stein operator or the gradient of its Riemannian functional. With
    an estimate of the density the step is the flow of the declared H, D and Q with that estimate by its definition:
    the target is a fixed point in a limit only then, and no obligation is met.

    Source: liu2016stein, equation (8) and lemma 2.2; liu2018riemannian, section 4.2; liu2019understanding, theorem 5.
    """
    del velocity
    found = finding(case, USUAL, lambda result: True)
    exact = found.meets and DensityEstimate not in claims_of(case.subject)
    return dataclasses.replace(found, meets=(o.PARTICLES,) if exact else ())
