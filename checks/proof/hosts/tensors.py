"""Samplers of torch: their operations are followed below autograd, with arithmetic on symbols.

Such a sampler keeps objects of a library in its state. What is read is the step from z to z, `unpack(step(pack(z)))`;
that nothing beside z goes on to the next step is seen by real steps that follow each other (`guard`).
"""

import importlib
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import jax
import numpy as np

from sgmcmc_verification.checks.proof.hosts.decisions import refuse
from sgmcmc_verification.checks.proof.hosts.generators import Draws, SymbolicGenerator
from sgmcmc_verification.checks.proof.hosts.operations import is_known
from sgmcmc_verification.checks.proof.hosts.patches import converted_array, holds_symbols
from sgmcmc_verification.checks.proof.hosts.recorded import Recorded, SymbolicEstimator, arrays_of
from sgmcmc_verification.checks.proof.hosts.scales import Scales
from sgmcmc_verification.checks.proof.hosts.symbols import (
    Symbol,
    converted,
    each,
    lifted,
    plain,
    product,
    reduced,
    where,
    wrap,
)
from sgmcmc_verification.checks.proof.hosts.symbols import apply as apply_to_entries
from sgmcmc_verification.checks.proof.reader.values import Array, objects
from sgmcmc_verification.samplers.adapters.torch import ADAPTERS
from sgmcmc_verification.samplers.adapters.torch.adapter import TorchMixin
from sgmcmc_verification.samplers.adapters.torch.written import OnTape
from sgmcmc_verification.samplers.interface.opened_state import step_inside
from sgmcmc_verification.samplers.interface.sampler import Estimate, Estimator, Sampler


def is_of_torch(sampler: Sampler) -> bool:
    """True for a sampler of torch behind an adapter of this suite, or that somebody has written in torch."""
    return isinstance(sampler, TorchMixin) or isinstance(step_inside(sampler), OnTape)


class SymbolAlgebra:
    """Arithmetic on arrays of symbols, as the recorder of torch asks for it.

    Args:
        scales: what the step size became.
    """

    def __init__(self, scales: Scales) -> None:
        self.scales = scales

    def apply(self, name: str, *arrays: Any) -> Array:
        """A function of NumPy, entry by entry."""
        return each(lambda *entries: apply_to_entries(name, *entries), *map(plain, arrays))

    def where(self, condition: Any, yes: Any, no: Any) -> Array:
        """`numpy.where`."""
        return np.asarray(plain(where(condition, yes, no)), object)

    def reduced(self, name: str, array: Array, axes: Sequence[int] | None, keepdims: bool) -> Array:
        """A function of two numbers folded over axes."""
        return plain(
            reduced(name, wrap(np.asarray(array, object)), None if axes is None else tuple(axes), None, None, keepdims)
        )

    def product(self, a: Array, b: Array) -> Array:
        """The product of matrices and vectors."""
        found = product(wrap(a), wrap(b))
        return found if isinstance(found, np.ndarray) else objects([found], ())

    def known(self, entry: Any) -> Any:
        """The number or truth of an entry in Python."""
        symbol = lifted(entry)
        return bool(symbol) if symbol.dtype.kind == "b" else float(symbol) if symbol.dtype.kind == "f" else int(symbol)

    def constants(self, numbers: Array) -> Array:
        """Symbols for numbers; those of the step size stand for it."""
        real = numbers.dtype.kind == "f"
        known = [self.scales.symbol_of(v.item()) if real else None for v in numbers.ravel()]
        return objects(
            [Symbol(v) if a is None else a for v, a in zip(numbers.ravel(), known, strict=True)], numbers.shape
        )

    def number(self, value: float, entry: Any) -> float:
        """A float that stands for what an entry does."""
        symbol = lifted(entry)
        return float(symbol.value) if is_known(symbol.value) else self.scales.kept(value, symbol)

    def nobody(self) -> Symbol:
        """Not a number: a proof that meets it ends there."""
        return Symbol(np.float64(np.nan))

    def array(self, array: Array, dtype: str) -> Any:
        """The symbols as an array of NumPy."""
        return wrap(array, np.dtype(dtype))

    def symbols_in(self, value: Any) -> Any:
        """The symbols in an array or in lists, as an array; None if there are none."""
        return converted_array(value) if holds_symbols(value) else None

    def of_scalar(self, value: float) -> Any:
        """The symbol of what became of the step size; any other number as it is."""
        symbol = self.scales.symbol_of(value)
        return value if symbol is None else symbol

    def converted(self, array: Array, dtype: str) -> Array:
        """The symbols as numbers of another type."""
        return each(lambda entry: converted(entry, np.dtype(dtype)), array)

    def refuse(self, reason: str) -> Exception:
        """The error of what cannot be read."""
        return refuse(reason)


@dataclass(frozen=True, eq=False)
class RecordedTorch(Recorded):
    """A sampler of torch under the interface of one of JAX; its state is z."""

    host: Sampler
    modules: Sequence[dict[str, Any]] = field(repr=False)

    def init(self, key: Any, position: Any, estimator: Estimator) -> Any:
        """z of a first state."""
        return self._followed(
            lambda scales: self.host.init(SymbolicGenerator(key), arrays_of(position), SymbolicEstimator(estimator))
        )

    def pack(self, key: Any, z: Any, estimator: Estimator) -> Any:
        """z itself, as the library takes it and gives it back."""
        start = lambda: (SymbolicGenerator(key), arrays_of(z), SymbolicEstimator(estimator))
        return self._followed(lambda scales: self.host.pack(*start()))

    def step(self, key: Any, state: Any, step_size: Any, estimator: Estimator) -> Any:
        """z after one step."""

        def stepped(scales: Scales) -> Any:
            oracle = SymbolicEstimator(estimator)
            before = self.host.pack(SymbolicGenerator(jax.random.fold_in(key, PACKED)), arrays_of(state), oracle)
            size: Any = scales.step_size(Symbol(step_size, positive=True))
            return self.host.step(SymbolicGenerator(key), before, size, oracle)

        return self._followed(stepped)

    def position(self, state: Any) -> Any:
        """Position of z."""
        # where a position is in z is the sampler's own affair
        packed = lambda: self.host.pack(_NoDraws(), arrays_of(state), _Nothing())
        return self._tree(lambda: self._in_torch(lambda scales: self.host.position(packed())))

    def unpack(self, state: Any) -> Any:
        """z."""
        return state

    def _followed(self, function: Any) -> Any:
        return self._tree(lambda: self._in_torch(lambda scales: self.host.unpack(function(scales))))

    def _in_torch(self, function: Any) -> Any:
        """The outcome of a function of symbols, whose operations in torch are followed."""
        recorder = importlib.import_module(f"{ADAPTERS}.recorder")
        crossing = importlib.import_module(f"{ADAPTERS}.crossing")
        scales = Scales()
        with recorder.Recorder(SymbolAlgebra(scales)) as reader, recorder.Items(reader), crossing.crossing_to(reader):
            return function(scales)


PACKED = 2**30
"""Number of the key, or of the call, of a state that is packed for a step."""


class _Nothing:
    """An estimator whose answers nobody may compute with: caches are made of them, a position is not."""

    backend = "host"

    def init(self, key: Any, position: Any) -> tuple[()]:
        """No state."""
        del key, position
        return ()

    def estimate(self, key: Any, estate: Any, position: Any) -> tuple[Estimate, Any]:
        """Numbers that end a proof which meets them."""
        del key
        gradient = jax.tree.map(lambda leaf: _nobody(np.shape(leaf)), position)
        return Estimate(gradient, cast(Any, _nobody(())[()])), estate


class _NoDraws(Draws):
    """A generator whose draws nobody may compute with."""

    def drawn(self, law: str, shape: tuple[int, ...], *parameters: Any) -> Any:
        """Numbers that end a proof which meets them."""
        del law, parameters
        return _nobody(shape)


def _nobody(shape: tuple[int, ...]) -> Any:
    return wrap(objects([SymbolAlgebra(Scales()).nobody()] * math.prod(shape), shape))


def modules_of_torch(sampler: Sampler) -> list[dict[str, Any]]:
    """The globals of the adapters of torch, and of the library behind one of them."""
    library = type(sampler).__module__.rpartition(".")[2]
    names = [name for name in list(sys.modules) if name.startswith(ADAPTERS) or name.partition(".")[0] == library]
    return [vars(sys.modules[name]) for name in names]
