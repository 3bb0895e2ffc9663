"""Every way through the branches of a program, one after the other.

A run asks its `Path` at each choice and is started again until all ways have been taken. A choice is a branch on the
state, which makes a *region* of the state space, or the outcome of a finite draw, which has a probability.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

from sgmcmc_verification.checks.proof.errors import TooManyBranches
from sgmcmc_verification.checks.proof.ring import Polynomial
from sgmcmc_verification.checks.proof.series import Series

MOST_CHOICES = 7
"""Choices along one path; with two options each they are 128 paths."""

T = TypeVar("T")


class Option(NamedTuple):
    """One of the ways to go on.

    Attributes:
        value: what the choice amounts to.
        probability: of this outcome of a draw; None for a branch.
        label: the region that a branch assumes; empty for a draw.
    """

    value: Any
    probability: Fraction | None = None
    label: str = ""


class Acceptance(NamedTuple):
    """A comparison of a draw with the state, which accepts or rejects.

    Attributes:
        difference: the comparison is difference < 0.
        holds: what was assumed on this path.
        place: file and line.
    """

    difference: Polynomial
    holds: bool
    place: str


@dataclass(eq=False)
class Path:
    """The choices of one run.

    Attributes:
        forced: the options to take at the first choices; the first option at later ones.
        weight: the probability of the outcomes of draws.
        region: what was assumed of the state, in words.
        assumed: polynomial -> whether it is negative, for all that was asked.
        outcomes: of integer draws, by the history of the key.
        intervals: number of a uniform draw -> the interval that it was found in.
        acceptances: comparisons of draws with the state.
        coins: number of a uniform draw -> the chance that it is below what it was compared with, and whether it is.
        chance: a series by which `weight` is multiplied, of the coins; None for 1.
        rare: whether a coin fell on a side whose chance vanishes as h -> 0.
        limits: that chances are between 0 and 1, which holds for small h only.
    """

    forced: Sequence[int] = ()
    weight: Fraction = Fraction(1)
    region: list[str] = field(default_factory=list)
    assumed: dict[Polynomial, bool] = field(default_factory=dict)
    outcomes: dict[Any, list[int]] = field(default_factory=dict)
    intervals: dict[int, tuple[Fraction, Fraction]] = field(default_factory=dict)
    acceptances: list[Acceptance] = field(default_factory=list)
    coins: dict[int, tuple[Series, bool]] = field(default_factory=dict)
    chance: Series | None = None
    rare: bool = False
    limits: set[str] = field(default_factory=set)
    _taken: list[tuple[int, int]] = field(default_factory=list)

    @property
    def is_drawn(self) -> bool:
        """True if a coin or the outcome of another draw is on it."""
        return self.chance is not None or self.weight != 1

    def choose(self, options: Sequence[Option]) -> Any:
        """Take an option. Raises TooManyBranches after `MOST_CHOICES` of them."""
        index = self.forced[len(self._taken)] if len(self._taken) < len(self.forced) else 0
        self._taken.append((index, len(options)))
        if len(self._taken) > MOST_CHOICES:
            raise TooManyBranches(f"more than {MOST_CHOICES} branches")
        option = options[index]
        if option.probability is not None:
            self.weight *= option.probability
        if option.label:
            self.region.append(option.label)
        return option.value

    def next_choices(self) -> list[int] | None:
        """The choices of the path after this one; None if it is the last."""
        taken = list(self._taken)
        while taken and taken[-1][0] + 1 >= taken[-1][1]:
            taken.pop()
        return [index for index, _ in taken[:-1]] + [taken[-1][0] + 1] if taken else None


def every_path(run: Callable[[Path], T]) -> Iterator[tuple[Path, T]]:
    """All paths through `run`, with its results."""
    forced: list[int] | None = []
    while forced is not None:
        path = Path(forced)
        result = run(path)
        yield path, result
        forced = path.next_choices()
