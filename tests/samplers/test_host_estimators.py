"""The exact gradient for host samplers: new arrays of NumPy with the values of JAX, whatever holds the position."""

import jax
import numpy as np
import pytest

from sgmcmc_verification.samplers.estimators.basic import compiled_gradient
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.targets.registry import target


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def as_arrays(tree):
    return jax.tree.map(lambda x: np.array(x) + 0.1, tree)


@pytest.mark.parametrize("name", ["banana", "gaussian-pytree", "gaussian-matrix", "tiny-gaussian-data", "vmf-s2"])
@pytest.mark.parametrize("held", [as_arrays, jax.numpy.asarray], ids=["NumPy", "JAX"])
def test_values_are_those_of_the_compiled_gradient(name, held):
    law = target(name)
    position = jax.tree.map(held, as_arrays(law.example)) if held is not as_arrays else as_arrays(law.example)
    value, gradient = compiled_gradient(law)(position)
    found, _ = HostExact(law).estimate(None, (), position)
    np.testing.assert_allclose(found.potential, value, rtol=1e-14)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14), found.gradient, gradient)
    assert jax.tree.structure(found.gradient) == jax.tree.structure(gradient)
    assert all(isinstance(leaf, np.ndarray | np.number) for leaf in jax.tree.leaves(found))


def test_gradients_can_be_written_to_and_are_of_one_call():
    law = target("banana")
    position = as_arrays(law.example)
    first, _ = HostExact(law).estimate(None, (), position)
    before = first.gradient.copy()
    second, _ = HostExact(law).estimate(None, (), position)
    written = first.gradient
    written += 1.0
    np.testing.assert_array_equal(second.gradient, before)


def test_single_precision_is_kept():
    law = target("banana")
    found, _ = HostExact(law).estimate(None, (), as_arrays(law.example).astype(np.float32))
    assert found.gradient.dtype == np.float32


def test_a_map_of_many_chains_is_traced():
    law = target("banana")
    positions = jax.numpy.stack([jax.numpy.asarray(law.example)] * 3)
    found = jax.vmap(lambda x: HostExact(law).estimate(None, (), x)[0].gradient)(positions)
    assert found.shape == (3, 2)
