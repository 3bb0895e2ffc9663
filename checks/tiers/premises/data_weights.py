"""Weights of data in the steps of a sampler that reads them itself.

A step that is linear in the gradient moves by the mean of what the data do to it. That is compared with how the same
potential moves it as a part of the prior, or without data: in all, by blocks, towards the last ones, and for the prior.

A metric that is made of the data, at an anchor, is another one with the pull than without. What the prior does to a
step with the pull is the unit then, and noise, which does not cancel, is taken off by what it does without the pull.
"""

import dataclasses
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.core.error_origin import RAISED
from sgmcmc_verification.checks.tiers.premises.pulled_data import BLOCKS, pulled
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.sampler import Sampler

WEIGHED, SECONDS, FEWEST, LONGEST = 2048, 4.0, 192, 20.0
"""Keys under which they are; seconds of steps in Python, after which so many are enough, and most seconds."""
COMPARED = 32
"""Keys under which steps in Python are compared with those without data and with more of a pull."""
OFTEN = 64
"""Keys under which a block has to enter for a weight of its own: the mean of a few heavy ones is anything."""
ALIKE = 40
"""The same in the mean, of blocks whose data all have the same weight."""
DEVIATIONS = 6.0
"""Standard errors of a mean over these keys that are left to chance."""


class Weights(NamedTuple):
    """Mean moves by data, relative to those by the same change of the potential without data.

    Attributes:
        worst: which of them is off by the most.
        weight: of it, which should be 1.
        error: its distance from 1, less what is left to chance.
        every: whether each block was drawn.
        drawn: how many are in a minibatch, or that there are as many blocks in it at least.
        steps: keys under which they were weighed.
    """

    worst: str
    weight: float
    error: float
    every: bool
    drawn: int
    steps: int


@lru_cache(maxsize=8)
def weighed(subject: Subject, size: int, blocks: int = BLOCKS) -> Weights | None:
    """The weights of a number of data, of their blocks, and of the prior.

    None where they are not weighed: where a state keeps an order, or the step is not linear in the gradient.
    """
    pulls = ((0, 0), (1, 0), (0, 1), (0, 2), (1, 1))
    targets = [pulled(pull, size, by_prior, blocks)[0] for pull, by_prior in pulls]
    host, x, h = on_host(subject.sampler(targets[0])), targets[0].example, subject.step_size(targets[0])
    exact = HostExact if host else Exact
    # what the estimator knows is no pull: data that enter are those that the sampler reads
    oracles = [exact(targets[0])] * len(targets)
    samplers = [subject.sampler(target) for target in targets]
    try:
        without = [dataclasses.replace(target, terms=None) for target in targets[:2]]
        some = [subject.sampler(target) for target in without]
        _one_step(some[1], exact(without[1]), x, h)
        samplers, oracles = [*samplers, *some], [*oracles, *map(exact, without)]
    except RAISED:  # a sampler that needs data
        pass
    state = first_state(samplers[0], oracles[0], x)
    if not all(jnp.issubdtype(jnp.result_type(leaf), jnp.floating) for leaf in jax.tree.leaves(state)):
        return None
    moves, ends = (_ends_on_host if host else _ends)(samplers, oracles, x, h)
    by_data, by_prior, twice, both, *alone = np.moveaxis(ends[:, 1:] - ends[:, :1], 1, 0)
    unit, with_data = (alone[1] - alone[0] if alone else by_prior).mean(axis=0), both - by_data
    if not is_linear(by_prior, twice) or not np.abs([unit, with_data.mean(axis=0)]).min() > 0:
        return None
    prior = by_prior.mean(axis=1) / unit.mean()
    if is_linear(with_data, by_prior + with_data):
        return judged((moves[:, 1] - moves[:, 0]) / unit, prior, size)
    gradients = [np.asarray(jax.grad(target.potential)(x)) for target in targets[:2]]
    usual = gradients[0] / (gradients[1] - gradients[0])
    return judged(_with_other_metric(moves - np.asarray(x), usual, unit, with_data.mean(axis=0)), prior, size)


def _with_other_metric(moves: np.ndarray, usual: np.ndarray, unit: np.ndarray, with_data: np.ndarray) -> np.ndarray:
    """Work out the shares (keys, blocks) of data in steps whose metric is another one with their pull than without.

    Args:
        moves: (keys, 2, blocks) of steps without the pull and with it.
        usual: (blocks,) gradient of the prior in units of the pull.
        unit: (blocks,) mean moves by the pull of the prior, without that of the data.
        with_data: (blocks,) the same with it.
    """
    noise, moved = moves[:, 0] - usual * unit, moves[:, 1]
    spread = noise.var(axis=0)
    common = np.mean((noise - noise.mean(axis=0)) * (moved - moved.mean(axis=0)), axis=0)
    slope = common / np.where(spread > 0, spread, np.inf)
    return (moved - slope * noise) / with_data - usual


def first_state(sampler: Sampler, estimator: Any, x: jax.Array) -> Any:
    """A state at a position, in Python or JAX."""
    host = on_host(sampler)
    return sampler.init(np.random.default_rng(0) if host else jax.random.key(0), _given(host, x), estimator)


def is_linear(once: np.ndarray, twice: np.ndarray) -> bool:
    """True if twice the pull moves twice as far."""
    return bool(np.abs(twice - 2 * once).max() <= 1e-6 * np.abs(once).max())


def judged(shares: np.ndarray, prior: np.ndarray, size: int, in_order: bool = False) -> Weights:
    """Work out the weights from those of blocks (keys, blocks), and from those of the prior, in each step.

    A block has a weight of its own if it enters often; so has one that never enters, where all others do. Of runs
    through data in an order each has one, and none varies less than they do on average: what a short minibatch makes
    heavy once in a while does not show in the spread of a datum that has not been in one.
    """
    blocks, times = shares.shape[1], np.count_nonzero(shares, axis=0)
    spread, often = shares.std(axis=0), (times >= OFTEN) | in_order
    spread = np.maximum(spread, np.sqrt(np.mean(spread**2))) if in_order else spread
    often |= (times == 0) & bool(np.all(often | (times == 0)))
    copies = _copies(shares)
    drawn = size if not spread.any() else int((shares != 0 if copies is None else copies).sum(axis=1).max())
    if copies is not None and times.mean() >= ALIKE:
        # if they are right, each is drawn as often as the others, and the counts have one variance
        spread, often = np.full(blocks, np.sqrt(np.mean(spread**2))), np.full(blocks, True)
    slope = (np.arange(blocks) - (blocks - 1) / 2) / blocks
    parts = {"all": shares.mean(axis=1), "the prior": prior}
    # heavier towards the last block: a weight of its own for each is drawn too seldom
    parts |= {"the last": 1 + 2 * (shares @ slope) / blocks}
    found = [(name, each.mean(), each.std() / len(each) ** 0.5) for name, each in parts.items()]
    found += [
        (f"block {i + 1} of {blocks}", shares[:, i].mean(), spread[i] / len(shares) ** 0.5)
        for i in np.flatnonzero(often)
    ]
    error = lambda part: abs(part[1] - 1) - DEVIATIONS * part[2]
    worst = max(found, key=error)
    return Weights(worst[0], float(worst[1]), float(error(worst)), bool(times.all()), drawn, len(shares))


def _copies(shares: np.ndarray) -> np.ndarray | None:
    """Numbers of draws of each block (steps, blocks), if all data have the same weight; else None."""
    drawn = shares[shares != 0]
    if not len(drawn) or drawn.min() <= 0:
        return None
    copies = shares / drawn.min()
    return np.round(copies) if np.allclose(copies, np.round(copies), rtol=1e-6) else None


def _given(host: bool, x: jax.Array) -> Any:
    return np.array(x) if host else x


def _one_step(sampler: Sampler, estimator: Any, x: jax.Array, h: float, seed: int = 0) -> Any:
    """The position after a step under a key of its own."""
    if on_host(sampler):
        rng = np.random.default_rng(seed)
        state = sampler.init(rng, np.array(x), estimator)
        return np.array(sampler.position(sampler.step(rng, state, h, estimator)))
    first, rest = jax.random.split(jax.random.key(seed))
    return sampler.position(sampler.step(rest, sampler.init(first, x, estimator), h, estimator))


Ends = tuple[np.ndarray, np.ndarray]
"""Ends of the first two samplers (keys, 2, blocks), and of all (fewer keys, samplers, blocks)."""


def _ends(samplers: Sequence[Sampler], oracles: Sequence[Any], x: jax.Array, h: float) -> Ends:
    """Positions after a step of each sampler under the same keys."""

    @jax.jit
    def ends(seeds: jax.Array) -> jax.Array:
        one = lambda seed: jnp.stack([_one_step(s, e, x, h, seed) for s, e in zip(samplers, oracles, strict=True)])
        return jax.lax.map(one, seeds)

    rows = np.asarray(ends(jnp.arange(WEIGHED)))
    return rows[:, :2], rows


def _ends_on_host(samplers: Sequence[Sampler], oracles: Sequence[Any], x: jax.Array, h: float) -> Ends:
    """The same of samplers in Python, under as many keys as there is time for. Raises OutOfReach for too few.

    After the first keys only of those two that tell what the data do.
    """
    rows, moves, start, pairs = [], [], time.process_time(), list(zip(samplers, oracles, strict=True))
    while len(moves) < WEIGHED and time.process_time() - start < (SECONDS if len(moves) >= FEWEST else LONGEST):
        ends = [_one_step(s, e, x, h, len(moves)) for s, e in (pairs if len(rows) < COMPARED else pairs[:2])]
        moves.append(ends[:2])
        if len(ends) == len(pairs):
            rows.append(ends)
    if len(moves) < OFTEN:
        raise OutOfReach("a host sampler that knows of the data takes too long for a step")
    return np.array(moves), np.array(rows)
