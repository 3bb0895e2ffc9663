"""Hook of mkdocs: pages of reference from the public names, and tables from the registries, at each build.

A line `<!-- table: NAME -->` of a page becomes the table of that name in `TABLES`.
"""

import ast
import json
import re
from collections import defaultdict
from pathlib import Path

import msgspec
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.conclusion import WORDS
from sgmcmc_verification.checks.core.obligations import OBLIGATIONS
from sgmcmc_verification.checks.core.selection import claims_of
from sgmcmc_verification.checks.faults.registry import DEFECTS
from sgmcmc_verification.checks.registry import CHECKS, STATEMENTS, check_of, find_statement
from sgmcmc_verification.checks.runner.document import Document
from sgmcmc_verification.checks.runner.listing import SHOWS, claim_types, first_sentence, takers
from sgmcmc_verification.reports.records.frames import markdown
from sgmcmc_verification.reports.records.results import read_renamed
from sgmcmc_verification.reports.statistics.power import power_table
from sgmcmc_verification.samplers.entry import TIERS
from sgmcmc_verification.samplers.registry import SAMPLERS
from sgmcmc_verification.samplers.topic_models.entries import WORKLOADS

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "samplers": "Samplers, estimators and claims, as in `from sgmcmc_verification.samplers import SGLD`; the runner is "
    "`sgmcmc_verification.samplers.run.run`.",
    "targets": "Distributions to sample, manifolds, and data. `from sgmcmc_verification.targets import gaussian`.",
    "checks": "The checks, and how to run one from Python. `from sgmcmc_verification.checks import run_check`.",
}


def kills() -> dict[str, int]:
    """Planted bugs that each statement fails, in the published kill matrix."""
    counts: dict[str, set[str]] = defaultdict(set)
    for line in read_renamed(ROOT / "reports" / "published" / "kill-matrix.jsonl"):
        if line["verdict"] == "fail":
            counts[line["statement"]].add(line["detail"]["defect"])
    return {statement: len(defects) for statement, defects in counts.items()}


def table_of_checks() -> list[str]:
    """Checks in the order of the theory, each with its equation and its statements."""
    return markdown(
        ("part", "check", "equation", "statements"),
        [
            (check.part, f"`{check.name}`", check.equation, ", ".join(f"`{s.name}`" for s in check.statements))
            for check in CHECKS
        ],
    )


def table_of_statements() -> list[str]:
    """One table of statements per tier."""
    found = kills()
    lines = []
    for tier in TIERS:
        lines += [f"## {tier}", ""]
        lines += markdown(
            (
                *("statement", "check", "equation", "a pass shows", "samples"),
                *("claims that it needs", "planted bugs that it fails"),
            ),
            [
                (
                    f"`{statement.name}`",
                    f"`{_check(statement.name)}`",
                    statement.equation,
                    SHOWS[statement.decides],
                    "yes" if statement.samples else "no",
                    ", ".join(f"`{p.kind.__name__}`" for p in statement.parameters if p.required) or "—",
                    found.get(statement.name, 0),
                )
                for statement in STATEMENTS
                if statement.tier == tier
            ],
        )
        lines.append("")
    return lines


def _check(statement: str) -> str:
    """The check that a statement is part of."""
    check = check_of(statement)
    assert check is not None  # every statement of the registry is part of one
    return check.name


def table_of_bugs() -> list[str]:
    """Planted bugs by the statement that must fail."""
    rows = []
    for defect in DEFECTS:
        kill = defect.killed_by
        name = find_statement(kill.check).name
        rows.append((defect.error, f"`{defect.base}`", f"`{name}`", f"`{_check(name)}`", kill.equation))
    header = ("what is wrong", "derived from", "statement that must fail", "check", "equation that is violated")
    return markdown(header, sorted(rows))


def table_of_obligations() -> list[str]:
    """Obligations of a law: the key in files of results, and what is to be shown."""
    return markdown(("obligation", "to be shown for"), [(f"`{o.name}`", o.text) for o in OBLIGATIONS])


def table_of_words() -> list[str]:
    """Conclusions in one word, and what each says."""
    return markdown(("word", "meaning"), [(f"`{word.upper()}`", meaning) for word, meaning in WORDS.items()])


def table_of_claims() -> list[str]:
    """Claims, with the statements that take each."""
    taken = takers()
    rows = [
        (f"`{kind.__name__}`", first_sentence(kind), ", ".join(f"`{name}`" for name in taken[kind]) or "—")
        for kind in claim_types()
    ]
    return markdown(("claim", "what it states", "statements that take it"), rows)


def table_of_samplers() -> list[str]:
    """Reference samplers, with the law that each claims, and the kernels of topic models."""
    rows = []
    for row in SAMPLERS:
        claims = claims_of(Subject(row))
        source = f"{claims.source.key}, {claims.source.where}"
        order = getattr(claims.law, "order", None)
        law = claims.law.kind + (f", bias O(h^{order})" if order else "")
        rows.append((f"`{row.name}`", law, ", ".join(sorted(claims.spaces)), source, ", ".join(row.tiers)))
    lines = markdown(("sampler", "law", "spaces", "source", "tiers"), rows)
    return [*lines, "", "## Kernels of topic models", "", *(f"- `{row.name}`" for row in WORKLOADS)]


TABLES = {
    "checks": table_of_checks,
    "statements": table_of_statements,
    "obligations": table_of_obligations,
    "words": table_of_words,
    "bugs": table_of_bugs,
    "claims": table_of_claims,
    "samplers": table_of_samplers,
    "power": power_table,
}


def public_names(package: str) -> dict[str, list[str]]:
    """Public names of a package by the module that defines them, from its stub."""
    tree = ast.parse((ROOT / package / "__init__.pyi").read_text(encoding="utf-8"))
    names: dict[str, list[str]] = defaultdict(list)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names[f"sgmcmc_verification.{package}.{node.module}"] += [alias.name for alias in node.names]
    return names


def reference(package: str, sentence: str) -> list[str]:
    """Page of the public names of a package, by family."""
    lines = [f"# {package}", "", sentence, ""]
    if package == "samplers":
        lines += [
            "::: sgmcmc_verification.samplers.runner.run.run",
            "",
            "::: sgmcmc_verification.samplers.runner.config.RunConfig",
            "",
        ]
    families: dict[str, list[str]] = defaultdict(list)
    for module, names in public_names(package).items():
        families[module.split(".")[2]] += [f"{module}.{name}" for name in names]
    for family, paths in families.items():
        lines += [f"## {family.replace('_', ' ')}", ""]
        for path in paths:
            lines += [f"::: {path}", ""]
    return lines


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page of reference per package, and the schema of what programs read."""
    schema = json.dumps(msgspec.json.schema(Document), indent=1)
    files.append(File.generated(config, "verdict.schema.json", content=schema))
    for package, sentence in PACKAGES.items():
        content = "\n".join(reference(package, sentence))
        files.append(File.generated(config, f"reference/{package}.md", content=content))
    return files


def on_page_markdown(text: str, **_: object) -> str:
    """Put the tables in their places."""
    return re.sub(r"^<!-- table: (\w+) -->$", lambda found: "\n".join(TABLES[found.group(1)]()), text, flags=re.M)
