"""Time averages along independent runs that start from the target: what decides where no step can be followed.

A run of a sampler needs nothing but its code: no tape, no claims, no law of what else its state holds. The average of a
function along one run is one value; those of runs with their own starts and keys are independent.
"""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.core.compilation import OPTIMISED
from sgmcmc_verification.checks.core.preflight import signature
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import position_rule
from sgmcmc_verification.checks.exact_laws.exact_draws import draw_positions
from sgmcmc_verification.checks.statistics.outcome import Outcome
from sgmcmc_verification.checks.tracing.step_map import host_ravel, host_unravel
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.targets.target import Target

BLOCK = 1 << 13
"""Runs that one compiled call makes."""
FACTORS = 2.0 ** np.arange(7)
"""Multiples of the usual step size at which the share of rejections is looked at."""
TINY = 1 / 64
"""Multiple of it at which a Metropolis test hardly rejects: the share goes as sqrt(h) or faster."""
TRIALS = 256
"""Runs, and steps, of that look."""
REJECTED = 0.5
"""Share of rejections up to which a step size is raised: a kernel that hardly ever rejects shows its proposal only."""
SEVERAL = 4
"""Coordinates up to which all of them have functions of their own."""


class Functions(NamedTuple):
    """Bounded functions of a position, flat, with their expectations under the target.

    They are cos(w . y) and sin(w . y) of the standardised position y. A relative error e of a variance changes
    E cos(y) by 0.30 e at a standard deviation of cos(y) of 0.45; for y^2 these are e and 1.41, with heavy tails.

    Attributes:
        values: (.., d) -> (.., K), traceable, and for NumPy arrays: all cosines, then all sines.
        expected: (K,).
        names: of the functions.
        phases: (.., d) -> w . y (.., K / 2), likewise, if the functions are those.
    """

    values: Callable[[Any], Any]
    expected: np.ndarray
    names: tuple[str, ...]
    phases: Callable[[Any], Any] | None = None


PER_VARIANCE = 0.3
"""Change of E cos(y) by a relative error of the variance of y, per unit of it, for a normal y."""


def directions(size: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Vectors w (J, d) and their names: multiples of coordinates, sums and differences of neighbours, generic ones."""
    axes = range(size) if size <= SEVERAL else sorted({0, 1, min(9, size - 1), size // 3, size // 2, size - 1})
    eye, found, names = np.eye(size), [], []
    for i in axes:
        found += [eye[i], 2 * eye[i]]
        names += [f"y[{i}]", f"2 y[{i}]"]
    for i, k in itertools.pairwise(axes):
        found += [eye[i] + eye[k], eye[i] - eye[k]]
        names += [f"y[{i}] + y[{k}]", f"y[{i}] - y[{k}]"]
    if size > SEVERAL:
        for n in range(6):
            wave = np.cos((1.3 + 0.7 * n) * np.arange(size) + n)
            found.append(wave / np.linalg.norm(wave))
            names.append(f"w{n}.y")
    return np.stack(found), tuple(names)


def functions_of(target: Target, temperature: float) -> Functions:
    """Bounded functions of the standardised position. Raises NotApplicable if no expectations are known."""
    w, names = directions(target.size)
    if target.gaussian is not None:
        root = np.linalg.cholesky(target.gaussian.precision).T / np.sqrt(temperature)
        matrix, centre = w @ root, target.gaussian.mean
        size = np.exp(-np.sum(w**2, axis=1) / 2)
        expected = np.concatenate([size, np.zeros(len(w))])
    else:
        points, weights = position_rule(target, temperature)
        centre = weights @ points
        spread = np.sqrt(weights @ (points - centre) ** 2)
        # a coordinate that a constraint keeps nearly still has no scale of its own
        matrix = w / np.maximum(spread, 1e-3 * spread.max())
        phases = (points - centre) @ matrix.T
        expected = np.concatenate([weights @ np.cos(phases), weights @ np.sin(phases)])

    phases = lambda x: (x - centre) @ matrix.T

    def values(x: Any) -> Any:
        xp = np if isinstance(x, np.ndarray) else jnp
        phase = phases(x)
        return xp.concatenate([xp.cos(phase), xp.sin(phase)], axis=-1)

    return Functions(values, expected, tuple(f"{f}({name})" for f in ("cos", "sin") for name in names), phases)


SEEN = 100
"""Steps of a run whose positions are looked at, evenly spaced: those between them move little."""


def interval(steps: Any, discard: Any) -> Any:
    """Steps from one position that is looked at to the next; the last one of a run is."""
    return (steps - discard + SEEN - 1) // SEEN


class Runs:
    """Runs of a sampler on a target from exact draws of it; few steps are not worth a program that is optimised."""

    def __init__(self, subject: Subject, target: Target, functions: Functions, long: bool = True) -> None:
        self.target, self.functions = target, functions
        self.sampler, self.estimator = subject.sampler(target), subject.estimator(target)
        self.temperature = self.sampler.claims.temperature
        self.host = on_host(self.sampler)
        many = jax.vmap(self._one, (0, 0, None, None, None))
        self._compiled = None if self.host else jax.jit(many, compiler_options=OPTIMISED if long else None)

    def starts(self, seed: int, count: int) -> np.ndarray:
        """Exact draws (count, d). Raises NotApplicable if none can be had."""
        return draw_positions(self.target, self.temperature, np.random.default_rng(seed), count)

    def means(self, seed: int, starts: np.ndarray, h: float, steps: int, discard: int) -> tuple[np.ndarray, np.ndarray]:
        """Averages (N, K) over steps after the first `discard`, and the share (N,) of steps that did not move."""
        if self._compiled is None:
            return self._host(seed, starts, h, steps, discard)
        key, parts = jax.random.key(seed), []
        block = min(BLOCK, len(starts))
        for number, first in enumerate(range(0, len(starts), block)):
            part = starts[first : first + block]
            padded = np.concatenate([part, np.repeat(part[-1:], block - len(part), axis=0)])
            keys = jax.random.split(jax.random.fold_in(key, number), block)
            out = self._compiled(keys, jnp.asarray(padded), h, steps, discard)
            parts.append([np.asarray(a)[: len(part)] for a in out])
        means, still = (np.concatenate(column) for column in zip(*parts, strict=True))
        return means, still

    def _one(self, key: jax.Array, start: jax.Array, h: Any, steps: Any, discard: Any) -> tuple[jax.Array, jax.Array]:
        sampler, estimator = self.sampler, self.estimator
        first, rest = jax.random.split(key)
        dtype = ravel_pytree(self.target.example)[0].dtype
        state = sampler.init(first, self.target.unravel(start.astype(dtype)), estimator)
        read = lambda s: ravel_pytree(sampler.position(s))[0].astype(start.dtype)

        def advance(i: jax.Array, carry: tuple[Any, jax.Array, jax.Array]) -> tuple[Any, jax.Array, jax.Array]:
            state, total, still = carry
            after = sampler.step(jax.random.fold_in(rest, i), state, jnp.asarray(h, dtype), estimator)
            after = jax.tree.map(
                lambda new, old: new.astype(old.dtype) if new.dtype != old.dtype else new, after, state
            )
            x = read(after)
            # the number of a step is the same in all runs: what is not asked for is not computed
            seen = (i >= discard) & ((steps - 1 - i) % every == 0)
            values = jax.lax.cond(seen, self.functions.values, lambda x: none, x)
            return after, total + values, still + jnp.all(x == read(state))

        state = jax.tree.map(jnp.asarray, state)
        none, every = jnp.zeros(len(self.functions.names)), interval(steps, discard)
        _, total, still = jax.lax.fori_loop(0, steps, advance, (state, none, jnp.zeros(())))
        return total / -((discard - steps) // every), still / steps

    def _host(self, seed: int, starts: np.ndarray, h: float, steps: int, discard: int) -> tuple[np.ndarray, np.ndarray]:
        generator, sampler = np.random.default_rng(seed), self.sampler
        unravel = host_unravel(self.target.example)
        every = interval(steps, discard)
        means, still = [], []
        for start in starts:
            state = sampler.init(generator, unravel(np.array(start)), self.estimator)  # which may write to it
            x, total, same = host_ravel(sampler.position(state)), 0.0, 0
            for i in range(steps):
                state = sampler.step(generator, state, h, self.estimator)
                new = host_ravel(sampler.position(state))
                same += np.array_equal(new, x)
                x = new
                if i >= discard and (steps - 1 - i) % every == 0:
                    total = total + np.asarray(self.functions.values(x))
            means.append(total / -((discard - steps) // every))
            still.append(same / steps)
        return np.array(means), np.array(still)


def step_size_of(runs: Runs, usual: float, seed: int) -> tuple[float, float]:
    """The largest of `FACTORS` times the usual step size at which a test rejects half of the steps, and that share.

    The usual one if nothing is ever rejected. What a test rejects becomes rare as h -> 0; what a coin lets rest,
    Barker's rule or a weight of its own does not, and is left out. Raises OutOfReach if not even the usual one can be
    run.
    """
    trials, steps = 16 if runs.host else TRIALS, 16
    starts = runs.starts(seed, trials)
    tiny = float(runs.means(seed, starts, TINY * usual, steps, 0)[1].mean())
    noise = 4 * np.sqrt(2 * tiny * (1 - tiny) / (trials * steps))
    best, share = usual, 0.0
    for factor in FACTORS:
        means, still = runs.means(seed, starts, factor * usual, steps, 0)
        if not np.all(np.isfinite(means)):
            if factor == 1.0:
                raise OutOfReach("the runs are not finite")
            break
        rejected = (float(still.mean()) - tiny) / max(1 - tiny, 1 / trials)
        if rejected > REJECTED:
            break
        if rejected > 0.01 + noise:
            best, share = factor * usual, rejected
    return best, share


PILOTS, HOST_PILOTS = TRIALS, 48
"""Runs that tell how much of an average is known from the start of its run."""


def known_share(runs: Runs, seed: int, h: float, steps: int, discard: int) -> np.ndarray:
    """Slopes (K,) of averages along a run on the values at its start, from runs that are used for nothing else.

    A start is an exact draw, the expectation of f there is known: less a multiple of f(start) - pi(f) an average has
    the same expectation, and for short runs a much smaller variance.
    """
    starts = runs.starts(seed, HOST_PILOTS if runs.host else PILOTS)
    means, _ = runs.means(seed, starts, h, steps, discard)
    if not np.all(np.isfinite(means)):
        return np.zeros(means.shape[1])
    first = runs.functions.values(starts)
    first, means = first - first.mean(axis=0), means - means.mean(axis=0)
    square = np.sum(first**2, axis=0)
    return np.sum(first * means, axis=0) / np.where(square > 0, square, np.inf)


def of_a_variance(outcome: Outcome) -> bool:
    """True for cos(y) of one coordinate, which moves with its variance."""
    return outcome.name.startswith("cos(y[") and " " not in outcome.name


def position_is_all(target: Target, runs: Runs) -> bool:
    """True if z is the position, whose law is that of the start from the first step on."""
    key = np.random.default_rng(0) if runs.host else jax.random.key(0)
    state = runs.sampler.init(key, target.example, runs.estimator)
    return signature(runs.sampler.unpack(state)) == signature(runs.sampler.position(state))
