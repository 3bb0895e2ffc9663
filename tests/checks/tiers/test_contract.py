"""What any sampler must do: inputs that are read, keys that decide, whatever is tossed with them."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.lookup import resolve_object
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.tiers.contract import interface
from sgmcmc_verification.samplers.simple import simple_sampler
from tests.helpers.strangers import gradient
from tests.strangers.right.eighth_users import np_sghmc
from tests.strangers.right.fresh import ahead, noisy_energies, slices

LINE = "anharmonic"


def verdict(name, candidate, seed=0, target=LINE):
    (subject, *_) = resolve_object("mine", candidate)
    subject = replace(subject, row=replace(subject.row, targets=(target,), step_size=0.05))
    return execute(find_statement(name), subject, target, seed)


@simple_sampler
def barker(key, x, h, estimator):
    a, b = jax.random.split(key)
    z = jnp.sqrt(2 * h) * jax.random.normal(a, x.shape, x.dtype)
    return x + jnp.where(jax.random.bernoulli(b, jax.nn.sigmoid(-z * gradient(estimator, x, key))), z, -z)


def test_coins_are_moved_until_they_flip(monkeypatch):
    seeds = range(12)
    assert [verdict("every_input_matters", barker, seed).verdict for seed in seeds] == ["pass"] * len(seeds)
    monkeypatch.setattr(interface, "FURTHER", (0.731,))
    monkeypatch.setattr(interface, "RARE", 3)
    small = [verdict("every_input_matters", barker, seed) for seed in seeds]
    assert any("the gradient of the estimator does not change" in result.reason for result in small)


@simple_sampler
def deaf_to_the_gradient(key, x, h, estimator):
    a, b = jax.random.split(key)
    g = gradient(estimator, x, key)
    z = jnp.sqrt(2 * h) * jax.random.normal(a, x.shape, x.dtype)
    return x + jnp.where(jax.random.bernoulli(b, jax.nn.sigmoid(0 * z * g)), z, -z)


@simple_sampler
def deaf_to_its_size(key, x, h, estimator):
    up = jax.random.bernoulli(key, jax.nn.sigmoid(-0.3 * gradient(estimator, x)), x.shape)
    return x + jnp.where(up, 0.3, -0.3)


@simple_sampler
def deaf_to_the_key(key, x, h, estimator):
    return x - h * gradient(estimator, x) + jnp.sqrt(2 * h) * jnp.sin(100 * x)


@pytest.mark.parametrize(
    ("candidate", "named"),
    [
        (deaf_to_the_gradient, "the gradient of the estimator"),
        (deaf_to_its_size, "the step size"),
        (deaf_to_the_key, "the key"),
    ],
)
def test_an_input_that_is_not_read_is_named_however_far_it_is_moved(candidate, named):
    result = verdict("every_input_matters", candidate)
    assert result.verdict == "fail"
    assert f"{named} does not change the result" in result.reason


class Kept(NamedTuple):
    x: Any
    key: Any


class KeyInState:
    """Steps from the key in the state; one that is `frozen` is made of a constant, another is never split."""

    def __init__(self, raw=False, frozen=False):
        self.raw, self.frozen = raw, frozen

    def init(self, key, position, estimator):
        key = jax.random.key(3) if self.frozen else key
        return Kept(position, jax.random.key_data(key) if self.raw else key)

    def step(self, key, state, h, estimator):
        kept = jax.random.wrap_key_data(state.key) if self.raw else state.key
        kept, draw = jax.random.split(kept)
        x = state.x
        x = x - h * gradient(estimator, x) + jnp.sqrt(2 * h) * jax.random.normal(draw, x.shape, x.dtype)
        return Kept(x, jax.random.key_data(kept) if self.raw else kept)

    def position(self, state):
        return state.x


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("name", ["every_input_matters", "key_discipline"])
def test_a_key_in_the_state_is_a_key(name, raw):
    assert verdict(name, KeyInState(raw)).verdict == "pass"


@pytest.mark.parametrize("name", ["every_input_matters", "key_discipline"])
def test_a_constant_key_in_the_state_is_none(name):
    assert verdict(name, KeyInState(frozen=True)).verdict == "fail"


def lazy_in_doubles(key, x, h, estimator):
    """SGLD in half of the steps; the branch that moves is in the precision of its constants."""
    coin_key, noise_key = jax.random.split(key)
    noise = jnp.sqrt(2 * jnp.asarray(h, jnp.float64)) * jax.random.normal(noise_key, x.shape, jnp.float64)
    moved = lambda: x - h * gradient(estimator, x) + noise
    return jax.lax.cond(jax.random.bernoulli(coin_key), moved, lambda: x)


def raises_in_doubles(key, x, h, estimator):
    return jax.lax.cond(jnp.sum(x) > 0, lambda: x.astype(jnp.float32), lambda: x.astype(jnp.float64))


def test_a_step_that_single_precision_stops_is_a_minor_fault_and_one_that_double_precision_stops_an_error():
    found = verdict("shapes_and_dtypes", simple_sampler(lazy_in_doubles))
    assert (found.verdict, found.severity) == ("fail", "minor")
    assert f"float32 {interface.REFUSED} (TypeError: " in found.reason
    assert verdict("shapes_and_dtypes", simple_sampler(raises_in_doubles)).verdict == "error"


@pytest.mark.parametrize("seed", range(6))
def test_a_weight_that_a_host_sampler_keeps_is_moved_until_a_coin_falls_the_other_way(seed):
    assert verdict("every_input_matters", noisy_energies.host_grouped, seed).verdict == "pass"


def test_a_host_step_may_write_into_an_array_without_axes():
    found = verdict("every_input_matters", np_sghmc.SGHMC, target="gaussian-pytree")
    assert found.verdict == "pass", found.reason


def test_a_loop_that_ends_in_states_of_the_law_alone_does_not_hang():
    assert verdict("every_input_matters", slices.kept_level).verdict == "pass"


def three_points(rng, x, h, estimator):
    """SGLD whose noise has three values."""
    gradient = estimator.estimate(rng, (), x)[0].gradient
    values = np.array([-(3**0.5), 0, 0, 0, 0, 3**0.5])
    noise = lambda x: np.sqrt(2 * h) * values[rng.integers(0, 6, size=np.shape(x))]
    return jax.tree.map(lambda x, g: np.asarray(x - h * np.asarray(g) + noise(x)), x, gradient)


@pytest.mark.parametrize("seed", range(8))
def test_noise_of_few_values_is_equal_by_chance(seed):
    for target in ("gaussian-pytree", "gaussian-network", "gaussian-correlated-2d"):
        found = verdict("chains_and_leaves_independent", simple_sampler(three_points, backend="host"), seed, target)
        assert found.verdict == "pass", found.reason


def along_the_gradient(draw):
    """A step whose noise is one number times a direction of the state, as thermostats that scale velocities have it."""

    def step(key, x, h, estimator):
        g = estimator.estimate(key, (), x)[0].gradient
        length = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(g)))
        e = jnp.sqrt(2 * h) * draw(key) / length
        return jax.tree.map(lambda x, g: x - h * g + e * g, x, g)

    return simple_sampler(step)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("target", ["gaussian-pytree", "gaussian-50d"])
def test_one_number_along_a_direction_of_the_state_is_a_draw_of_its_own(target, seed):
    found = verdict("chains_and_leaves_independent", along_the_gradient(jax.random.normal), seed, target)
    assert found.verdict == "pass", found.reason


@simple_sampler
def of_three_seeds(key, x, h, estimator):
    """SGLD whose key is one of three."""
    g = estimator.estimate(key, (), x)[0].gradient
    seed = jax.random.key(jax.random.key_data(key)[-1] % 3)
    return x - h * g + jnp.sqrt(2 * h) * jax.random.normal(seed, x.shape, x.dtype)


def test_the_draws_of_a_few_seeds_are_the_same_draws():
    assert verdict("chains_and_leaves_independent", of_three_seeds, 0, "gaussian-50d").verdict == "fail"


@simple_sampler
def shared_with_the_noise(key, x, h, estimator):
    a, b = jax.random.split(key)
    g = sum(estimator.estimate(k, (), x)[0].gradient for k in (a, b)) / 2
    return x - h * g + jnp.sqrt(2 * h) * jax.random.normal(b, x.shape, x.dtype)


def test_estimates_may_share_a_key_and_a_draw_may_not_share_theirs():
    assert verdict("key_discipline", ahead.two_sides).verdict == "pass"
    assert verdict("key_discipline", ahead.antithetic_twins).verdict == "pass"
    assert verdict("key_discipline", shared_with_the_noise).verdict == "fail"


def solved_in_a_loop(key, x, h, estimator):
    """The implicit Euler step by a loop, with one minibatch for all its turns."""
    batch, noise = jax.random.split(key)
    goal = x + jnp.sqrt(2 * h) * jax.random.normal(noise, x.shape, x.dtype)
    turn = lambda _, y: goal - h * estimator.estimate(batch, (), y)[0].gradient
    return jax.lax.fori_loop(0, 20, turn, goal)


def noise_in_a_loop(key, x, h, estimator):
    """Two steps in a loop with one draw of the noise."""

    def turn(i, x):
        gradient = estimator.estimate(jax.random.fold_in(key, i), (), x)[0].gradient
        return x - h / 2 * gradient + jnp.sqrt(h) * jax.random.normal(key, x.shape, x.dtype)

    return jax.lax.fori_loop(0, 2, turn, x)


def batch_of_a_loop_and_noise(key, x, h, estimator):
    """A minibatch of a loop from the key of the noise after it."""
    y = jax.lax.fori_loop(0, 3, lambda _, y: x - h * estimator.estimate(key, (), (x + y) / 2)[0].gradient, x)
    return y + jnp.sqrt(2 * h) * jax.random.normal(key, x.shape, x.dtype)


def test_a_minibatch_may_serve_all_turns_of_a_loop_and_noise_may_not():
    assert verdict("key_discipline", simple_sampler(solved_in_a_loop)).verdict == "pass"
    assert verdict("key_discipline", simple_sampler(noise_in_a_loop)).verdict == "fail"
    assert verdict("key_discipline", simple_sampler(batch_of_a_loop_and_noise)).verdict == "fail"


def written_to(rng, x, h, estimator):
    """A step in NumPy that writes to its position and to the gradient."""
    gradient = estimator.estimate(rng, (), x)[0].gradient
    gradient *= -h
    gradient += np.sqrt(2 * h) * rng.standard_normal(x.shape)
    x.flat[:] += gradient.ravel()
    return x


def of_torch(rng, x, h, estimator):
    """A step that torch takes, of gradients without a copy."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(int(rng.integers(2**63)))
    gradient = torch.from_numpy(estimator.estimate(rng, (), x)[0].gradient)
    return (torch.from_numpy(x) - h * gradient + (2 * h) ** 0.5 * torch.randn(x.shape, dtype=gradient.dtype)).numpy()


@pytest.mark.parametrize("step", [written_to, of_torch])
@pytest.mark.parametrize("name", ["pack_unpack_inverse", "key_discipline", "every_input_matters"])
def test_arrays_that_a_step_in_python_is_given_are_those_of_numpy(step, name):
    assert verdict(name, simple_sampler(step, backend="host")).verdict == "pass"


class Mixed:
    """A walk, and in every second step a draw that does not look at where the chain is, both tested."""

    backend = "host"

    def step(self, rng, x, step_size, estimator):
        energy = lambda y: float(estimator.estimate(rng, (), y)[0].potential)
        anew = rng.random() < 0.5
        y = rng.standard_t(3, x.shape) if anew else x + np.sqrt(2 * step_size) * rng.standard_normal(x.shape)
        forth = (2 * np.log1p(y**2 / 3).sum() - 2 * np.log1p(x**2 / 3).sum()) if anew else 0.0
        return y if np.log(rng.random()) < energy(x) - energy(y) + forth else np.array(x)


@pytest.mark.parametrize("seed", range(4))
def test_a_step_that_forgets_the_state_now_and_then_reads_it(seed):
    assert verdict("every_input_matters", Mixed(), seed).verdict == "pass"


class Wide:
    """Random walk Metropolis whose proposals are never accepted where its option is large."""

    def __init__(self, power=1.0):
        self.power = power

    def step(self, key, x, step_size, estimator):
        a, b = jax.random.split(key)
        y = x + step_size ** (1 - self.power / 2) * 1e3 ** (self.power - 1) * jax.random.normal(a, x.shape)
        energy = lambda q: estimator.estimate(key, (), q)[0].potential
        return jnp.where(jnp.log(jax.random.uniform(b)) < energy(x) - energy(y), y, x)


@pytest.mark.parametrize(("foreign", "expected"), [(True, "inconclusive"), (False, "fail")])
def test_a_chain_that_is_frozen_with_an_option_that_was_made_up_has_shown_nothing(foreign, expected):
    (mine, *_) = resolve_object("mine", Wide)
    mine = replace(mine, row=replace(mine.row, foreign=foreign))
    movement = find_statement("movement")
    assert execute(movement, mine, LINE, 0).verdict == "pass"
    frozen = execute(movement, replace(mine, options={"power": 6.0}), LINE, 0)
    assert frozen.verdict == expected
    assert "frozen" in frozen.reason
