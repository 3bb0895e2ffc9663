"""Chains of a host sampler in Python loops, with the methods of `samplers.runner.engine.JaxEngine`."""

import copy
import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.interface.aliases import Tree
from sgmcmc_verification.samplers.interface.sampler import Position, State
from sgmcmc_verification.samplers.runner.config import Setup
from sgmcmc_verification.samplers.runner.digests import digest, digest_arrays
from sgmcmc_verification.samplers.runner.engine import finite_chains
from sgmcmc_verification.samplers.runner.schedules import draw_weights, step_sizes


class HostEngine:
    """Chains of a sampler with `backend == "host"`, one after the other, each with its own NumPy generator.

    Chain c draws from `SeedSequence(data of the key, spawn_key=(c,))`, so it is the same with or without others.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        s = setup
        entropy = [int(x) for x in np.asarray(jax.random.key_data(s.key)).ravel()]
        seeds = [np.random.SeedSequence(entropy, spawn_key=(s.config.first_chain + c,)) for c in range(s.chains)]
        self.generators = [np.random.Generator(np.random.PCG64(seed)) for seed in seeds]
        starts = [jax.tree.map(lambda a, c=c: np.array(a[c]), s.positions) for c in range(s.chains)]
        chains = zip(self.generators, starts, strict=True)
        self.states = [s.sampler.init(generator, start, s.estimator) for generator, start in chains]
        values = [self._value(c) for c in range(s.chains)]
        self.structure = jax.tree.structure(values[0])
        self.average = [jax.tree.map(np.zeros_like, v) for v in values]
        self.weight = 0.0

    def _value(self, chain: int) -> Tree:
        return jax.tree.map(np.array, self.setup.config.collected(self.setup.sampler.position(self.states[chain])))

    def _step(self, chain: int, size: float) -> None:
        s = self.setup
        self.states[chain] = s.sampler.step(self.generators[chain], self.states[chain], size, s.estimator)

    def advance(self, start: int, steps: int) -> None:
        """Take steps number start, start + 1, ... and keep nothing."""
        sizes = step_sizes(self.setup.config.schedule, np.arange(start, start + steps)).tolist()
        for chain in range(self.setup.chains):
            for size in sizes:
                self._step(chain, size)

    def draw(self, start: int, draws: int) -> Tree:
        """Take draws * thin steps; return the collected values, axes (chain, draw, ...), None if averaged."""
        config = self.setup.config
        numbers = np.arange(start, start + draws * config.thin)
        sizes = step_sizes(config.schedule, numbers).reshape(draws, config.thin).tolist()
        weights = draw_weights(config.schedule, start + config.thin * np.arange(1, draws + 1))
        rows = [self._draw_chain(chain, sizes, weights) for chain in range(self.setup.chains)]
        if not config.averaged:
            return jax.tree.map(lambda *a: np.stack(a), *rows)
        for weight in weights:  # as the chains have added them one by one
            self.weight = float(self.weight + weight)
        return None

    def _draw_chain(self, chain: int, sizes: list[list[float]], weights: np.ndarray) -> Tree:
        """The draws of one chain, axes (draw, ...); None if they go into its average."""
        total, row = self.weight, []
        for group, weight in zip(sizes, weights, strict=True):
            for size in group:
                self._step(chain, size)
            value = self._value(chain)
            if self.setup.config.averaged:
                total += weight
                move = lambda m, v, share=weight / (total or 1.0): m + share * (v - m)
                self.average[chain] = jax.tree.map(move, self.average[chain], value)
            else:
                row.append(value)
        return jax.tree.map(lambda *a: np.stack(a), *row) if row else None

    def state(self) -> list[State]:
        """The states, a list."""
        return list(self.states)

    def position(self) -> Position:
        """The positions, leading chain axis."""
        return jax.tree.map(lambda *a: np.stack(a), *(self.setup.sampler.position(x) for x in self.states))

    def averages(self) -> Tree:
        """The weighted averages of the collected values, leading chain axis."""
        return jax.tree.map(lambda *a: np.stack(a), *self.average)

    def finite(self) -> np.ndarray:
        """Boolean array (chains,): the position of a chain is finite."""
        return np.asarray(finite_chains(self.position()))

    def identity(self) -> dict[str, str]:
        """Digests of all that determines the samples; of the sampler and the estimator only their texts are known."""
        s = self.setup
        return {
            "sampler and target": digest((type(s.sampler).__qualname__, s.sampler, s.estimator)),
            "collect": digest(getattr(s.config.collected, "__qualname__", s.config.collected)),
            "key": digest_arrays(s.key),
            "positions": digest_arrays(s.positions),
        }

    def dump(self) -> list[np.ndarray]:
        """The chains as arrays.

        Raises:
            ValueError: if a state holds something that is not an array, a number, or a dataclass or pytree of those.
        """
        generators = json.dumps([g.bit_generator.state for g in self.generators])
        return [np.frombuffer(generators.encode(), np.uint8), *_numbers((self.states, self.average, self.weight))]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Inverse of `dump`; takes its arrays off the front of the list."""
        for generator, state in zip(self.generators, json.loads(arrays.pop(0).tobytes()), strict=True):
            generator.bit_generator.state = state
        self.states, self.average, self.weight = _refill((self.states, self.average, self.weight), arrays)


def _is_object(leaf: Tree) -> bool:
    return dataclasses.is_dataclass(leaf) and not isinstance(leaf, type)


def _numbers(tree: Tree) -> list[np.ndarray]:
    """The arrays and numbers of a pytree, also of those in dataclasses that are not registered as pytrees."""
    found = []
    for leaf in jax.tree.leaves(tree):
        if _is_object(leaf):
            found += _numbers([getattr(leaf, f.name) for f in dataclasses.fields(leaf)])
        elif isinstance(leaf, np.ndarray | jax.Array | np.generic | int | float | bool):
            found.append(np.asarray(leaf))
        else:
            raise ValueError(
                f"checkpoint: a state of this sampler holds a {type(leaf).__name__}, which cannot be written; "
                "make the state a pytree or a dataclass of arrays, or run without a checkpoint"
            )
    return found


def _refill(tree: Tree, arrays: list[np.ndarray]) -> Tree:
    """A copy of a pytree with the numbers replaced by those at the front of `arrays`, which loses them."""

    def refill(leaf):
        if _is_object(leaf):
            new = copy.copy(leaf)
            for f in dataclasses.fields(leaf):
                object.__setattr__(new, f.name, _refill(getattr(leaf, f.name), arrays))
            return new
        array = arrays.pop(0)
        if isinstance(leaf, np.ndarray):
            return array
        return jnp.asarray(array) if isinstance(leaf, jax.Array) else type(leaf)(array[()])

    return jax.tree.map(refill, tree)
