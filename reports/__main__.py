"""The command line of the reports.

    python -m sgmcmc_verification.reports COMMAND

run      a sweep over samplers, targets, step sizes and seeds, or an experiment by name
build    the static site from stored results
compare  two files of results: what changed, and whether it matters
merge    the files of the shards of a run into one
summary  one file of results as a comment and a badge
conclude the last step of a run in continuous integration
serve    look at the site in a browser
"""

import argparse
import functools
import http.server
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.catalogue import closest
from sgmcmc_verification.reports import experiments
from sgmcmc_verification.reports.pages.compare import compare
from sgmcmc_verification.reports.records.results import ResultsError
from sgmcmc_verification.reports.site.build import PUBLISHED, build

SITE = Path("build") / "site"
HISTORY = Path(".asv") / "html"
DOCUMENTATION = Path("build") / "docs"


def parser() -> argparse.ArgumentParser:
    """Of all commands."""
    top = argparse.ArgumentParser(
        prog="python -m sgmcmc_verification.reports", description="Sweeps, the site, and comparisons."
    )
    commands = top.add_subparsers(dest="command", required=True)

    add = commands.add_parser("run", help="a sweep, or an experiment by name").add_argument
    add("experiment", nargs="?", metavar="EXPERIMENT", help=f"one of: {', '.join(experiments.names())}")
    for flag, what in (("sampler", "default: all"), ("target", "default: those of the sampler"), ("check", "")):
        add(f"--{flag}", action="append", default=[], metavar="NAME", help=f"repeatable; {what}".rstrip("; "))
    add("--tier", action="append", default=[], metavar="TIER", help="repeatable; default: deterministic")
    add("--factor", action="append", default=[], type=float, metavar="F", help="of the usual step size; repeatable")
    add("--seed", action="append", default=[], type=int, metavar="S", help="repeatable; default: the row's own")
    add("--chains", type=float, default=1.0, metavar="F", help="fraction of the chains of checks that sample")
    add("--workers", type=int, metavar="N", help="processes of this machine; default: this one alone")
    add("--scheduler", metavar="ADDRESS", help="of a cluster of dask.distributed, instead of --workers")
    add(
        "--out",
        type=Path,
        metavar="FILE.jsonl",
        help="appended to; the same command goes on with it (of an experiment: a folder)",
    )

    add = commands.add_parser("build", help="the static site from stored results").add_argument
    add("--results", type=Path, default=PUBLISHED, metavar="FOLDER", help="default: the published ones")
    add("--out", type=Path, default=SITE, metavar="FOLDER", help=f"default: {SITE}")
    add("--history", type=Path, metavar="FOLDER", help=f"pages of asv; default: {HISTORY} if there")
    add("--documentation", type=Path, metavar="FOLDER", help=f"pages of mkdocs; default: {DOCUMENTATION} if there")

    add = commands.add_parser("compare", help="two files of results").add_argument
    add("old", type=Path, metavar="OLD.jsonl")
    add("new", type=Path, metavar="NEW.jsonl")
    add("--part", action="store_true", help="NEW is a run of some of the samplers: the others are not lost")

    add = commands.add_parser("summary", help="one file of results as a comment and a badge").add_argument
    add("results", type=Path, metavar="RESULTS.jsonl")
    add("--expected-failures", type=Path, metavar="FILE.toml", help="known failures, as for pytest checks")
    add("--badge", type=Path, action="append", default=[], metavar="FILE", help="FILE.svg or FILE.json; repeatable")

    add = commands.add_parser("merge", help="the files of the shards of a run into one").add_argument
    add("out", type=Path, metavar="OUT.jsonl")
    add("files", type=Path, nargs="+", metavar="FILE.jsonl", help="one for each shard, in any order")

    add = commands.add_parser("conclude", help="the last step of a run in continuous integration").add_argument
    add("folder", type=Path, metavar="FOLDER", help="where the run has left its files")
    add("--code", type=int, metavar="N", help="exit code of the run; none for a merged one")
    add("--expected-failures", type=Path, metavar="FILE.toml", help="as for pytest checks")

    add = commands.add_parser("serve", help="look at the site in a browser").add_argument
    add("--site", type=Path, default=SITE, metavar="FOLDER", help=f"default: {SITE}")
    add("--port", type=int, default=8000)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    given, rest = parser().parse_known_args(arguments)
    if rest and not (given.command == "run" and given.experiment):
        parser().error(f"unrecognised arguments: {' '.join(rest)}")
    try:
        return COMMANDS[given.command](given, rest)
    except (BadInput, ResultsError) as error:
        print(error, file=sys.stderr)
        return 2


def _run(given: argparse.Namespace, rest: Sequence[str]) -> int:
    if given.experiment:
        known = experiments.names()
        if given.experiment not in known:
            raise BadInput(f"{given.experiment}: no such experiment; {closest(given.experiment, list(known))}")
        out = ["--out", str(given.out)] if given.out else []
        return importlib.import_module(known[given.experiment]).main([*out, *rest])
    from sgmcmc_verification.reports.runs import sweep  # here, because the registries load every sampler

    if given.out is None or given.out.suffix != ".jsonl":
        raise BadInput(f"--out {given.out}: name a file that ends in .jsonl, where the results are appended")
    if not 0 < given.chains <= 1:
        raise BadInput(f"--chains {given.chains}: must be above 0 and at most 1, a fraction of the usual number")
    if given.workers is not None and (given.workers < 1 or given.scheduler):
        raise BadInput(f"--workers {given.workers}: must be at least 1, and not given beside --scheduler")
    queue = list(sweep.cells(given.sampler, given.target, given.tier, given.check, given.factor or [1.0], given.seed))
    if given.workers or given.scheduler:
        from sgmcmc_verification.reports.runs import cluster

        try:
            computed = cluster.run(queue, given.out, given.chains, given.workers, given.scheduler)
        except cluster.Lost as lost:
            print(f"{lost}; the same command tries them again", file=sys.stderr)
            return 1
    else:
        computed = sweep.run(queue, given.out, given.chains)
    print(f"{len(queue)} cells, {computed} computed now; {given.out}")
    return 0


def _build(given: argparse.Namespace, rest: Sequence[str]) -> int:
    history = _pages("--history", given.history, HISTORY, "asv publish")
    documentation = _pages("--documentation", given.documentation, DOCUMENTATION, "mkdocs build")
    pages = build(given.results, given.out, history, documentation)
    print(f"{pages} pages; open {given.out / 'index.html'}")
    return 0


def _pages(flag: str, given: Path | None, default: Path, command: str) -> Path | None:
    """The folder that is given, else the default one if it holds pages. Raises ResultsError."""
    if given is not None and not (given / "index.html").is_file():
        raise ResultsError(f"{flag} {given}: holds no pages; make some with {command}")
    return given or (default if (default / "index.html").is_file() else None)


def _compare(given: argparse.Namespace, rest: Sequence[str]) -> int:
    text, worse = compare(given.old, given.new, given.part)
    print(text)
    return int(worse)


def _summary(given: argparse.Namespace, rest: Sequence[str]) -> int:
    from sgmcmc_verification.reports.pages.summary import summary

    text, good = summary(given.results, given.expected_failures, given.badge)
    print(text)
    return int(not good)


def _merge(given: argparse.Namespace, rest: Sequence[str]) -> int:
    from sgmcmc_verification.reports.pages.merge import merge

    print(f"{given.out}: {merge(given.out, given.files)} samplers of {len(given.files)} shards")
    return 0


def _conclude(given: argparse.Namespace, rest: Sequence[str]) -> int:
    from sgmcmc_verification.reports.pages.conclude import conclude

    return conclude(given.folder, given.code, given.expected_failures)


def _serve(given: argparse.Namespace, rest: Sequence[str]) -> int:
    if not (given.site / "index.html").is_file():
        raise ResultsError(
            f"--site {given.site}: holds no site; make one with python -m sgmcmc_verification.reports build"
        )
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(given.site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", given.port), handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/  (stop with ctrl-c)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


COMMANDS = {
    "run": _run,
    "build": _build,
    "compare": _compare,
    "merge": _merge,
    "summary": _summary,
    "conclude": _conclude,
    "serve": _serve,
}

if __name__ == "__main__":
    raise SystemExit(main())
