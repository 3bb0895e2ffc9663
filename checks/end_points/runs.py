"""Time averages along independent runs that start from the target: what decides where no step can be followed.

A run of a sampler needs nothing but its code: no tape, no claims, no law of what else its state holds. The average of a
function along one run is one value; those of runs with their own starts and keys are independent.
"""

import sys
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
from sgmcmc_verification.checks.end_points.bounded_loops import bounded_sampler
from sgmcmc_verification.checks.end_points.budget import require_budget
from sgmcmc_verification.checks.end_points.functions import Functions, Rest
from sgmcmc_verification.checks.exact_laws.exact_draws import draw_positions
from sgmcmc_verification.checks.tracing.live_leaves import leaves_by_themselves
from sgmcmc_verification.checks.tracing.step_map import host_ravel, host_unravel
from sgmcmc_verification.samplers.interface.aliases import Estimator, State
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import ExactLaw
from sgmcmc_verification.samplers.interface.copied import copied
from sgmcmc_verification.samplers.interface.opened_state import with_objects
from sgmcmc_verification.samplers.interface.sampler import Sampler
from sgmcmc_verification.samplers.interface.whole_state import traced_step
from sgmcmc_verification.targets.target import Target

FACTORS = 2.0 ** np.arange(7)
"""Multiples of the usual step size at which the share of rejections is looked at."""
FURTHER = FACTORS[-1] * 2.0 ** np.arange(1, 11)
"""The same for an exact kernel of which some were rejected before: its own coordinates may have another scale."""
TINY = 1 / 64
"""Multiple of it at which a Metropolis test hardly rejects: the share goes as sqrt(h) or faster."""
TRIALS = 256
"""Runs of that look."""
BLOCK = TRIALS
"""Runs that one compiled call makes: one program for all numbers of them; larger blocks are hardly faster."""
REJECTED = 0.5
"""Share of rejections up to which a step size is raised: a kernel that hardly ever rejects shows its proposal only."""
HOST_PIECE = 8
"""Runs in Python between two looks at the budget."""
FEW = 20
"""Coordinates beyond which runs take so long that there are fewer of them, and their program is always optimised."""
SIZES = 3
"""Step sizes that steps before those that count have in turn."""
SEEN = 100
"""Steps of a run whose positions are looked at, evenly spaced: those between them move little."""


def interval(steps: Any, discard: Any) -> Any:
    """Steps from one position that is looked at to the next; the last one of a run is."""
    return (steps - discard + SEEN - 1) // SEEN


class Runs:
    """Runs of a sampler on a target from exact draws of it.

    Args:
        subject: whose sampler runs.
        target: that its law is on.
        functions: of the position, or of z.
        long: few steps are not worth a program that is optimised.
        auxiliary: the law of what z holds beside the position, if runs start from draws of z and it is looked at.
    """

    def __init__(
        self,
        subject: Subject,
        target: Target,
        functions: Functions,
        long: bool = True,
        auxiliary: Rest | None = None,
    ) -> None:
        self.target, self.functions, self.auxiliary = target, functions, auxiliary
        self.sampler, self.estimator = subject.sampler(target), subject.estimator(target)
        self.temperature = self.sampler.claims.temperature
        self.host = on_host(self.sampler)
        if auxiliary is None:
            running = with_objects(self.sampler)  # nobody asks for the numbers of its states
            self._begin, self._read, self._example = running.init, running.position, target.example
        else:
            state = example_state(self.sampler, target, self.estimator)
            # a law that is assumed may have states that the sampler never reaches
            running = self.sampler if self.host else bounded_sampler(self.sampler)
            self._begin, self._read, self._example = running.pack, running.unpack, running.unpack(state)
        self._running = running
        options = OPTIMISED if long else None
        self._compiled = None if self.host else jax.jit(self._block, compiler_options=options)

    def starts(self, seed: int, count: int) -> np.ndarray:
        """Exact draws (count, d), or (count, n) of z. Raises NotApplicable if none can be had."""
        generator = np.random.default_rng(seed)
        positions = draw_positions(self.target, self.temperature, generator, count)
        if self.auxiliary is None:
            return positions
        return np.concatenate([positions, self.auxiliary.draws(generator, count)], axis=1)

    @property
    def piece(self) -> int:
        """Number of runs between two looks at the budget."""
        return HOST_PIECE if self.host else BLOCK

    def means(
        self, seed: int, starts: np.ndarray, h: float, steps: int, discard: int, made: int = 0, wider: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Averages (N, K) over steps after the first `discard`, and the share (N,) of steps that did not move.

        Of a number of runs that are made in pieces, `made` is how many were before these. The steps that are left out
        have the sizes h, `wider` h and `wider`^2 h in turn: an exact kernel keeps its law at any, and forgets sooner.
        """
        if self._compiled is None:
            return self._host([seed, made] if made else seed, starts, h, steps, discard, wider)
        parts = []
        for number, first in enumerate(range(0, len(starts), BLOCK), made // BLOCK):
            part = starts[first : first + BLOCK]
            padded = np.concatenate([part, np.repeat(part[-1:], BLOCK - len(part), axis=0)])
            # one kind of number each: a second program costs more than most blocks
            numbers = (np.float64(h), np.int64(steps), np.int64(discard), np.float64(wider))
            out = self._compiled(np.array([seed, number]), padded, *numbers)
            parts.append([np.asarray(a)[: len(part)] for a in out])
        means, still = (np.concatenate(column) for column in zip(*parts, strict=True))
        return means, still

    def _block(
        self, seeds: jax.Array, starts: jax.Array, h: Any, steps: Any, discard: Any, wider: Any
    ) -> tuple[jax.Array, jax.Array]:
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seeds[0]), seeds[1]), len(starts))
        first, rest = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
        states = jax.vmap(self._start)(first, starts)
        if self.auxiliary is None:
            states = self._with_constants_of_others(states, h)
        return jax.vmap(self._one, (0, 0, None, None, None, None))(rest, states, h, steps, discard, wider)

    def _start(self, key: jax.Array, start: jax.Array) -> Any:
        flat, unravel = ravel_pytree(self._example)
        return jax.tree.map(jnp.asarray, self._begin(key, unravel(start.astype(flat.dtype)), self.estimator))

    def _with_constants_of_others(self, states: Any, h: Any) -> Any:
        """States of many runs, each with what moves by itself, or stays, from the start of another one.

        A kernel may be made by its start, as an anchor or a preconditioner is: it keeps its law for each of them, but
        not at once from a draw that it was made from. Made from another run's it does.
        """
        leaves, structure = jax.tree.flatten(states)
        if len(leaves) == len(jax.tree.leaves(self.target.example)):
            return states
        one = jax.tree.map(lambda leaf: leaf[0], states)
        alone = leaves_by_themselves(traced_step(self._running, one, self.estimator, h))
        others = [
            jnp.roll(leaf, 1, axis=0) if by_itself else leaf for leaf, by_itself in zip(leaves, alone, strict=True)
        ]
        return jax.tree.unflatten(structure, others)

    def _one(
        self, rest: jax.Array, state: Any, h: Any, steps: Any, discard: Any, wider: Any
    ) -> tuple[jax.Array, jax.Array]:
        sampler, estimator = self._running, self.estimator
        dtype = ravel_pytree(self.target.example)[0].dtype
        of = lambda tree: ravel_pytree(tree)[0].astype(float)

        def advance(i: jax.Array, carry: tuple[Any, jax.Array, jax.Array]) -> tuple[Any, jax.Array, jax.Array]:
            state, total, still = carry
            size = jnp.asarray(h * wider ** jnp.where(i < discard, i % SIZES, 0), dtype)
            after = sampler.step(jax.random.fold_in(rest, i), state, size, estimator)
            # a step may return numbers of Python, or another precision than it was given
            after = jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), after, state)
            # the number of a step is the same in all runs: what is not asked for is not computed
            seen = (i >= discard) & ((steps - 1 - i) % every == 0)
            values = jax.lax.cond(seen, self.functions.values, lambda x: none, of(self._read(after)))
            return after, total + values, still + jnp.all(of(sampler.position(after)) == of(sampler.position(state)))

        none, every = jnp.zeros(len(self.functions.names)), interval(steps, discard)
        _, total, still = jax.lax.fori_loop(0, steps, advance, (state, none, jnp.zeros(())))
        return total / -((discard - steps) // every), still / steps

    def calls(self, h: float) -> tuple[int, int]:
        """Functions that a start and a step in Python call: what they cost, as a number that is the same in every run.

        A start is that of a run: what the suite does to see the numbers of a state is no part of it.
        """
        generator, unravel = np.random.default_rng(0), host_unravel(self._example)
        place = np.array(host_ravel(self._example))
        begin = lambda: self._begin(generator, unravel(place.copy()), self.estimator)
        step = lambda: self._running.step(generator, begin(), h, self.estimator)
        step()  # what is made once is no cost of a step
        start = _calls(begin)
        return start, max(_calls(step) - start, 1)

    def _host(
        self, seed: int | list[int], starts: np.ndarray, h: float, steps: int, discard: int, wider: float
    ) -> tuple[np.ndarray, np.ndarray]:
        generator, sampler, unravel = np.random.default_rng(seed), self._running, host_unravel(self._example)
        every = interval(steps, discard)
        begin = lambda start: self._begin(generator, unravel(np.array(start)), self.estimator)  # which may write to it
        # z at one place is the same state each time, and may be dear
        once = begin(starts[0]) if self.auxiliary is not None and (starts == starts[0]).all() else None
        means, still = [], []
        for start in starts:
            state = begin(start) if once is None else copied(once)
            x, total, same = host_ravel(sampler.position(state)), 0.0, 0
            for i in range(steps):
                size = h * wider ** (i % SIZES) if i < discard else h
                state = sampler.step(generator, state, size, self.estimator)
                new = host_ravel(sampler.position(state))
                same += np.array_equal(new, x)
                x = new
                if i >= discard and (steps - 1 - i) % every == 0:
                    total = total + np.asarray(self.functions.values(host_ravel(self._read(state))))
            means.append(total / -((discard - steps) // every))
            still.append(same / steps)
        return np.array(means), np.array(still)


def step_size_of(runs: Runs, usual: float, seed: int, tests: bool = True) -> tuple[float, float]:
    """The largest multiple of the usual step size at which a test rejects at most half of the steps, and that share.

    The usual one if nothing is ever rejected, or if there is no test (`tests`): a velocity that is turned in the middle
    of a step leads back too. What a test rejects becomes rare as h -> 0; what a coin lets rest, Barker's rule or a
    weight of its own does not, and is left out. A kernel that claims to be exact is so at the largest that can be
    run, rejected or not: one that never rejects what it should is nearly right at the usual one. Raises OutOfReach if
    not even the usual one can be run.
    """
    require_budget()
    trials, steps = _few(runs, TRIALS, 16), 16
    starts = runs.starts(seed, trials)
    smallest, still = runs.means(seed, starts, TINY * usual, steps, 0)
    tiny = float(still.mean())
    noise = 4 * np.sqrt(2 * tiny * (1 - tiny) / (trials * steps))
    best, share = usual, 0.0
    exact = ExactLaw in runs.sampler.claims
    for factor in (*FACTORS, *FURTHER) if tests else FACTORS[:1]:
        if factor > FACTORS[-1] and not (exact and share > 0.01 + noise):
            break
        means, still = runs.means(seed, starts, factor * usual, steps, 0)
        if np.array_equal(means, smallest):
            return usual, 0.0  # there is no step size: another one would be the same run again
        if not np.all(np.isfinite(means)):
            if factor == 1.0:
                raise OutOfReach("the runs are not finite")
            break
        rejected = (float(still.mean()) - tiny) / max(1 - tiny, 1 / trials)
        if rejected > REJECTED:
            break
        if exact or rejected > 0.01 + noise:
            best, share = factor * usual, max(rejected, 0.0)
    return best, share


def step_sizes_of(runs: Runs, usual: float, seed: int, tests: bool = True) -> tuple[tuple[float, float], ...]:
    """`step_size_of`, and the usual one after it for an exact kernel that never rejects, or that keeps more than z.

    A slice whose bracket is stepped out wrongly is right at a step size at which the first bracket holds the slice, a
    scale that follows the position nearly so at one at which the position has moved on. Where Python takes the steps,
    one coordinate shows it.
    """
    first = step_size_of(runs, usual, seed, tests)
    again = ExactLaw in runs.sampler.claims and first[0] > usual and (first[1] == 0 or not position_is_all(runs))
    return (first, (usual, 0.0)) if again and (runs.target.size == 1 or not runs.host) else (first,)


PILOTS, HOST_PILOTS = TRIALS, 48
"""Runs that tell how much of an average is known from the start of its run."""


class Pilot(NamedTuple):
    """Averages along runs that are used for nothing else: what they tell of averages along a run.

    Attributes:
        share: (K,) slopes on the values at the start of a run.
        spread: (K,) standard deviations of what is left; infinite where an average is not.
        gap: the largest distance of what is left from its expectation, in standard errors.
    """

    share: np.ndarray
    spread: np.ndarray
    gap: float


def pilot(runs: Runs, seed: int, h: float, steps: int, discard: int) -> Pilot:
    """Slopes of averages along a run on the values at its start, and what is left.

    A start is an exact draw, the expectation of f there is known: less a multiple of f(start) - pi(f) an average has
    the same expectation, and for short runs a much smaller variance.
    """
    require_budget()
    starts = runs.starts(seed, _few(runs, PILOTS, HOST_PILOTS))
    means, _ = runs.means(seed, starts, h, steps, discard)
    if not np.all(np.isfinite(means)):
        return Pilot(np.zeros(means.shape[1]), np.full(means.shape[1], np.inf), 0.0)
    first, expected = runs.functions.values(starts), runs.functions.expected
    apart = first - first.mean(axis=0)
    square = np.sum(apart**2, axis=0)
    share = np.sum(apart * (means - means.mean(axis=0)), axis=0) / np.where(square > 0, square, np.inf)
    left = means - share * (first - expected)
    spread = np.std(left, axis=0)
    errors = np.abs(left.mean(axis=0) - expected)[spread > 0] / spread[spread > 0] * np.sqrt(len(left))
    return Pilot(share, spread, float(errors.max(initial=0.0)))


def _few(runs: Runs, compiled: int, host: int) -> int:
    """A number of runs; in Python, in many dimensions, half of it."""
    if not runs.host:
        return compiled
    return host // 2 if runs.target.size > FEW else host


def _calls(function: Callable[[], Any]) -> int:
    """Functions of Python that are called by a function."""
    count, before = 0, sys.getprofile()

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        del frame, argument
        count += event == "call"

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def position_is_all(runs: Runs) -> bool:
    """True if z is the position, whose law is that of the start from the first step on."""
    state = example_state(runs.sampler, runs.target, runs.estimator)
    return signature(runs.sampler.unpack(state)) == signature(runs.sampler.position(state))


def example_state(sampler: Sampler, target: Target, estimator: Estimator) -> State:
    """A state at the example of the target."""
    key = np.random.default_rng(0) if on_host(sampler) else jax.random.key(0)
    return sampler.init(key, target.example, estimator)
