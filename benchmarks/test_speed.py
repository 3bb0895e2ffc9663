"""Speed of the runner next to a hand-written loop and to BlackJAX, float32, in one process.

    pytest benchmarks/test_speed.py --benchmark-only -s

The contestants of a case take turns, so that a busy machine slows all of them; ratios are of medians (and, in
brackets, of minima, which are less disturbed). Nothing is asserted of times; ratios go to `extra_info` and to a table.
"""

import time
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.loops import blackjax_gradient, blackjax_sgld, draw_rows, logistic_terms, runner, written_by_hand
from sgmcmc_verification.samplers.estimators.basic import FromLogDensity, Minibatch
from sgmcmc_verification.samplers.geodesic.gsgnht import GSGNHT
from sgmcmc_verification.samplers.geodesic.sggmc import SGGMC
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.targets.manifolds.sphere import Sphere

DIM = 10
ROUNDS = 9


@pytest.fixture(autouse=True)
def _single_precision():
    """SG-MCMC practice, and what the other libraries are timed in."""
    with jax.enable_x64(False):
        yield


@pytest.fixture(scope="module")
def table():
    """Collects lines and prints them at the end."""
    lines: list[str] = []
    yield lines
    print(
        "\n" + "\n".join([f"{'case':34s} {'contestant':26s} {'us a step':>10s} {'time over the first':>24s}", *lines])
    )


def gaussian_log_density(x):
    """N(0, I)."""
    return -0.5 * jnp.sum(x * x)


def interleave(benchmark, table, case: str, contestants: Mapping[str, Callable[[], object]], steps: int):
    """Time the contestants in turns; the first is the runner, which the others are compared with."""
    for contestant in contestants.values():
        jax.block_until_ready(contestant())
    seconds: dict[str, list[float]] = {name: [] for name in contestants}

    def one_round():
        for name, contestant in contestants.items():
            begin = time.perf_counter()
            jax.block_until_ready(contestant())
            seconds[name].append(time.perf_counter() - begin)

    benchmark.pedantic(one_round, rounds=ROUNDS, iterations=1, warmup_rounds=1)
    runner = next(iter(contestants))
    for name, times in seconds.items():
        median = np.median(times) / np.median(seconds[runner])
        least = min(times) / min(seconds[runner])
        benchmark.extra_info[name] = {"us": 1e6 * float(np.median(times)) / steps, "ratio": float(median)}
        us = 1e6 * np.median(times) / steps
        table.append(f"{case:34s} {name:26s} {us:10.3f} {median:12.2f} ({least:.2f})")


@pytest.mark.parametrize(("chains", "steps"), [(1, 300_000), (1000, 1_000)])
def test_gaussian(benchmark, table, chains, steps):
    estimator, position = FromLogDensity(gaussian_log_density), jnp.zeros(DIM, jnp.float32)
    arguments = (position, chains, steps, 0.01)
    gradient = jax.grad(gaussian_log_density)
    contestants = {
        "runner": runner(SGLD(), estimator, *arguments),
        "runner, draws in the loop": runner(SGLD(), estimator, *arguments, hoisted=False),
        "hand-written scan": written_by_hand(SGLD(), estimator, *arguments),
        "BlackJAX, scan": blackjax_sgld(lambda x, _: gradient(x), None, *arguments),
    }
    interleave(benchmark, table, f"Gaussian d = {DIM}, {chains} chains", contestants, steps)


def test_logistic_regression(benchmark, table):
    rows, columns, batch, steps = 100_000, 50, 500, 3_000
    terms = logistic_terms(rows, columns)
    estimator, position = Minibatch(terms, batch), jnp.zeros(columns, jnp.float32)
    arguments = (position, 1, steps, 1e-6)
    gradient, minibatch = blackjax_gradient(terms), draw_rows(terms, batch)
    contestants = {
        "runner": runner(SGLD(), estimator, *arguments),
        "runner, draws in the loop": runner(SGLD(), estimator, *arguments, hoisted=False),
        "hand-written scan": written_by_hand(SGLD(), estimator, *arguments),
        "BlackJAX, scan": blackjax_sgld(gradient, minibatch, *arguments),
    }
    interleave(benchmark, table, f"logistic {rows} x {columns}, batch {batch}", contestants, steps)


def test_geodesics(benchmark, table):
    """Cost of a sphere: SGGMC on S^49 next to SGHMC on R^50, both with the symmetric splitting and a cheap force."""
    n, chains, steps = 50, 1000, 1_000
    sphere, direction = Sphere(n), jnp.eye(n, dtype=jnp.float32)[0]
    arguments = (direction, chains, steps, 0.05)
    contestants = {
        "SGHMC on R^50": runner(SGHMC(scheme="symmetric"), FromLogDensity(gaussian_log_density), *arguments),
        "SGGMC on S^49": runner(SGGMC(sphere), FromLogDensity(lambda x: 5.0 * x[0]), *arguments),
        "gSGNHT on S^49": runner(GSGNHT(sphere), FromLogDensity(lambda x: 5.0 * x[0]), *arguments),
    }
    interleave(benchmark, table, f"geodesics, {chains} chains", contestants, steps)
