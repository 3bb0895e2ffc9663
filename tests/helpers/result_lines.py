"""Results and lines of files, as the plugin writes them."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from sgmcmc_verification.checks.core.conclusion import Plan
from sgmcmc_verification.checks.core.result import Result, Verdict
from sgmcmc_verification.checks.registry import STATEMENTS, check_of

KS, LIMIT, DTYPES = "end_point_ks", "gaussian_limit", "shapes_and_dtypes"
FACTS = {s.name: s for s in STATEMENTS}


def result(verdict: Verdict = "pass", statement: str = KS, sampler: str = "lib/sgld", **rest: Any) -> Result:
    """A result as the plugin records it, without its numbers."""
    of, check = FACTS[statement], check_of(statement)
    assert check is not None
    severity = of.severity if of.decides == "conduct" else None
    facts = {"decides": of.decides, "severity": severity, "target": "gaussian"} | rest
    return Result(statement, check.name, of.tier, "a . z = b", sampler, verdict, "a reason", **facts)


def header(**plans: Plan) -> str:
    """The first line of a file."""
    line = {"plan": {name.replace("_", "/"): dataclasses.asdict(plan) for name, plan in plans.items()}}
    line |= {"law_only": False, "chains": 1.0, "command": "pytest checks", "commit": "abc", "versions": {"jax": "1"}}
    return json.dumps(line | {"platform": "Linux", "date": "2026-01-01T00:00:00+00:00", "schema": 2})


def written(path: Path, *found: Result | str) -> Path:
    """A file of results and of lines."""
    path.write_text("".join((r if isinstance(r, str) else r.to_json()) + "\n" for r in found))
    return path


def former(r: Result) -> str:
    """A line as schema 1 had it."""
    line = json.loads(r.to_json())
    line["check"] = line.pop("statement")
    for name in ("decides", "severity", "meets"):
        del line[name]
    return json.dumps(line | {"schema": 1})
