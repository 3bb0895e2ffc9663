"""Speed of the runner next to a hand-written loop and to BlackJAX, float32, in one process.

    pytest benchmarks/test_speed.py --benchmark-only -s

The contestants of a case take turns, so that a busy machine slows all of them; ratios are of medians (and, in
brackets, of minima, which are less disturbed). Nothing is asserted of times; ratios go to `extra_info` and to a table.
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from samplers.estimators.basic import FromLogDensity, Minibatch
from samplers.geodesic.gsgnht import GSGNHT
from samplers.geodesic.sggmc import SGGMC
from samplers.interface.sampler import Sampler
from samplers.overdamped.sgld import SGLD
from samplers.runner.run import run
from samplers.underdamped.sghmc import SGHMC
from targets.manifolds.sphere import Sphere
from targets.target import DataTerms

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


def interleave(benchmark, table, case: str, contestants: dict[str, Callable[[], object]], steps: int):
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


def runner(estimator, position, chains, steps, step_size, sampler: Sampler | None = None, **options):
    """The last positions of a run of a sampler of the suite, SGLD unless told."""
    sampler, key = sampler or SGLD(), jax.random.key(0)
    arguments = {"step_size": step_size, "num_steps": steps, "thin": steps, "num_chains": chains, "position": position}
    return lambda: run(sampler, estimator, key, **arguments, **options).position


def written_by_hand(estimator, position, chains, steps, step_size):
    """The same update in a plain scan, with the same keys; chains batched on the first axis, as is usual."""
    sampler = SGLD()

    def chain(key, state):
        # the step number is carried: twice as fast here as scanning over an array of step numbers
        def body(carry, _):
            t, state = carry
            state = sampler.step(jax.random.fold_in(key, t), state, jnp.float32(step_size), estimator)
            return (t + 1, state), None

        return lax.scan(body, (jnp.uint32(1), state), length=steps)[0][1]

    def everything(keys, positions):
        if chains == 1:
            return chain(keys[0], sampler.init(keys[0], positions[0], estimator)).position
        states = jax.vmap(lambda k, x: sampler.init(k, x, estimator))(keys, positions)
        return jax.vmap(chain)(keys, states).position

    keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(0), jnp.arange(chains))
    positions = jnp.broadcast_to(position, (chains, *position.shape))
    compiled = jax.jit(everything)
    return lambda: compiled(keys, positions)


def blackjax_sgld(grad_estimator, minibatch, position, chains, steps, step_size):
    """BlackJAX's SGLD in a scan over keys, as its documentation writes loops; minibatch: key -> batch or None.

    Its step is x + h grad log p + N(0, 2 h), the same as that of the suite.
    """
    import blackjax  # asv imports this folder, and need not have the peers

    algorithm: Any = blackjax.sgld(grad_estimator)

    def chain(key, x):
        def body(x, key):
            key, batch_key = jax.random.split(key) if minibatch else (key, key)
            batch = minibatch(batch_key) if minibatch else ()
            return algorithm.step(key, x, batch, step_size), None

        return lax.scan(body, algorithm.init(x), jax.random.split(key, steps))[0]

    keys = jax.random.split(jax.random.key(0), chains)
    positions = jnp.broadcast_to(position, (chains, *position.shape))
    compiled = jax.jit(lambda k, x: chain(k[0], x[0]) if chains == 1 else jax.vmap(chain)(k, x))
    return lambda: compiled(keys, positions)


@pytest.mark.parametrize(("chains", "steps"), [(1, 300_000), (1000, 1_000)])
def test_gaussian(benchmark, table, chains, steps):
    estimator, position = FromLogDensity(gaussian_log_density), jnp.zeros(DIM, jnp.float32)
    arguments = (position, chains, steps, 0.01)
    gradient = jax.grad(gaussian_log_density)
    contestants = {
        "runner": runner(estimator, *arguments),
        "runner, draws in the loop": runner(estimator, *arguments, hoisted=False),
        "hand-written scan": written_by_hand(estimator, *arguments),
        "BlackJAX, scan": blackjax_sgld(lambda x, _: gradient(x), None, *arguments),
    }
    interleave(benchmark, table, f"Gaussian d = {DIM}, {chains} chains", contestants, steps)


def test_logistic_regression(benchmark, table):
    rows, columns, batch, steps = 100_000, 50, 500, 3_000
    generator = np.random.default_rng(0)
    features = jnp.asarray(generator.normal(size=(rows, columns)), jnp.float32)
    labels = jnp.asarray(generator.random(rows) < 0.5, jnp.float32) * 2 - 1
    prior = lambda w: 0.5 * jnp.sum(w * w)
    datum = lambda w, row: jax.nn.softplus(-row[1] * (row[0] @ w))
    estimator = Minibatch(DataTerms(prior, datum, (features, labels), rows), batch)
    position = jnp.zeros(columns, jnp.float32)
    arguments = (position, 1, steps, 1e-6)

    def minibatch(key):
        indices = jax.random.randint(key, (batch,), 0, rows)
        return features[indices], labels[indices]

    import blackjax

    gradient = blackjax.sgmcmc.gradients.grad_estimator(lambda w: -prior(w), lambda w, row: -datum(w, row), rows)
    contestants = {
        "runner": runner(estimator, *arguments),
        "runner, draws in the loop": runner(estimator, *arguments, hoisted=False),
        "hand-written scan": written_by_hand(estimator, *arguments),
        "BlackJAX, scan": blackjax_sgld(gradient, minibatch, *arguments),
    }
    interleave(benchmark, table, f"logistic {rows} x {columns}, batch {batch}", contestants, steps)


def test_geodesics(benchmark, table):
    """Cost of a sphere: SGGMC on S^49 next to SGHMC on R^50, both with the symmetric splitting and a cheap force."""
    n, chains, steps = 50, 1000, 1_000
    sphere, direction = Sphere(n), jnp.eye(n, dtype=jnp.float32)[0]
    arguments = (direction, chains, steps, 0.05)
    contestants = {
        "SGHMC on R^50": runner(FromLogDensity(gaussian_log_density), *arguments, SGHMC(scheme="symmetric")),
        "SGGMC on S^49": runner(FromLogDensity(lambda x: 5.0 * x[0]), *arguments, SGGMC(sphere)),
        "gSGNHT on S^49": runner(FromLogDensity(lambda x: 5.0 * x[0]), *arguments, GSGNHT(sphere)),
    }
    interleave(benchmark, table, f"geodesics, {chains} chains", contestants, steps)
