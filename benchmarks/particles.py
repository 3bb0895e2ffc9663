"""Time of an iteration of SVGD and RSVGD beside the SVGD of NumPyro and BlackJAX, float32, in one process.

    python -m benchmarks.particles [--particles M ...] [--dim D] [--rounds R] [--out FILE]

All of them move the same particles of a Gaussian in D dimensions, with the median rule for the bandwidth, anew
in every iteration, in a compiled loop. The contestants take turns, so that a busy machine slows all; ratios are of
processor time, which is of all threads and does not depend on what else the machine does.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.particles.rsvgd import RSVGD
from sgmcmc_verification.samplers.particles.svgd import SVGD
from sgmcmc_verification.samplers.riemannian.metrics import DiagonalMetric
from sgmcmc_verification.targets.euclidean.gaussian import gaussian
from sgmcmc_verification.targets.target import Target

STEP_SIZE = 1e-2


def contestants(target: Target) -> dict[str, Any]:
    """Name -> sampler; those of libraries where these are installed."""
    from sgmcmc_verification.samplers.adapters import blackjax, numpyro

    return {
        "SVGD": SVGD(),
        "SVGD, bandwidth fixed": SVGD(bandwidth=1.0),
        "RSVGD": RSVGD(DiagonalMetric()),
        "NumPyro SVGD": numpyro.SVGD(target),
        "BlackJAX SVGD": blackjax.SVGD(target),
    }


def loop(sampler: Any, target: Target, particles: int, steps: int) -> Callable[[], Any]:
    """A compiled loop of `steps` iterations, which has run once."""
    estimator, h = Exact(target), jnp.float32(STEP_SIZE)
    start = jax.random.normal(jax.random.key(1), (particles, target.size), jnp.float32)

    def run(start):
        body = lambda t, state: sampler.step(jax.random.fold_in(jax.random.key(0), t), state, h, estimator)
        return sampler.position(jax.lax.fori_loop(0, steps, body, sampler.init(jax.random.key(2), start, estimator)))

    compiled = jax.jit(run).lower(start).compile()
    work = lambda: jax.block_until_ready(compiled(start))
    work()
    return work


def measure(particles: int, dim: int, rounds: int, steps: int) -> dict[str, float]:
    """Processor seconds of an iteration by contestant, the median of the rounds."""
    with jax.enable_x64(False):
        target = gaussian(np.linspace(-1, 1, dim), np.diag(np.linspace(0.5, 2.0, dim)), "gaussian")
        works = {name: loop(s, target, particles, steps) for name, s in contestants(target).items()}
        times: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(rounds):
            for name, work in works.items():
                begin = time.process_time()
                work()
                times[name].append((time.process_time() - begin) / steps)
    return {name: float(np.median(found)) for name, found in times.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--particles", type=int, nargs="+", default=[100, 2000])
    parser.add_argument("--dim", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", help="append the results to a file of JSON lines")
    options = parser.parse_args(arguments)
    for particles in options.particles:
        found = measure(particles, options.dim, options.rounds, max(1, 20_000 // particles**2 * 10 + 1))
        print(f"{particles} particles in {options.dim} dimensions")
        for name, seconds in found.items():
            print(f"  {name:24s} {1e6 * seconds:12.1f} us  {seconds / found['SVGD']:8.2f} times SVGD")
        if options.out:
            with open(options.out, "a", encoding="utf-8") as file:
                file.write(json.dumps({"particles": particles, "dim": options.dim, "seconds": found}) + "\n")


if __name__ == "__main__":
    main()
