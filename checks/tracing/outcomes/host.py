"""The ways that a step of the host takes: a NumPy generator whose uniforms stay open until they are compared.

The counterpart of `checks.tracing.outcomes.traced` for samplers that JAX cannot trace: each comparison of an open
uniform with a number, each integer and each choice is a branching point, and the step is run once for every path.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sgmcmc_verification.checks.tracing.host_branching import BranchingGenerator, Unintercepted


class _Interval:
    """Bounds of a uniform, as far as they are known."""

    def __init__(self) -> None:
        self.low, self.high = 0.0, 1.0


class OpenUniform:
    """A monotone function of a uniform, whose comparisons are branching points.

    Args:
        branch: (values, weights) -> one of the values.
        interval: of the uniform.
        inverse: number -> the uniform for which the function has this value.
        increasing: of the function.
    """

    def __init__(
        self, branch: Callable[..., Any], interval: _Interval, inverse: Callable[[float], float], increasing: bool
    ) -> None:
        self._branch, self._interval, self._inverse, self._increasing = branch, interval, inverse, increasing

    def _moved(self, inverse: Callable[[float], float], increasing: bool = True) -> "OpenUniform":
        before = self._inverse
        return OpenUniform(self._branch, self._interval, lambda t: before(inverse(t)), self._increasing == increasing)

    def _smaller(self, number: Any) -> bool:
        bound, known = self._inverse(float(number)), self._interval
        if known.low < bound < known.high:
            share = (bound - known.low) / (known.high - known.low)
            below = bool(self._branch(np.array([True, False]), np.array([share, 1 - share])))
        else:
            below = bound >= known.high
        known.low, known.high = (known.low, min(bound, known.high)) if below else (max(bound, known.low), known.high)
        return below == self._increasing

    def __lt__(self, other: Any) -> bool:
        return self._smaller(other)

    def __gt__(self, other: Any) -> bool:
        return not self._smaller(other)

    __le__, __ge__ = __lt__, __gt__

    def __add__(self, other: Any) -> "OpenUniform":
        return self._moved(lambda t: t - float(other))

    def __mul__(self, other: Any) -> "OpenUniform":
        factor = float(other)
        if factor == 0:
            raise Unintercepted("numpy Generator.random, of which 0 times is taken")
        return self._moved(lambda t: t / factor, factor > 0)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> "OpenUniform":
        return self * -1.0

    def __sub__(self, other: Any) -> "OpenUniform":
        return self + -float(other)

    def __rsub__(self, other: Any) -> "OpenUniform":
        return -self + other

    def __truediv__(self, other: Any) -> "OpenUniform":
        return self * (1 / float(other))

    def log(self) -> "OpenUniform":
        """The logarithm, as `numpy.log` asks for it."""
        return self._moved(lambda t: math.exp(min(t, 700.0)))

    def __float__(self) -> float:
        raise Unintercepted("numpy Generator.random, whose value is asked for")


class OutcomeGenerator(BranchingGenerator):
    """Stands in for `numpy.random.Generator` on one path through the outcomes of discrete draws.

    Args:
        path: index of the outcome to take at each branching point met so far; further ones take the first.
        points: as of `BranchingGenerator`.
    """

    def random(self, size: Any = None) -> Any:
        """Open uniforms."""
        make = lambda: OpenUniform(self._branch, _Interval(), float, increasing=True)
        if size is None:
            return make()
        found = np.empty(size, dtype=object)
        for place in np.ndindex(found.shape):
            found[place] = make()
        return found

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Any = None) -> Any:
        """Open uniforms between bounds."""
        return self.random(size) * (high - low) + low

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None) -> Any:
        """Some of several values by their probabilities; without replacement alike ones, in order."""
        values = np.arange(a) if np.ndim(a) == 0 else np.asarray(a)
        if size not in (None, 1, (1,), ()) and not replace:
            if p is not None:
                raise Unintercepted("numpy Generator.choice without replacement, by probabilities")
            left = list(values)
            one = lambda: left.pop(self._branch(np.arange(len(left)), np.full(len(left), 1 / len(left))))
            return np.array([one() for _ in range(int(np.prod(size)))]).reshape(size)
        weights = np.full(len(values), 1 / len(values)) if p is None else np.asarray(p, np.float64)
        kept = weights > 0
        return self._fill(() if size is None else size, rule=lambda: (values[kept], weights[kept]))

    def standard_normal(self, size: Any = None, dtype: Any = np.float64) -> Any:
        """None: a continuous draw."""
        del size, dtype
        raise Unintercepted("numpy Generator.standard_normal, which is not discrete")

    def standard_gamma(self, shape: Any, size: Any = None) -> Any:
        """None: a continuous draw."""
        del shape, size
        raise Unintercepted("numpy Generator.standard_gamma, which is not discrete")

    def standard_exponential(self, size: Any = None) -> Any:
        """None: a continuous draw."""
        del size
        raise Unintercepted("numpy Generator.standard_exponential, which is not discrete")

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        """None: a draw without a bound."""
        del lam, size
        raise Unintercepted("numpy Generator.poisson, which has no largest value")
