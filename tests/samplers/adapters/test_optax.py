"""The optax adapters are the library's transformations at the settings under which they are SGLD and SGHMC."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from sgmcmc_verification.samplers.adapters import optax as adapters
from sgmcmc_verification.samplers.estimators.basic import Exact, KnownNoise
from sgmcmc_verification.targets.registry import target as find_target
from tests.helpers.closeness import assert_close

TARGET = find_target("gaussian-correlated-2d")
TREE = find_target("gaussian-pytree")
KEY = jax.random.key(7)
H, T = 0.1, 2.0


def step(sampler, target=TARGET, estimator=None):
    estimator = estimator or Exact(target)
    state = sampler.init(jax.random.key(0), target.example, estimator)
    return state, sampler.step(KEY, state, H, estimator)


def draws(target):
    """The normals of a step: the second key of the adapter, split by the library, one key a leaf."""
    sample_key = jax.random.split(jax.random.split(KEY)[1])[1]
    leaves, structure = jax.tree.flatten(target.example)
    keys = jax.random.split(sample_key, len(leaves))
    normals = [jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(structure, normals)


@pytest.mark.parametrize("target", [TARGET, TREE], ids=lambda t: t.name)
def test_noisy_sgd_is_sgld_with_the_noise_of_each_leaf_its_own(target):
    _, after = step(adapters.NoisySGD(T), target)
    gradient = jax.grad(target.potential)(target.example)
    expected = jax.tree.map(
        lambda x, g, n: x - H * g + np.sqrt(2 * H * T) * -n, target.example, gradient, draws(target)
    )
    assert_close(after.position, expected)


def test_noise_multiplies_the_gradient_before_the_learning_rate():
    """The convention that had been wrong: at learning rate a and variance eta the noise of a step is a^2 eta."""
    moves = []
    for rate in (0.1, 0.2):
        optimizer = optax.noisy_sgd(rate, eta=3.0, gamma=0.0, key=KEY)
        moves.append(optimizer.update(jnp.zeros(4), optimizer.init(jnp.zeros(4)))[0])
    assert_close(moves[1], 2 * moves[0])
    scaled = optax.noisy_sgd(0.1, eta=12.0, gamma=0.0, key=KEY)
    assert_close(scaled.update(jnp.zeros(4), scaled.init(jnp.zeros(4)))[0], 2 * moves[0])


def test_momentum_scheme_is_sghmc():
    C = 0.7
    state, after = step(adapters.AddNoise(C, T))
    gradient = jax.grad(TARGET.potential)(TARGET.example)
    r = state.momentum - H * gradient - C * H * state.momentum - np.sqrt(2 * C * T * H) * draws(TARGET)
    assert_close(after.momentum, r)
    assert_close(after.position, TARGET.example + H * r)


def test_private_aggregate_of_one_example_is_sgld_below_the_clip():
    _, after = step(adapters.DifferentiallyPrivate(T))
    gradient = jax.grad(TARGET.potential)(TARGET.example)
    _, key = jax.random.split(jax.random.split(KEY)[1], 2)  # the library keeps the first one for the next step
    normals = jax.random.normal(key, TARGET.example.shape)
    # the noise is C m with m = sqrt(2 T / h) / C
    assert_close(after.position, TARGET.example - H * (gradient + np.sqrt(2 * T / H) * normals))


def test_private_aggregate_is_a_mean_over_examples():
    transformation = optax.contrib.differentially_private_aggregate(1e8, 0.0, key=KEY)
    examples = jnp.array([[1.0, 2.0], [3.0, 6.0]])
    assert_close(transformation.update(examples, transformation.init(jnp.zeros(2)))[0], jnp.array([2.0, 4.0]))


@pytest.mark.parametrize("sampler", [adapters.NoisySGD(), adapters.DifferentiallyPrivate(), adapters.AddNoise()])
def test_gradient_noise_reaches_the_step(sampler):
    outcomes = [step(sampler, estimator=e)[1].position for e in (None, KnownNoise(TARGET, np.diag([1.0, 4.0])))]
    assert not np.allclose(outcomes[0], outcomes[1], rtol=1e-3)


@pytest.mark.parametrize("sampler", [adapters.NoisySGD, adapters.DifferentiallyPrivate, adapters.AddNoise])
def test_missing_library_and_bad_options_are_one_error(sampler, monkeypatch):
    with pytest.raises(ValueError, match="temperature: must be positive"):
        sampler(temperature=0.0)
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(ImportError, match=r"needs optax: pip install 'sgmcmc-verification\[optax\]'"):
        sampler()
