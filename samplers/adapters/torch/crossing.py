"""The crossing of arrays to tensors and back, for numbers as for what stands for them while a step is read.

A reader that follows the operations of torch says here what a tensor stands for; with none at work this is NumPy's
own conversion.
"""

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sgmcmc_verification.samplers.adapters.common import Foreign

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch


class Crossing(Protocol):
    """A reader that knows what tensors stand for."""

    def to_tensor(self, array: Foreign) -> "torch.Tensor | None":
        """A new tensor that stands for an array of symbols; None for an array of numbers."""
        ...

    def to_array(self, tensor: "torch.Tensor") -> Foreign:
        """An array of what a tensor stands for; None for a tensor of numbers."""
        ...


_present: ContextVar[Crossing | None] = ContextVar("crossing", default=None)


def to_tensor(array: Foreign) -> "torch.Tensor":
    """A tensor that owns a copy of `array`."""
    import torch

    reader = _present.get()
    found = None if reader is None else reader.to_tensor(array)
    return torch.from_numpy(np.array(array, copy=True)) if found is None else found


def to_array(tensor: "torch.Tensor") -> Foreign:
    """An array that owns a copy of the numbers of a tensor."""
    reader = _present.get()
    found = None if reader is None else reader.to_array(tensor)
    return np.array(tensor.detach().numpy(), copy=True) if found is None else found


@contextmanager
def crossing_to(reader: Crossing) -> "Iterator[None]":
    """A context in which a reader answers."""
    token = _present.set(reader)
    try:
        yield
    finally:
        _present.reset(token)
