"""A sweep on many processes, here or on other machines, by `dask.distributed`.

    python -m sgmcmc_verification.reports run ... --workers N            N processes of this machine
    python -m sgmcmc_verification.reports run ... --scheduler ADDRESS    the workers of a cluster

A worker computes cells and the process that was started writes them: one writer, one line a cell. Cells of a worker
that died are computed again by another one. A cluster is started by hand from clones of one commit:

    dask scheduler                                   prints its ADDRESS
    dask worker ADDRESS --nthreads 1 --nworkers 8    on every machine, in its clone, with PYTHONPATH=docs/namespace
"""

import contextlib
import functools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
from tqdm import tqdm

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.lookup import resolve
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.plan import PlannedStatement
from sgmcmc_verification.reports.records.jsonl import appended, commit, read
from sgmcmc_verification.reports.runs.sweep import Cell, compute, key_of

INSTALL = "needs dask: pip install 'sgmcmc-verification[scale]'"


class Task(NamedTuple):
    """A cell by names, as it travels to another process."""

    sampler: str
    options: Mapping[str, Any]
    statement: str
    target: str
    seed: int
    factor: float
    chains: float


class Lost(RuntimeError):
    """Cells that no worker could finish; the message says which, and the same command tries them again."""


def task_of(cell: Cell, chains: float) -> Task:
    """The cell by names."""
    case = cell.case
    reference = case.subject.reference or case.subject.row.name
    options = dict(case.subject.options)
    return Task(reference, options, case.statement.name, case.target, case.seed, cell.factor, chains)


@functools.lru_cache(maxsize=1)
def _subject(reference: str, options: tuple[tuple[str, Any], ...], target: str | None):
    """The subject; when it changes, what was compiled for the last one is dropped, as a plain sweep does."""
    jax.clear_caches()
    return resolve(reference, dict(options), None, (target,) if target else ())[0]


@functools.cache
def _revision() -> str:
    return commit()


def work(task: Task) -> str:
    """The line of a cell, in a worker."""
    jax.config.update("jax_enable_x64", True)
    subject = _subject(task.sampler, tuple(task.options.items()), task.target)
    cell = Cell(PlannedStatement(subject, find_statement(task.statement), task.target, task.seed), task.factor)
    return json.dumps(compute(cell, task.chains, _revision()), sort_keys=True)


@contextlib.contextmanager
def connected(workers: int | None, scheduler: str | None) -> Iterator[Any]:
    """A client of the cluster at an address, or of `workers` processes that are started here.

    Raises:
        BadInput: if dask is missing, nothing answers at the address, or a worker has another commit than this process.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise BadInput(f"--workers, --scheduler: {INSTALL}") from None
    with contextlib.ExitStack() as stack:
        if scheduler is None:
            options: Any = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
            local: Any = LocalCluster(**options)
            address = stack.enter_context(local).scheduler_address
        else:
            address = scheduler
        try:
            client: Any = stack.enter_context(Client(address, timeout="20s"))
        except (OSError, ValueError) as error:
            raise BadInput(f"--scheduler {scheduler}: no scheduler of dask answers ({error})") from None
        mine, others = commit(), client.run(_revision)
        for worker, revision in others.items():
            if revision != mine:
                raise BadInput(f"--scheduler {scheduler}: {worker} has the commit {revision}, this clone has {mine}")
        yield client


def run(queue: Sequence[Cell], path: Path, chains: float, workers: int | None, scheduler: str | None) -> int:
    """Compute what the file lacks on the workers and append it; returns the number of cells that were written.

    Raises:
        BadInput: see `connected`.
        Lost: after everything else is written, if cells killed or failed on every worker that tried them.
    """
    done = {key_of(line) for line in read(path)}
    left = {cell.key: cell for cell in queue if cell.key not in done}
    if not left:
        return 0
    written, lost, revision = 0, [], commit()
    with connected(workers, scheduler) as client, appended(path, key_of) as append:
        from distributed import as_completed  # here, so that `connected` has said what to do where it is missing

        # the cells of one subject follow each other, so that a worker compiles its step once
        futures = client.map(work, [task_of(cell, chains) for cell in left.values()], pure=False)
        cells = dict(zip(futures, left.values(), strict=True))
        progress = tqdm(total=len(futures), unit="cell", disable=not sys.stderr.isatty())
        del futures
        with progress:
            for future in as_completed(list(cells)):
                cell = cells.pop(future)
                if future.status == "finished":
                    line = future.result()
                    if json.loads(line)["detail"]["commit"] != revision:  # a worker that joined later
                        raise BadInput(f"--scheduler {scheduler}: a worker has another commit than this clone")
                    written += append(line)
                else:
                    lost.append(f"{cell}: {future.exception()!r}")
                progress.update()
    if lost:
        raise Lost(f"{len(lost)} cells were not computed; the first: {lost[0]}")
    return written
