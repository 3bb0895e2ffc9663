"""Known failures of a library, kept by the library: they still run, and an unexpected pass fails.

[[deviation]]
sampler = "library/name"          # glob; "library/name[]" is the default options alone
check = "local_weak_order"        # glob
target = "anharmonic"             # optional, glob
reason = "what is wrong"
issue = "https://..."
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from sgmcmc_verification.checks.core.bad_input import BadInput


@dataclass(frozen=True)
class Deviation:
    """One known failure."""

    sampler: str
    check: str
    reason: str
    issue: str
    target: str = "*"

    def matches_sampler(self, sampler: str, row: str) -> bool:
        """True if it is about this subject; `sampler` may hold options in brackets, `row` is its name without."""
        if self.sampler.endswith("[]"):
            return sampler == row == self.sampler[:-2]
        return self.sampler in (sampler, row) or fnmatchcase(sampler, self.sampler) or fnmatchcase(row, self.sampler)

    def matches(self, sampler: str, row: str, check: str, target: str | None) -> bool:
        """True if it is about this result."""
        return (
            self.matches_sampler(sampler, row)
            and fnmatchcase(check, self.check)
            and (self.target == "*" or fnmatchcase(target or "", self.target))
        )


def read(path: str | Path) -> tuple[Deviation, ...]:
    """The entries of a deviations file. Raises BadInput that names the file and the entry."""
    file = Path(path)
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"--deviations {path}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"--deviations {path}: is not TOML ({error})") from error
    rows = content.get("deviation")
    if set(content) != {"deviation"} or not isinstance(rows, list):
        raise BadInput(f"--deviations {path}: must hold tables [[deviation]] and nothing else, has {sorted(content)}")
    return tuple(_entry(path, number, row) for number, row in enumerate(rows, 1))


def _entry(path: str | Path, number: int, row: object) -> Deviation:
    where = f"--deviations {path}: entry {number}"
    if not isinstance(row, dict):
        raise BadInput(f"{where}: must be a table [[deviation]]")
    unknown = sorted(set(row) - {"sampler", "check", "target", "reason", "issue"})
    if unknown:
        raise BadInput(f"{where}: unknown field {unknown[0]!r}; fields are sampler, check, target, reason, issue")
    for field in ("sampler", "check", "reason", "issue"):
        if not isinstance(row.get(field), str) or not row[field].strip():
            raise BadInput(f"{where}: needs a text for {field!r}")
    if not isinstance(row.get("target", "*"), str):
        raise BadInput(f"{where}: target must be a text")
    return Deviation(**row)


def unmatched(
    entries: Iterable[Deviation], cases: Iterable[tuple[str, str, str, str | None]], known: Iterable[str]
) -> tuple[Deviation, ...]:
    """Entries that match no case.

    Args:
        entries: the file.
        cases: (sampler, row, check, target) of everything that the selected samplers could run, in all tiers.
        known: names of all rows; an entry about a known sampler that was not selected is left alone.
    """
    cases, known = list(cases), list(known)
    rows = {(sampler, row) for sampler, row, _, _ in cases}
    selected = {row for _, row in rows}
    return tuple(
        entry
        for entry in entries
        if not any(entry.matches(*case) for case in cases)
        and (
            any(entry.matches_sampler(*pair) for pair in rows)
            or not any(fnmatchcase(name, entry.sampler.partition("[")[0]) for name in known if name not in selected)
        )
    )
