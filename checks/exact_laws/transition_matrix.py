"""The matrix of a step on finitely many states, P(x, y) = P(x' = y), and its stationary law."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csgraph, csr_matrix

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Inconclusive, OutOfReach
from sgmcmc_verification.checks.tracing.host_branching import Unintercepted, branches
from sgmcmc_verification.checks.tracing.outcomes.host import OutcomeGenerator
from sgmcmc_verification.checks.tracing.outcomes.traced import Listed, listed
from sgmcmc_verification.checks.tracing.step_map import host_ravel
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.targets.target import FiniteLaw, Target

MOST = 1 << 22
"""Largest number of pairs of a state and a way that are evaluated."""
MOST_RUNS = 1 << 15
"""Largest number of them on the host, where each is a run of the step."""
BLOCK = 1 << 16
"""Pairs of one call."""


class Transition(NamedTuple):
    """A step on S states.

    Attributes:
        matrix: P (S, S).
        outside: (S,), probability of a step to no state at all.
        ways: number of ways that the draws of a step can fall.
        draws: number of draws that decide between them.
    """

    matrix: np.ndarray
    outside: np.ndarray
    ways: int
    draws: int


def law_at(law: FiniteLaw, temperature: float) -> np.ndarray:
    """Probabilities (S,) of exp(-U / T)."""
    tempered = law.probabilities ** (1 / temperature)
    return tempered / tempered.sum()


@lru_cache(maxsize=64)
def transition(subject: Subject, target: Target, h: float) -> Transition:
    """The matrix of a step of size h, from all states and for all ways that its draws can fall.

    Raises:
        OutOfReach: if the state holds more than the position, or the draws cannot be listed.
        Inconclusive: if a Gumbel variable is used twice.
    """
    law, sampler = target.finite, subject.sampler(target)
    assert law is not None
    if on_host(sampler):
        return _of_host(sampler, subject.estimator(target), target, h)
    ways, evaluate = _program(subject, target)
    states, outcomes = jnp.asarray(law.states), ways.ways()
    matrix, outside = np.zeros((len(states), len(states))), np.zeros(len(states))
    pairs = np.arange(ways.count * len(states))
    for start in range(0, len(pairs), BLOCK):
        origin, way = np.divmod(pairs[start : start + BLOCK], ways.count)
        ends, mass = (np.asarray(a) for a in evaluate(jnp.asarray(outcomes[way]), states[origin], jnp.asarray(h)))
        if np.any(np.isnan(mass)):
            raise Inconclusive("the step uses a Gumbel variable twice, or has a probability that is not a number")
        end = law.place(ends)
        inside = end >= 0
        np.add.at(matrix, (origin[inside], end[inside]), mass[inside])
        np.add.at(outside, origin[~inside], mass[~inside])
    return Transition(matrix, outside, ways.count, len(ways.ranges))


@lru_cache(maxsize=64)
def _program(subject: Subject, target: Target) -> tuple[Listed, Callable[..., Any]]:
    """The ways of a step, and the compiled function (outcomes, states, h) -> (ends, probabilities) of many."""
    sampler, estimator, law = subject.sampler(target), subject.estimator(target), target.finite
    assert law is not None

    def step(flat: jax.Array, size: jax.Array) -> tuple[Any, Any]:
        first, second = jax.random.split(jax.random.key(0))
        state = sampler.pack(first, target.unravel(flat), estimator)
        return target.ravel(sampler.position(sampler.step(second, state, size, estimator))), sampler.unpack(state)

    example = (jnp.asarray(law.states[0]), jnp.asarray(1.0))
    if sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(step, *example)[1])) != target.size:
        raise OutOfReach("the state holds more than the position")
    ways = listed(lambda flat, size: step(flat, size)[0], *example)
    if ways.count * len(law.states) > MOST:
        raise OutOfReach(f"{ways.count} ways of a step from {len(law.states)} states are too many to list")
    return ways, jax.jit(jax.vmap(ways.run, (0, 0, None)))


def _of_host(sampler: Any, estimator: Any, target: Target, h: float) -> Transition:
    """The matrix of a step of the host, by all paths through its draws."""
    law, size = target.finite, np.shape(target.example)
    assert law is not None
    states = law.states
    matrix, outside, ways, draws = np.zeros((len(states), len(states))), np.zeros(len(states)), 0, 0

    def step(generator: OutcomeGenerator, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        state = sampler.step(generator, sampler.pack(generator, x.reshape(size).copy(), estimator), h, estimator)
        return host_ravel(sampler.position(state)), host_ravel(sampler.unpack(state)), len(generator.widths)

    for number, x in enumerate(states):
        try:
            ends = list(branches(lambda generator, x=x: step(generator, x), 1, OutcomeGenerator))
        except (Unintercepted, ValueError, TypeError) as error:
            raise OutOfReach(f"the draws of a step on the host cannot be listed: {error}") from None
        if len(ends) * len(states) > MOST_RUNS:
            raise OutOfReach(f"{len(ends)} ways of a step from {len(states)} states are too many to run")
        if any(len(z) != target.size for _, (_, z, _) in ends):
            raise OutOfReach("the state holds more than the position")
        places = law.place(np.stack([end for _, (end, _, _) in ends]))
        for place, (weight, (_, _, count)) in zip(places, ends, strict=True):
            draws = max(draws, count)
            if place >= 0:
                matrix[number, place] += weight
            else:
                outside[number] += weight
        ways = max(ways, len(ends))
    return Transition(matrix, outside, ways, draws)


def classes(matrix: np.ndarray) -> np.ndarray:
    """Number (S,) of the class of states that reach each other, for each state."""
    return csgraph.connected_components(csr_matrix(matrix > 0), connection="strong")[1]


def period(matrix: np.ndarray) -> int:
    """The greatest common divisor of the lengths of all loops through the first state of an irreducible chain."""
    depth = csgraph.shortest_path(csr_matrix(matrix > 0), unweighted=True, indices=0).astype(int)
    origin, end = np.nonzero(matrix)
    return int(np.gcd.reduce(depth[origin] + 1 - depth[end]))


def stationary(matrix: np.ndarray) -> np.ndarray:
    """The law pi (S,) of an irreducible chain, pi P = pi, each entry to a few units in its own last place.

    States are eliminated one by one; as nothing is subtracted, rates as small as h^9 keep their relative accuracy.

    Source: grassmann1985regenerative.
    """
    p, size = np.array(matrix, np.float64), len(matrix)
    for n in range(size - 1, 0, -1):
        p[:n, n] /= p[n, :n].sum()
        p[:n, :n] += np.outer(p[:n, n], p[n, :n])
    pi = np.ones(size)
    for n in range(1, size):
        pi[n] = pi[:n] @ p[:n, n]
    return pi / pi.sum()
