"""The mutants of a sampler: every edit of every function that its step runs."""

import hashlib
from collections import Counter
from dataclasses import dataclass

from sgmcmc_verification.checks.mutation.load import mutated_row
from sgmcmc_verification.checks.mutation.operators import edits
from sgmcmc_verification.checks.mutation.operators.tree import Swaps
from sgmcmc_verification.checks.mutation.source import Place, places, scope
from sgmcmc_verification.samplers.entry import Row


@dataclass(frozen=True, eq=False)
class Mutant:
    """One change of the code that the step of a sampler runs.

    Attributes:
        sampler: name of the row.
        place: the function that is changed.
        operator: name among `checks.mutation.operators.OPERATORS`.
        line: of the source, for the reader: the id does not depend on it.
        before: the source that is replaced.
        after: what it becomes.
        number: counts equal changes of one function.
        swaps: see `Edit`.
    """

    sampler: str
    place: Place
    operator: str
    line: int
    before: str
    after: str
    number: int
    swaps: Swaps

    @property
    def change(self) -> str:
        """`sgld/SGLD.step/flip-term/1f0c2a9b`: the same for every sampler that runs the function."""
        text = f"{self.before} -> {self.after} #{self.number}"
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        module = self.place.module.split(".", 2)[2]
        return f"{module}/{self.place.qualname}/{self.operator}/{digest}"

    @property
    def id(self) -> str:
        """`sghmc:noise/injected_noise/missing-root/5d2e11f0`."""
        return f"{self.sampler}:{self.change}"

    def row(self, base: Row) -> Row:
        """The row of the mutated sampler. Raises what the changed module raises when it is imported."""
        return mutated_row(base, self.place.module, self.swaps)


def catalogue(row: Row) -> tuple[Mutant, ...]:
    """Every mutant of a sampler, function by function."""
    found = []
    for place in places(row):
        seen: Counter[tuple[str, str, str]] = Counter()
        for edit in edits(scope(place)):
            key = (edit.operator, edit.before, edit.after)
            found.append(Mutant(row.name, place, *edit[:4], seen[key], edit.swaps))
            seen[key] += 1
    return tuple(found)
