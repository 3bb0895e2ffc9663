"""What JAX keeps of compiled functions is forgotten in long runs. Oracle: the number of MLIR contexts that live."""

import gc

import jax
import jax.numpy as jnp
from jaxlib.mlir import ir

from sgmcmc_verification.checks.pytest_plugin import jax_cache
from sgmcmc_verification.checks.pytest_plugin.jax_cache import Lowerings


def contexts() -> int:
    gc.collect()
    return ir.Context._get_live_count()


def test_contexts_are_given_back_after_many_lowerings_and_not_before(monkeypatch):
    monkeypatch.setattr(jax_cache, "MANY", 50)
    plugin = Lowerings()
    kept = []
    before = contexts()
    for number in range(60):
        if number == 40:
            plugin.pytest_runtest_teardown()
            assert contexts() >= before + 40
        kept.append(jax.jit(lambda x, number=number: x * number))
        kept[-1](jnp.float32(1.0))
    assert plugin.count >= 60
    plugin.pytest_runtest_teardown()
    assert plugin.count == 0
    assert contexts() < before + 10
    assert kept[3](jnp.float32(2.0)) == 6.0
