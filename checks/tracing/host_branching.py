"""Exact expectations over the draws of a host sampler: a NumPy generator that walks all branches of a quadrature.

The counterpart of the noise tape for samplers that JAX cannot trace. Each scalar draw becomes a branching point with
the nodes and weights of a rule for its law, given the parameters that the code passes; the step is run once for every
path.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from scipy import special

from sgmcmc_verification.checks.numerics.quadrature import gauss_hermite
from sgmcmc_verification.samplers.estimators.host import Unintercepted
from sgmcmc_verification.samplers.interface.seeding import Seeding
from sgmcmc_verification.targets.numerics.quadrature import jacobi_rule

__all__ = ["BranchingGenerator", "ScriptedGenerator", "Unintercepted", "branches"]

T = TypeVar("T")

MAX_PATHS = 200_000
"""Largest number of paths that are walked."""
LOOK, UNEVEN = 1_000, 100
"""Paths after which it is asked how much of the tree they are, and a factor by which those that follow may be fewer."""


class BranchingGenerator(Seeding):
    """Stands in for `numpy.random.Generator` on one path through the tree of draws.

    Args:
        path: index of the node to take at each branching point met so far; further ones take node 0.
        points: nodes for a normal draw and for a gamma draw.
    """

    def __init__(self, path: list[int], points: int):
        self.path = path
        self.points = points
        self.widths: list[int] = []
        self.weight = 1.0

    def _branch(self, values: np.ndarray, weights: np.ndarray):
        depth = len(self.widths)
        index = self.path[depth] if depth < len(self.path) else 0
        self.widths.append(len(values))
        self.weight *= float(weights[index])
        return values[index]

    def _fill(self, size, *parameters, rule: Callable):
        shape = np.broadcast_shapes(*(np.shape(p) for p in parameters)) if size is None else size
        columns = [np.broadcast_to(p, shape).ravel() for p in parameters]
        count = int(np.prod(shape, dtype=int))
        out = np.array([self._branch(*rule(*(c[i] for c in columns))) for i in range(count)])
        return out.reshape(shape) if shape != () else out[0]

    def standard_normal(self, size=None, dtype=np.float64):
        """N(0, 1) by Gauss-Hermite."""
        nodes, weights = gauss_hermite(1, self.points)
        rule = lambda: (nodes[:, 0], weights)
        return np.asarray(self._fill(() if size is None else size, rule=rule), dtype)[()]

    def normal(self, loc=0.0, scale=1.0, size=None):
        """N(loc, scale^2) by Gauss-Hermite."""
        shape = np.broadcast_shapes(np.shape(loc), np.shape(scale)) if size is None else size
        return loc + scale * self.standard_normal(shape)

    def poisson(self, lam=1.0, size=None):
        """Poisson by the Gauss rule of its Charlier polynomials.

        The nodes are not integers: code that indexes with the draw fails on them rather than passing wrongly.
        """
        k = np.arange(self.points)
        rule = lambda rate: jacobi_rule(k + rate, np.sqrt(k[1:] * rate)) if rate > 0 else (np.zeros(1), np.ones(1))
        return self._fill(size, lam, rule=rule)

    def standard_gamma(self, shape, size=None):
        """Gamma(shape, 1) by generalised Gauss-Laguerre."""
        k = np.arange(self.points)
        rule = lambda a: jacobi_rule(2.0 * k + a, np.sqrt(k[1:] * (k[1:] + a - 1)))
        return self._fill(size, shape, rule=rule)

    def gamma(self, shape, scale=1.0, size=None):
        """Gamma(shape, scale) by generalised Gauss-Laguerre."""
        return scale * self.standard_gamma(shape, size)

    def standard_exponential(self, size=None):
        """Exponential(1) by Gauss-Laguerre, with more nodes: such draws usually stand in an exponent."""
        k = np.arange(3 * self.points)
        rule = jacobi_rule(2.0 * k + 1, 1.0 * k[1:])
        return self._fill(() if size is None else size, rule=lambda: rule)

    def binomial(self, n, p, size=None):
        """Binomial by enumeration of its outcomes of positive probability; a coin for n = 1."""

        if np.max(n) > MAX_PATHS:
            raise Unintercepted(f"numpy Generator.binomial({n}, {p})")

        def rule(count, chance):
            values = np.arange(int(count) + 1)
            weights = special.comb(count, values) * chance**values * (1 - chance) ** (count - values)
            return values[weights > 0], weights[weights > 0]

        return self._fill(size, n, p, rule=rule)

    def integers(self, low, high=None, size=None):
        """Uniform integers by enumeration; seeds as they are, where other generators are followed."""
        if (seed := self.new_seed(low, high, size)) is not None:
            return seed
        low, high = (0, low) if high is None else (low, high)
        if np.ndim(low) or np.ndim(high) or high - low > MAX_PATHS:
            raise Unintercepted(f"numpy Generator.integers({low}, {high})")
        values = np.arange(low, high)
        weights = np.full(len(values), 1 / len(values))
        return self._fill(() if size is None else size, rule=lambda: (values, weights))

    def __getattr__(self, name):
        raise Unintercepted(f"numpy Generator.{name}")


class ScriptedGenerator(Seeding):
    """Stands in for `numpy.random.Generator` and hands out given standard normal values, in order."""

    def __init__(self, normals: np.ndarray):
        self.normals = np.asarray(normals, np.float64)
        self.used = 0

    def standard_normal(self, size=None, dtype=np.float64):
        """Given standard normal values, in order."""
        if size is None and dtype is np.float64 and self.used < len(self.normals):
            self.used += 1  # samplers in plain Python draw numbers one by one, millions of them
            return self.normals[self.used - 1]
        count = int(np.prod(() if size is None else size, dtype=int))
        values = self.normals[self.used : self.used + count]
        if len(values) < count:  # counting run: more is drawn than was given
            values = np.concatenate([values, np.zeros(count - len(values))])
        self.used += count
        return np.asarray(values.reshape(() if size is None else size), dtype)[()]

    def normal(self, loc=0.0, scale=1.0, size=None):
        """Given normal values, in order."""
        shape = np.broadcast_shapes(np.shape(loc), np.shape(scale)) if size is None else size
        return loc + scale * self.standard_normal(shape)

    def integers(self, low, high=None, size=None):
        """A seed, where other generators are followed."""
        if (seed := self.new_seed(low, high, size)) is not None:
            return seed
        raise Unintercepted("numpy Generator.integers")

    def __getattr__(self, name):
        raise Unintercepted(f"numpy Generator.{name}")


def _walked(path: list[int], widths: list[int]) -> float:
    """Part of a tree that lies before a path, each branch counted as much as those beside it."""
    part, each = 0.0, 1.0
    for index, width in zip(path, widths, strict=False):
        each /= width
        part += index * each
    return part


def branches(
    function: Callable[[Any], T], points: int, make: Callable[[list[int], int], Any] = BranchingGenerator
) -> Iterator[tuple[float, T]]:
    """All (weight, function(generator)) over the tree of draws that `function` makes.

    Raises:
        ValueError: if there are more than `MAX_PATHS` paths, or the first few are hardly any of them.
        Unintercepted: if the function draws from a law without a rule.
    """
    path: list[int] = []
    widths: list[int] = []
    for number in range(MAX_PATHS):
        if number == LOOK and UNEVEN * MAX_PATHS * _walked(path, widths) < LOOK:
            break
        generator = make(path, points)
        value = function(generator)
        yield generator.weight, value
        widths = generator.widths
        path = [*path, *([0] * (len(widths) - len(path)))][: len(widths)]
        while path and path[-1] + 1 == widths[len(path) - 1]:
            path.pop()
        if not path:
            return
        path[-1] += 1
    raise ValueError("function: draws too often to enumerate all paths")
