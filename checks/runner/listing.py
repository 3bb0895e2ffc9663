"""Names for the command line, and what each means: `--list` and `--explain`."""

import inspect
import re
import textwrap
from collections.abc import Iterator

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.catalogue import adapter_rows, closest, workload_rows
from sgmcmc_verification.checks.core.check import Check, Statement
from sgmcmc_verification.checks.registry import CHECKS, STATEMENTS, check_of
from sgmcmc_verification.checks.runner.plan import GROUPS
from sgmcmc_verification.samplers import types
from sgmcmc_verification.samplers.entry import TIERS, Row
from sgmcmc_verification.samplers.interface.claims import Claim, Law
from sgmcmc_verification.samplers.registry import SAMPLERS
from sgmcmc_verification.targets.registry import FINITE, POSTERIORS, TARGETS

WIDTH = 110
Rows = list[tuple[str, str]]

SHOWS = {
    "law": "stationary distribution",
    "order": "order of the bias or of the local error",
    "dynamics": "the SDE that is discretised",
    "premise": "that the kernel which is examined is the kernel that runs",
    "conduct": "conduct of the program",
}
"""What a pass of a statement shows, by `Statement.decides`."""
IN_TIERS = {
    "contract": "what a program must do whatever it samples: shapes, keys, inputs, premises",
    "recipe": "Q skew-symmetric, D positive semidefinite, Gamma, symbolically, for the declared SDE",
    "generator": "drift and diffusion of the code, and proofs for every potential",
    "order": "weak order and the order of the bias, without noise",
    "law": "the stationary law, without noise: closed forms, quadrature, detailed balance",
    "invariance": "the law by Kolmogorov-Smirnov tests of many short chains",
    "noise": "the law with stochastic gradients",
    "geometry": "constraints and laws on manifolds",
    "convergence": "the law by kernel discrepancies of long chains",
    "workload": "kernels of topic models and of mixtures",
}
"""What the statements of each tier are about."""


def first_sentence(thing: object) -> str:
    """First sentence of a docstring, on one line."""
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.:;]) ", text)[0].rstrip(".:;")


def claim_types() -> tuple[type[Claim], ...]:
    """All public claims, in the order of definition."""
    return tuple(kind for kind in _subclasses(Claim) if kind.__name__ in types.__all__ and kind is not Law)


def _subclasses(base: type[Claim]) -> Iterator[type[Claim]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _subclasses(kind)


def takers() -> dict[type[Claim], list[str]]:
    """Names of the statements that take each claim, itself or as one of a wider kind."""
    return {
        claim: [s.name for s in STATEMENTS if any(issubclass(claim, p.kind) for p in s.parameters)]
        for claim in claim_types()
    }


def _samplers() -> Rows:
    of = lambda row: (row.name, f"tiers {', '.join(t for t in row.tiers if t not in row.unsupported)}")
    every: tuple[Row, ...] = (*SAMPLERS, *adapter_rows(), *workload_rows())
    return [*map(of, every), ("FILE.py:NAME", "an object of a file"), ("PACKAGE.MODULE:NAME", "an object of a module")]


def _targets() -> Rows:
    of = lambda target: (target.name, f"{type(target.manifold).__name__}, dimension {target.manifold.dim}")
    own = [
        *(of(row.build()) for row in TARGETS + FINITE),
        *((row.name, "a posterior of posteriordb") for row in POSTERIORS),
    ]
    return [*own, ("FOLDER:NAME", "a posterior of a folder in the layout of posteriordb")]


def _tiers() -> Rows:
    groups = [(name, f"the tiers {', '.join(tiers)}") for name, tiers in GROUPS.items()]
    return [*((tier, IN_TIERS[tier]) for tier in TIERS), *groups]


LISTS = {
    "samplers": _samplers,
    "checks": lambda: [(check.name, check.equation) for check in CHECKS],
    "statements": lambda: [(statement.name, statement.equation) for statement in STATEMENTS],
    "targets": _targets,
    "tiers": _tiers,
    "claims": lambda: [(kind.__name__, first_sentence(kind)) for kind in claim_types()],
}
"""What `--list` takes -> (name, what it is)."""


def listing(kind: str) -> list[str]:
    """Lines of a list of names, each with what it is. Raises BadInput for an unknown kind."""
    if kind not in LISTS:
        raise BadInput(f"--list {kind}: no such list; {closest(kind, tuple(LISTS))}")
    rows = LISTS[kind]()
    width = max(len(name) for name, _ in rows)
    return [f"{name:{width}}  {what}".rstrip() for name, what in rows]


def explanation(name: str) -> list[str]:
    """Lines that say what a check, a statement of one, a tier or a claim is. Raises BadInput for an unknown name."""
    checks = {check.name: check for check in CHECKS}
    statements = {statement.name: statement for statement in STATEMENTS}
    claims = {kind.__name__: kind for kind in claim_types()}
    lines: list[str] = []
    if name in checks:
        lines += _of_check(checks[name])
    if name in statements:
        lines += [*([""] if lines else []), *_of_statement(statements[name])]
    if name in claims:
        lines += _of_claim(claims[name])
    if name in IN_TIERS:
        lines += [*([""] if lines else []), *_of_tier(name)]
    if not lines:
        known = tuple(dict.fromkeys((*checks, *statements, *claims, *IN_TIERS)))
        raise BadInput(f"--explain {name}: no check, statement, claim or tier; {closest(name, known)}")
    return lines


def _field(name: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=f"  {name:13} ", subsequent_indent=" " * 16) if text else []


def _of_check(check: Check) -> list[str]:
    names = ", ".join(statement.name for statement in check.statements)
    return [
        f"{check.name}: a check of {check.part}",
        *_field("equation", check.equation),
        *_field("statements", names),
        *_field("source", check.source),
    ]


def _of_statement(statement: Statement) -> list[str]:
    check = check_of(statement.name)
    needs = [p.kind.__name__ for p in statement.parameters if p.required]
    may = [p.kind.__name__ for p in statement.parameters if not p.required]
    return [
        f"{statement.name}: a statement of {check.name if check else 'no check'}, tier {statement.tier}",
        *_field("equation", statement.equation),
        *_field("a pass shows", SHOWS[statement.decides]),
        *_field("by", "chains that are run" if statement.samples else "computation without chains"),
        *_field("needs", ", ".join(needs)),
        *_field("takes also", ", ".join(may)),
        "",
        *textwrap.indent(inspect.getdoc(statement.function) or "", "  ").splitlines(),
    ]


def _of_claim(kind: type[Claim]) -> list[str]:
    return [
        f"{kind.__name__}: a claim, from sgmcmc_verification.samplers import {kind.__name__}",
        *_field("taken by", ", ".join(takers()[kind]) or "no statement: it says what is not held against a sampler"),
        "",
        *textwrap.indent(inspect.getdoc(kind) or "", "  ").splitlines(),
    ]


def _of_tier(name: str) -> list[str]:
    own = [statement.name for statement in STATEMENTS if statement.tier == name]
    return [f"{name}: a tier", *_field("about", IN_TIERS[name]), *_field("statements", ", ".join(own))]
