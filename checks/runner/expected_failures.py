"""Expected failures of a sampler, kept by those who know of them: they still run, and one that passes is an error.

[[expected_failure]]
sampler = "package.module:object"  # glob; "library/name[]" is the default options alone
statement = "local_weak_order"     # glob
target = "anharmonic"              # optional, glob
reason = "what is wrong"
issue = "https://..."

A run takes the file `expected_failures.toml` of the repository in which it is started, or the one that it is given.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.catalogue import closest
from sgmcmc_verification.checks.registry import STATEMENTS, SUCCESSORS

FILE = "expected_failures.toml"
"""Name of the file that is found by itself."""
OFF = "off"
"""In place of a file: none, not even the one that would be found."""
ROOT_MARKS = (".git", "pyproject.toml")
"""What the root of a repository or of a package holds."""
FIELDS = ("sampler", "statement", "target", "reason", "issue")


@dataclass(frozen=True)
class ExpectedFailure:
    """One entry of the file."""

    sampler: str
    statement: str
    reason: str
    issue: str
    target: str = "*"

    def matches_sampler(self, sampler: str, row: str) -> bool:
        """True if it is about this subject; `sampler` may hold options in brackets, `row` is its name without."""
        if self.sampler.endswith("[]"):
            return sampler == row == self.sampler[:-2]
        return self.sampler in (sampler, row) or fnmatchcase(sampler, self.sampler) or fnmatchcase(row, self.sampler)

    def matches(self, sampler: str, row: str, statement: str, target: str | None) -> bool:
        """True if it is about this result."""
        return (
            self.matches_sampler(sampler, row)
            and fnmatchcase(statement, SUCCESSORS.get(self.statement, self.statement))
            and (self.target == "*" or fnmatchcase(target or "", self.target))
        )


def find(folder: Path) -> Path | None:
    """The file of the repository that a folder is part of: the nearest one from there up to the root; None for none.

    Outside of a repository or package the folder alone is looked at, not those above it.
    """
    folder = folder.resolve()
    above = [folder, *folder.parents]
    roots = [i for i, each in enumerate(above) if any((each / mark).exists() for mark in ROOT_MARKS)]
    files = (each / FILE for each in above[: roots[0] + 1 if roots else 1])
    return next((file for file in files if file.is_file()), None)


def chosen(given: str | Path | None, folder: Path) -> Path | None:
    """The file that a run takes: the one that is given, none for OFF, else the one that is found from a folder."""
    if given is None:
        return find(folder)
    return None if str(given) == OFF else Path(given)


def read(path: str | Path) -> tuple[ExpectedFailure, ...]:
    """The entries of a file. Raises BadInput that names the file and the entry."""
    file = Path(path)
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"--expected-failures {path}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"--expected-failures {path}: is not TOML ({error})") from error
    rows = content.get("expected_failure", [])
    if set(content) - {"expected_failure"} or not isinstance(rows, list):
        found = f"has {sorted(content)}"
        raise BadInput(f"--expected-failures {path}: must hold tables [[expected_failure]] and nothing else, {found}")
    return tuple(_entry(path, number, row) for number, row in enumerate(rows, 1))


def _entry(path: str | Path, number: int, row: object) -> ExpectedFailure:
    where = f"--expected-failures {path}: entry {number}"
    if not isinstance(row, dict):
        raise BadInput(f"{where}: must be a table [[expected_failure]]")
    unknown = sorted(set(row) - set(FIELDS))
    if unknown:
        raise BadInput(f"{where}: unknown field {unknown[0]!r}; fields are {', '.join(FIELDS)}")
    for field in ("sampler", "statement", "reason", "issue"):
        if not isinstance(row.get(field), str) or not row[field].strip():
            raise BadInput(f"{where}: needs a text for {field!r}")
    if not isinstance(row.get("target", "*"), str):
        raise BadInput(f"{where}: target must be a text")
    entry = ExpectedFailure(**row)
    names = (*(statement.name for statement in STATEMENTS), *SUCCESSORS)
    if not any(fnmatchcase(name, entry.statement) for name in names):
        raise BadInput(f"{where}: no statement {entry.statement!r}; {closest(entry.statement, names)}")
    return entry


def unmatched(
    entries: Iterable[ExpectedFailure], cases: Iterable[tuple[str, str, str, str | None]]
) -> tuple[ExpectedFailure, ...]:
    """Entries about samplers of a run that match no case; those about others wait for a run of theirs.

    Args:
        entries: the file.
        cases: (sampler, row, statement, target) of everything that the selected samplers could run, in all tiers.
    """
    cases = list(cases)
    rows = {(sampler, row) for sampler, row, _, _ in cases}
    return tuple(
        entry
        for entry in entries
        if any(entry.matches_sampler(*pair) for pair in rows) and not any(entry.matches(*case) for case in cases)
    )
