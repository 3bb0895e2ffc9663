"""Data: all of them enter a sampler that draws its own minibatches, however many there are.

A sampler that reads the data itself may leave some out that small targets do not have: a slice that is left over, an
index of 16 bits, blocks of which the last is not full. Here a datum pulls one coordinate, that of its block, and what
the pull changes in a step under the same key says which blocks were drawn.

A batch that small targets fill hides its weight as well: N / n is 1 there. Data are weighed, too (`data_weights`).
"""

import dataclasses
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach, statement
from sgmcmc_verification.checks.core.error_origin import RAISED, one_line
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.obligations import DATA
from sgmcmc_verification.checks.core.selection import claims_of
from sgmcmc_verification.checks.core.start_position import program_of_first_step, start_state
from sgmcmc_verification.checks.programs.operations import operations_and_numbers
from sgmcmc_verification.checks.tiers.premises.data_in_order import weighed_in_order
from sgmcmc_verification.checks.tiers.premises.data_weights import weighed
from sgmcmc_verification.checks.tiers.premises.pulled_data import BLOCKS, SIZE, pulled, still
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import ParticleLaw
from sgmcmc_verification.samplers.interface.sampler import Sampler
from sgmcmc_verification.samplers.interface.whole_state import key_words
from sgmcmc_verification.targets.target import Target

CHUNK, CHUNKS = 16, 256
"""Keys of a call, and calls: 4096 draws of a block that one datum in 128 is from all miss it once in 10^14 times."""
FEW = 3
"""Data with which the program of a step is compared with that of many."""
ON_HOST, HOST_STEPS = (1.0, 8.0), 50
"""Factors of the usual step size at which a host sampler takes steps, and how many at each."""
FEWER = 1279
"""Data that are weighed: more than a batch has, and one less than a multiple of 32, 64, 128 and 256."""
LEAST = 0.02
"""Relative error of a weight that is seen."""
STEPS = 1 << 17
"""Steps of a chain that goes through the data in an order of its own, one at a time at the slowest."""


@statement(
    tier="contract",
    equation="every block of many data changes the step",
    targets=lambda subject: subject.row.targets[:1] if "euclidean" in claims_of(subject).spaces else (),
    cost=0.1,
    decides="dynamics",
    once=True,
)
def every_datum_enters(case: Case) -> Finding:
    """Of 70,001 data in 16 blocks each block is drawn, by samplers that read the data themselves, and by its weight.

    Compared are steps under the same keys from the same state with and without the pull of the data. Samplers that
    take the data in an order of their own are followed for as many steps as there are data. Others are moved by
    1279 data, in the mean, as by the same pull in the prior.

    A step that reads no data but through the estimator, and is one program for any number of them, knows of U alone:
    its law with data is the one that it has without. Noise in the gradient is a question of its own. Where Python takes
    the steps, they themselves have to be the same without data, with few and with many.
    """
    if on_host(case.subject.sampler(find_target(case.subject.row.targets[0]))):
        return _of_host(case)
    missing = missed(case.subject)
    if missing == [] and (wrong := _misweighed(case)) is not None:
        return wrong
    fine = f"all blocks of {SIZE} data enter" if missing is not None else "it reads no data but through the estimator"
    shown = missing is None and knows_of_potential_alone(case.subject)
    missing = missing or []
    first, last = (missing[0] * SIZE // BLOCKS, (missing[-1] + 1) * SIZE // BLOCKS - 1) if missing else (0, 0)
    wrong = f"{len(missing)} of {BLOCKS} blocks of {SIZE} data never enter, from the data {first} to {last}"
    return _finding(case, len(missing), wrong if missing else fine, shown)


def _of_host(case: Case) -> Finding:
    """The finding on a sampler in Python whose steps are the same without data, with few and with many.

    Raises OutOfReach where they are not: each of its steps takes Python long, and the data are many.
    """
    (few, some), (many, others) = pulled(0.0, FEW), pulled(0.0)
    try:
        runs = [_run(case.subject, target) for target in (few, many)]
        if not some and not others:
            runs.append(_run(case.subject, dataclasses.replace(few, terms=None)))
    except RAISED as error:
        raise OutOfReach(f"the sampler does not run on a target with {SIZE} data ({one_line(error, 120)})") from None
    if not some and not others and all(np.array_equal(runs[0], run, equal_nan=True) for run in runs):
        return _finding(case, 0, f"without data, with {FEW} and with {SIZE} its steps are the same", shown=True)
    if (wrong := _misweighed(case)) is not None:
        return wrong
    found = weighed(case.subject, FEWER)
    if found is None or not found.every:
        raise OutOfReach("a host sampler that knows of the data is called from Python: too many steps")
    fine = f"in the mean of {found.steps} steps {FEWER} data move as the same potential without data"
    return _finding(case, 0, fine, shown=not _remembers_data(case.subject))


def _remembers_data(subject: Subject) -> bool:
    """True if a state in Python holds more numbers with data than without: what a table does shows later."""
    few, _ = pulled(0.0, FEW)

    def size(target: Target) -> int:
        sampler = subject.sampler(target)
        state = sampler.init(np.random.default_rng(0), np.asarray(target.example), HostExact(target))
        leaves = jax.tree.leaves(state)
        return sum(np.size(leaf) for leaf in leaves if np.issubdtype(np.asarray(leaf).dtype, np.inexact))

    return size(few) > size(dataclasses.replace(few, terms=None))


def _run(subject: Subject, target: Target) -> np.ndarray:
    """The positions of some steps of a host sampler at two step sizes."""
    sampler, estimator, path = subject.sampler(target), HostExact(target), []
    for seed, factor in enumerate(ON_HOST):
        rng = np.random.default_rng(seed)
        state = sampler.init(rng, np.asarray(target.example), estimator)
        for _ in range(HOST_STEPS):
            state = sampler.step(rng, state, factor * subject.step_size(target), estimator)
            path.append(np.array(sampler.position(state)))
    return np.array(path)


def _finding(case: Case, missing: int, reason: str, shown: bool) -> Finding:
    return Finding(
        effect=float(missing),
        tolerance=Tolerance.identity("a block is drawn or it is not"),
        minimum_detectable_effect=1.0,
        required_sensitivity=1.0,
        reason=reason,
        statistic="blocks of data that never change a step",
        unit="blocks",
        step_size=case.step_size,
        meets=(DATA,) if shown else (),
    )


@lru_cache(maxsize=64)
def knows_of_potential_alone(subject: Subject) -> bool:
    """True if a step is one program, with the same numbers and arrays in it, without data, for few and for many."""
    few = still(FEW)
    targets = (dataclasses.replace(few, terms=None), few, still(SIZE))
    without, *others = (_program(subject, target) for target in targets)
    return all(_same(without, each) for each in others)


def _program(subject: Subject, target: Target) -> core.ClosedJaxpr:
    return program_of_first_step(subject.sampler(target), Exact(target), target.example, subject.step_size(target))


def _same(a: core.ClosedJaxpr, b: core.ClosedJaxpr) -> bool:
    if list(operations_and_numbers(a)) != list(operations_and_numbers(b)):
        return False
    return all(np.array_equal(key_words(x), key_words(y)) for x, y in zip(a.consts, b.consts, strict=True))


def _misweighed(case: Case) -> Finding | None:
    """The finding on data that do not weigh what they should; None if they do, or are not weighed.

    Many of them by blocks, and one by one so many that a minibatch is a little less than half of them; those that a
    state keeps an order of only one by one.
    """
    found, size = weighed(case.subject, FEWER), FEWER
    if found is None and (in_order := weighed_in_order(case.subject, FEWER)) is not None:
        found, size = in_order
    elif found is not None and found.error <= LEAST and found.drawn < FEWER:
        size = min(2 * found.drawn + 1, FEWER)
        found = weighed(case.subject, size, blocks=size)
    if found is None or found.error <= LEAST:
        return None
    return Finding(
        effect=found.error,
        tolerance=Tolerance(LEAST, "error of a mean over minibatches"),
        required_sensitivity=0.5,
        reason=f"{size} data weigh {found.weight:.4g} times what they should, {found.worst} of them",
        statistic="mean move by the data less that without data",
        unit="relative",
        step_size=case.step_size,
    )


def missed(subject: Subject) -> list[int] | None:
    """The blocks that never change a step; None where the sampler reads no data.

    Raises:
        NotApplicable: for particles.
        OutOfReach: for a sampler that does not run on such a target.
    """
    if ParticleLaw in claims_of(subject):
        raise NotApplicable("particles move by all data")
    first, (moved, reads) = still(SIZE), pulled(1.0)
    try:
        samplers = [subject.sampler(target) for target in (first, moved)]
        # what the estimator knows is the prior: data that enter are those that the sampler reads
        estimator = Exact(first)
        states = [start_state(s, jax.random.key(0), first.example, estimator) for s in samplers]
        h = subject.step_size(first)
        jax.eval_shape(lambda key: samplers[1].step(key, states[1], h, estimator), jax.random.key(0))
    except RAISED as error:
        raise OutOfReach(f"the sampler does not run on a target with {SIZE} data ({one_line(error, 120)})") from None
    if not reads:
        return None
    entered = _entered(samplers, estimator, first, h)
    if not entered.any():
        raise OutOfReach("no datum changes a step by itself")
    return np.flatnonzero(~entered).tolist()


def _entered(samplers: list[Sampler], estimator: Exact, target: Target, h: float) -> np.ndarray:
    """Blocks that change the position in some step (BLOCKS,)."""
    init, both = _pair(samplers, estimator, target, h)

    @jax.jit
    def first_steps(keys: jax.Array) -> jax.Array:
        def one(key: jax.Array) -> jax.Array:
            start, step = jax.random.split(key)
            return both(step, init(start))[1]

        return jnp.any(jax.lax.map(one, keys), axis=0)

    @jax.jit
    def chain(states: Any, key: jax.Array) -> tuple[Any, jax.Array]:
        def advance(carry: Any, k: jax.Array) -> tuple[Any, None]:
            held, seen = carry
            held, changed = both(k, held)
            return (held, seen | changed), None

        keys = jax.random.split(key, CHUNK * CHUNKS)
        return jax.lax.scan(advance, (states, jnp.zeros(BLOCKS, bool)), keys)[0]

    entered = np.zeros(BLOCKS, bool)
    for i in range(CHUNKS):
        entered |= np.asarray(first_steps(jax.random.split(jax.random.key(i), CHUNK)))
        if entered.all() or (i and not entered.any()):
            return entered
    states = init(jax.random.key(0))
    if all(jnp.issubdtype(jnp.result_type(leaf), jnp.floating) for leaf in jax.tree.leaves(states)):
        return entered  # nothing that an order could be kept in
    for i in range(STEPS // (CHUNK * CHUNKS)):
        states, changed = chain(states, jax.random.key(CHUNKS + i))
        entered |= np.asarray(changed)
        if entered.all():
            break
    return entered


def _pair(
    samplers: list[Sampler], estimator: Exact, target: Target, h: float
) -> tuple[Callable[[jax.Array], Any], Callable[[jax.Array, Any], tuple[Any, jax.Array]]]:
    """`init` and `step` of two samplers under the same key, and where their positions then differ."""

    def init(key: jax.Array) -> Any:
        return [sampler.init(key, target.example, estimator) for sampler in samplers]

    def step(key: jax.Array, states: Any) -> tuple[Any, jax.Array]:
        after = [s.step(key, state, h, estimator) for s, state in zip(samplers, states, strict=True)]
        one, other = (s.position(state) for s, state in zip(samplers, after, strict=True))
        return after, one != other

    return init, step
