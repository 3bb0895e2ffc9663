"""The move of an optimiser in one step, read off chosen positions, gradients and draws; nothing is sampled.

Position w and gradient g are held, all draws zero, until the move of a step settles. For a step that is linear that is

    w' - w = - a g - b w,

momenta included: a heavy ball v' = mu v - lr g settles to a = lr / (1 - mu). From there one draw n is set to one, and
the moves that it adds are summed over all later steps, s n; the variance of the noise is the sum of s^2 over the draws
of a step. Where a step mixes coordinates (a friction or a preconditioner that is a matrix) each of these is a run of
its own, in which one coordinate alone has a gradient, a position or a draw, and is looked at: the ratio of variance and
drift is that of any diagonal entry. With what the optimiser remembers held, and the learning rate going to 0, w is a
Langevin equation with drift -(a g + b w) and noise s^2 in the time of a step. Its law is exp(-(L + (b / a) |w|^2 / 2) /
tau), tau = s^2 / (2 a).

Where the moves go round, as on a step size that falls and starts anew, a, b and s^2 are means over a turn, or those of
its first step if each of the others is that step at another learning rate.
"""

import itertools
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple, Protocol

import numpy as np

from sgmcmc_verification.samplers.adapters.common import Foreign
from sgmcmc_verification.samplers.interface.aliases import Options

Draw = Callable[[int], np.ndarray | float]
"""Number of a draw within a step -> its value, of its shape or a number."""
Idle = Literal["kept", "moved", "refused"]
"""Effect of a step on a parameter without a gradient: one that is frozen, or that a loss does not use."""
Schedule = Literal["followed", "ignored", "in part"]
"""How a step takes a learning rate that is set in the groups of an optimiser after it was made."""

POSITION = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
GRADIENT = np.array([0.0, 1.0, 2.0, -1.0, 0.0, 0.0])
REST, ONE, TWO, MINUS, DECAY = range(5)
"""What the coordinates are for: nothing, a gradient of 1, 2 and -1, and a position of 1."""
MIDDLE = 2
"""The coordinate that is looked at where a step mixes them."""
FEWEST, SOON, MOST = 8, 400, 6000
"""Steps within which a move settles at the earliest, soon, and has to; the memory of 0.995 takes 4,600."""
ROWS = (2, 3)
"""Shape of a matrix of as many entries as `POSITION` has."""
SETTLED = 1e-10
"""Change of a move that counts as none, relative to the largest one."""
ROUNDOFF = 1e-15
"""Change of a position of 1 that counts as none."""
SAME = 1e-6
"""Relative difference of numbers that are to be the same: far above round-off, far below any factor."""
DENOMINATOR = 1000
"""Of the ratio of decay and drift, its power of ten apart."""
LARGE = 1e3
"""Factor of a gradient at which one that is clipped, or divided by its own size, shows."""
LARGER = (1, 16, 256)
"""Factors of a learning rate among which one is looked for at which the moves settle."""
LONGEST, LOOKED_AT = 128, 64
"""Steps of the longest turn in which moves may go round, and after how many more of them one is looked for."""
LATER = 64
"""Steps after which an annealed noise is another one."""


class Counts(NamedTuple):
    """Numbers of normal draws, of gradients and of draws of other laws that a step asks for.

    `joint` tells whether one of the latter is no draw for each entry of the parameter.
    """

    draws: int
    gradients: int
    others: int = 0
    joint: bool = False


class Probe(Protocol):
    """An optimiser on one array of parameters whose gradient and draws are chosen."""

    def start(self, rate: float, options: Options) -> Foreign:
        """Memory of a new optimiser, whose parameters are zero."""
        ...

    def step(
        self, memory: Foreign, position: np.ndarray, gradient: np.ndarray, draw: Draw
    ) -> tuple[np.ndarray, Foreign, "Counts"]:
        """The position after a step, the memory, which may be the old one changed, and what the step asked for."""
        ...

    def copy(self, memory: Foreign) -> Foreign:
        """The same memory once more."""
        ...

    def of_matrices(self) -> "Probe":
        """The probe whose parameters are a matrix of as many entries."""
        ...


@dataclass(frozen=True)
class Reading:
    """Moves of an optimiser in a step, at one setting.

    Attributes:
        drift: a.
        decay: b.
        variance: s^2.
        ratio: share of a momentum that is left after a step; 0.0 without memory of draws.
        linear: the drift is proportional to the gradient.
        large: the drift over a gradient of a thousand, relative to that of 1.
        even_noise: the noise does not depend on the gradient.
        mobility: drift over gradient and variance of the noise depend on the gradient alike.
        independent: no draw moves two coordinates.
        draws: number of draws in a step.
        draws_first: number of draws in the first step.
        gradients: number of gradients in a step.
        fades: s^2 `LATER` steps later, over s^2.
        settled: the move did settle.
        others: number of draws in a step that are not normal.
        turn: number of steps after which moves are the same again.
        uniform: each step of a turn is its first one at another learning rate.
    """

    drift: float
    decay: float
    variance: float
    ratio: float
    linear: bool
    large: float
    even_noise: bool
    mobility: bool
    independent: bool
    draws: int
    draws_first: int
    gradients: int
    fades: float
    settled: bool
    others: int = 0
    turn: int = 1
    uniform: bool = True

    @property
    def temperature(self) -> float:
        """tau of the law exp(-L / tau), for the loss whose gradient it is given."""
        return self.variance / (2 * abs(self.drift)) if self.drift else np.inf


def settling_rate(probe: Probe, rate: float, options: Options) -> float | None:
    """A learning rate at which the moves settle, the given one or a larger one; None if they do at none of these."""
    rates = [factor * rate for factor in LARGER]
    # the lowest at which a quarter of it settles soon; one whose momentum is long at any rate settles late
    soon = (each for each in rates if _settle(probe, each / 4, options, 1.0, SOON).settled)
    late = (each for each in rates[-1:] if _settle(probe, each, options, 1.0).settled)
    return next(itertools.chain(soon, late), None)


def unsettled(probe: Probe, rate: float, options: Options) -> Reading:
    """The reading of an optimiser whose moves do not settle: numbers of draws and of gradients alone."""
    memory = probe.start(rate, options)
    _, memory, first = probe.step(memory, POSITION, GRADIENT, _nothing)
    _, _, count = probe.step(memory, POSITION, GRADIENT, _nothing)
    return Reading(
        drift=0.0,
        decay=0.0,
        variance=0.0,
        ratio=0.0,
        linear=False,
        large=1.0,
        mobility=False,
        even_noise=False,
        independent=False,
        draws=count.draws,
        draws_first=first.draws,
        gradients=count.gradients,
        others=count.others,
        fades=1.0,
        settled=False,
    )


def read(probe: Probe, rate: float, options: Options) -> Reading:
    """The reading of an optimiser at a learning rate and options, `unsettled` where it diverges.

    It raises what the optimiser raises.
    """
    found = _moves(probe, rate, options, 1.0)
    memory, move, first, count = found.memory, found.move, found.first, found.last
    if not np.all(np.isfinite(move)):
        return unsettled(probe, rate, options)
    draws = count.draws
    if count.others:  # a coin that goes one way moves all coordinates
        move = move - move[REST]
    drift, decay = -move[ONE], -move[DECAY]
    linear = _is_linear(move)
    large = _moves(probe, rate, options, LARGE).move
    each, ratio = _noise(probe, found)
    noise, uniform = each.mean(axis=0), _is_uniform(found.moves, each)
    later = probe.copy(memory)
    for _ in range(LATER):
        _, later, _ = probe.step(later, POSITION, GRADIENT, _nothing)
    again, _ = _noise(probe, found._replace(memory=later))
    s2 = noise[REST]
    share = found.moves[0, ONE] / found.move[ONE] if uniform and drift else 1.0
    return Reading(
        drift=float(share * drift),
        decay=_exact(float(share * decay), float(share * drift)),
        variance=float(share * s2),
        ratio=ratio,
        linear=linear and bool(np.isclose(large[ONE], LARGE * move[ONE], rtol=1e-4, atol=0.0)),
        large=float(large[ONE] / (LARGE * move[ONE])) if drift else 1.0,
        mobility=bool(np.isclose(noise[TWO] * 2 * move[ONE], noise[ONE] * move[TWO], rtol=SAME, atol=0.0)),
        even_noise=bool(np.allclose(noise, s2, rtol=SAME, atol=0.0)),
        independent=not count.joint and not found.mixed and _independent(probe, memory, draws),
        draws=draws,
        draws_first=first.draws,
        gradients=count.gradients,
        others=count.others,
        fades=float(again.mean(axis=0)[REST] / s2) if s2 else 1.0,
        settled=found.settled,
        turn=len(found.moves),
        uniform=uniform,
    )


def is_close(a: float, b: float) -> bool:
    """True for numbers that are to be the same."""
    return abs(a - b) <= SAME * max(abs(a), abs(b))


def _is_linear(move: np.ndarray) -> bool:
    """True if moves are proportional to the gradient."""
    proportional = [2 * move[ONE], -move[ONE]]
    return bool(np.allclose([move[TWO], move[MINUS]], proportional, atol=SAME * np.abs(move).max()))


def moments(probe: Probe, rate: float, options: Options) -> tuple[float, float, float] | None:
    """Drift, decay and variance; None if moves do not settle, or if they are not those of Langevin's equation."""
    found = _moves(probe, rate, options, 1.0)
    move = found.move
    drift = float(-move[ONE])
    if not found.settled or not _is_linear(move):
        return None
    noise = _noise(probe, found)[0].mean(axis=0)
    if not drift or not noise.any() or not np.allclose(noise, noise[REST], rtol=SAME, atol=0.0):
        return None
    return drift, _exact(float(-move[DECAY]), drift), float(noise[REST])


def takes(probe: Probe, rate: float, options: Options) -> bool:
    """True if an optimiser can be made with some options and takes two steps, to where numbers are finite."""
    position = POSITION
    try:
        memory = probe.start(rate, options)
        for _ in range(2):
            position, memory, _ = probe.step(memory, position, GRADIENT, lambda _: 1.0)
    except Exception:
        return False
    return bool(np.all(np.isfinite(position)))


def decay_ratio(probe: Probe, rate: float, options: Options) -> float:
    """b / |a|; 0.0 without a drift."""
    move = _moves(probe, rate, options, 1.0).move
    drift = float(-move[ONE])
    return _exact(float(-move[DECAY]), drift) / abs(drift) if drift else 0.0


def _exact(decay: float, drift: float) -> float:
    """The decay that is meant: that of a position of 1 is read to the round-off of 1, which is more than its own.

    The ratio to the drift is taken for the number of few digits next to it that is as good within the reading error.
    """
    if not decay or not drift:
        return 0.0
    ratio = decay / abs(drift)
    exponent = math.floor(math.log10(abs(ratio)))
    digits = float(Fraction(ratio / 10.0**exponent).limit_denominator(DENOMINATOR))
    meant = digits * 10.0**exponent if exponent >= 0 else digits / 10.0**-exponent
    error = max(10 * SETTLED, 4 * ROUNDOFF / abs(decay))
    return meant * abs(drift) if abs(meant - ratio) <= error * abs(ratio) else decay


def filled(value: np.ndarray | float, entries: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    """Draws of a shape: as many numbers as there are, else one number for all or those of a parameter's entries."""
    value = np.asarray(value, float)
    if value.size == math.prod(shape):
        return value.reshape(shape)
    return np.broadcast_to(value.reshape(entries) if value.ndim else value, shape)


def effect_of_schedule(changed: np.ndarray, as_if_given: np.ndarray, unchanged: np.ndarray) -> Schedule:
    """The effect of a changed learning rate, from ends with it, with one that was given, and with the old one."""
    same = lambda a, b: bool(np.allclose(a, b, rtol=1e-9, atol=0.0))
    if same(changed, as_if_given):
        return "followed"
    return "ignored" if same(changed, unchanged) else "in part"


def _nothing(_: int) -> float:
    return 0.0


class Moves(NamedTuple):
    """Moves of steps under one gradient.

    Attributes:
        memory: after them.
        moves: (turn, coordinates) to which they settle, after which they are the same again.
        first: what the first step asked for.
        last: what the last step asked for, or the most of a turn.
        settled: whether they settled.
        mixed: whether a step mixes coordinates.
    """

    memory: Foreign
    moves: np.ndarray
    first: Counts
    last: Counts
    settled: bool
    mixed: bool = False

    @property
    def move(self) -> np.ndarray:
        """The mean over a turn."""
        return self.moves.mean(axis=0)


def _moves(probe: Probe, rate: float, options: Options, scale: float) -> Moves:
    """The moves to which an optimiser settles: where a step mixes coordinates each from a run of its own."""
    found = _settle(probe, rate, options, scale)
    move = found.move
    mixed = found.settled and not found.last.others and bool(np.abs(move[REST]) > SAME * np.abs(move).max())
    if mixed:
        one, move = np.zeros(POSITION.shape), np.zeros(POSITION.shape)
        one[MIDDLE] = 1.0
        for place in (ONE, TWO, MINUS):
            move[place] = _settle(probe, rate, options, scale * GRADIENT[place], MOST, one, 0 * one).move[MIDDLE]
        move[DECAY] = _settle(probe, rate, options, 0.0, MOST, one, one).move[MIDDLE]
        found = found._replace(moves=move[None], mixed=True)
    return found


def _settle(
    probe: Probe,
    rate: float,
    options: Options,
    scale: float,
    most: int = MOST,
    gradient: np.ndarray = GRADIENT,
    position: np.ndarray = POSITION,
) -> Moves:
    """The moves to which an optimiser settles."""
    memory, before, still = probe.start(rate, options), np.full(POSITION.shape, np.inf), 0
    moves, counts, turn = deque[np.ndarray](maxlen=3 * LONGEST), deque[Counts](maxlen=LONGEST), 0
    first = Counts(0, 0)
    for number in range(most):
        after, memory, count = probe.step(memory, position, scale * gradient, _nothing)
        move = after - position
        first = first if number else count
        if not np.isfinite(move).all():
            return Moves(memory, move[None], first, count, False)
        still = still + 1 if np.abs(move - before).max() <= SETTLED * np.abs(move).max() + ROUNDOFF else 0
        before = move
        moves.append(move)
        counts.append(count)
        if number >= FEWEST and still >= 3:
            return Moves(memory, move[None], first, count, True)
        if (number + 1) % LOOKED_AT == 0:
            turn = turn or _turn_of(np.array(moves))
        if turn and (number + 1) % turn == 0:  # what counts steps begins with a turn
            last = max(list(counts)[-turn:], key=lambda each: (each.draws, each.others))
            return Moves(memory, np.array(moves)[-turn:], first, last, True)
    return Moves(memory, before[None], first, counts[-1], False)


def _turn_of(moves: np.ndarray) -> int:
    """Number of steps after which moves (steps, coordinates) are the same again; 0 if they do not go round."""
    allowed = SETTLED * np.abs(moves).max() + ROUNDOFF
    most = min(LONGEST, len(moves) // 3)
    turns = (p for p in range(2, most + 1) if np.abs(moves[p:] - moves[:-p])[-2 * p :].max() <= allowed)
    return next(turns, 0)


def _is_uniform(moves: np.ndarray, noise: np.ndarray) -> bool:
    """True if moves and variances (turn, coordinates) are those of the first step of a turn, each times one factor."""
    largest = np.argmax(np.abs(moves[0]))
    factors = (moves[:, largest] / moves[0, largest])[:, None] if moves[0, largest] else np.ones((len(moves), 1))
    same = lambda each: np.allclose(each, factors * each[0], rtol=SAME, atol=SAME * np.abs(each).max())
    return bool(factors.min() > 0 and same(moves) and same(noise))


def _noise(probe: Probe, found: Moves) -> tuple[np.ndarray, float]:
    """Variances (turn, coordinates) of the noise, and the share of it that a step passes on to the next.

    Where a step mixes coordinates it is that of one of them, for all, to which each entry of a draw adds.
    """
    memory, total, ratio = probe.copy(found.memory), [], 0.0
    for _ in found.moves:
        variance, ratio = _noise_of_step(probe, memory, found.last.draws, found.mixed)
        total.append(variance)
        _, memory, _ = probe.step(memory, POSITION, GRADIENT, _nothing)
    return np.array(total), ratio


def _noise_of_step(probe: Probe, memory: Foreign, draws: int, mixed: bool) -> tuple[np.ndarray, float]:
    """The same of the step that comes next."""
    ones: list[np.ndarray | float] = [*np.eye(POSITION.size)] if mixed else [1.0]
    total, ratio = np.zeros(POSITION.shape), 0.0
    for number, one in itertools.product(range(draws), ones):
        parts = []
        moved, plain = probe.copy(memory), probe.copy(memory)
        while len(parts) < MOST:
            draw = _nothing if parts else (lambda i, n=number, of=one: of if i == n else 0.0)
            after, moved, _ = probe.step(moved, POSITION, GRADIENT, draw)
            without, plain, _ = probe.step(plain, POSITION, GRADIENT, _nothing)
            parts.append(after - without)
            if np.abs(parts[-1]).max() <= SETTLED * np.abs(np.sum(parts, axis=0)).max() + ROUNDOFF:
                break
        total += np.sum(parts, axis=0) ** 2
        first, second = (*(part[REST] for part in parts[:2]), 0.0)[:2]
        ratio = second / first if first and abs(second) > SAME * abs(first) else ratio
    return (np.full(POSITION.shape, total[MIDDLE]) if mixed else total), float(ratio)


def _independent(probe: Probe, memory: Foreign, draws: int) -> bool:
    """True if a draw of the first coordinate moves no other one."""
    one = np.zeros(POSITION.shape)
    one[REST] = 1.0
    move = probe.step(probe.copy(memory), POSITION, GRADIENT, _nothing)[0] - POSITION
    for number in range(draws):
        after, _, _ = probe.step(probe.copy(memory), POSITION, GRADIENT, lambda i, n=number: one if i == n else 0.0)
        if np.abs((after - POSITION - move)[1:]).max() > SAME * np.abs(move).max() + ROUNDOFF:
            return False
    return True
