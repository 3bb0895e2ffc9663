"""All statements about a sampler that its claims ask for, and what they amount to.

A proof passes if everything that was claimed is zero, the state is z and nothing else, no part of the state space was
left unread, nothing was noted against it, and the noise reaches all coordinates. It fails if something is not zero on
every region and nothing is hidden. Everything else is undecided, with the place and the reason: then numbers decide.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import jax

from checks.proof.errors import Unreadable
from checks.proof.expansion import Expansion, Region, expand
from checks.proof.potential import any_target
from checks.proof.statements.balance import balance
from checks.proof.statements.boundaries import continuous
from checks.proof.statements.closure import closed_state
from checks.proof.statements.orders import described, generator, invariant_order, marginal, recipe, weak_order
from checks.proof.statements.reach import noise_reaches
from checks.proof.statements.result import Result
from samplers.estimators.basic import Exact
from samplers.interface.claims import Composite, Diffusion, ExactLaw, ParticleLaw, Reversal, StationaryLaw
from samplers.interface.sampler import Estimator, Sampler
from targets.target import Target

Verdict = Literal["pass", "fail", "undecided"]


@dataclass(frozen=True)
class Proof:
    """What is known of a step for every smooth potential.

    Attributes:
        verdict: `pass`, `fail` or `undecided`.
        reason: for a reader; why it is undecided or what is wrong.
        results: of the statements.
        notes: what was noted while reading, with file and line.
        seconds: that it took.
        dimension: of the position.
    """

    verdict: Verdict
    reason: str
    results: tuple[Result, ...]
    notes: tuple[str, ...]
    seconds: float
    dimension: int

    @property
    def is_proved(self) -> bool:
        """True for a pass in which every statement is proved, and none only verified at points."""
        return self.verdict == "pass" and all(result.outcome == "proved" for result in self.results)

    def __str__(self) -> str:
        lines = [f"{self.verdict}{': ' + self.reason if self.reason else ''}"]
        for r in self.results:
            where = f" where {' and '.join(r.region)}" if r.region else ""
            more = f": {r.reason}" if r.reason else ""
            lines.append(f"  {r.outcome} {r.statement}{where}{more}" + (f": {r.polynomial}" if r.polynomial else ""))
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def prove(
    sampler: Sampler | Callable[[Target], Sampler],
    dimension: int = 2,
    estimator: Callable[[Target], Estimator] = Exact,
    positive: bool | None = None,
) -> Proof:
    """All that a sampler claims, for every smooth potential in a dimension.

    Args:
        sampler: a sampler, or a builder of one for a target.
        dimension: d of the position.
        estimator: target -> estimator of its gradient.
        positive: whether positions are positive; default: as the claims of a sampler that runs there only say.

    Returns:
        A proof; a sampler that cannot be read has one that is undecided, with the place.
    """
    start = time.perf_counter()
    with jax.enable_x64(True):
        try:
            found = _proved(sampler, dimension, estimator, positive)
        except Unreadable as error:
            found = "undecided", str(error), (), ()
        except Exception as error:
            # of the author's code: a sampler for other shapes, another number of coordinates, a potential with data
            found = "undecided", f"{type(error).__name__}: {error}".splitlines()[0], (), ()
    verdict, reason, results, notes = found
    return Proof(verdict, reason, results, notes, time.perf_counter() - start, dimension)


_Found = tuple[Verdict, str, tuple[Result, ...], tuple[str, ...]]


def _proved(
    sampler: Sampler | Callable[[Target], Sampler],
    dimension: int,
    estimator: Callable[[Target], Estimator],
    positive: bool | None,
) -> _Found:
    built = _built(sampler, any_target(dimension))
    spaces = built.claims.spaces
    if positive is None:
        positive = "positive" in spaces and "euclidean" not in spaces
    if not {"euclidean", "positive"} & set(spaces):
        raise Unreadable(f"a sampler on {' and '.join(spaces)}")
    target = any_target(dimension, positive)
    built = _built(sampler, target)
    law = built.claims.law
    if isinstance(law, ParticleLaw):
        raise Unreadable("interacting particles")
    if isinstance(law, ExactLaw):
        return _kernel(built, target, estimator(target))
    if not isinstance(law, StationaryLaw):
        raise Unreadable(f"a law of the kind {law.kind}, which is not that of a fixed step")
    return _scheme(built, target, estimator(target))


def _built(sampler: Sampler | Callable[[Target], Sampler], target: Target) -> Sampler:
    return sampler if isinstance(sampler, Sampler) else sampler(target)


def _kernel(sampler: Sampler, target: Target, estimator: Estimator) -> _Found:
    """A kernel that keeps its law at every step size."""
    claims = sampler.claims
    equation, reversal = claims.get(Diffusion), claims.get(Reversal)
    hamiltonian = equation.dynamics(target).H if equation is not None and reversal is not None else None
    flip = None if reversal is None else reversal.map
    results = (
        *balance(sampler, target, estimator, claims.temperature, hamiltonian, flip),
        closed_state(sampler, target, estimator),
    )
    return (*_concluded(results, ()), results, ())


def _scheme(sampler: Sampler, target: Target, estimator: Estimator) -> _Found:
    """A discretisation of an SDE."""
    claims = sampler.claims
    equation = claims.get(Diffusion)
    dynamics = None if equation is None or Composite in claims else equation.dynamics(target)
    # without a claimed order the law has to be right in the limit
    order, weak = claims.invariant_order or Fraction(1, 2), claims.weak_order
    powers = max(int(2 * order + 1), 2 * (weak or 0))
    expansion = expand(sampler, target, estimator, powers, dynamics, claims.temperature)
    results = [closed_state(sampler, target, estimator)]
    for region in expansion.regions:
        results.append(_with_words(invariant_order(expansion, region, order), expansion, region))
        results.append(noise_reaches(expansion, region))
        if region.recipe is not None:
            results += [generator(expansion, region), recipe(expansion, region)]
            results.append(marginal(expansion, region, expansion.potential, target.size))
            if weak:
                results.append(weak_order(expansion, region, weak))
    results += continuous(expansion)
    results += [
        Result("reading", "", "undecided", str(part.error), region=part.conditions) for part in expansion.unread
    ]
    return (*_concluded(tuple(results), expansion.notes), tuple(results), expansion.notes)


def _with_words(result: Result, expansion: Expansion, region: Region) -> Result:
    """A violated order with the drift and the covariance of the step beside it."""
    if result.outcome != "violated":
        return result
    reason = f"{result.reason}; {described(expansion, region)}"
    if result.reason.startswith("c_3/2"):
        reason += "; the law is right in the limit, at the rate h^(1/2)"
    return Result(result.statement, result.equation, result.outcome, reason, result.polynomial, result.region)


def _concluded(results: tuple[Result, ...], notes: tuple[str, ...]) -> tuple[Verdict, str]:
    """The verdict; see the module."""
    undecided = [r for r in results if r.outcome == "undecided"]
    violated = [r for r in results if r.outcome == "violated"]
    hidden = [r for r in undecided if not r.region and r.statement == "closed state"]
    if not violated and not undecided and not notes:
        return "pass", ""
    unconditional = [r for r in violated if _everywhere(r, results)]
    if unconditional and not hidden and not notes:
        first = unconditional[0]
        return "fail", f"{first.statement}: {first.reason}: {first.polynomial}"
    open_ones = [*(f"{r.statement}: {r.reason}" for r in (*undecided, *violated)), *notes]
    return "undecided", open_ones[0]


def _everywhere(result: Result, results: tuple[Result, ...]) -> bool:
    """True if a statement is violated in every region, so that no branch can save it."""
    same = [r for r in results if r.statement == result.statement]
    unread = any(r.statement == "reading" for r in results)
    return not unread and all(r.outcome == "violated" for r in same)


def prove_dimensions(
    sampler: Sampler | Callable[[Target], Sampler],
    dimensions: tuple[int, ...] = (1, 2),
    estimator: Callable[[Target], Estimator] = Exact,
) -> Mapping[int, Proof]:
    """A proof a dimension."""
    return {d: prove(sampler, d, estimator) for d in dimensions}
