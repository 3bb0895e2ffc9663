"""Copies of what samplers in Python hold: optimisers of torch keep their attributes, and nothing else is changed."""

import copy

import numpy as np
import pytest

from sgmcmc_verification.samplers.interface.copied import copied

torch = pytest.importorskip("torch", reason="needs torch: pip install 'sgmcmc-verification[torch]'")


class Kept(torch.optim.SGD):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, lr)
        self.factor = [2.0]


@pytest.fixture
def held():
    """A state of a parameter and of an optimiser in an optimiser."""
    parameter = torch.nn.Parameter(torch.zeros(2))
    outer = Kept([parameter])
    outer.inner = Kept([parameter])
    return {"parameter": parameter, "optimiser": outer, "position": np.zeros(2)}


def test_attributes_of_optimisers_are_copied_and_those_within_them(held):
    found = copied(held)["optimiser"]
    assert found.factor == [2.0]
    assert found.factor is not held["optimiser"].factor
    assert found.inner.factor == [2.0]


def test_what_was_one_object_is_one(held):
    found = copied(held)
    assert found["parameter"] is not held["parameter"]
    for optimiser in (found["optimiser"], found["optimiser"].inner):
        assert optimiser.param_groups[0]["params"][0] is found["parameter"]


def test_torch_is_left_as_it_was(held):
    copied(held)
    assert not hasattr(torch.optim.Optimizer, "__deepcopy__")
    assert not hasattr(copy.deepcopy(held["optimiser"]), "factor")
