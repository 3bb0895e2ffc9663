"""Deep copies of what samplers in Python hold: states and samplers, with whatever objects are in them."""

import contextlib
import copy
import sys
from collections.abc import Iterator
from typing import TypeVar

from sgmcmc_verification.samplers.interface.aliases import State

T = TypeVar("T")
MODULE, NAME = "torch.optim", "__deepcopy__"


def copied(value: T) -> T:
    """A deep copy. Optimisers of torch keep their attributes, which their own `__getstate__` leaves out."""
    with _whole_optimisers():
        return copy.deepcopy(value)


@contextlib.contextmanager
def _whole_optimisers() -> Iterator[None]:
    module = sys.modules.get(MODULE)
    kind = None if module is None else module.Optimizer
    if kind is None or hasattr(kind, NAME):  # nothing to do, or within another copy
        yield
        return
    setattr(kind, NAME, _with_attributes)
    try:
        yield
    finally:
        delattr(kind, NAME)


def _with_attributes(optimiser: State, memo: dict[int, State]) -> State:
    other = memo[id(optimiser)] = object.__new__(type(optimiser))
    other.__dict__.update(copy.deepcopy(optimiser.__dict__, memo))
    return other
