"""The step of a host sampler as affine maps of z, one for each value of the whole numbers that it draws."""

import itertools
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.tracing.host_branching import ScriptedGenerator, Unintercepted
from sgmcmc_verification.checks.tracing.step_map import Affine, HostStep, fit_affine

MOST = 300
"""Values of the whole numbers of a step: each is some calls of it in Python."""


class EnumeratedGenerator(ScriptedGenerator):
    """Stands in for `numpy.random.Generator`: given normals, and one path through the tree of whole numbers.

    Args:
        normals: given values, in order.
        path: index of the value to take at each draw; further ones take the first.
    """

    def __init__(self, normals: np.ndarray, path: tuple[int, ...] = ()) -> None:
        super().__init__(normals)
        self.path, self.widths, self.weight = path, list[int](), 1.0

    def _branch(self, chances: np.ndarray) -> int:
        depth = len(self.widths)
        index = self.path[depth] if depth < len(self.path) else 0
        self.widths.append(len(chances))
        self.weight *= float(chances[index])
        return index

    def _each(self, size: Any, one: Any) -> Any:
        count = int(np.prod(() if size is None else size, dtype=int))
        return one() if size is None else np.array([one() for _ in range(count)]).reshape(size)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        """Uniform integers by enumeration; seeds as they are, where other generators are followed."""
        if (seed := self.new_seed(low, high, size)) is not None:
            return seed
        low, high = (0, low) if high is None else (low, high)
        if np.ndim(low) or np.ndim(high) or high - low > MOST:
            raise Unintercepted(f"numpy Generator.integers({low}, {high})")
        values = np.arange(low, high + endpoint, dtype=dtype)
        return self._each(size, lambda: values[self._branch(np.full(len(values), 1 / len(values)))])

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None) -> Any:
        """Draws with replacement, with chances or without, and uniform ones without replacement, in order."""
        values = list(np.arange(a) if np.ndim(a) == 0 else np.asarray(a))
        if len(values) > MOST or (p is not None and not replace):
            raise Unintercepted("numpy Generator.choice")
        if replace:
            chances = np.full(len(values), 1 / len(values)) if p is None else np.asarray(p, float)
            return self._each(size, lambda: values[self._branch(chances)])
        return self._each(size, lambda: values.pop(self._branch(np.full(len(values), 1 / len(values)))))


class EnumeratedHostStep(HostStep):
    """A `HostStep` whose whole numbers are enumerated, as minibatches that a sampler draws by itself are."""

    def affine(self, h: float) -> list[Affine]:
        """The step as an affine map of z for each value of the whole numbers it draws, with its probability.

        Raises:
            NotAffine: if it is not affine in z and normals on this target.
            OutOfReach: if it draws from a law that is neither, or too many whole numbers.
        """
        start = np.asarray(self.template.flat, np.float64)
        try:
            return [self._affine_at(path, start, k, weight, h) for path, k, weight in self._outcomes(start, h)]
        except Unintercepted as error:
            raise OutOfReach(f"the step draws from another law than normals and whole numbers: {error}") from None

    def _affine_at(self, path: tuple[int, ...], start: np.ndarray, normals: int, weight: float, h: float) -> Affine:
        one = lambda z, e: self.once(EnumeratedGenerator(e, path), z, h)[0]
        push = lambda states, draws: np.stack([one(z, e) for z, e in zip(states, draws, strict=True)])
        return fit_affine(push, start, normals, weight)

    def _outcomes(self, z: np.ndarray, h: float) -> Iterator[tuple[tuple[int, ...], int, float]]:
        """Paths through the whole numbers that a step draws, with the number of normals and the probability."""
        path: list[int] = []
        for _ in range(MOST):
            generator = EnumeratedGenerator(np.zeros(0), tuple(path))
            self.once(generator, z, h)
            path += [0] * (len(generator.widths) - len(path))
            yield tuple(path), generator.used, generator.weight
            left = [w - 1 - i for i, w in zip(path, generator.widths, strict=True)]
            path = path[: len(path) - len(list(itertools.takewhile(lambda n: n == 0, reversed(left))))]
            if not path:
                return
            path[-1] += 1
        raise OutOfReach(f"more than {MOST} values of the whole numbers that a step draws")

    def draws_numbers(self, h: float) -> bool:
        """True if a step draws a whole number. Raises OutOfReach if it draws what cannot be followed."""
        generator = EnumeratedGenerator(np.zeros(0))
        try:
            self.once(generator, np.asarray(self.template.flat, np.float64), h)
        except Unintercepted as error:
            raise OutOfReach(f"the step draws from another law than normals and whole numbers: {error}") from None
        return bool(generator.widths)

    def counts(self, h: float) -> bool:
        """True if a state holds whole numbers that a step changes: a place in an epoch is one, and no part of z."""
        generator = EnumeratedGenerator(np.zeros(0))
        state = self.sampler.pack(generator, self.template.unravel(np.asarray(self.template.flat)), self.estimator)
        before = [np.array(x) for x in _whole(jax.tree.leaves(state))]
        later = _whole(jax.tree.leaves(self.sampler.step(generator, state, h, self.estimator)))
        return len(before) != len(later) or not all(map(np.array_equal, before, later))


def _whole(leaves: list[Any]) -> list[Any]:
    return [x for x in leaves if np.issubdtype(np.asarray(x).dtype, np.integer) or np.asarray(x).dtype == object]
