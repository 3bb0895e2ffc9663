"""Step-size schedules: step number -> step size. They belong to the runner, not to samplers."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from samplers.validate import require

Schedule = Callable[[np.ndarray], np.ndarray]
"""Numbers of steps (0, 1, ...; int64) -> step sizes (float64), elementwise, evaluated by NumPy on the host."""


@dataclass(frozen=True)
class Constant:
    """h_t = h."""

    step_size: float

    def __call__(self, t: np.ndarray) -> np.ndarray:
        return np.full(np.shape(t), self.step_size)


@dataclass(frozen=True)
class Decreasing:
    """h_t = a (1 + t / b)^-gamma."""

    a: float
    b: float
    gamma: float

    def __call__(self, t: np.ndarray) -> np.ndarray:
        return self.a * (1.0 + np.asarray(t, np.float64) / self.b) ** -self.gamma


def constant(step_size: float) -> Constant:
    """The same step size at every step.

    Raises:
        ValueError: if it is not positive and finite.
    """
    size = float(step_size)
    require(math.isfinite(size) and size > 0, "step_size: must be positive and finite", step_size)
    return Constant(size)


def decreasing(a: float, b: float = 1.0, gamma: float = 0.55) -> Decreasing:
    """Polynomially decreasing step sizes.

        h_t = a (1 + t / b)^-gamma,  t = 0, 1, ...

    Source: welling2011bayesian, section 4 (a (b + t)^-gamma, with b^-gamma taken into a). The sum of h_t diverges
    for gamma <= 1, as consistency of the averages weighted by h_t needs; the error of those averages decreases
    fastest, as t^(-1/3), for gamma = 1/3 [teh2016consistency].

    Args:
        a: the first step size.
        b: number of steps after which the decrease sets in.
        gamma: exponent, in (0, 1].

    Raises:
        ValueError: if an argument is out of its range.
    """
    for name, value in (("a", a), ("b", b)):
        require(math.isfinite(value) and value > 0, f"{name}: must be positive and finite", value)
    require(0 < gamma <= 1, "gamma: must lie in (0, 1], else the sum of step sizes converges", gamma)
    return Decreasing(float(a), float(b), float(gamma))
