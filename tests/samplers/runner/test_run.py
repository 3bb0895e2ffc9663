"""The runner: streams, blocks, schedules, averages, checkpoints, bad input. Oracles are loops written out here."""

import dataclasses
import subprocess
import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.samplers.estimators.basic import Exact, FromLogDensity, KnownNoise, Minibatch
from sgmcmc_verification.samplers.overdamped.control_variates import SGLDCV, ControlVariates
from sgmcmc_verification.samplers.overdamped.host_sgld import HostSGLD
from sgmcmc_verification.samplers.overdamped.saga import SAGA, SAGALD
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.runner import checkpoint as checkpoints
from sgmcmc_verification.samplers.runner import presample
from sgmcmc_verification.samplers.runner.run import NonFiniteError, run
from sgmcmc_verification.samplers.runner.schedules import constant, decreasing
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.targets.euclidean.gaussian import gaussian
from sgmcmc_verification.targets.target import DataTerms

KEY = jax.random.key(20)
EPS = np.finfo(np.float64).eps
PAIR = gaussian([0.5, -1.0], [[1.0, 0.6], [0.6, 2.0]], "pair")
TREE = gaussian([0.0, 1.0, 2.0], np.eye(3), "tree", {"a": jnp.zeros(2), "b": jnp.zeros(())})


def logistic_terms(count=40):
    """A logistic regression in two dimensions, as informative as one of 40 data."""
    rows = np.random.default_rng(3).normal(size=(count, 2))
    datum = lambda x, row: 40 / count * jax.nn.softplus(-(row @ x))
    return DataTerms(lambda x: 0.5 * jnp.sum(x * x), datum, rows, count)


def logistic():
    """A minibatch gradient of it."""
    return Minibatch(logistic_terms(), 5)


def by_hand(sampler, estimator, key, position, sizes):
    """Positions after each step of one chain: a Python loop over the documented keys."""
    state = sampler.init(jax.random.fold_in(key, 0), position, estimator)
    step = jax.jit(lambda k, s, h: sampler.step(k, s, h, estimator))
    out = []
    for t, h in enumerate(sizes, 1):
        state = step(jax.random.fold_in(key, t), state, h)
        out.append(sampler.position(state))
    return jax.tree.map(lambda *a: np.stack(a), *out)


def rounding(samples, steps):
    """Bound of the difference of two orders of evaluation: the maps contract here, so that errors do not grow, and
    a step has fewer than 50 operations on numbers as large as the largest position (at least 1)."""
    return 50 * steps * EPS * max(1.0, max(np.abs(a).max() for a in jax.tree.leaves(samples)))


class Case(NamedTuple):
    """A sampler on an estimator."""

    sampler: Any
    estimator: Any
    position: Any


CASES = {
    "sgld-exact": Case(SGLD(), Exact(PAIR), jnp.zeros(2)),
    "sgld-minibatch": Case(SGLD(), logistic(), jnp.zeros(2)),
    "sgld-float32": Case(SGLD(), Exact(PAIR), jnp.zeros(2, jnp.float32)),
    "sghmc-noise": Case(SGHMC(compensate=True), KnownNoise(PAIR, 0.5 * np.eye(2)), jnp.zeros(2)),
    "sghmc-tree": Case(SGHMC(), Exact(TREE), TREE.example),
    # the rows of the batch meet a vector that all chains share, and a table that is large enough to be kept by chain
    "control-variates": Case(SGLDCV(), ControlVariates(logistic_terms(), 5, jnp.array([0.3, -0.2])), jnp.zeros(2)),
    "table": Case(SAGALD(), SAGA(logistic_terms(presample.MAX_CONSTANT), 5), jnp.zeros(2)),
}


class OneMethod:
    """SGLD as an object that has a step and nothing else."""

    def step(self, key, x, step_size, estimator):
        g = estimator.estimate(key, (), x)[0].gradient
        return x - step_size * g + jnp.sqrt(2 * step_size) * jax.random.normal(key, x.shape, x.dtype)


def test_an_object_with_a_step_alone_runs():
    given = {"step_size": 0.1, "num_steps": 5, "num_chains": 2, "position": jnp.zeros(2)}
    step, key, x = OneMethod().step, jax.random.fold_in(KEY, 1), jnp.zeros(2)
    got = run(OneMethod(), Exact(PAIR), KEY, **given).samples[1]
    for t in range(5):
        x = step(jax.random.fold_in(key, t + 1), x, 0.1, Exact(PAIR))
        assert np.allclose(got[t], x, rtol=0, atol=1e-14)
    with pytest.raises(TypeError, match="pass an instance"):
        run(OneMethod, Exact(PAIR), KEY, **given)


@pytest.mark.parametrize(
    "name", ["sgld-exact", "sgld-minibatch", "sghmc-noise", "sghmc-tree", "control-variates", "table"]
)
def test_chain_is_the_documented_loop_over_steps(name):
    sampler, estimator, position = CASES[name]
    got = run(sampler, estimator, KEY, step_size=0.1, num_steps=12, num_chains=3, position=position).samples
    want = by_hand(sampler, estimator, jax.random.fold_in(KEY, 2), position, [jnp.float64(0.1)] * 12)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert a.shape == (3, *b.shape)
        assert np.abs(a[2] - b).max() <= rounding(want, 12)


@pytest.mark.parametrize("name", ["sgld-minibatch", "sgld-float32", "sghmc-noise", "sghmc-tree", "table"])
def test_samples_do_not_depend_on_the_block_size(name):
    sampler, estimator, position = CASES[name]
    results = [
        run(
            sampler,
            estimator,
            KEY,
            step_size=0.1,
            num_steps=14,
            thin=2,
            num_chains=2,
            position=position,
            block_size=block,
        ).samples
        for block in (None, 1, 3)
    ]
    for other in results[1:]:
        jax.tree.map(np.testing.assert_array_equal, results[0], other)


def test_chain_alone_is_the_chain_among_others():
    # bit for bit, since this step is elementwise; sums over coordinates may be rounded differently
    estimator = FromLogDensity(lambda x: -0.5 * jnp.sum(x * x))
    starts = jnp.arange(10.0).reshape(5, 2)
    many = run(SGLD(), estimator, KEY, step_size=0.1, num_steps=10, positions=starts).samples
    one = run(SGLD(), estimator, KEY, step_size=0.1, num_steps=10, positions=starts[:1]).samples
    np.testing.assert_array_equal(one[0], many[0])
    assert len({float(c[-1, 0]) for c in many}) == 5


@pytest.mark.parametrize(("name", "chains"), [("sgld-minibatch", 1), ("table", 3)])
def test_draws_in_the_loop_and_in_blocks_agree_to_rounding(name, chains):
    sampler, estimator, position = CASES[name]
    options = {"step_size": 0.1, "num_steps": 20, "num_chains": chains, "position": position}
    both = [run(sampler, estimator, KEY, **options, hoisted=hoisted).samples for hoisted in (True, False)]
    assert np.abs(both[0] - both[1]).max() <= rounding(both[0], 20)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_bulk_draws_are_the_bits_of_jax_random(dtype):
    def step(key, state, h):
        a, b, c, d = jax.random.split(key, 4)
        parts = [
            jax.random.normal(a, (3, 5), dtype).ravel(),
            jax.random.uniform(b, (4,), dtype, -2.0, 3.0),
            jax.random.randint(c, (7,), 0, 1000).astype(dtype),
            jax.random.bits(jax.random.fold_in(d, 7), (2,), jnp.uint8).astype(dtype),
            jax.random.exponential(jax.random.split(d, (2, 2))[1, 0], (3,), dtype),
            jax.random.bernoulli(jax.random.fold_in(a, 1), 0.3, (6,)).astype(dtype),
            jax.random.normal(a, (), dtype)[None],
        ]
        return jnp.concatenate(parts) + 0 * state * h

    state = jnp.zeros(38, dtype)
    parts = presample.split(step, KEY, state, jnp.ones((), dtype))
    assert parts.draw is not None
    keys = jax.random.split(KEY, 3)
    numbers = jnp.arange(5, dtype=jnp.uint32)
    draws = jax.jit(lambda: parts.draw(parts.consts, *presample.lane_keys(keys, numbers)))()
    got = jax.vmap(lambda d: parts.update(parts.consts, d, state, jnp.ones((), dtype)), -1)(draws)
    want = jax.vmap(lambda t: jax.vmap(lambda k: step(jax.random.fold_in(k, t), state, 1))(keys))(numbers)
    np.testing.assert_array_equal(got.reshape(want.shape), want)


def test_random_bits_of_every_width_are_those_of_jax_random():
    for width in (jnp.uint8, jnp.uint16, jnp.uint32, jnp.uint64):
        step = lambda key, state, h, width=width: state + 0 * h + jax.random.bits(key, (9,), width).astype(jnp.float64)
        parts = presample.split(step, KEY, jnp.zeros(9), 1.0)
        (draws,) = parts.draw(parts.consts, *presample.lane_keys(KEY[None], jnp.arange(2, dtype=jnp.uint32)))
        want = jax.random.bits(jax.random.fold_in(KEY, 1), (9,), width)
        np.testing.assert_array_equal(draws[:, 1], want.astype(draws.dtype))


def _a_step_of_everything(key, state, h):
    """Vectors, matrices, loops, branches, keys and integers, what depends on the lane and what does not."""
    matrix = jnp.reshape(jnp.arange(9.0), (3, 3)) / 9
    x, count = state["x"], state["count"]
    x = x + h * jnp.sqrt(1 + x @ x) * jax.random.normal(key, (3,)) + x @ jnp.outer(x, matrix @ x)
    x = jax.lax.fori_loop(0, 3, lambda i, y: 0.5 * y + jnp.cos(y[i]), x)
    x = jnp.where(x[0] > 0, x, -x) / (1 + jnp.linalg.norm(x)) + jax.lax.cond(x[1] > 0, jnp.sin, jnp.cos, x[2])
    x = x + jnp.linalg.solve(jnp.eye(3) + matrix @ matrix.T, x[::-1]) + jax.random.gamma(key, 2.0)
    return {"x": x, "count": count + 1, "same": jnp.sum(matrix) * h}


@pytest.mark.parametrize("lanes", [2, presample.MIN_LANES])
def test_all_lanes_at_once_is_every_lane_alone(lanes):
    starts = jax.random.normal(KEY, (3, lanes))
    state = {"x": starts, "count": jnp.arange(lanes), "same": jnp.zeros(lanes)}
    first = jax.tree.map(lambda a: a[..., 0], state)
    h = jnp.float64(0.1)
    parts = presample.split(_a_step_of_everything, KEY, first, h)
    assert parts.draw is not None
    keys = jax.random.split(KEY, lanes)
    draws = parts.draw(parts.consts, *presample.lane_keys(keys, jnp.uint32([4])))
    got = jax.jit(parts.update_lanes)(parts.consts, draws, state, h)
    alone = jax.vmap(lambda k, s: _a_step_of_everything(jax.random.fold_in(k, 4), s, h), (0, -1), -1)(keys, state)
    assert jax.tree.map(jnp.shape, got) == jax.tree.map(jnp.shape, alone)
    np.testing.assert_array_equal(got["count"], alone["count"])
    for name in ("x", "same"):
        np.testing.assert_allclose(got[name], alone[name], rtol=0, atol=rounding(np.asarray(alone[name]), 1))


@pytest.mark.parametrize("rows", [1, 7, presample.MAX_ROWS, presample.MAX_ROWS + 1])
def test_inner_products_of_lanes(rows):
    lanes = presample.MIN_LANES
    step = lambda key, state, h: state * (state @ (state + h)) + 0 * jax.random.normal(key, (rows,))
    state = jax.random.normal(KEY, (rows, lanes))
    parts = presample.split(step, KEY, state[:, 0], 1.0)
    draws = parts.draw(parts.consts, *presample.lane_keys(jax.random.split(KEY, lanes), jnp.uint32([4])))
    got = jax.jit(parts.update_lanes)(parts.consts, draws, state, jnp.float64(1.0))
    x = np.asarray(state, np.longdouble)
    want = x * np.sum(x * (x + 1), axis=0)
    size = np.abs(x) * np.sum(np.abs(x * (x + 1)), axis=0)  # a sum of n products errs by n eps times that at most
    assert np.all(np.abs(np.asarray(got) - want) <= (rows + 2) * np.finfo(np.float64).eps * size)


def test_rows_of_data_are_not_drawn_in_bulk():
    rows = jnp.ones((10_000, 30))
    estimator = Minibatch(DataTerms(lambda x: 0.0 * jnp.sum(x), lambda x, row: row @ x, rows, 10_000), 50)
    step = lambda key, state, h: state - h * estimator.estimate(key, (), state)[0].gradient
    parts = presample.split(step, KEY, jnp.zeros(30), 1.0)
    assert parts.draw is not None
    assert parts.draw_bytes <= 50 * 8


def test_what_is_computed_twice_is_drawn_once():
    data, labels = jnp.ones((10_000, 30)), jnp.ones(10_000)
    terms = DataTerms(lambda x: 0.0 * jnp.sum(x), lambda x, row: row[1] * (row[0] @ x), (data, labels), 10_000)
    estimator = Minibatch(terms, 50)
    step = lambda key, state, h: state - h * estimator.estimate(key, (), state)[0].gradient
    # 50 indices, which pick from two arrays
    assert presample.split(step, KEY, jnp.zeros(30), 1.0).draw_bytes == 50 * np.dtype(np.int32).itemsize


def test_equal_functions_of_two_keys_are_drawn_twice():
    def step(key, state, h):
        first, second = jax.random.split(key)
        return state + h * (jax.random.normal(first, (3,)) - jax.random.normal(second, (3,)))

    parts = presample.split(step, KEY, jnp.zeros(3), 1.0)
    assert parts.draw is not None
    draws = parts.draw(parts.consts, *presample.lane_keys(KEY[None], jnp.uint32(4)[None]))
    got = parts.update(parts.consts, jax.tree.map(lambda a: a[..., 0], draws), jnp.zeros(3), jnp.float64(1.0))
    np.testing.assert_allclose(got, step(jax.random.fold_in(KEY, 4), jnp.zeros(3), 1.0), rtol=0, atol=10 * EPS)


def test_a_table_has_its_chains_first_and_all_else_last():
    sampler, estimator, position = CASES["table"]
    state = sampler.init(KEY, position, estimator)
    for divide in (presample.split, presample.whole):
        parts = divide(lambda k, s, h: sampler.step(k, s, h, estimator), KEY, state, jnp.float64(0.1))
        assert parts.axes.estate.gradients == 0
        assert {parts.axes.position, parts.axes.estate.total} == {-1}


def test_loops_over_keys_stay_in_the_loop_over_steps():
    step = lambda key, state, h: state + h * jax.random.gamma(key, jnp.full(3, 2.0))
    parts = presample.split(step, KEY, jnp.zeros(3), 1.0)
    draws = [] if parts.draw is None else parts.draw(parts.consts, *presample.lane_keys(KEY[None], jnp.uint32(4)[None]))
    key = jax.random.fold_in(KEY, 4)
    one = jax.tree.map(lambda a: a[..., 0], draws) if draws else key
    got = parts.update(parts.consts, one, jnp.zeros(3), jnp.float64(1.0))
    np.testing.assert_array_equal(got, step(key, jnp.zeros(3), 1.0))


def test_keys_of_another_generator_are_drawn_in_the_loop():
    key = jax.random.key(5, impl="rbg")
    got = run(SGLD(), PAIR, key, step_size=0.1, num_steps=6).samples[0]
    want = by_hand(SGLD(), Exact(PAIR), jax.random.fold_in(key, 0), PAIR.example, [jnp.float64(0.1)] * 6)
    assert np.abs(got - want).max() <= rounding(want, 6)


def test_thinning_and_burn_in_take_their_steps_of_the_full_chain():
    full = run(SGLD(), PAIR, KEY, step_size=0.1, num_steps=23).samples
    some = run(SGLD(), PAIR, KEY, step_size=0.1, num_steps=18, burn_in=5, thin=4)
    assert some.steps == 21
    np.testing.assert_array_equal(some.samples[0], full[0, 8:21:4])
    np.testing.assert_array_equal(some.position, full[:, 20])


def test_two_positions_apart_and_only_what_is_collected():
    got = run(SGLD(), TREE, KEY, step_size=0.1, num_steps=4, num_chains=2, collect=lambda x: {"sum": jnp.sum(x["a"])})
    full = run(SGLD(), TREE, KEY, step_size=0.1, num_steps=4, num_chains=2)
    assert got.samples["sum"].shape == (2, 4)
    assert np.abs(got.samples["sum"] - full.samples["a"].sum(-1)).max() <= rounding(full.samples, 1)


# ------------------------------------------------------------------------------------------------------ schedules


@dataclasses.dataclass(frozen=True)
class Clock:
    """Adds the step size to the position: shows which step sizes were used."""

    backend = "jax"
    needs = frozenset()

    def init(self, key, position, estimator):
        return position

    def step(self, key, state, step_size, estimator):
        return state + step_size

    def position(self, state):
        return state


def test_decreasing_step_sizes_and_weights():
    result = run(
        Clock(),
        None,
        KEY,
        step_size=decreasing(0.5, 3.0, 0.6),
        num_steps=9,
        burn_in=2,
        thin=2,
        position=jnp.zeros(()),
        block_size=2,
    )
    h = np.array([0.5 * (1 + t / 3) ** -0.6 for t in range(12)])
    positions = np.cumsum(h)[[3, 5, 7, 9]]
    np.testing.assert_allclose(result.samples[0], positions, rtol=20 * EPS)
    np.testing.assert_allclose(result.weights, h[[4, 6, 8, 10]], rtol=20 * EPS)
    np.testing.assert_allclose(result.average[0], np.sum(h[4:11:2] * positions) / h[4:11:2].sum(), rtol=50 * EPS)


def test_kept_average_is_the_average_of_the_samples():
    arguments = {"step_size": decreasing(0.2, 5.0, 0.5), "num_steps": 30, "num_chains": 2, "burn_in": 4}
    samples = run(SGLD(), TREE, KEY, **arguments)
    average = run(SGLD(), TREE, KEY, **arguments, keep="average")
    assert average.samples is None
    for a, b in zip(jax.tree.leaves(average.average), jax.tree.leaves(samples.average), strict=True):
        assert np.abs(a - b).max() <= rounding(samples.samples, 1)


def test_variance_of_many_chains_is_that_of_the_discrete_law():
    """SGLD from its own stationary law on N(0, 1): variance 1 / (1 - h / 2) after any number of steps."""
    chains, h = 4000, 0.8
    variance = 1 / (1 - h / 2)
    start = np.sqrt(variance) * np.random.default_rng(0).normal(size=(chains, 2))
    end = run(
        SGLD(),
        FromLogDensity(lambda x: -0.5 * jnp.sum(x * x)),
        KEY,
        step_size=h,
        num_steps=20,
        thin=20,
        positions=jnp.asarray(start),
    ).position
    error = variance * np.sqrt(2 / (2 * chains))
    assert abs(float(jnp.mean(end**2)) - variance) <= 4.9 * error  # normal quantile at 1e-6, two-sided


# ---------------------------------------------------------------------------------------------------- checkpoints

LONG = {"step_size": decreasing(0.3, 10.0, 0.4), "num_steps": 40, "burn_in": 7, "thin": 2, "num_chains": 2}


class Killed(Exception):
    pass


def interrupted(monkeypatch, path, after, sampler=None, **options):
    """Start a run and end it after some checkpoints."""
    save, count = checkpoints.save, [0]

    def saving(*args):
        save(*args)
        count[0] += 1
        if count[0] == after:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "save", saving)
        with pytest.raises(Killed):
            run(sampler or SGHMC(), PAIR, KEY, **{**LONG, **options}, checkpoint=path, checkpoint_every=5)


@pytest.mark.parametrize("sampler", [SGHMC(), HostSGLD()])
@pytest.mark.parametrize("keep", ["samples", "average"])
def test_resumed_run_is_the_uninterrupted_run(tmp_path, monkeypatch, sampler, keep):
    path = tmp_path / "run.npz"
    whole = run(sampler, PAIR, KEY, **LONG, keep=keep)
    for after in (1, 4):
        interrupted(monkeypatch, path, after, sampler, keep=keep)
    for _ in range(2):  # the second time from the end
        resumed = run(sampler, PAIR, KEY, **LONG, keep=keep, checkpoint=path, checkpoint_every=5)
        pairs = [(resumed.position, whole.position), (resumed.weights, whole.weights)]
        pairs.append((resumed.samples, whole.samples) if keep == "samples" else (resumed.averages, whole.averages))
        for a, b in pairs:
            np.testing.assert_array_equal(a, b)
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]


def test_killed_process_leaves_a_checkpoint_that_resumes(tmp_path):
    path = tmp_path / "run.npz"
    program = f"""
import os, jax
jax.config.update("jax_enable_x64", True)
from sgmcmc_verification.checks.core.compilation import configure
configure()  # compiled as here: other passes round in another way
from sgmcmc_verification.samplers.runner import checkpoint
from sgmcmc_verification.samplers.run import run
from sgmcmc_verification.samplers.runner.schedules import decreasing
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.targets.euclidean.gaussian import gaussian
pair = gaussian([0.5, -1.0], [[1.0, 0.6], [0.6, 2.0]], "pair")
replace, count = os.replace, []
def kill(a, b):
    count.append(0)
    os._exit(9) if len(count) == 3 else replace(a, b)
os.replace = kill
run(SGHMC(), pair, jax.random.key(20), step_size=decreasing(0.3, 10.0, 0.4), num_steps=40, burn_in=7, thin=2,
    num_chains=2, checkpoint={str(path)!r}, checkpoint_every=5)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    resumed = run(SGHMC(), PAIR, KEY, **LONG, checkpoint=path, checkpoint_every=5)
    np.testing.assert_array_equal(resumed.samples, run(SGHMC(), PAIR, KEY, **LONG).samples)


def test_damaged_checkpoint_gives_one_error(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    interrupted(monkeypatch, path, 3)
    content = path.read_bytes()
    middle = len(content) // 2
    damaged = [content[:n] for n in (0, 1, 100, middle, len(content) - 1)]
    damaged.append(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
    for wrong in [*damaged, b"not a checkpoint"]:
        path.write_bytes(wrong)
        with pytest.raises(checkpoints.CheckpointError, match=r"truncated or not a checkpoint.*delete it"):
            checkpoints.load(path, {})


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"num_steps": 44}, "draws"),
        ({"step_size": 0.3}, "step_size"),
        ({"thin": 4}, "thin"),
        ({"position": jnp.ones(2)}, "positions"),
        ({"key": jax.random.key(21)}, "key"),
        ({"sampler": SGHMC(friction=2.0)}, "sampler and target"),
    ],
)
def test_checkpoint_of_another_run_is_refused(tmp_path, monkeypatch, change, named):
    path = tmp_path / "run.npz"
    interrupted(monkeypatch, path, 2)
    arguments = {"sampler": SGHMC(), "key": KEY, **LONG, **change}
    sampler, key = arguments.pop("sampler"), arguments.pop("key")
    with pytest.raises(checkpoints.CheckpointError, match=f"another run.*{named}"):
        run(sampler, PAIR, key, **arguments, checkpoint=path, checkpoint_every=5)


def test_failed_write_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    checkpoints.save(path, {"a": 1}, 3, [np.arange(4)])

    def fail(file, **arrays):
        file.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="no space"):
        checkpoints.save(path, {"a": 1}, 4, [np.arange(5)])
    step, (array,) = checkpoints.load(path, {"a": 1})
    assert step == 3
    assert array.tolist() == [0, 1, 2, 3]
    assert len(list(tmp_path.iterdir())) == 1


# ----------------------------------------------------------------------------------------------------------- host


def test_host_chains_are_loops_over_their_own_generators():
    result = run(HostSGLD(), PAIR, KEY, step_size=decreasing(0.2), num_steps=9, burn_in=1, thin=2, num_chains=3)
    alone = run(HostSGLD(), PAIR, KEY, step_size=decreasing(0.2), num_steps=9, burn_in=1, thin=2)
    np.testing.assert_array_equal(result.samples[:1], alone.samples)
    words = [int(w) for w in np.asarray(jax.random.key_data(KEY))]
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(words, spawn_key=(2,))))
    state, want = HostSGLD().init(generator, np.asarray(PAIR.example), Exact(PAIR)), []
    for t in range(9):
        state = HostSGLD().step(generator, state, 0.2 * (1 + t) ** -0.55, Exact(PAIR))
        want.append(np.array(HostSGLD().position(state)))
    assert np.abs(result.samples[2] - np.stack(want)[2::2]).max() <= rounding(want, 9)


# ------------------------------------------------------------------------------------------------------ bad input

GOOD = {"sampler": SGLD(), "problem": PAIR, "key": KEY, "step_size": 0.1, "num_steps": 4}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step_size": 0.0}, "step_size: must be positive"),
        ({"step_size": -1.0}, "step_size: must be positive"),
        ({"step_size": float("nan")}, "step_size: must be positive and finite"),
        ({"step_size": lambda t: 1.0 - t}, "step_size: the schedule must give positive"),
        ({"num_steps": 0}, "num_steps: must be an integer of at least 1"),
        ({"num_steps": 2.5}, "num_steps: must be an integer"),
        ({"num_steps": 2**32}, "num_steps: at most"),
        ({"thin": 0}, "thin: must be an integer of at least 1"),
        ({"thin": 5}, "thin: must not exceed num_steps"),
        ({"burn_in": -1}, "burn_in: must be"),
        ({"block_size": 0}, "block_size: must be"),
        ({"num_chains": 0}, "num_chains: must be"),
        ({"key": 3}, "key: must be one typed key"),
        ({"key": jax.random.split(KEY)}, "key: must be one typed key"),
        ({"keep": "all"}, "keep: must be"),
        ({"on_nonfinite": "maybe"}, "on_nonfinite: must be"),
        ({"position": jnp.zeros(3)}, r"position: must have the shape \(2,\), got \(3,\)"),
        ({"position": {"a": jnp.zeros(2)}}, "position: must have the structure"),
        ({"position": jnp.zeros(2, int)}, "position: must be a pytree of float arrays"),
        ({"position": jnp.array([0.0, jnp.inf])}, "position: holds a number that is not finite"),
        ({"positions": jnp.zeros(2)}, r"positions: must have a leading chain axis and the shape \(2,\)"),
        ({"positions": jnp.zeros((3, 2)), "num_chains": 2}, "num_chains: is 2, but"),
        ({"positions": jnp.zeros((3, 2)), "position": jnp.zeros(2)}, "positions: give either"),
        ({"problem": FromLogDensity(jnp.sum)}, "position: the estimator has no example"),
        ({"checkpoint": "/no/such/folder/run.npz"}, "checkpoint: the folder .* does not exist"),
    ],
)
def test_bad_argument_is_named_before_any_work(change, message):
    arguments = {**GOOD, **change}
    with pytest.raises(ValueError, match=f"^{message}"):
        run(arguments.pop("sampler"), arguments.pop("problem"), arguments.pop("key"), **arguments)


@pytest.mark.parametrize("arguments", [{"a": 0.0}, {"a": 1.0, "b": -1.0}, {"a": 1.0, "gamma": 1.5}])
def test_bad_schedule_is_named(arguments):
    with pytest.raises(ValueError, match=f"^{list(arguments)[-1]}: must"):
        decreasing(**arguments)
    assert constant(0.5)(np.arange(2)).tolist() == [0.5, 0.5]


def test_gradient_that_is_not_finite_at_the_start_is_named():
    estimator = FromLogDensity(lambda x: -jnp.sum(jnp.sqrt(x)))
    with pytest.raises(ValueError, match=r"^positions: the gradient is not finite.* 1 of 2 chains"):
        run(SGLD(), estimator, KEY, step_size=0.1, num_steps=2, positions=jnp.array([[1.0], [-1.0]]))


@pytest.mark.parametrize("sampler", [SGLD(), HostSGLD()])
def test_divergence_is_reported(sampler):
    estimator = FromLogDensity(lambda x: -jnp.sum(x**4))
    arguments = {"step_size": 0.1, "num_steps": 12, "positions": jnp.array([[0.1], [1e3]])}
    with pytest.warns(RuntimeWarning, match="1 of 2 chains are not finite after 12 steps; reduce step_size"):
        result = run(sampler, estimator, KEY, **arguments)
    assert result.nonfinite.tolist() == [False, True]
    with pytest.raises(NonFiniteError, match="1 of 2 chains"):
        run(sampler, estimator, KEY, **arguments, on_nonfinite="raise")


def test_progress_bar_reaches_the_end(capsys):
    quiet = run(SGLD(), PAIR, KEY, step_size=0.1, num_steps=30, burn_in=5)
    shown = run(SGLD(), PAIR, KEY, step_size=0.1, num_steps=30, burn_in=5, progress=True)
    np.testing.assert_array_equal(quiet.samples, shown.samples)
    assert "35/35" in capsys.readouterr().err
