"""Weak scaling: as many times the chains on as many times the devices and processes, in how much more time?

    python -m sgmcmc_verification.reports.experiments.original.weak_scaling [--quick] [--resume] [--out FOLDER]

Each cell starts the processes it is about, connected by `jax.distributed` (gloo) if there are two, each with its
virtual devices of the CPU, and times whole runs after one that compiles. With enough cores the time would stay what one
device needs; on fewer the devices share them. Processor time tells what sharing out costs whatever else the machine
does.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure, number
from sgmcmc_verification.reports.records.jsonl import ROOT

NAME = "weak-scaling"
SHAPES = ((1, 1), (1, 2), (1, 4), (2, 1), (2, 2))
"""(processes, devices of each)."""
CHAINS, STEPS, ROUNDS = 4096, 500, 5
DIM = 10

PROGRAM = """
import json, sys, time
address, processes, rank, chains, steps, rounds, dim = sys.argv[1], *map(int, sys.argv[2:])
import jax
if processes > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, num_processes=processes, process_id=rank)
import jax.numpy as jnp
from jax.experimental.multihost_utils import sync_global_devices
from sgmcmc_verification.samplers.estimators.basic import FromLogDensity
from sgmcmc_verification.samplers.runner.multiprocess import run_on_processes
from sgmcmc_verification.samplers.overdamped.sgld import SGLD

sampler, estimator = SGLD(), FromLogDensity(lambda x: -0.5 * jnp.sum(x * x))
found = []
for number in range(rounds + 1):
    if processes > 1:
        sync_global_devices(f"round {number}")
    wall, cpu = time.perf_counter(), time.process_time()
    end = run_on_processes(
        sampler, estimator, jax.random.key(number), step_size=0.01, num_steps=steps, thin=steps,
        num_chains=chains, position=jnp.zeros(dim, jnp.float32),
    )
    jax.block_until_ready(end.samples)
    found.append([time.perf_counter() - wall, time.process_time() - cpu])
print(json.dumps(found[1:]))
"""


@dataclass(frozen=True)
class Cell(Keyed):
    """Processes with virtual devices; `chains` a device, `steps` a run, `rounds` runs."""

    processes: int
    devices: int
    chains: int
    steps: int
    rounds: int
    seed: int = 0


def measured(cell: Cell) -> dict[str, Any]:
    """Wall and processor seconds of every run: the slowest process, and all processes together."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    flags = f"--xla_force_host_platform_device_count={cell.devices} --xla_cpu_multi_thread_eigen=false"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1"}
    total = cell.chains * cell.devices * cell.processes
    numbers = [total, cell.steps, cell.rounds, DIM]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, address, *map(str, (cell.processes, rank, *numbers))],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(cell.processes)
    ]
    outputs = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        raise RuntimeError(f"{cell.processes} processes with {cell.devices} devices each: one ended with an error")
    rounds = zip(*(json.loads(output.splitlines()[-1]) for output in outputs), strict=True)
    times = [(max(w for w, _ in of_all), sum(c for _, c in of_all)) for of_all in rounds]
    return {"wall": [w for w, _ in times], "processor": [c for _, c in times], "cores": os.cpu_count()}


def plan(quick: bool) -> list[Cell]:
    """All cells."""
    size = (64, 100, 2) if quick else (CHAINS, STEPS, ROUNDS)
    return [Cell(*shape, *size) for shape in (SHAPES[:2] if quick else SHAPES)]


def table(lines: Lines, quick: bool) -> list[dict[str, Any]]:
    """A row a shape: medians, and what they are relative to one device."""
    rows = []
    for cell in plan(quick):
        result = lines[cell.key]["result"]
        wall, processor = median(result["wall"]), median(result["processor"])
        count = cell.processes * cell.devices
        first = rows[0] if rows else {"wall": wall, "processor": processor}
        rows.append(
            {
                "processes": cell.processes,
                "devices": cell.devices,
                "count": count,
                "wall": wall,
                "processor": processor,
                "least": min(result["wall"]),
                "most": max(result["wall"]),
                "time": wall / first["wall"],
                "work": processor / first["processor"] / count,
                "shared": max(1.0, count / result["cores"]),
                "cores": result["cores"],
            }
        )
    return rows


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    rows, cell = table(lines, quick), plan(quick)[0]
    share = rows[0]["wall"] / rows[0]["processor"]
    body = [
        f"| {r['processes']} | {r['devices']} | {r['count'] * cell.chains} | {number(r['wall'], 3)} "
        f"({number(r['least'], 3)} to {number(r['most'], 3)}) | {r['time']:.2f} | {r['shared']:.2f} "
        f"| {number(r['processor'], 3)} | {r['work']:.2f} |"
        for r in rows
    ]
    return experiment_page(
        NAME,
        lines,
        dim=DIM,
        chains=cell.chains,
        steps=cell.steps,
        rounds=cell.rounds,
        cores=rows[0]["cores"],
        share=f"{share:.1f}",
        body=body,
    )


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """Wall time with its best, and processor time a chain, against the number of devices."""
    rows = table(lines, quick)
    figure, axes = new_figure(1, 2, (8.4, 3.8))
    styles = {1: ("#0072B2", "o", "-"), 2: ("#D55E00", "s", "--")}
    for axis, name in zip(axes[0], ("time", "work"), strict=True):
        for processes, (colour, marker, line) in styles.items():
            mine = [r for r in rows if r["processes"] == processes]
            if mine:
                label = "1 process" if processes == 1 else f"{processes} processes"
                axis.plot(
                    [r["count"] for r in mine],
                    [r[name] for r in mine],
                    color=colour,
                    marker=marker,
                    linestyle=line,
                    label=label,
                )
        counts = sorted({r["count"] for r in rows})
        best = {r["count"]: r["shared"] if name == "time" else 1.0 for r in rows}
        label = f"best on {rows[0]['cores']} cores" if name == "time" else "sharing out costs nothing"
        axis.plot(counts, [best[c] for c in counts], color="0.45", linestyle=":", label=label)
        axis.set_xticks(counts)
        axis.set_ylim(0, 1.15 * max(max(r[name] for r in rows), *best.values()))
        axis.set_xlabel("devices in all")
        axis.grid(alpha=0.25, lw=0.4)
        axis.legend(fontsize=8)
    axes[0, 0].set_ylabel("wall time, one device = 1")
    axes[0, 1].set_ylabel("processor time a chain, one device = 1")
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, measured, text, draw, duration="half a minute")


if __name__ == "__main__":
    raise SystemExit(main())
