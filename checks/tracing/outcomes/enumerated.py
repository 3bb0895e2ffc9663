"""The step of a host sampler as affine maps of z, one for each value of the whole numbers that it draws."""

import itertools
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from sgmcmc_verification.checks.core.check import NotAffine, OutOfReach
from sgmcmc_verification.checks.tracing.host_branching import ScriptedGenerator, Unintercepted, branches
from sgmcmc_verification.checks.tracing.outcomes.host import OutcomeGenerator
from sgmcmc_verification.checks.tracing.step_map import GENERIC, Affine, HostStep, fit_affine

MOST, DISTINCT = 2_000, 300
"""Values of the whole numbers of a step, and affine maps among them: each is some calls of it in Python."""
GIVEN = 256
"""Normals that are given where values are told apart; further ones are zero."""
SAME = 1e-11
"""Relative difference of ends at a generic place of values with one map, such as a batch in another order."""
OTHER = "the step draws from another law than normals and whole numbers"


class EnumeratedGenerator(OutcomeGenerator):
    """Stands in for `numpy.random.Generator`: given normals, and one path through the tree of whole numbers.

    Args:
        normals: given values, in order.
        path: index of the value to take at each draw; further ones take the first.
    """

    def __init__(self, normals: np.ndarray, path: list[int]) -> None:
        super().__init__(path, points=0)
        self._scripted = ScriptedGenerator(normals)

    @property
    def used(self) -> int:
        """The number of normals that were drawn."""
        return self._scripted.used

    def standard_normal(self, size: Any = None, dtype: Any = np.float64) -> Any:
        """Given standard normal values, in order."""
        return self._scripted.standard_normal(size, dtype)

    def random(self, size: Any = None) -> Any:
        """None: what a uniform is compared with may depend on z."""
        del size
        raise Unintercepted("numpy Generator.random")


class EnumeratedHostStep(HostStep):
    """A `HostStep` whose whole numbers are enumerated, as minibatches that a sampler draws by itself are."""

    def affine(self, h: float) -> list[Affine]:
        """The step as an affine map of z for each value of the whole numbers it draws, with its probability.

        Raises:
            NotAffine: if it is not affine in z and normals on this target, or if a probability depends on them.
            OutOfReach: if it draws from a law that is neither, or too many whole numbers.
        """
        start, maps = np.asarray(self.template.flat, np.float64), {}
        generic = np.random.default_rng(0)
        place, draws = start + generic.standard_normal(start.shape), generic.standard_normal(GIVEN)
        try:
            for path, normals, weight, end in self._outcomes(place, draws, h):
                key = normals, *np.round(end / (SAME * np.abs(end).max()), 0).tolist()
                first, once, before = maps.get(key, (path, weight, 0.0))
                maps[key] = first, once, before + weight
                if len(maps) > DISTINCT:
                    raise OutOfReach(f"more than {DISTINCT} maps among the values of the whole numbers of a step")
            found = [(self._affine_at(path, start, key[0], once, h), all_) for key, (path, once, all_) in maps.items()]
            return [each._replace(weight=weight) for each, weight in found]
        except Unintercepted as error:
            raise OutOfReach(f"{OTHER}: {error}") from None

    def _affine_at(self, path: list[int], start: np.ndarray, normals: int, weight: float, h: float) -> Affine:
        def one(z: np.ndarray, e: np.ndarray) -> np.ndarray:
            generator = EnumeratedGenerator(e, path)
            end, _ = self.once(generator, z, h)
            if not np.isclose(generator.weight, weight, rtol=1e-10, atol=0.0):
                raise NotAffine("the probabilities of what the step draws depend on where it is")
            return end

        push = lambda states, draws: np.stack([one(z, e) for z, e in zip(states, draws, strict=True)])
        return fit_affine(push, start, normals, weight, len(GENERIC))

    def _outcomes(self, z: np.ndarray, e: np.ndarray, h: float) -> Iterator[tuple[list[int], int, float, np.ndarray]]:
        """Paths through the whole numbers that a step draws.

        Each with the number of normals, the probability and z' from a place with some of the normals (K,).
        """

        def walked(generator: EnumeratedGenerator) -> tuple[list[int], int, np.ndarray]:
            end, _ = self.once(generator, z, h)
            left = len(generator.widths) - len(generator.path)
            return [*generator.path, *([0] * left)], generator.used, end

        ways = branches(walked, 0, lambda path, _: EnumeratedGenerator(e, path))
        for number, (weight, (path, normals, end)) in enumerate(itertools.islice(ways, MOST + 1)):
            if number == MOST:
                raise OutOfReach(f"more than {MOST} values of the whole numbers that a step draws")
            yield path, normals, weight, end

    def draws_numbers(self, h: float) -> bool:
        """True if a step draws a whole number. Raises OutOfReach if it draws what cannot be followed."""
        generator = EnumeratedGenerator(np.zeros(0), [])
        try:
            self.once(generator, np.asarray(self.template.flat, np.float64), h)
        except Unintercepted as error:
            raise OutOfReach(f"{OTHER}: {error}") from None
        return bool(generator.widths)

    def counts(self, h: float) -> bool:
        """True if a state holds whole numbers that a step changes: a place in an epoch is one, and no part of z."""
        generator = EnumeratedGenerator(np.zeros(0), [])
        state = self.sampler.pack(generator, self.template.unravel(np.asarray(self.template.flat)), self.estimator)
        before = [np.array(x) for x in _whole(state)]
        later = _whole(self.sampler.step(generator, state, h, self.estimator))
        return len(before) != len(later) or not all(map(np.array_equal, before, later))


def _whole(state: Any) -> list[Any]:
    kinds = [(x, np.asarray(x).dtype) for x in jax.tree.leaves(state)]
    return [x for x, dtype in kinds if dtype.kind in "iuO"]
