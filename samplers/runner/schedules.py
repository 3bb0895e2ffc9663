"""Step-size schedules: step number -> step size. They belong to the runner, not to samplers."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.samplers.validation import require

Schedule = Callable[[np.ndarray], np.ndarray]
"""Numbers of steps (0, 1, ...; int64) -> step sizes (float64), elementwise, evaluated by NumPy on the host."""


@dataclass(frozen=True)
class Constant:
    """h_t = h."""

    step_size: float

    def __call__(self, t: np.ndarray) -> np.ndarray:
        """Step sizes of the steps number t."""
        return np.full(np.shape(t), self.step_size)


@dataclass(frozen=True)
class Decreasing:
    """h_t = a (1 + t / b)^-gamma."""

    a: float
    b: float
    gamma: float

    def __call__(self, t: np.ndarray) -> np.ndarray:
        """Step sizes of the steps number t."""
        return self.a * (1.0 + np.asarray(t, np.float64) / self.b) ** -self.gamma


@dataclass(frozen=True)
class Cyclical:
    """h_t = (a / 2) (1 + cos(pi r_t)) with r_t = (t mod L) / L; a step explores while r_t < `exploration`."""

    a: float
    length: int
    exploration: float

    def _phase(self, t: np.ndarray) -> np.ndarray:
        return np.mod(np.asarray(t, np.int64), self.length) / self.length

    def __call__(self, t: np.ndarray) -> np.ndarray:
        """Step sizes of the steps number t."""
        return 0.5 * self.a * (1.0 + np.cos(np.pi * self._phase(t)))

    def sampling(self, t: np.ndarray) -> np.ndarray:
        """Boolean array: the steps of these numbers belong to the sampling stage."""
        return self._phase(t) >= self.exploration

    def weights(self, taken: np.ndarray) -> np.ndarray:
        """Weights of the draws after so many steps: the size of the step that made a draw, 0 where it explored."""
        made = np.asarray(taken, np.int64) - 1
        return np.where((made >= 0) & self.sampling(made), self(made), 0.0)

    @property
    def explore_above(self) -> float:
        """Step size above which steps explore: half way between the last of one stage and the first of the other."""
        sizes = self(np.arange(self.length))
        later = int(np.argmax(self.sampling(np.arange(self.length))))
        return float(0.5 * (sizes[later - 1] + sizes[later])) if later else math.inf


def step_sizes(schedule: Schedule, numbers: np.ndarray) -> np.ndarray:
    """The step sizes of the steps of these numbers, float64."""
    return np.array(np.broadcast_to(np.asarray(schedule(numbers), np.float64), np.shape(numbers)))


def draw_weights(schedule: Schedule, taken: np.ndarray) -> np.ndarray:
    """The weights in averages of the draws after so many steps, float64: 0 for a draw that is not to be kept.

    The size of the step that leaves a draw [teh2016consistency, equation (3)], or what `weights` of the schedule says.
    """
    return step_sizes(getattr(schedule, "weights", schedule), taken)


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


def cyclical(a: float, length: int, exploration: float = 0.5) -> Cyclical:
    """Step sizes that start again from a after every cycle.

        h_t = (a / 2) (1 + cos(pi r_t)),  r_t = (t mod L) / L,  t = 0, 1, ...

    The steps with r_t < beta explore (without noise), the others sample; which of the two a step does is decided by its
    size, `explore_above` for the samplers `CyclicalSGLD` and `CyclicalSGHMC`. The runner keeps the draws of the
    sampling stage alone.

    Source: zhang2020cyclical, equation (1) and Algorithm 1, with t = k - 1. Differs from the source in:
        1. averages weight a draw by the size of the step that made it, as everywhere in the runner (the source weights
           all alike): within a cycle the step size decreases.

    Args:
        a: the first step size of a cycle.
        length: L, steps in a cycle, at least 2.
        exploration: beta, the share of a cycle that explores, in [0, 1).

    Raises:
        ValueError: if an argument is out of its range.
    """
    require(math.isfinite(a) and a > 0, "a: must be positive and finite", a)
    whole = isinstance(length, int | np.integer) and not isinstance(length, bool)
    require(whole and bool(length >= 2), "length: must be an integer of at least 2", length)
    within = 0 <= exploration <= (length - 1) / length
    require(within, "exploration: must lie in [0, 1) and leave a step of every cycle to sample", exploration)
    return Cyclical(float(a), int(length), float(exploration))
