"""A host sampler as a sampler of JAX: its own code, run on symbols for what JAX records."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.extend import source_info_util

from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.hosts.decisions import Way, every_way, refuse
from sgmcmc_verification.checks.proof.hosts.generators import SymbolicGenerator
from sgmcmc_verification.checks.proof.hosts.patches import symbols_understood
from sgmcmc_verification.checks.proof.hosts.states import Form, closed, opened, values
from sgmcmc_verification.checks.proof.hosts.symbols import Symbol, recorded, symbolic
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.interface.sampler import Estimate, Estimator, Sampler

for _file in Path(__file__).parent.glob("*.py"):  # an operation is one of the code that asked for it
    source_info_util.register_exclusion(str(_file))


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True)
class Held:
    """A state of a host sampler as JAX sees it: its numbers."""

    form: Form
    leaves: tuple[Any, ...]

    def tree_flatten(self) -> tuple[tuple[Any, ...], Form]:
        """The numbers, and the form."""
        return self.leaves, self.form

    @classmethod
    def tree_unflatten(cls, form: Form, leaves: Sequence[Any]) -> "Held":
        """The state of a form with numbers."""
        return cls(form, tuple(leaves))


@dataclass(frozen=True, eq=False)
class SymbolicEstimator:
    """An estimator for a step that is read: one of JAX, or the exact gradient, that takes symbols and gives symbols.

    Args:
        inner: the estimator itself; one of JAX gets keys of its own.
    """

    inner: Estimator

    backend = "host"

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "inner"), name)

    def init(self, key: SymbolicGenerator, position: Any) -> Any:
        """First state of the estimator."""
        return self.inner.init(_key(key), jax.tree.map(recorded, position))

    def estimate(self, key: SymbolicGenerator, estate: Any, position: Any) -> tuple[Estimate, Any]:
        """Estimate at a position, and the next state of the estimator."""
        inner = Exact(self.inner.target) if isinstance(self.inner, HostExact) else self.inner
        state = jax.tree.map(recorded, estate)
        found, after = inner.estimate(_key(key), state, jax.tree.map(recorded, position))
        return jax.tree.map(_number, found), after


def _key(generator: object) -> Any:
    if not isinstance(generator, SymbolicGenerator):
        raise refuse("an estimator that is given another generator than that of the step")
    return generator.key_of_estimator()


def _number(value: Any) -> Any:
    return symbolic(value) if np.ndim(value) else Symbol(value)


@dataclass(frozen=True, eq=False)
class Recorded:
    """A host sampler under the interface of one of JAX.

    Args:
        host: the sampler.
        modules: the globals of the modules of its code.
    """

    host: Sampler
    modules: Sequence[dict[str, Any]] = field(repr=False)

    backend = "jax"

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "host"), name)

    def init(self, key: Any, position: Any, estimator: Estimator) -> Held:
        """First state at a position."""
        return self._state(lambda: self.host.init(*_given(key, arrays_of(position), estimator)))

    def pack(self, key: Any, z: Any, estimator: Estimator) -> Held:
        """State with the full variable z."""
        return self._state(lambda: self.host.pack(*_given(key, arrays_of(z), estimator)))

    def step(self, key: Any, state: Held, step_size: Any, estimator: Estimator) -> Held:
        """Take one step."""
        size: Any = Symbol(lax.convert_element_type(step_size, np.float64), positive=True)
        made: dict[Any, jax.Array] = {}

        def stepped() -> Any:
            generator, before, oracle = SymbolicGenerator(key, made), _opened(state), SymbolicEstimator(estimator)
            return self.host.step(generator, before, size, oracle)

        after = self._state(stepped)
        if after.form != state.form:
            raise Unreadable("a step that returns a state of another form than the one that it is given")
        return after

    def position(self, state: Held) -> Any:
        """Position of a state."""
        return self._tree(lambda: self.host.position(_opened(state)))

    def unpack(self, state: Held) -> Any:
        """Full variable z of a state."""
        return self._tree(lambda: self.host.unpack(_opened(state)))

    def _state(self, function: Callable[[], Any]) -> Held:
        def run() -> Way:
            with symbols_understood(self.modules):
                found = opened(function())
                return Way(found.form, values(found.leaves))

        way = every_way(run)
        return Held(way.form, tuple(way.values))

    def _tree(self, function: Callable[[], Any]) -> Any:
        def run() -> Way:
            with symbols_understood(self.modules):
                leaves, structure = jax.tree.flatten(function())
                return Way(structure, values(leaves))

        way = every_way(run)
        return jax.tree.unflatten(way.form, way.values)


def as_written(value: Sampler) -> Sampler:
    """The sampler of the host that a record is of; any other sampler as it is."""
    return value.host if isinstance(value, Recorded) else value


def _given(key: Any, state: Any, estimator: Estimator) -> tuple[SymbolicGenerator, Any, SymbolicEstimator]:
    return SymbolicGenerator(key), state, SymbolicEstimator(estimator)


def arrays_of(tree: Any) -> Any:
    """A position, or z, of symbols."""
    return jax.tree.map(symbolic, tree)


def _opened(state: Held) -> Any:
    return closed(state.form, iter(state.leaves))
