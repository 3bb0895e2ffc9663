"""Weights of data in runs of a sampler that goes through them in an order of its own, which its state keeps.

The order is not known, and one step has no mean over it. Short runs with the pull of the data, without it and with the
same pull in the prior start from one state under the same draws, again and again along a run without: what they move in
all, block by block, are the weights. So few data are taken that the last minibatch of an epoch is not full.
"""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.tiers.premises.data_weights import Weights, first_state, is_linear, judged
from sgmcmc_verification.checks.tiers.premises.pulled_data import pulled
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.copied import copied
from sgmcmc_verification.samplers.interface.sampler import Sampler

RUNS, STEPS = 96, 11
"""Short runs, and steps of each: no multiple of the three minibatches of an epoch, so that runs start at each."""
SECONDS, FEWEST = 10.0, 32
"""Of steps in Python, and the number of short runs that there has to be time for."""
PULLS = ((0, 0), (1, 0), (0, 1), (0, 2))
"""Pulls of each datum, and of the prior in their place."""
End = Callable[[Any, int], Any]
"""State, seed -> the state after a short run."""


class Runs(NamedTuple):
    """Short runs with each pull, a first state, the position of a state, and whether Python takes the steps."""

    ends: list[End]
    state: Any
    position: Callable[[Any], np.ndarray]
    in_python: bool


@lru_cache(maxsize=8)
def weighed_in_order(subject: Subject, most: int) -> tuple[Weights, int] | None:
    """The weights of data one by one, and how many they are: two minibatches and one more.

    None where a minibatch has half of `most` data or more, the step is not linear in the gradient, or steps in Python
    take too long.
    """
    start = time.process_time()
    size = 2 * _drawn(subject, most) + 1
    if not 1 < size < most:
        return None
    ends, state, position, in_python = _runs(subject, size)
    moves = []
    while len(moves) < RUNS and not (in_python and time.process_time() - start > SECONDS):
        after = [end(state, len(moves)) for end in ends[: 3 if moves else 4]]
        moves.append(np.stack([position(each) - position(after[0]) for each in after[1:3]]))
        if len(moves) == 1 and not is_linear(moves[0][1], position(after[3]) - position(after[0])):
            return None
        state = after[0]
    if len(moves) < FEWEST:
        return None
    by_data, by_prior = np.moveaxis(np.array(moves), 1, 0)
    unit = by_prior.mean(axis=0)
    if not np.abs(unit).min() > 0:
        return None
    return judged(by_data / unit, by_prior.mean(axis=1) / unit.mean(), size, in_order=True), size


def _drawn(subject: Subject, size: int) -> int:
    """Number of data that change the first step."""
    (without, with_data), state, position, _ = _runs(subject, size, PULLS[:2], steps=1)
    return int(np.count_nonzero(position(with_data(state, 0)) - position(without(state, 0))))


def _runs(subject: Subject, size: int, pulls: Sequence[tuple[int, int]] = PULLS, steps: int = STEPS) -> Runs:
    """Short runs with some pulls of data that have a block each."""
    targets = [pulled(pull, size, by_prior, blocks=size)[0] for pull, by_prior in pulls]
    samplers = [subject.sampler(target) for target in targets]
    host, h = on_host(samplers[0]), subject.step_size(targets[0])
    # what the estimator knows is no pull: data that enter are those that the sampler reads
    estimator = (HostExact if host else Exact)(targets[0])
    run = _run_on_host if host else _run
    ends = [run(sampler, estimator, h, steps) for sampler in samplers]
    state = first_state(samplers[0], estimator, targets[0].example)
    return Runs(ends, state, lambda each: np.array(samplers[0].position(each), float), host)


def _run(sampler: Sampler, estimator: Any, h: float, steps: int) -> End:
    @jax.jit
    def end(state: Any, seed: int) -> Any:
        advance = lambda held, key: (sampler.step(key, held, h, estimator), None)
        return jax.lax.scan(advance, state, jax.random.split(jax.random.key(seed), steps))[0]

    return end


def _run_on_host(sampler: Sampler, estimator: Any, h: float, steps: int) -> End:
    def end(state: Any, seed: int) -> Any:
        rng, state = np.random.default_rng(seed), copied(state)
        for _ in range(steps):
            state = sampler.step(rng, state, h, estimator)
        return state

    return end
