"""Checks and their statements: functions of a case, and of the claims that they need, that return a finding.

A statement is one equation with all facts about it beside it; a check is a family of statements that a reader looks for
under one name, such as the law on Gaussians.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import UnionType
from typing import Any, Literal, NamedTuple, get_args, get_type_hints

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.error_origin import RAISED
from sgmcmc_verification.checks.core.finding import Finding
from sgmcmc_verification.checks.core.obligations import Obligation
from sgmcmc_verification.checks.core.selection import claims_of
from sgmcmc_verification.samplers.interface.claims import Claim, Claims, ExactLaw, StationaryLaw
from sgmcmc_verification.targets.target import Target

Decides = Literal["law", "order", "dynamics", "premise", "conduct"]
"""A pass shows the stationary law, the order of the error, the equation that is discretised, a premise of these (that
the kernel which is examined is the kernel that runs), or that the program behaves (types, keys, constraints)."""
Severity = Literal["minor", "major"]
"""Of a fault of conduct: a matter of form (a dtype), or one that gives wrong numbers to somebody (a key used twice)."""

NOT_TRACED = "host samplers are not traced"
"""Reason of a statement that needs the program of a step, where Python takes it."""
UNCLAIMED = "claims no "
"""Begins the reason of a statement that needs a claim which the sampler does not make; the claim's type follows."""


class NotApplicable(Exception):
    """Raised by a statement that says nothing about this sampler on this target; the message is the reason."""


class OutOfReach(NotApplicable):
    """Raised by a statement that should hold here, and has no method to decide it; the message is the reason."""


class NotAffine(OutOfReach):
    """Raised where the law of a linear recursion is asked of a step that is none; the message is the reason."""


class Inconclusive(Exception):
    """Raised by a statement that could not decide although it has a method; the message is the reason."""


def require_stationary_law(claims: Claims) -> None:
    """Raise NotApplicable for a sampler without a law at a fixed step size."""
    if not isinstance(claims.law, StationaryLaw | ExactLaw):
        raise NotApplicable(f"a {claims.law.kind} sampler has no law at a fixed step size")


@dataclass(frozen=True, eq=False)
class Case:
    """A sampler at given options on one target."""

    subject: Subject
    target: Target

    @property
    def step_size(self) -> float:
        """The usual step size of the sampler on this target."""
        return self.subject.step_size(self.target)


class ClaimParameter(NamedTuple):
    """A parameter of a statement that is a claim of the sampler; if it is required, it applies only where made."""

    name: str
    kind: type[Claim]
    required: bool


def _meets_nothing(target: Target) -> tuple[Obligation, ...]:
    del target
    return ()


def _any_draws(case: Case) -> None:
    """Ask for nothing: the statement holds whatever a step draws."""
    del case


@dataclass(frozen=True, eq=False)
class Statement:
    """A function `(case[, seed], **claims) -> Finding` with what the runner, the verdict and the reports need of it.

    The function raises `NotApplicable`, `OutOfReach` or `Inconclusive` with the reason. It takes `seed` only if it
    draws numbers, and each claim that it needs as a parameter of that type; one annotated `T | None` is None where the
    claim is not made.

    Attributes:
        name: `local_weak_order`.
        tier: one of `samplers.entry.TIERS`.
        equation: what is violated when it fails, in words and symbols.
        function: the statement itself.
        targets: subject -> names of the targets it runs on (a subset of the catalogue); of targets alone.
        draws: what a step has to draw for the statement to speak of it: a function that raises NotApplicable where it
            says nothing of such draws, OutOfReach where it has no method for them, Inconclusive where they are unknown.
        cost: mean seconds of one run over the reference samplers, compilation included: for the estimate only.
        decides: what a pass shows.
        meets: target -> the obligations that a pass on it meets, so that the law counts as decided.
        severity: of a failure of conduct; a finding may say that it is a minor one.
        samples: True if its verdict has an error rate.
        once: True if it is run for the default options only (option variants add nothing).
        screening: place in the order in which mutants meet them; those without one follow, the cheapest first.
        about: modules and mutation operators whose changes this statement is meant for.
        stands_for: statements that need not run where a proof of this one covers the target.
        charted: detail of the result with a number per step size, for charts: `errors` of a step, `bias` of the law.
        finite: whether it speaks of finite spaces, or of all others; None for both.
    """

    name: str
    tier: str
    equation: str
    function: Callable[..., Finding]
    targets: Callable[[Subject], tuple[str, ...]]
    cost: float
    decides: Decides
    draws: Callable[[Case], None] = _any_draws
    meets: Callable[[Target], tuple[Obligation, ...]] = _meets_nothing
    severity: Severity = "major"
    samples: bool = False
    once: bool = False
    screening: int | None = None
    about: tuple[str, ...] = ()
    stands_for: tuple[str, ...] = ()
    charted: Literal["errors", "bias"] | None = None
    finite: bool | None = False

    @cached_property
    def seeded(self) -> bool:
        """True if the function draws numbers."""
        return "seed" in inspect.signature(self.function).parameters

    @cached_property
    def parameters(self) -> tuple["ClaimParameter", ...]:
        """The claims that the function takes."""
        hints = get_type_hints(self.function)
        found = []
        for name in list(inspect.signature(self.function).parameters)[1:]:
            kinds = get_args(hints[name]) if isinstance(hints[name], UnionType) else (hints[name],)
            found += [ClaimParameter(name, k, k is hints[name]) for k in kinds if issubclass(k, Claim)]
        return tuple(found)

    def missing(self, claims: Claims) -> str | None:
        """Reason why a sampler with these claims is not held to it; None if it makes all that are needed."""
        kinds = [kind.__name__ for _, kind, required in self.parameters if required and kind not in claims]
        return UNCLAIMED + ", ".join(kinds) if kinds else None

    def applies_to(self, subject: Subject) -> tuple[str, ...]:
        """Names of the targets on which it speaks of a subject: none without the claims and the draws that it needs."""
        if self.parameters and self.missing(claims_of(subject)):
            return ()
        if self.draws is not _any_draws:
            try:
                self.draws(Case(subject, find_target(subject.row.targets[0])))
            except NotApplicable as reason:
                # what is read of the steps of an exact kernel in Python may do in place of its program
                if not (str(reason) == NOT_TRACED and ExactLaw in claims_of(subject)):
                    return ()
            except RAISED:
                pass  # the preflight or each target reports it
        names = self.targets(subject)
        return tuple(name for name in names if self._speaks_of(find_target(name)))

    def _speaks_of(self, target: object) -> bool:
        """True for a target on a space of its kind; kernels of the tier `workload` have targets of their own."""
        return self.finite is None or not isinstance(target, Target) or (target.finite is not None) == self.finite

    def __call__(self, case: Case, seed: int = 0) -> Finding:
        """The finding on a case; the seed goes to functions that draw numbers.

        Raises:
            NotApplicable: if the sampler does not make a claim that the function needs, or draws something else; on a
                space of which the statement does not speak.
        """
        if not self._speaks_of(case.target):
            raise NotApplicable(f"{'says nothing' if self.finite is False else 'speaks only'} of finite spaces")
        arguments: dict[str, Any] = {"seed": seed} if self.seeded else {}
        if self.parameters:
            claims = case.subject.sampler(case.target).claims
            if lacking := self.missing(claims):
                raise NotApplicable(lacking)
            arguments |= {name: claims.get(kind) for name, kind, _ in self.parameters}
        self.draws(case)
        return self.function(case, **arguments)


def statement(
    *,
    tier: str,
    equation: str,
    targets: Callable[[Subject], tuple[str, ...]],
    cost: float,
    decides: Decides,
    **facts: Any,
) -> Callable[[Callable[..., Finding]], Statement]:
    """Make a `Statement` of the function below, under its name.

    The arguments are the attributes of `Statement`; `facts` are those that have a default.
    """

    def declare(function: Callable[..., Finding]) -> Statement:
        return Statement(function.__name__, tier, equation, function, targets, cost, decides, **facts)

    return declare


@dataclass(frozen=True, eq=False)
class Check:
    """Statements that belong together, under the name by which the theory knows them.

    Attributes:
        name: `gaussian_law`.
        part: heading under which it is listed: `the program`, `invariant law`, ...
        equation: what its statements have in common.
        source: keys of references.bib; empty for what needs no source.
        statements: of which it consists.
        stands: why it stands where planted bugs alone would not show it; empty for the others.
    """

    name: str
    part: str
    equation: str
    source: str
    statements: tuple[Statement, ...]
    stands: str = ""
