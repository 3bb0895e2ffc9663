"""The error of a sampler, in the terms of the one who wrote it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Cause = Literal["power of h", "noise", "drift", "time", "shared draws", "data", "stages", "second order", "acceptance"]
FIRST_ORDER: tuple[Cause, ...] = ("power of h", "noise", "drift", "time", "shared draws", "data")
"""Causes that drift and diffusion show as h -> 0; the others leave both as they should be."""

CLOSE = 1e-4
"""Relative distance at which a fitted number is taken for a known one. No verdict rests on it."""


@dataclass(frozen=True)
class Diagnosis:
    """The simplest explanation of a failure that the numbers bear out.

    Attributes:
        cause: the kind of mistake.
        text: one sentence with the factor, the term, the coordinate or the power of h.
        polynomial: what it was read from, where it was read from the program and not fitted to numbers.
    """

    cause: Cause
    text: str
    polynomial: str = ""


def factor(value: float, known: Mapping[str, float]) -> str:
    """A fitted factor with the names of the known numbers that it equals: `0.5`, `2 (= friction)`."""
    if abs(value) < CLOSE:
        return "0"
    names = [name for name, number in known.items() if number not in (0.0, 1.0) and abs(value / number - 1) < CLOSE]
    text = f"{value:.4g}"
    text = f"{value:.6g}" if text == "1" else text  # it is not 1, else nothing were to be explained
    return text + (f" (= {' or '.join(names[:2])})" if names else "")


def explained(diagnosis: Diagnosis | None) -> dict[str, dict[str, str]]:
    """A diagnosis as it stands among the measurements of a finding and in a record."""
    if diagnosis is None:
        return {}
    found = {"cause": diagnosis.cause, "text": diagnosis.text}
    return {"diagnosis": found | ({"polynomial": diagnosis.polynomial} if diagnosis.polynomial else {})}
