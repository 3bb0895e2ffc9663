"""False alarms and misses: verdicts on the reference samplers, and on right and wrong samplers of strangers.

    python -m sgmcmc_verification.reports.pages.strangers [--only TEXT] [--sample N] [--limit SECONDS] [--out FILE]

Those of strangers are in `tests/strangers/right` and `tests/strangers/wrong`, each with a catalogue that says what they
are and how that was made sure of without the suite. Each is put to all that `pytest checks --sampler NAME` decides. A
line is appended as soon as it is there, a run that is started again goes on where it stopped, and a page is written
beside the lines. Strangers come in the order of a hash of their names: the first so many are a sample that nobody
chose.
"""

import argparse
import hashlib
import signal
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jax
import pandas as pd

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.execute import check_sampler
from sgmcmc_verification.reports.pages.out_file import complete, publish, require_lines
from sgmcmc_verification.reports.records.frames import markdown
from sgmcmc_verification.reports.records.jsonl import ROOT, read
from sgmcmc_verification.reports.templates import render
from sgmcmc_verification.samplers.registry import SAMPLERS

PUBLISHED = ROOT / "reports" / "published" / "strangers.jsonl"
FOLDER = ROOT / "tests" / "strangers"
STRANGE = ("right", "wrong")
KINDS = ("reference", *STRANGE)
CLASSES = {
    "01": "memory outside of z", "02": "counters and clocks", "03": "dimension", "04": "pytrees", "05": "branches",
    "06": "scale of the step size", "07": "data", "08": "precision", "09": "laws of draws", "10": "keys",
    "11": "claims", "12": "curved spaces", "13": "options", "14": "Metropolis", "15": "thermostats", "16": "hosts",
    "17": "what Python hides", "18": "particles, positive numbers, spheres, simplex", "19": "classics",
    "20": "coins and lattices", "21": "rare sizes, shapes and names", "22": "late clocks and rare events",
    "23": "options that are off or named", "24": "Metropolis, ported", "25": "hosts, ported", "26": "larger spaces",
    "27": "claims that excuse", "28": "variable coefficients and estimators",
    "29": "parts of a position", "30": "boxes and products", "31": "schedules out of sight",
    "32": "sizes between those tried", "33": "bands and levels", "34": "minibatches that small data fill",
    "35": "kinds and combinations of options", "36": "draws that return, heavy tails",
    "37": "written from the documentation alone", "38": "beyond the usual sizes, groups, schedules",
    "39": "as research code has them", "40": "of four families, in pairs", "41": "of two families, in pairs",
    "42": "of researchers' own projects", "43": "of research code and practitioners",
    "44": "of people with a repository", "45": "as they occur in research repositories",
    "46": "of authors who read the documentation only",
    "47": "of authors who read the documentation only, again",
}  # fmt: skip
"""Number in the name of a file of wrong samplers -> what is wrong in it."""


class Entry(NamedTuple):
    """A sampler of a catalogue; `torch:` or `optax:` stands before the file of an optimiser."""

    kind: str
    file: str
    name: str

    @property
    def reference(self) -> str:
        """For `--sampler`."""
        if self.kind == "reference":
            return self.name
        adapter, colon, file = self.file.rpartition(":")
        return f"{adapter}{colon}{FOLDER / self.kind / file}:{self.name}"


def entries() -> list[Entry]:
    """The reference samplers, and those of both catalogues in the order of a hash."""
    found = [Entry("reference", "samplers", row.name) for row in SAMPLERS]
    for kind in STRANGE:
        table = pd.read_csv(FOLDER / kind / "CATALOGUE.tsv", sep="\t", quoting=3, dtype=str, keep_default_na=False)
        strangers = [Entry(kind, file, name) for file, name in zip(table["file"], table["object"], strict=True)]
        found += sorted(strangers, key=lambda entry: hashlib.sha256("/".join(entry).encode()).digest())
    return found


class OutOfTime(BaseException):
    """Raised by the alarm; no statement takes it for an error of the sampler."""


def _out_of_time(*_: object) -> None:
    raise OutOfTime


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raises OutOfTime after some seconds, if it is not 0."""
    if seconds:
        signal.signal(signal.SIGALRM, _out_of_time)
        signal.alarm(seconds)
    try:
        yield
    finally:
        if seconds:
            signal.alarm(0)


def decide(entry: Entry, revision: str, limit: int = 0) -> dict[str, Any]:
    """The line of a sampler; after `limit` seconds, if there is one, it is left undecided."""
    began, used = time.perf_counter(), time.process_time()
    line: dict[str, Any] = {**entry._asdict(), "commit": revision}
    try:
        with within(limit):
            found = check_sampler(entry.reference).conclusion
    except BadInput as error:
        line |= {"word": "refused", "open": [str(error).replace(str(ROOT), ".")]}
    except OutOfTime:
        line |= {"word": "out of time", "open": [f"not decided in {limit} s"]}
    else:
        line |= {
            "word": found.word,
            "law": found.law,
            "violated": [name for name, _ in found.violated],
            "open": list(found.open),
            "faults": [fault.statement for fault in found.faults],
            "diagnosis": found.diagnosis,
            "not examined": list(found.not_examined),
        }
    cpu = time.process_time() - used
    return line | {"seconds": round(time.perf_counter() - began, 1), "cpu": round(cpu, 1)}


def run(path: Path, only: str = "", sample: int | None = None, limit: int = 0) -> None:
    """Decide what the file lacks and append it; of strangers the first `sample` of each kind."""
    among = [each for kind, some in _by_kind().items() for each in some[: None if kind == "reference" else sample]]
    chosen = [each for each in among if only in f"{each.kind}/{each.file}:{each.name}"]
    wanted: dict[Hashable, Entry] = {tuple(each): each for each in chosen}
    key = lambda line: (line["kind"], line["file"], line["name"])

    def decided(entry: Entry, revision: str) -> dict[str, Any]:
        jax.clear_caches()  # a process may hold 65,530 pieces of memory, of which each compiled program takes some
        return decide(entry, revision, limit)

    complete(path, wanted, key, decided, "sampler")


def _by_kind() -> dict[str, list[Entry]]:
    """Those of each kind, in their order."""
    found = entries()
    return {kind: [each for each in found if each.kind == kind] for kind in KINDS}


def page(lines: Sequence[dict[str, Any]]) -> str:
    """The Markdown page of a file of results."""
    all_of = _by_kind()
    reference, right, wrong = ([line for line in lines if line["kind"] == kind] for kind in KINDS)
    tried = {kind: {(line["file"], line["name"]) for line in lines if line["kind"] == kind} for kind in STRANGE}
    sampled = all({each[1:] for each in all_of[kind][: len(tried[kind])]} == tried[kind] for kind in STRANGE)
    return render(
        "strangers.md.j2",
        lines=lines,
        sampled=sampled,
        reference=_table(reference, lambda _: "sgmcmc_verification.samplers.registry", "registry"),
        right=_table(right, lambda line: line["file"].removesuffix(".py"), "file"),
        wrong=_table(wrong, lambda line: CLASSES[Path(line["file"]).name[1:3]], "what is wrong"),
        untried={k: len(all_of[k]) - len(some) for k, some in zip(KINDS, (reference, right, wrong), strict=True)},
        named=sum(bool(line.get("diagnosis")) for line in wrong),
        tried=len(wrong),
        failed=sum(line["word"] == "fail" for line in wrong),
        cpu=sorted(line["cpu"] for line in right if "cpu" in line),
        missed=_named(wrong, ("pass", "part", "known")),
        alarms=_named([*reference, *right], ("fail", "error", "refused")),
        left=_named([*reference, *right], ("inconclusive", "fault", "out of time")),
    )


def _table(lines: Sequence[dict[str, Any]], group: Any, title: str) -> list[str]:
    words = list(dict.fromkeys(line["word"] for line in sorted(lines, key=lambda line: line["word"])))
    rows: dict[str, Counter[str]] = {}
    for line in lines:
        rows.setdefault(group(line), Counter())[line["word"]] += 1
    body = [[name, *(str(found[word]) for word in words), str(found.total())] for name, found in rows.items()]
    total = Counter(line["word"] for line in lines)
    body.append(["all", *(str(total[word]) for word in words), str(total.total())])
    return markdown([title, *words, "tried"], body)


def _named(lines: Sequence[dict[str, Any]], words: Sequence[str]) -> list[str]:
    return [
        f"`{line['file']}:{line['name']}`: {line['word']}" + f" ({'; '.join(_why(line))[:300]})"
        for line in lines
        if line["word"] in words
    ]


def _why(line: dict[str, Any]) -> Sequence[str]:
    """Statements that are violated, else what is open, else the faults, else what was not examined."""
    if line["word"] == "pass":
        return [f"not examined: {'; '.join(line['not examined'])}"]
    return line.get("violated") or line.get("open") or line.get("faults") or ()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m sgmcmc_verification.reports.pages.strangers",
        description="Verdicts on samplers of strangers, right and wrong.",
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="those with this in KIND/FILE:NAME")
    parser.add_argument("--sample", type=int, metavar="N", help="the first N right and N wrong ones of strangers")
    parser.add_argument("--limit", type=int, default=0, metavar="SECONDS", help="for one sampler; default: none")
    parser.add_argument("--out", type=Path, default=PUBLISHED, metavar="FILE.jsonl", help="default: the published file")
    given = parser.parse_args(arguments)
    require_lines(parser, given.out)
    run(given.out, given.only, given.sample, given.limit)
    return publish(page(read(given.out)), given.out)


if __name__ == "__main__":
    raise SystemExit(main())
