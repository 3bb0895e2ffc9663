"""Single precision: a step that is another one in float32 is found, one that loses only digits passes."""

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.execute import run_check
from sgmcmc_verification.checks.tiers.premises.same_tape import same_tape
from tests.helpers.strangers import MALA, Euler, Kept, Underdamped, decide, gradient, normal

ROOT = Path(__file__).resolve().parents[4]
single = lambda x: x.dtype == jnp.float32
WELL = "double-well"


class Summed:
    """SGLD with a running sum of 1e8 and more in its state, from which the position is taken back."""

    def init(self, key, position, estimator):
        return Kept(position, position + 1e8)

    def step(self, key, state, step_size, estimator):
        x = state.kept - 1e8
        move = -step_size * gradient(estimator, x) + jnp.sqrt(2 * step_size) * normal(key, x)
        return Kept(x + move, state.kept + move)


class Walkers:
    """Differential evolution of four: x_i + 1.5 (x_j - x_k) and some noise, taken or left in turn; round-off grows."""

    def __init__(self, noise=lambda e: e):
        self.noise = noise

    def position(self, state):
        return state[0]

    def init(self, key, position, estimator):
        return position + jnp.arange(4.0, dtype=position.dtype)[:, None]

    def step(self, key, state, step_size, estimator):
        energy = lambda y: estimator.estimate(key, (), y)[0].potential
        for i in range(4):
            jump, test = jax.random.split(jax.random.fold_in(key, i))
            y = state[i] + 1.5 * (state[(i + 1) % 4] - state[(i + 2) % 4])
            y = y + jnp.sqrt(2 * jnp.asarray(step_size, y.dtype)) * self.noise(normal(jump, y))
            taken = jnp.log(jax.random.uniform(test, (), y.dtype)) < energy(state[i]) - energy(y)
            state = state.at[i].set(jnp.where(taken, y, state[i]))
        return state


OTHER = {
    "walkers with half of the noise in float32": Walkers(lambda e: (0.5 if single(e) else 1.0) * e),
    "half of the noise in float32": Euler(noise=lambda e: (0.5 if single(e) else 1.0) * e),
    "positions kept in bfloat16 where they are in float32": Euler(
        end=lambda x: x.astype(jnp.bfloat16).astype(x.dtype) if single(x) else x
    ),
    "a momentum kept in bfloat16 where it is in float32": Underdamped(
        change=lambda p: p.astype(jnp.bfloat16).astype(p.dtype) if single(p) else p
    ),
    "squares that overflow": Euler(lambda g, h: g / jnp.sqrt(jnp.sum((1e25 * g) ** 2)) * jnp.sum(1e25 * jnp.abs(g))),
    "digits that cancel": Summed(),
    "an epsilon below the least float32": Euler(lambda g, h: g * (1e-60 + 0 * g) / (1e-60 + 0 * g)),
    "normals of their own in float32, without tails": Euler(noise=lambda e: jnp.clip(e, -1.5, 1.5) if single(e) else e),
}
SAME = {
    "walkers whose differences grow": Walkers(),
    "Euler": Euler(),
    "a momentum": Underdamped(),
    "MALA": MALA(),
    "a gradient summed in float64 where there is one": Euler(
        lambda g, h: jnp.sum(g[None].astype(float), axis=0).astype(g.dtype)
    ),
    "an exponential of the step size": Euler(lambda g, h: g * (1 - jnp.exp(-h)) / h),
}


class OnHost:
    """Euler's step of Langevin's equation in NumPy, with what is made of a draw, of the gradient and of the end."""

    backend = "host"

    def __init__(self, noise=lambda e, x: e, drift=lambda g, x: g, end=lambda x: x):
        self.noise, self.drift, self.end = noise, drift, end

    def step(self, rng, x, step_size, estimator):
        g = np.asarray(estimator.estimate(rng, (), x)[0].gradient).astype(x.dtype)
        e = self.noise(rng.standard_normal(x.shape).astype(x.dtype), x)
        moved = x - x.dtype.type(step_size) * self.drift(g, x) + x.dtype.type(np.sqrt(2 * step_size)) * e
        return self.end(moved.astype(x.dtype))


class WalkOnHost:
    """Metropolis' walk in place, with numbers of Python."""

    backend = "host"

    def step(self, rng, x, step_size, estimator):
        energy = lambda y: float(estimator.estimate(rng, (), y)[0].potential)
        y = x.copy()
        y += math.sqrt(2 * step_size) * rng.standard_normal(x.shape, dtype=x.dtype)
        return y if math.log(1 - rng.random()) < energy(x) - energy(y) else x


class MapOnHost:
    """A map that enlarges differences threefold in each step, and folds them back."""

    backend = "host"

    def step(self, rng, x, step_size, estimator):
        return (np.abs((3 * x + 4) % 4 - 2) + 0 * rng.standard_normal(x.shape)).astype(x.dtype)


class SliceOnHost:
    """A slice of each coordinate, whose bracket shrinks."""

    backend = "host"

    def step(self, rng, x, step_size, estimator):
        energy, x = (lambda y: float(estimator.estimate(rng, (), y)[0].potential)), x.copy()
        for i in np.ndindex(x.shape):
            level, low = energy(x) + rng.exponential(), x[i] - 2 * rng.random()
            high, start = low + 2, x[i]
            while True:
                x[i] = rng.uniform(low, high)
                if energy(x) <= level:
                    break
                low, high = (x[i], high) if x[i] < start else (low, x[i])
        return x


class InDoubleInside:
    """All of the step in float64, whatever the position is."""

    backend = "host"

    def step(self, rng, x, step_size, estimator):
        y = np.asarray(x, np.float64)
        g = np.asarray(estimator.estimate(rng, (), x)[0].gradient, np.float64)
        return (y - step_size * g + np.sqrt(2 * step_size) * rng.standard_normal(y.shape)).astype(x.dtype)


class SummedOnHost:
    """A running sum of 1e8 and more, from which the position is taken back."""

    backend = "host"

    def init(self, rng, position, estimator):
        return position + position.dtype.type(1e8)

    def position(self, state):
        return state - state.dtype.type(1e8)

    def step(self, rng, state, step_size, estimator):
        x = self.position(state)
        g = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
        return (state - step_size * g + np.sqrt(2 * step_size) * rng.standard_normal(x.shape)).astype(state.dtype)


class NumbersOfItsOwn(OnHost):
    """Draws of a generator that goes on from object to object."""

    rng = np.random.default_rng(0)

    def step(self, rng, x, step_size, estimator):
        return super().step(self.rng, x, step_size, estimator)


single_on_host = lambda x: x.dtype == np.float32
OTHER |= {
    "NumPy: half of the noise in float32": OnHost(lambda e, x: e / 2 if single_on_host(x) else e),
    "NumPy: positions kept in float16": OnHost(
        end=lambda x: x.astype(np.float16).astype(x.dtype) if single_on_host(x) else x
    ),
    "NumPy: squares that overflow": OnHost(
        drift=lambda g, x: g / np.sqrt(np.sum((x.dtype.type(1e25) * g) ** 2)) * np.sum(x.dtype.type(1e25) * np.abs(g))
    ),
    "NumPy: an epsilon below the least float32": OnHost(
        drift=lambda g, x: g * x.dtype.type(1e-60) / x.dtype.type(1e-60)
    ),
    "NumPy: digits that cancel": SummedOnHost(),
}
SAME |= {
    "NumPy: Euler": OnHost(),
    "NumPy: Metropolis' walk in place": WalkOnHost(),
    "NumPy: slices": SliceOnHost(),
    "NumPy: a map whose differences grow": MapOnHost(),
    "NumPy: float64 inside": InDoubleInside(),
    "NumPy: a gradient summed in float64": OnHost(drift=lambda g, x: np.sum(g[None], 0, np.float64).astype(x.dtype)),
}


@pytest.mark.parametrize("name", OTHER)
def test_a_step_that_is_another_one_in_float32_fails(name):
    finding = decide(same_tape, OTHER[name], WELL)
    assert finding.verdict == "fail", finding.reason


@pytest.mark.parametrize("name", SAME)
def test_a_step_that_loses_digits_only_passes(name):
    finding = decide(same_tape, SAME[name], WELL)
    assert finding.verdict == "pass", finding.reason
    assert finding.effect < 1e-4


def test_the_effect_is_the_difference_of_two_runs():
    """x' = x - h 0.5 in float64 alone: after n steps the runs are h n / 2 apart, relative to 1 + |x|."""

    class Drifting:
        def step(self, key, x, step_size, estimator):
            return x if single(x) else x - 0.5 * step_size

    finding = decide(same_tape, Drifting(), "gaussian-1d-scaled", step_size=0.1)
    start, h = 0.7 + 0.2 * np.sqrt(2.5), 0.1 / 2.5  # the example of the target, and its curvature
    x = start - 0.5 * h * np.arange(1, 51)
    gaps = (start - x) / (1 + x)
    assert np.isclose(finding.effect, gaps, rtol=1e-6).any()
    assert finding.effect > 0.1


def test_a_step_that_cannot_be_traced_in_float32_is_out_of_reach():
    class Picky:
        def step(self, key, x, step_size, estimator):
            if single(x):
                raise TypeError("float64 only")
            return x - step_size * gradient(estimator, x) + jnp.sqrt(2 * step_size) * normal(key, x)

    with pytest.raises(OutOfReach, match="cannot be traced in this precision"):
        decide(same_tape, Picky(), WELL)


def test_a_sampler_in_python_with_draws_of_its_own_is_out_of_reach():
    with pytest.raises(OutOfReach, match="draws, or a memory, of its own"):
        decide(same_tape, NumbersOfItsOwn(), WELL)


def test_draws_that_the_tape_cannot_feed_are_out_of_reach():
    class Gamma:
        def step(self, key, x, step_size, estimator):
            return x + step_size * (jax.random.gamma(key, 2.0, x.shape) - 2.0)

    with pytest.raises(OutOfReach, match="cannot feed"):
        decide(same_tape, Gamma(), WELL)


def test_z_is_one_in_both_precisions_where_an_energy_is_a_cache_in_one_of_them():
    """A walk that keeps the energy of its last proposal: whether one was rejected in the first steps is by chance."""
    bug = f"{ROOT / 'tests/strangers/corpus/metropolis_walks.py'}:dynare_1623_before"
    assert run_check(bug, "same_tape", WELL).verdict == "pass"
