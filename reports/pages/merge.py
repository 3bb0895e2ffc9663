"""Merging of the files of a run that was sharded: one file, as if one machine had written it.

    python -m sgmcmc_verification.reports merge OUT.jsonl FILE.jsonl ...

Every shard has to be there, once and whole, and all of them have to be of the same run: the same versions, commit,
check set and options. The exit code is 0, or 2 if the files do not belong together.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from sgmcmc_verification.reports.records.results import Header, ResultsError, Run, load

SAME = ("schema", "check_set", "commit", "versions", "chains", "law_only")
"""Fields of the first line in which shards of one run agree."""
FLAGS = re.compile(r" --(?:shard|report|junit-xml)[= ]\S+")
"""Options of a command in which its shards differ."""


def merge(out: Path, files: Sequence[Path]) -> int:
    """Write the file of a whole run; returns the number of its samplers.

    Args:
        out: to be written.
        files: one for each shard, in any order.

    Raises:
        ResultsError: if a shard is missing, there twice, cut short or of another run.
    """
    runs = {file: load(file) for file in files}
    headers = {file: _header(file, run) for file, run in runs.items()}
    first = headers[files[0]]
    _all_there(headers)
    for file, header in headers.items():
        for name in SAME:
            mine, other = getattr(first, name), getattr(header, name)
            if mine != other:
                raise ResultsError(f"{file}: {name} is {other}, that of {files[0]} is {mine}; run all shards alike")
        _whole(file, runs[file])
    plan = {name: record for header in headers.values() for name, record in header.plan.items()}
    command = FLAGS.sub("", first.command)
    whole = msgspec.structs.replace(first, plan=plan, command=command, shard="")
    lines = [msgspec.json.encode(whole).decode(), *(r.to_json() for run in runs.values() for r in run.results)]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(plan)


def _header(file: Path, run: Run) -> Header:
    if run.header is None or not run.header.shard:
        raise ResultsError(f"{file}: is no shard; write one with --shard I/N --report FILE.jsonl")
    return run.header


def _all_there(headers: dict[Path, Header]) -> None:
    """Refuse shards that do not make a whole."""
    counts = {header.shard.partition("/")[2] for header in headers.values()}
    if len(counts) > 1:
        raise ResultsError(f"shards of {', '.join(sorted(counts))} do not belong together; give those of one run")
    count = int(counts.pop())
    numbers = [int(header.shard.partition("/")[0]) for header in headers.values()]
    missing = sorted(set(range(1, count + 1)) - set(numbers))
    twice = sorted({number for number in numbers if numbers.count(number) > 1})
    if missing or twice:
        lists = [
            f"{what} {', '.join(f'{n}/{count}' for n in found)}"
            for what, found in (("missing", missing), ("twice", twice))
            if found
        ]
        raise ResultsError(f"shards {' and '.join(lists)}; each has to be there once")


def _whole(file: Path, run: Run) -> None:
    """Refuse a shard that has fewer results than its plan, unless `-k` has chosen among them."""
    if run.header is not None and " -k " in run.header.command:
        return
    for name, own in run.by_row.items():
        plan = run.plan_of(name)
        if run.cut or (plan is not None and len(own) < plan.cases):
            count = f"{len(own)} of {plan.cases}" if plan else len(own)
            raise ResultsError(f"{file}: is cut short ({count} statements of {name} were run); run this shard again")
