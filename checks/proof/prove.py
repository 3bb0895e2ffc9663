"""All statements about a sampler that its claims ask for, and what they amount to.

A proof passes if everything that was claimed is zero, the state is z and nothing else, no part of the state space was
left unread, nothing was noted against it, and the noise reaches all coordinates. It fails if something is not zero on
every region and nothing is hidden. Everything else is undecided, with the place and the reason: then numbers decide.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, NamedTuple

import jax

from sgmcmc_verification.checks.proof.errors import NotReal, Unreadable
from sgmcmc_verification.checks.proof.expansion import Expansion, Region, expand
from sgmcmc_verification.checks.proof.hosts.of_sampler import read_on_host
from sgmcmc_verification.checks.proof.memory import Remembering, remembers
from sgmcmc_verification.checks.proof.potential import Memory, UninterpretedNoise
from sgmcmc_verification.checks.proof.reader.predicates import NOT_SMOOTH
from sgmcmc_verification.checks.proof.ring import MOST_WORK
from sgmcmc_verification.checks.proof.settings import SETTINGS, Setting, of_dimension
from sgmcmc_verification.checks.proof.statements.balance import NO_HAMILTONIAN, balance
from sgmcmc_verification.checks.proof.statements.boundaries import continuous
from sgmcmc_verification.checks.proof.statements.closure import NOT_FOLLOWED, closed_state, closure
from sgmcmc_verification.checks.proof.statements.data import data_statements, forgotten
from sgmcmc_verification.checks.proof.statements.drawn_ahead import drawn_ahead
from sgmcmc_verification.checks.proof.statements.exchange import with_jumps
from sgmcmc_verification.checks.proof.statements.orders import (
    described,
    generator,
    in_terms_of_recipe,
    invariant_order,
    marginal,
    recipe,
    weak_order,
)
from sgmcmc_verification.checks.proof.statements.particles import particle_statements
from sgmcmc_verification.checks.proof.statements.reach import noise_reaches
from sgmcmc_verification.checks.proof.statements.result import OUTCOMES, Outcome, Result
from sgmcmc_verification.checks.proof.traced import Traced
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import (
    Composite,
    DensityEstimate,
    Diffusion,
    ExactLaw,
    Exchange,
    MarginalFlow,
    ParticleLaw,
    ParticleVelocity,
    Reversal,
    StationaryLaw,
)
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.targets.target import Target

Verdict = Literal["pass", "fail", "undecided"]
Builder = Callable[[Target], Sampler]
HIDDEN = "closed state"
SOME_WORK = 100_000
"""Products of terms (`ring.MOST_WORK`) for a kernel with many coordinates: one or two seconds, enough for walks."""


@dataclass(frozen=True)
class Proof:
    """All that is known of a step for every smooth potential.

    Attributes:
        verdict: `pass`, `fail` or `undecided`.
        reason: for a reader; why it is undecided or what is wrong.
        results: of the statements.
        notes: what was noted while reading, with file and line.
        seconds: that it took.
        setting: the positions that it is about.
        limits: comparisons of the step size with numbers, which were read for small h: what binds at a finite h is not
            seen here.
        left_out: positions that the sampler refused, or at which it could not be read, with the reason.
    """

    verdict: Verdict
    reason: str
    results: tuple[Result, ...]
    notes: tuple[str, ...]
    seconds: float
    setting: str
    limits: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def is_proved(self) -> bool:
        """True for a pass in which every statement is proved, and none only verified at points."""
        return self.verdict == "pass" and all(result.outcome == "proved" for result in self.results)

    def __str__(self) -> str:
        lines = [f"{self.verdict} ({self.setting})" + (f": {self.reason}" if self.reason else "")]
        for r in self.results:
            where = f" where {' and '.join(r.region)}" if r.region else ""
            more = f": {r.reason}" if r.reason else ""
            lines.append(f"  {r.outcome} {r.statement}{where}{more}" + (f": {r.polynomial}" if r.polynomial else ""))
        lines += [f"  note: {note}" for note in self.notes] + [f"  for small h: {limit}" for limit in self.limits]
        return "\n".join(lines)


class NotForThese(Exception):
    """A sampler that refuses positions of a shape, or an error of its code at them."""


def prove(
    sampler: Sampler | Builder,
    setting: int | Setting = 2,
    estimator: Callable[[Target], Estimator] = Exact,
) -> Proof:
    """All that a sampler claims, for every smooth potential and positions of one kind.

    Args:
        sampler: a sampler, or a builder of one for a target.
        setting: the positions; a number d stands for vectors (d,).
        estimator: target -> estimator of its gradient.

    Returns:
        A proof; a sampler that cannot be read has one that is undecided, with the place.
    """
    setting = of_dimension(setting) if isinstance(setting, int) else setting
    start = time.perf_counter()
    found: _Found
    left_out: tuple[str, ...] = ()
    with jax.enable_x64(True):
        try:
            found = _proved(sampler, setting, estimator)
        except (Unreadable, NotForThese) as error:
            found = _Found("undecided", str(error))
            left_out = (str(error),) if isinstance(error, NotForThese) else ()
    return replace(_made(found, setting.name, time.perf_counter() - start), left_out=left_out)


def prove_everywhere(
    sampler: Sampler | Builder, estimator: Callable[[Target], Estimator] = Exact, settings: Sequence[Setting] = SETTINGS
) -> Proof:
    """One proof for several kinds of positions.

    It fails if one of them does, and passes if all of them do that could be read, one that asks for orders among them.
    Positions that the sampler refuses are left out, and those beyond two coordinates at which it has more branches or
    larger matrices than are read.
    """
    start = time.perf_counter()
    proofs: list[tuple[Setting, Proof]] = []
    left_out: list[str] = []
    for setting in settings:
        began = time.perf_counter()
        try:
            with jax.enable_x64(True):
                found = _proved(sampler, setting, estimator)
        except NotForThese as error:
            left_out.append(f"{setting.name}: {error}")
            continue
        except Unreadable as error:
            if setting.in_the_limit:
                left_out.append(f"{setting.name}: {error}")
                continue
            found = _Found("undecided", str(error))
        proofs.append((setting, _made(found, setting.name, time.perf_counter() - began)))
    verdict, reason = _joined(proofs, left_out)
    results = tuple(result for _, proof in proofs for result in proof.results)
    notes = tuple(dict.fromkeys(note for _, proof in proofs for note in proof.notes))
    limits = tuple(dict.fromkeys(limit for _, proof in proofs for limit in proof.limits))
    names = ", ".join(setting.name for setting, _ in proofs)
    return Proof(verdict, reason, results, notes, time.perf_counter() - start, names, limits, tuple(left_out))


def _made(found: "_Found", name: str, seconds: float) -> Proof:
    named = tuple(replace(result, setting=name) for result in found.results)
    return Proof(found.verdict, found.reason, named, found.notes, seconds, name, found.limits)


def _joined(proofs: Sequence[tuple[Setting, Proof]], left_out: Sequence[str]) -> tuple[Verdict, str]:
    order: tuple[Verdict, ...] = ("fail", "undecided")
    for verdict in order:
        for setting, proof in proofs:
            if proof.verdict == verdict:
                return verdict, f"{setting.name}: {proof.reason}"
    if not any(not setting.in_the_limit for setting, _ in proofs):
        return "undecided", left_out[0] if left_out else "no positions that the sampler takes"
    return "pass", ""


class _Found(NamedTuple):
    verdict: Verdict
    reason: str
    results: tuple[Result, ...] = ()
    notes: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()


def _proved(sampler: Sampler | Builder, setting: Setting, estimator: Callable[[Target], Estimator]) -> _Found:
    target, built, oracle = prepared(sampler, setting, estimator)
    try:
        if setting.noisy:
            return _under_noise(built, target)
        return _by_law(built, target, oracle, setting.in_the_limit)
    except (Unreadable, NotForThese):
        raise
    except NotReal:
        raise Unreadable("no point was found at which the step is real") from None
    except Exception as error:
        # what the reader does not know of must not end a run: the proof is undecided and says why
        raise Unreadable(f"the reader failed with {type(error).__name__}: {error}".splitlines()[0]) from error


def prepared(
    sampler: Sampler | Builder, setting: Setting, estimator: Callable[[Target], Estimator]
) -> tuple[Target, Sampler, Estimator]:
    """The target, the sampler and the estimator, which can be traced.

    Raises:
        NotForThese: if the sampler refuses such positions, or fails at them.
    """
    try:
        target = setting.target(False)
        built = _built(sampler, target)
        spaces = built.claims.spaces
        if not {"euclidean", "positive"} & set(spaces):
            raise Unreadable(f"a sampler on {' and '.join(spaces)}")
        if "euclidean" not in spaces:
            target = setting.target(True)
            built = _built(sampler, target)
        oracle = estimator(target)
        if on_host(built):
            built = read_on_host(lambda law: _built(sampler, law), oracle, target)
        elif not isinstance(built.claims.law, ParticleLaw):
            Traced.of(built, oracle, target)
        return target, built, oracle
    except Unreadable:
        raise
    except Exception as error:
        # of the author's code: a sampler for other shapes, another number of coordinates, a potential with data
        raise NotForThese(f"{type(error).__name__}: {error}".splitlines()[0]) from error


def _by_law(sampler: Sampler, target: Target, estimator: Estimator, in_the_limit: bool) -> _Found:
    """A proof of the kind that the claimed law asks for."""
    law = sampler.claims.law
    if isinstance(law, ParticleLaw):
        return _particles(sampler, target, estimator)
    if isinstance(law, ExactLaw):
        found = _kernel(sampler, target, estimator, SOME_WORK if in_the_limit else MOST_WORK)
        if in_the_limit and found.verdict == "undecided":
            raise Unreadable(found.reason)
        return found
    if isinstance(law, StationaryLaw) and remembers(estimator, target):
        return _with_memory(sampler, target, estimator, in_the_limit)
    if not isinstance(law, StationaryLaw):
        raise Unreadable(f"a law of the kind {law.kind}, which is not that of a fixed step")
    try:
        return _scheme(sampler, target, estimator, in_the_limit)
    except Unreadable as error:
        if error.reason != NOT_SMOOTH:
            raise
        found = _kernel(sampler, target, estimator)  # it keeps its law at every step size, and did not say so
        if found.verdict != "pass":
            raise Unreadable(f"{error}; as a kernel that may keep its law exactly, {found.reason}") from error
        return found


def _particles(sampler: Sampler, target: Target, estimator: Estimator) -> _Found:
    """Particles along a declared velocity, or with the marginals of a declared SDE."""
    claims = sampler.claims
    if not (MarginalFlow in claims if DensityEstimate in claims else ParticleVelocity in claims):
        raise Unreadable("interacting particles")
    results, notes = particle_statements(sampler, target, estimator)
    return _Found(*_concluded(results, notes), results, notes)


def _built(sampler: Sampler | Builder, target: Target) -> Sampler:
    return sampler if isinstance(sampler, Sampler) else sampler(target)


def _kernel(sampler: Sampler, target: Target, estimator: Estimator, work: int = MOST_WORK) -> _Found:
    """A kernel that keeps its law at every step size."""
    claims = sampler.claims
    equation, reversal = claims.get(Diffusion), claims.get(Reversal)
    hamiltonian = equation.dynamics(target).H if equation is not None and reversal is not None else None
    flip = None if reversal is None else reversal.map
    of = sampler, target, estimator, claims.temperature
    found, notes = balance(*of, hamiltonian, flip, work)
    if hamiltonian is None and found[0].reason.startswith(NO_HAMILTONIAN):
        # a momentum of mass one, turned or not where a proposal is rejected: if that is not its law, nothing is said
        for turned in (True, False):
            tried, tried_notes = balance(*of, work=work, turned=turned)
            if all(result.holds for result in tried):
                found, notes = tried, tried_notes
                break
    results = (*found, closed_state(sampler, target, estimator))
    return _Found(*_concluded(results, notes), results, notes)


def _scheme(
    sampler: Sampler, target: Target, estimator: Estimator, in_the_limit: bool, remembers: bool = False
) -> _Found:
    """A discretisation of an SDE; with an estimator that remembers, what depends on its state decides nothing."""
    claims = sampler.claims
    # without a claimed order the law has to be right in the limit
    order: int | Fraction = Fraction(1, 2) if in_the_limit else claims.invariant_order or Fraction(1, 2)
    weak = min(claims.weak_order or 0, 1) if in_the_limit else claims.weak_order or 0
    powers = max(int(2 * order + 1), 2 * weak)
    closed, memory, _ = closure(sampler, target, estimator, SOME_WORK if in_the_limit else MOST_WORK)
    if in_the_limit and closed.reason.startswith(NOT_FOLLOWED):
        raise Unreadable(closed.reason)
    expansion, jumps = expansion_of(sampler, target, estimator, powers, memory, remembers)
    results = [closed, *jumps]
    for region in expansion.regions:
        declared, simple = None, region
        if region.recipe is not None:
            declared = generator(expansion, region)
            simple = in_terms_of_recipe(region) if declared.holds else region
        found = invariant_order(expansion, simple, order)
        if simple is not region and declared is not None:  # it rests on A_1 = L
            found = replace(found, outcome=max(found.outcome, declared.outcome, key=OUTCOMES.index))
        results.append(_with_words(found, expansion, simple))
        results.append(noise_reaches(expansion, simple))
        if region.recipe is None and len(expansion.variables) > target.size:
            results.append(
                Result("Hamiltonian", "c_1 = 0", "proved", f"solved for: {region.density.hamiltonian.text()}")
            )
        if declared is not None:
            results += [declared, recipe(expansion, region)]
            results.append(marginal(expansion, region, expansion.potential, target.size))
            if weak:
                results.append(weak_order(expansion, region, weak))
    results += continuous(expansion)
    results += [
        Result("reading", "", "undecided", str(part.error), region=part.conditions) for part in expansion.unread
    ]
    if remembers or memory or any(isinstance(g, Memory) for g in expansion.ring.generators):
        free = forgotten(expansion, max(order, Fraction(weak)))
        results.append(free)
        if free.holds and memory:
            results[0] = replace(closed, outcome="proved", equation=f"{free.equation}, {closed.reason}", reason="")
        if not free.holds:
            results = [replace(result, outcome=_softened(result.outcome)) for result in results]
    concluded = _concluded(tuple(results), expansion.notes)
    return _Found(*concluded, tuple(results), expansion.notes, expansion.limits)


def _with_memory(sampler: Sampler, target: Target, estimator: Estimator, in_the_limit: bool) -> _Found:
    """A discretisation of an SDE whose gradients come from an estimator with a memory, at every state of it."""
    results, family, notes = data_statements(estimator, target)
    if family is None:
        return _Found(*_concluded(results, notes), results, notes)
    found = _scheme(sampler, target, Remembering(estimator, family), in_the_limit, remembers=True)
    results = (*results, *found.results)
    notes = (*notes, *found.notes)
    return _Found(*_concluded(results, notes), results, notes, found.limits)


def _under_noise(sampler: Sampler, target: Target) -> _Found:
    """The law under gradient noise of any variance: independent noise adds h^2 V to a variance of 2 h, and c_3/2 = 0.

    A sampler may do with a gradient what is right for exact ones only, so that a violation leaves the proof undecided.
    """
    claims = sampler.claims
    if not isinstance(claims.law, StationaryLaw) or "covariance" in sampler.needs:
        raise NotForThese("a sampler for exact gradients, or one that reads their covariance")
    noise = UninterpretedNoise(target)
    closed, memory, ahead = closure(sampler, target, noise, SOME_WORK)
    if closed.reason.startswith(NOT_FOLLOWED):
        raise Unreadable(closed.reason)
    if ahead and (drawn := drawn_ahead(sampler, target, noise, memory, 1)).holds:
        closed, memory = drawn, frozenset()
    expansion, _ = expansion_of(sampler, target, noise, 3, memory)
    found = [invariant_order(expansion, region, 1) for region in expansion.regions]
    if memory:
        free = forgotten(expansion, 1)
        found.append(free)
        closed = replace(closed, outcome="proved", reason="") if free.holds else closed
    results = tuple(replace(result, outcome=_softened(result.outcome)) for result in (closed, *found))
    return _Found(*_concluded(results, expansion.notes), results, expansion.notes, expansion.limits)


def expansion_of(
    sampler: Sampler,
    target: Target,
    estimator: Estimator,
    powers: int,
    memory: frozenset[int] = frozenset(),
    remembers: bool = False,
) -> tuple[Expansion, tuple[Result, ...]]:
    """The series of a step, without the jumps of an exchange; what is decided about these."""
    claims, dynamics = sampler.claims, declared_dynamics(sampler, target)
    exchange = claims.get(Exchange)
    arguments = sampler, target, estimator, powers
    if exchange is None or dynamics is None:
        return expand(*arguments, dynamics, claims.temperature, memory), ()
    if remembers or memory:
        raise Unreadable("jumps in a step with memory")
    expansion, balanced = with_jumps(*arguments, dynamics, claims.temperature, exchange.rate)
    return expansion, (balanced,)


def _softened(outcome: Outcome) -> Outcome:
    return "undecided" if outcome == "violated" else outcome


def declared_dynamics(sampler: Sampler, target: Target) -> Dynamics | None:
    """The declared SDE of z; that of a composite step is one of another time."""
    equation = sampler.claims.get(Diffusion)
    return None if equation is None or Composite in sampler.claims else equation.dynamics(target)


def _with_words(result: Result, expansion: Expansion, region: Region) -> Result:
    """A violated order with the drift and the covariance of the step beside it."""
    if result.outcome != "violated":
        return result
    reason = f"{result.reason}; {described(expansion, region)}"
    if result.reason.startswith("c_3/2"):
        reason += "; the law is right in the limit, at the rate h^(1/2)"
    return replace(result, reason=reason)


def _concluded(results: tuple[Result, ...], notes: tuple[str, ...]) -> tuple[Verdict, str]:
    """The verdict; see the module."""
    undecided = [r for r in results if r.outcome == "undecided"]
    violated = [r for r in results if r.outcome == "violated"]
    if not violated and not undecided and not notes:
        return "pass", ""
    unconditional = [r for r in violated if _everywhere(r, results)]
    hidden = any(r.statement == HIDDEN for r in undecided)
    if unconditional and not hidden and not notes:
        first = unconditional[0]
        return "fail", f"{first.statement}: {first.reason}: {first.polynomial}"
    reasons = [*(f"{r.statement}: {r.reason}" for r in (*undecided, *violated)), *notes]
    return "undecided", reasons[0]


def _everywhere(result: Result, results: tuple[Result, ...]) -> bool:
    """True if a statement is violated in every region, so that no branch can save it."""
    same = [r for r in results if r.statement == result.statement]
    unread = any(r.statement == "reading" for r in results)
    return not unread and all(r.outcome == "violated" for r in same)
