"""Steps of this suite beside those of other libraries, in one run, on 1 to 100,000 chains.

    python -m benchmarks.peers [--chains N ...] [--rounds N] [--out FILE.jsonl]

The law is N(0, I) in ten dimensions, float32, so that what a library does around a gradient shows. Every contestant
takes the library's own step in the loop that suits it: a compiled scan in JAX, a Python loop in torch. They take
turns; ratios are of processor time, which does not depend on what else the machine does, beside wall time, which
does. SGMCMCJax runs in an environment of its own and is timed there, between the turns of the others. A library that
is not installed is left out, with the reason. Writes a page beside FILE.jsonl.
"""

import argparse
import json
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from sgmcmc_verification.reports.records.jsonl import ROOT, commit
from sgmcmc_verification.reports.templates import render
from sgmcmc_verification.samplers.adapters.isolated.environments import is_built, python_of
from sgmcmc_verification.samplers.estimators.basic import FromLogDensity
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.runner.run import run
from sgmcmc_verification.samplers.underdamped.hmc import HMC

DIM, STEP_SIZE = 10, 0.01
CHAINS = (1, 100, 10_000, 100_000)
WORK, MOST_STEPS, LEAST_STEPS = 1_000_000, 10_000, 20
"""Chains times steps of a turn, within these numbers of steps."""
ROUNDS = 5
PUBLISHED = ROOT / "reports" / "published" / "speed.jsonl"


class Contestant(NamedTuple):
    """Something to time.

    Attributes:
        name: of the library and its loop.
        beside: the contestant of this suite that it is compared with: the same step.
        steps: taken in a turn.
        turn: takes them; returns (wall, processor) seconds where it knows better than the clock here, as another
            process does, or something to wait for.
    """

    name: str
    beside: str
    steps: int
    turn: Callable[[], Any]


OURS, OURS_HMC = "this suite, SGLD", "this suite, HMC of one step"


def log_density(x):
    """N(0, I), of the last axis."""
    return -0.5 * jnp.sum(x * x, axis=-1)


def steps_for(chains: int) -> int:
    """Of a turn."""
    return max(LEAST_STEPS, min(MOST_STEPS, WORK // chains))


def ours(sampler: Any, chains: int, steps: int) -> Callable[[], Any]:
    """The runner of this suite."""
    estimator, key, start = FromLogDensity(log_density), jax.random.key(0), jnp.zeros(DIM, jnp.float32)
    options = {"step_size": STEP_SIZE, "num_steps": steps, "thin": steps, "num_chains": chains, "position": start}
    return lambda: run(sampler, estimator, key, **options).position


def scanned(step: Callable, states: Any, chains: int, steps: int, batched: bool) -> Callable[[], Any]:
    """A compiled scan over keys of `step(key, state) -> state`, vmapped over chains unless the step takes them all."""

    def chain(key, state):
        return lax.scan(lambda s, k: (step(k, s), None), state, jax.random.split(key, steps))[0]

    key = jax.random.key(0)
    if batched:
        compiled = jax.jit(chain)
        return lambda: compiled(key, states)
    keys = jax.random.split(key, chains)
    compiled = jax.jit(jax.vmap(chain))
    return lambda: compiled(keys, states)


def blackjax(chains: int, steps: int) -> Callable[[], Any]:
    """`blackjax.sgld`: x + h grad log p + N(0, 2 h)."""
    import blackjax as library

    algorithm: Any = library.sgld(lambda x, batch: jax.grad(log_density)(x))
    states = jnp.zeros((chains, DIM), jnp.float32)
    return scanned(lambda key, x: algorithm.step(key, x, (), STEP_SIZE), states, chains, steps, batched=False)


def tfp(chains: int, steps: int) -> Callable[[], Any]:
    """`tfp.mcmc.UncalibratedLangevin`, whose step size is twice h; it takes all chains at once."""
    from tensorflow_probability.substrates import jax as library

    kernel = library.mcmc.UncalibratedLangevin(log_density, step_size=jnp.float32(2 * STEP_SIZE))
    start = jnp.zeros((chains, DIM), jnp.float32)
    states = (start, kernel.bootstrap_results(start))
    return scanned(lambda key, both: tuple(kernel.one_step(*both, seed=key)), states, chains, steps, batched=True)


def numpyro(chains: int, steps: int) -> Callable[[], Any]:
    """`numpyro.infer.HMC` with one leapfrog step: the library has no SGLD."""
    from numpyro.infer import HMC as Kernel

    options: Any = {"num_steps": 1, "trajectory_length": None, "adapt_step_size": False, "adapt_mass_matrix": False}
    kernel = Kernel(potential_fn=lambda x: -log_density(x), step_size=STEP_SIZE, **options)
    keys = jax.random.split(jax.random.PRNGKey(0), chains)
    states = jax.vmap(lambda key: kernel.init(key, 0, jnp.zeros(DIM, jnp.float32), (), {}))(keys)

    def chain(state):
        return lax.scan(lambda s, _: (kernel.sample(s, (), {}), None), state, length=steps)[0]

    compiled = jax.jit(jax.vmap(chain))
    return lambda: compiled(states).z


def posteriors(chains: int, steps: int) -> Callable[[], Any]:
    """`posteriors.sgmcmc.sgld` in a Python loop, as its documentation writes it; all chains in one tensor."""
    import torch

    from sgmcmc_verification.samplers.adapters.torch.posteriors import library

    density = lambda x, batch: (-0.5 * (x * x).sum(), torch.tensor([]))
    transform = library().sgld.build(density, lr=STEP_SIZE)
    torch.set_num_threads(1)
    start = transform.init(torch.zeros(chains, DIM))

    def turn():
        state = start
        for _ in range(steps):
            state, _ = transform.update(state, None)

    return turn


FAR = """
import sys, time
import jax, jax.numpy as jnp
import numpy as np
from sgmcmcjax.kernels import build_sgld_kernel
chains, steps, dim, h = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
data = (jnp.zeros((1, 1), jnp.float32),)
init, kernel, get = build_sgld_kernel(2 * h, lambda x, row: 0.0 * row[0], lambda x: -0.5 * jnp.sum(x * x), data, 1)
def chain(key, x):
    first, second = jax.random.split(key)
    state = init(first, x)
    body = lambda state, i_key: (kernel(i_key[0], i_key[1], state), None)
    state, _ = jax.lax.scan(body, state, (jnp.arange(steps), jax.random.split(second, steps)))
    return get(state)
run = jax.jit(jax.vmap(chain))
keys, starts = jax.random.split(jax.random.PRNGKey(0), chains), jnp.zeros((chains, dim), jnp.float32)
jax.block_until_ready(run(keys, starts))
print("ready", flush=True)
for line in sys.stdin:
    wall, cpu = time.perf_counter(), time.process_time()
    jax.block_until_ready(run(keys, starts))
    print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)
"""


def sgmcmcjax(chains: int, steps: int) -> Callable[[], Any]:
    """`sgmcmcjax.kernels.build_sgld_kernel` in its own environment, whose step size is twice h."""
    arguments = [str(python_of("sgmcmcjax")), "-c", FAR, *map(str, (chains, steps, DIM, STEP_SIZE))]
    process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    if process.stdout.readline().strip() != "ready":
        raise RuntimeError("the process of SGMCMCJax ended before it was ready")
    stdin, stdout = process.stdin, process.stdout

    def turn():
        stdin.write("go\n")
        stdin.flush()
        return tuple(map(float, stdout.readline().split()))

    turn.close = lambda: (stdin.close(), process.wait(timeout=60))  # pyright: ignore[reportFunctionMemberAccess]
    return turn


PEERS: tuple[tuple[str, str, str, Callable[[int, int], Callable[[], Any]], int], ...] = (
    ("BlackJAX", "blackjax", OURS, blackjax, 1),
    ("SGMCMCJax", "sgmcmcjax", OURS, sgmcmcjax, 1),
    ("TFP", "tfp-nightly", OURS, tfp, 1),
    ("posteriors", "posteriors", OURS, posteriors, 20),
    ("NumPyro, HMC of one step", "numpyro", OURS_HMC, numpyro, 1),
)
"""Name, distribution, what it is compared with, how to make it, and how many times fewer steps it takes in a turn."""


def contestants(chains: int) -> tuple[list[Contestant], dict[str, str]]:
    """Those that can run here, and the reasons of the others."""
    steps = steps_for(chains)
    found = [
        Contestant(OURS, OURS, steps, ours(SGLD(), chains, steps)),
        Contestant(OURS_HMC, OURS_HMC, steps, ours(HMC(num_steps=1), chains, steps)),
    ]
    absent = {}
    for name, distribution, beside, make, fewer in PEERS:
        if distribution == "sgmcmcjax":
            if not is_built(distribution):
                absent[name] = (
                    "its environment is not built: "
                    "python -m sgmcmc_verification.samplers.adapters.isolated build sgmcmcjax"
                )
                continue
        else:
            try:
                metadata.version(distribution)
            except metadata.PackageNotFoundError:
                absent[name] = "not installed"
                continue
        number = max(5, steps // fewer)
        found.append(Contestant(name, beside, number, make(chains, number)))
    return found, absent


def timed(turn: Callable[[], Any]) -> tuple[float, float]:
    """(wall, processor) seconds of a turn."""
    wall, processor = time.perf_counter(), time.process_time()
    result = turn()
    if isinstance(result, tuple) and len(result) == 2 and all(isinstance(t, float) for t in result):
        return result
    jax.block_until_ready(result)
    return time.perf_counter() - wall, time.process_time() - processor


def measured(chains: int, rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """A line a contestant: microseconds a step of all chains, and how many times those of ours."""
    with jax.enable_x64(False):
        found, absent = contestants(chains)
        try:
            for contestant in found:
                timed(contestant.turn)  # compiles
            turns: dict[str, list[tuple[float, float]]] = {c.name: [] for c in found}
            for _ in range(rounds):
                for contestant in found:
                    wall, processor = timed(contestant.turn)
                    turns[contestant.name].append((1e6 * wall / contestant.steps, 1e6 * processor / contestant.steps))
        finally:
            for contestant in found:
                getattr(contestant.turn, "close", lambda: None)()
    middle = {name: [statistics.median(column) for column in zip(*t, strict=True)] for name, t in turns.items()}
    return [
        {
            "chains": chains,
            "contestant": c.name,
            "beside": c.beside,
            "steps": c.steps,
            "rounds": rounds,
            "wall us": middle[c.name][0],
            "processor us": middle[c.name][1],
            "wall ratio": middle[c.name][0] / middle[c.beside][0],
            "processor ratio": middle[c.name][1] / middle[c.beside][1],
        }
        for c in found
    ] + [{"chains": chains, "contestant": name, "absent": reason} for name, reason in absent.items()]


def about() -> dict[str, Any]:
    """The first line of a file: commit, versions, machine."""
    names = ("jax", "blackjax", "tfp-nightly", "posteriors", "torch", "numpyro")
    versions = {}
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    if is_built("sgmcmcjax"):
        program = "from importlib.metadata import version as v; print(v('sgmcmcjax'), v('jax'))"
        done = subprocess.run([str(python_of("sgmcmcjax")), "-c", program], capture_output=True, text=True, check=True)
        versions["sgmcmcjax"] = "{} (jax {})".format(*done.stdout.split())
    devices = f"{jax.devices()[0].platform.upper()}, {platform.machine()}"
    return {"commit": commit(), "versions": versions, "device": devices}


def page(lines: Sequence[dict[str, Any]]) -> str:
    """The Markdown page of the lines of a file."""
    head, rows = lines[0], lines[1:]
    sizes = sorted({row["chains"] for row in rows})
    at = {(row["contestant"], row["chains"]): row for row in rows}
    names = list(dict.fromkeys(row["contestant"] for row in rows))
    table = []
    for name in names:
        cells = []
        for size in sizes:
            row = at.get((name, size))
            if row is None or "absent" in row:
                cells.append("–")
            elif row["beside"] == name:
                cells.append(f"**{row['processor us']:.3g} µs**")
            else:
                cells.append(f"{row['processor ratio']:.2f}")
        beside = next((row["beside"] for row in rows if row["contestant"] == name and "beside" in row), name)
        table.append(f"| {name} | {'' if beside == name else beside} | " + " | ".join(cells) + " |")
    absent = {row["contestant"]: row["absent"] for row in rows if "absent" in row}
    absence = "; no GPU was at hand" if head["device"].startswith("CPU") else ""
    return render(
        "speed.md.j2",
        commit=head["commit"][:12],
        versions=", ".join(f"{k} {v}" for k, v in head["versions"].items()),
        machine=head["device"] + absence,
        dim=DIM,
        step_size=f"{STEP_SIZE:g}",
        rounds=rows[0]["rounds"],
        least_steps=LEAST_STEPS,
        sizes=sizes,
        table=table,
        absent=absent,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    parser.add_argument("--chains", type=int, nargs="+", default=CHAINS, metavar="N")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument("--out", type=Path, default=PUBLISHED, metavar="FILE.jsonl")
    given = parser.parse_args(arguments)
    if min(given.chains) < 1 or given.rounds < 1:
        parser.error("--chains, --rounds: must be at least 1")
    lines = [about()]
    for chains in given.chains:
        for line in measured(chains, given.rounds):
            lines.append(line)
            print(json.dumps(line), flush=True)
    given.out.write_text("".join(json.dumps(line, sort_keys=True) + "\n" for line in lines), encoding="utf-8")
    given.out.with_suffix(".md").write_text(page(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
