"""Streams of random numbers: chains, seeds, keys, steps and leaves have noise that is not correlated.

All chains start at one point and take two steps. Under the null hypothesis the end points are i.i.d., and so are
disjoint groups of them; products of differences within a group have the mean zero, whatever the law. Nothing is assumed
of the sampler.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.check import Case, NotApplicable, statement
from sgmcmc_verification.checks.core.compilation import OPTIMISED
from sgmcmc_verification.checks.core.finding import Finding
from sgmcmc_verification.checks.core.selection import structured_targets
from sgmcmc_verification.checks.end_points.chains import end_points
from sgmcmc_verification.checks.end_points.error_rates import (
    CHAINS,
    Sensitivity,
    chains_for,
    decide_statistically,
    not_finite,
    stage_seed,
)
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.outcome import Outcome
from sgmcmc_verification.checks.tracing.noise_tape import Noise
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, step_map
from sgmcmc_verification.samplers.interface.claims import Exchange, FlattenedLaw, StochasticEquation

NUM_STEPS = 2
MOST = CHAINS // 5
CORRELATION = 0.05
"""Promised."""
UNIT = "correlation"


@statement(
    tier="invariance",
    equation="noise of chains, seeds, keys, steps and leaves is not correlated",
    targets=structured_targets,
    cost=5.0,
    decides="conduct",
    samples=True,
    once=True,
)
def streams_independent(case: Case, seed: int) -> Finding:
    """Noise of neighbouring chains, seeds and keys, of steps and of leaves is not correlated.

        E (a - a')(b - b') = 2 Cov(a, b)

    for independent copies (a, b), (a', b') of any pair, so that the mean is zero if a and b are independent:

    chains: the end points of chain i and chain i + 1;
    seeds: those of chain i + 1 with the seed n and of chain i with the seed n + 1, as with keys made by seed + i;
    keys: one step with the raw keys s and s + 1, and with the children i and i + 1 of one key;
    steps and leaves: the covariance of the end point is that of the same two steps whose draws come from another
    generator through the noise tape, independent by construction.
    """
    step, h = step_map(case.subject, case.target), case.step_size
    start, claims = generic_points(step, 1)[0], step.sampler.claims
    if not any(kind in claims for kind in (StochasticEquation, Exchange, FlattenedLaw)):
        # what a sampler keeps beside the position, of which nothing is declared, may have to be positive
        start[case.target.size :] = np.asarray(step.template.flat)[case.target.size :]
    if case.target.manifold.dim < case.target.size:
        # a generic point lies off the manifold, and the velocity is for `init` to draw
        start = np.asarray(case.target.ravel(case.target.example))
    count = chains_for(step, MOST) // 4 * 4
    skipped = _tape_cannot(step, start)

    def run(stage: int, n: int) -> Sequence[Outcome]:
        n = n // 4 * 4
        first, second = (
            end_points(step, np.tile(start, (n, 1)), h, NUM_STEPS, stage_seed(seed, stage) + k).variable for k in (0, 1)
        )
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            return [not_finite("end points that are not finite", n, UNIT)]
        scale = first.std(axis=0)
        moving = scale > 0
        if not moving.any():
            raise NotApplicable("the step has no noise")
        first, second = (z[:, moving] / scale[moving] for z in (first, second))
        labels = np.flatnonzero(moving)
        outcomes = list(_pairs("chains i and i + 1", first[0::4], first[1::4], first[2::4], first[3::4], labels))
        outcomes += _pairs(
            "chain i + 1 of seed n, chain i of seed n + 1", first[1::4], second[0::4], first[3::4], second[2::4], labels
        )
        if step.sampler.backend == "jax":
            for name, pair in _keys(stage_seed(seed, stage, 1), n):
                a, b = (np.asarray(_one_step(step)(keys, jnp.asarray(start), jnp.asarray(h))) for keys in pair)
                own = a.std(axis=0)
                live = own > 0
                a, b = a[:, live] / own[live], b[:, live] / own[live]
                outcomes += _pairs(name, a[0::2], b[0::2], a[1::2], b[1::2], np.flatnonzero(live))
        if skipped is None and isinstance(step, JaxStep):
            tape = _through_the_tape(step, start, h, stage_seed(seed, stage, 2), n)[:, moving] / scale[moving]
            outcomes += _covariances(first, tape, labels)
        return outcomes

    return decide_statistically(
        run,
        first_n=count,
        promised=Sensitivity(CORRELATION, chains=MOST).of(count),
        allowance_source="independent streams have the correlation zero",
        reason=lambda o: f"{o.name}: correlation {o.effect:.3g}",
        steps=2 * NUM_STEPS,
        step_size=h,
        detail={"chains": count, "steps_and_leaves": skipped or "compared with the noise tape"},
    )


def _pairs(name: str, a, b, a2, b2, labels) -> Iterator[Outcome]:
    """Tests of Cov(a_i, b_j) = 0 for all coordinates i, j, from independent copies (a, b), (a2, b2) (n, k)."""
    da, db = a - a2, b - b2
    for i, first in enumerate(labels):
        for j, second in enumerate(labels):
            yield mean_test(da[:, i] * db[:, j] / 2, 0.0, name=f"{name}, z[{first}] and z[{second}]", unit=UNIT)


def _covariances(z, reference, labels) -> Iterator[Outcome]:
    """Tests that two independent samples (n, k) have the same covariances."""
    half = len(z) // 2
    d, e = (v[:half] - v[half : 2 * half] for v in (z, reference))
    for i, first in enumerate(labels):
        for j in range(i + 1):
            name = f"steps and leaves, z[{labels[j]}] and z[{first}]"
            yield mean_test((d[:, i] * d[:, j] - e[:, i] * e[:, j]) / 2, 0.0, name=name, unit=UNIT)


def _keys(seed: int, n: int) -> Iterator[tuple[str, tuple[jax.Array, jax.Array]]]:
    """Pairs of neighbouring keys, n of each kind, with nothing in common between different pairs."""
    # from all even 32-bit numbers: stages and seeds of the check have to be independent, so they may not share keys
    raw = jnp.asarray(2 * np.random.default_rng(seed).choice(1 << 31, n, replace=False), jnp.uint32)
    make = jax.vmap(jax.random.key)
    yield "keys s and s + 1", (make(raw), make(raw + 1))
    child = jax.vmap(jax.random.fold_in, (0, None))
    parents = make(raw)
    yield "children i and i + 1 of a key", (child(parents, 4), child(parents, 5))
    yield "child i + 1 of key s, child i of key s + 1", (child(parents, 5), child(make(raw + 1), 4))


@lru_cache(maxsize=4)
def _one_step(step: JaxStep):
    """(keys (n,), start, h) -> z after one step, (n, m); the state comes from one fixed key."""

    def one(key, start, h):
        fixed = jax.random.key(0)
        if len(start) == step.size:
            state = step.sampler.pack(fixed, step.template.unravel(start), step.estimator)
        else:
            state = step.sampler.init(fixed, step.target.unravel(start), step.estimator)
        return ravel_pytree(step.sampler.unpack(step.sampler.step(key, state, h, step.estimator)))[0]

    return jax.jit(jax.vmap(one, (0, None, None)), compiler_options=OPTIMISED)


def _tape_cannot(step: JaxStep | HostStep, start: np.ndarray) -> str | None:
    """Reason why the tape cannot stand in for the generator; None if it can."""
    if not isinstance(step, JaxStep):
        return "a host sampler is not traced: its steps and leaves are compared in the contract tier"
    if step.program.unintercepted:
        return f"the tape cannot feed {', '.join(step.program.unintercepted)}"
    if len(start) != step.size:
        return "the start leaves part of the state to init"
    return None


def _through_the_tape(step: JaxStep, start: np.ndarray, h: float, seed: int, n: int) -> np.ndarray:
    """z (n, m) after `NUM_STEPS` steps whose draws come from NumPy."""
    generator = np.random.default_rng(seed)
    program = step.program
    z = jnp.asarray(np.tile(start, (n, 1)))
    for _ in range(NUM_STEPS):
        normals = generator.standard_normal((n, program.count("normal")))
        uniforms = generator.random((n, program.count("uniform")))
        integers = np.stack([generator.integers(r, size=n) for r in program.ranges], 1) if program.ranges else None
        integers = np.zeros((n, 0), int) if integers is None else integers
        z = _taped(step)(z, jnp.asarray(normals), jnp.asarray(uniforms), jnp.asarray(integers), jnp.asarray(h))
    return np.asarray(z)


@lru_cache(maxsize=4)
def _taped(step: JaxStep):
    move = jax.vmap(lambda z, e, u, k, h: step.program(Noise(e, u, k), z, h)[0], (0, 0, 0, 0, None))
    return jax.jit(move, compiler_options=OPTIMISED)
