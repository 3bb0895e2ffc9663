"""Stored reference posteriors: expectations with Monte Carlo standard errors, diagnostics and provenance.

Made by `python -m sgmcmc_verification.reports.pages.reference_posterior`. One JSON file a target,
checked when it is read.
"""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

SCHEMA = 1
FOLDER = Path(__file__).parent
THRESHOLDS = {"rhat": 1.01, "ess_bulk": 1000.0, "ess_tail": 1000.0, "mcse_over_sd": 0.03}
"""A reference is good when every expectation has a rank-normalised split R-hat below the first, bulk and tail
effective sample sizes above the next two [vehtari2021rank], and a standard error below the last times the posterior
standard deviation of the statistic."""
PROVENANCE = frozenset(
    {
        "data",
        "labels_sha256",
        "rows",
        "columns",
        "prior_variance",
        "sampler",
        "chains",
        "draws",
        "warmup",
        "seed",
        "acceptance",
        "versions",
        "date",
        "seconds",
        "command",
        "cross_checks",
    }
)


class Reference(NamedTuple):
    """A stored expectation.

    Attributes:
        value: posterior expectation.
        mcse: its Monte Carlo standard error.
        sd: posterior standard deviation of the statistic.
        rhat: rank-normalised split R-hat.
        ess_bulk: bulk effective sample size.
        ess_tail: tail effective sample size.
    """

    value: float
    mcse: float
    sd: float
    rhat: float
    ess_bulk: float
    ess_tail: float


def load_reference(name: str, folder: Path = FOLDER) -> dict[str, Any]:
    """The stored document of a target, with its schema checked.

    Returns:
        `{"schema", "name", "expectations": {name: fields of Reference}, "provenance"}`.

    Raises:
        ValueError: if there is no such reference, or the file does not have the form of one.
    """
    path = folder / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in folder.glob("*.json"))) or "none"
        raise ValueError(f"name: no reference posterior {name!r}; there are: {known}")
    try:
        document = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path.name}: not JSON: {error}") from error
    validate(document, path.name)
    return document


def validate(document: Any, name: str) -> None:
    """Raise ValueError, naming file and field, unless a document has the form of a reference."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"{name}: schema: must be {SCHEMA}")
    missing = PROVENANCE - set(document.get("provenance", ()))
    if missing:
        raise ValueError(f"{name}: provenance: lacks {', '.join(sorted(missing))}")
    if not document.get("expectations"):
        raise ValueError(f"{name}: expectations: there are none")
    for key, row in document["expectations"].items():
        if set(row) != set(Reference._fields):
            raise ValueError(f"{name}: expectations: {key}: must have the fields {', '.join(Reference._fields)}")
        if not all(isinstance(v, int | float) and math.isfinite(v) for v in row.values()):
            raise ValueError(f"{name}: expectations: {key}: must be finite numbers")


def failures(document: dict[str, Any]) -> list[str]:
    """Shortcomings of a reference by `THRESHOLDS`, one line per expectation; empty if it is good."""
    lines = []
    for key, row in document["expectations"].items():
        r = Reference(**row)
        good = (
            r.rhat < THRESHOLDS["rhat"]
            and r.ess_bulk > THRESHOLDS["ess_bulk"]
            and r.ess_tail > THRESHOLDS["ess_tail"]
            and 0 < r.mcse < THRESHOLDS["mcse_over_sd"] * r.sd
        )
        if not good:
            lines.append(f"{key}: {r}")
    return lines


def reference_moments(name: str, folder: Path = FOLDER) -> dict[str, Reference]:
    """The stored expectations of a target by name.

    Raises:
        ValueError: if there is no such reference, its file is malformed, or it misses the quality thresholds.
    """
    document = load_reference(name, folder)
    bad = failures(document)
    if bad:
        raise ValueError(f"{name}: the stored reference misses its thresholds: {bad[0]}")
    return {key: Reference(**row) for key, row in document["expectations"].items()}
