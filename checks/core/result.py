"""The verdict of one statement of a check, as one JSON line."""

import json
import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

SCHEMA = 2
Verdict = Literal["pass", "fail", "inconclusive", "out-of-reach", "not-applicable", "error"]
VERDICTS: tuple[Verdict, ...] = ("pass", "fail", "inconclusive", "out-of-reach", "not-applicable", "error")


@dataclass(frozen=True)
class Result:
    """Verdict of a statement, with the numbers behind it.

    The null hypothesis is |effect| <= allowance. The allowance is derived, and `allowance_source` says from what.
    `detectable` is the smallest effect that the run would have caught with probability `power`; for noise-free
    statements it is the numerical error bound of the effect. Missing figures are None, never NaN. `decides`, `severity`
    and `meets` are the facts of the statement from which a conclusion is drawn, so that a file of results is enough.
    """

    statement: str
    check: str
    tier: str
    equation: str
    sampler: str
    verdict: Verdict
    reason: str
    target: str | None = None
    step_size: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    statistic: str | None = None
    effect: float | None = None
    unit: str | None = None
    standard_error: float | None = None
    allowance: float | None = None
    allowance_source: str | None = None
    p_value: float | None = None
    alpha: float | None = None
    power: float | None = None
    detectable: float | None = None
    n: int | None = None
    gradients: int | None = None
    seconds: float | None = None
    backend: str | None = None
    dtype: str | None = None
    seed: int | None = None
    versions: dict[str, str] = field(default_factory=dict)
    reproduction: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)
    decides: str | None = None
    severity: str | None = None
    meets: list[str] = field(default_factory=list)
    schema: int = SCHEMA

    @property
    def ok(self) -> bool:
        """True for the verdicts that do not fail a run by themselves; what is out of reach is a gap in the evidence."""
        return self.verdict in ("pass", "not-applicable", "out-of-reach")

    def to_json(self) -> str:
        """One JSON line; numbers that are not finite become null."""
        return json.dumps(plain(asdict(self)), allow_nan=False, sort_keys=True)


def plain(value: Any) -> Any:
    """Plain JSON types: NumPy and JAX scalars unwrapped, non-finite numbers null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, bool | str) or value is None:
        return value
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)
