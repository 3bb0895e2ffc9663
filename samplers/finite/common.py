"""Claims and rows that samplers on finite sets of states share."""

from collections.abc import Callable
from typing import Any

from sgmcmc_verification.samplers.entry import TEMPERATURES, Row
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Reversal, Source
from sgmcmc_verification.targets.target import Target

WITHOUT: dict[str, str] = dict.fromkeys(
    ("recipe", "generator", "order"), "a chain on a finite set discretises no equation"
)
TARGETS = ("ising-3x3", "potts-3", "categoricals")


def reversible_claims(source: Source, temperature: float) -> Claims:
    """Claims of a kernel in detailed balance with exp(-U / T) on a finite set of states."""
    law = ExactLaw(temperature=temperature)
    return Claims(source, law, Reversal(lambda z: z), conditions=("exact potential and gradient",), spaces=("finite",))


def finite_row(name: str, method: Callable[..., Any]) -> Row:
    """A row of a method that takes the values of a site."""
    build = lambda target, **options: method(values_of(target), **options)
    return Row(name, build, ("contract", "law"), WITHOUT, TARGETS, TEMPERATURES)


def values_of(target: Target) -> tuple[int, ...]:
    """The values that a site of a target takes, in increasing order. Raises ValueError if its space is not finite."""
    if target.finite is None:
        raise ValueError(f"target: {target.name} is not a law on a finite set of states")
    return tuple(sorted({int(v) for v in target.finite.states.flat}))
