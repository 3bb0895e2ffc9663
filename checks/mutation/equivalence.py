"""Proofs that a mutant has the law of the sampler that it is a change of.

A step is a function of state, noise and step size. A mutant is equivalent if that function is the same one, or the
same one of a noise that has the same law (normals with their signs changed, independent normals exchanged), or if the
transition is the same Gaussian. Whether it is is decided under the noise tape, for everything that the state lets out
(`position` and `unpack`) over the first steps from `pack`, at random points, noises and step sizes over three decades
(so that every branch on a step size is taken), at every setting of the row. The functions are analytic on each branch:
agreeing to round-off at random points they are equal. For an accept step the uniform is put just above and just below
the acceptance probability; it is compared for one step, so that the state has to be closed. The tape does not see which
key a draw comes from: each has to have a key of its own that follows from the step's. What a Metropolis test does where
the potential is not finite is looked at apart. That a law is nearly the same, or the same to the claimed order, proves
nothing here.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Inconclusive, NotApplicable, Statement
from sgmcmc_verification.checks.mutation.catalogue import Mutant
from sgmcmc_verification.checks.mutation.operators import HIDDEN
from sgmcmc_verification.checks.mutation.program import Setting, settings, start
from sgmcmc_verification.checks.runner.execute import cached_target, execute
from sgmcmc_verification.checks.tiers.contract.interface import Shifted, key_reuse
from sgmcmc_verification.checks.tiers.generator.proposal import beyond_the_wall
from sgmcmc_verification.checks.tiers.premises import closed_state, fresh_draws
from sgmcmc_verification.checks.tracing.noise_tape import Draw, Noise, Program, record
from sgmcmc_verification.samplers.dynamics.published import RECIPE_OFFSET
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.riemannian.metrics import DiagonalMetric, RecipeMetric, dense, wave
from sgmcmc_verification.targets.simplex.parameterisations import REDUCED
from sgmcmc_verification.targets.target import Target

POINTS = 5
LONG = 10.0
"""Multiple of the usual step size above which two steps are compared, and three below."""
FACTORS = (0.3, 1.0, 3.0, 30.0, 300.0)
"""Step sizes, in units of the usual one."""
EPS = float(np.finfo(float).eps)
SAME = "the same function of state, noise and step size"
SIGNS = "the same function but for the signs of symmetric noise"
EXCHANGED = "the same function but for the order (and signs) of independent normals"
GAUSSIAN = "the same Gaussian transition: affine in the normals with equal mean and covariance"
METRIC = "the unmutated sampler with another valid metric"


def proof(row: Row, mutant: Mutant) -> str | None:
    """Proof that a mutant has the law of the sampler of `row` at every setting of the row; None if there is none."""
    if mutant.operator in HIDDEN:
        return None
    if mutant.place.module == "sgmcmc_verification.samplers.riemannian.metrics" and _valid_metric(mutant):
        return METRIC
    changed = mutant.row(row)
    found = []
    for number, setting in enumerate(settings(row)):
        try:
            found.append(_same_law(row, changed, number))
        except Exception:  # whatever the changed code raises: nothing is shown
            return None
        # the tape does not see which key a draw comes from, nor what happens outside of the support
        subject, target = setting.subject(changed), cached_target(setting.target)
        if found[-1] is None or key_reuse(subject, target) or not _holds(fresh_draws, subject, setting.target):
            return None
        if not _stays_inside(subject, target):
            return None
    return max(found, key=[SAME, SIGNS, EXCHANGED, GAUSSIAN].index)


def _holds(premise: Statement, subject: Subject, target: str) -> bool:
    """True if a premise of the comparison holds, or says nothing of a host sampler."""
    return execute(premise, subject, target, 0).verdict in ("pass", "not-applicable")


def _stays_inside(subject: Subject, target: Target) -> bool:
    """True unless a Metropolis test accepts a potential that is not finite, which no target has where chains go."""
    try:
        return not beyond_the_wall(subject, target).any()
    except (NotApplicable, Inconclusive):
        return True


def _same_law(row: Row, changed: Row, number: int) -> str | None:
    setting = settings(row)[number]
    sampler = setting.subject(row).sampler(cached_target(setting.target))
    if sampler.backend == "host":
        return _same_host(row, changed, number)
    found = _same_program(row, changed, number)
    # one step from pack is the kernel only if nothing is kept beside z, as a stale cache is
    one_step = found is not None and _reference(row, number).steps == 1
    return None if one_step and not _holds(closed_state, setting.subject(changed), setting.target) else found


# Under the tape -----------------------------------------------------------------------------------------------------


def _program(row: Row, setting: Setting, steps: int) -> Program:
    """pack, then some steps: everything that is let out after each of them, as a function of (z, h) and the noise."""
    subject, target = setting.subject(row), cached_target(setting.target)
    sampler, estimator = subject.sampler(target), subject.estimator(target)
    z, unravel = ravel_pytree(sampler.unpack(start(sampler, target, estimator)))

    def run(z: jax.Array, h: jax.Array):
        keys = jax.random.split(jax.random.key(0), steps + 1)
        state, seen = sampler.pack(keys[0], unravel(z), estimator), []
        for key in keys[1:]:
            state = sampler.step(key, state, h, estimator)
            out = ravel_pytree((sampler.position(state), sampler.unpack(state)))[0]
            # a few steps of a size far beyond the stable ones blow round-off up: these are compared for two
            seen.append(jnp.where(h > LONG * subject.step_size(target), seen[1], out) if len(seen) > 1 else out)
        return jnp.concatenate(seen) if seen else z

    return record(run, z, jnp.asarray(0.1))


class _Reference(NamedTuple):
    """Steps of the unmutated sampler at random points (cases in rows), computed once per setting."""

    steps: int
    draws: tuple[Draw, ...]
    packing: tuple[Draw, ...]
    run: Callable[..., np.ndarray]
    zs: np.ndarray
    hs: np.ndarray
    normals: np.ndarray
    sides: tuple[np.ndarray, ...]
    integers: np.ndarray
    expected: tuple[np.ndarray, ...]


@lru_cache(maxsize=12)
def _reference(row: Row, number: int) -> _Reference:
    setting = settings(row)[number]
    subject, target = setting.subject(row), cached_target(setting.target)
    sampler, estimator = subject.sampler(target), subject.estimator(target)
    state = start(sampler, target, estimator)
    step = jax.jit(lambda key, state: sampler.step(key, state, subject.step_size(target), estimator))
    cases = []
    for i in range(POINTS):
        for j in range(3):
            state = step(jax.random.key(100 * i + j), state)
        z = np.asarray(ravel_pytree(sampler.unpack(state))[0])
        cases += [(z, f * subject.step_size(target)) for f in FACTORS]
    zs, hs = np.stack([z for z, _ in cases]), np.array([h for _, h in cases])
    accepting = bool(_program(row, setting, 1).count("uniform"))
    steps = 1 if accepting else 3  # a running mean that takes the last value for itself shows in the third
    program, packing = _program(row, setting, steps), _program(row, setting, 0)
    if program.unintercepted or (accepting and program.count("uniform") != 1):
        raise NotImplementedError("draws that the tape does not feed, or several accept steps")
    run, rng = _batched(program), np.random.default_rng(0)
    normals = rng.standard_normal((len(cases), program.count("normal")))
    integers = np.array([[rng.integers(r) for r in program.ranges] for _ in cases], int).reshape(len(cases), -1)
    sides: tuple[np.ndarray, ...] = (rng.random((len(cases), program.count("uniform"))),)
    if accepting:
        level = _acceptance(run, normals, integers, zs, hs)
        sides = tuple(np.clip(level * (1 + s) + s, 0.0, 1 - EPS)[:, None] for s in (-1e-11, 1e-11))
    expected = tuple(run(normals, side, integers, zs, hs) for side in sides)
    return _Reference(steps, program.draws, packing.draws, run, zs, hs, normals, sides, integers, expected)


def _same_program(row: Row, changed: Row, number: int) -> str | None:
    one = _reference(row, number)
    program = _program(changed, settings(row)[number], one.steps)
    if program.unintercepted or sorted(map(str, one.draws)) != sorted(map(str, program.draws)):
        return None
    second = _batched(program)
    for order, signs in _relabellings(one, program.draws):
        moved = one.normals[:, order] * signs
        got = [second(moved, side, one.integers, one.zs, one.hs) for side in one.sides]
        if all(_equal(a, b) for a, b in zip(one.expected, got, strict=True)):
            if not np.array_equal(order, np.arange(len(order))):
                return EXCHANGED
            return SAME if np.all(signs == 1) else SIGNS
    return (
        GAUSSIAN
        if not any(d.kind == "normal" for d in one.packing) and len(one.sides) == 1 and _same_gaussian(one, second)
        else None
    )


def _same_gaussian(one: _Reference, second: Callable[..., np.ndarray]) -> bool:
    """True if the steps are affine in the normals, with the same mean and covariance given z, at every point.

    The state has to be a function of z: `pack` draws nothing, which the caller makes sure of. The covariance is that
    of all the steps jointly.
    """
    count, rows = one.normals.shape[1], len(one.zs)
    if one.integers.shape[1] or not count:
        return False

    def law(run: Callable):
        at = lambda normals: run(normals, one.sides[0], one.integers, one.zs, one.hs)
        mean = at(np.zeros((rows, count)))
        columns = np.stack([at(np.broadcast_to(e, (rows, count))) - mean for e in np.eye(count)], axis=2)
        affine = _equal(at(one.normals), mean + np.einsum("rij,rj->ri", columns, one.normals))
        return affine, mean, np.einsum("rik,rjk->rij", columns, columns).reshape(rows, -1)

    (affine, mean, covariance), (too, same, equal) = law(one.run), law(second)
    return affine and too and _equal(mean, same) and _equal(covariance, equal)


def _batched(program: Program) -> Callable[..., np.ndarray]:
    run = jax.jit(jax.vmap(lambda n, u, k, z, h: program(Noise(n, u, k), z, h)))
    return lambda *arguments: np.asarray(run(*(jnp.asarray(a) for a in arguments)))


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal to round-off, row by row; what is not finite is so in both."""
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return False
    a, b = np.nan_to_num(a, posinf=0, neginf=0), np.nan_to_num(b, posinf=0, neginf=0)
    scale = np.abs(a).max(axis=1, initial=1.0)
    return bool(np.all(np.abs(a - b).max(axis=1, initial=0.0) <= 1e4 * EPS * scale))


def _acceptance(run: Callable, normals: np.ndarray, integers: np.ndarray, zs: np.ndarray, hs: np.ndarray) -> np.ndarray:
    """The largest uniform that still accepts, by bisection."""
    low, high = np.zeros(len(zs)), np.ones(len(zs))
    proposal = run(normals, low[:, None], integers, zs, hs)
    for _ in range(52):
        middle = 0.5 * (low + high)
        took = np.all(run(normals, middle[:, None], integers, zs, hs) == proposal, axis=1)
        low, high = np.where(took, middle, low), np.where(took, high, middle)
    return 0.5 * (low + high)


def _relabellings(one: _Reference, two: tuple[Draw, ...]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(order, signs): the k-th normal of the mutant is `signs[k]` times the `order[k]`-th of the sampler.

    Whole draws are exchanged (with draws of the same size) and change their sign, in the same way in every step.
    """
    mine = [d for d in one.draws if d.kind == "normal"]
    its = [d for d in two if d.kind == "normal"]
    packs = sum(d.kind == "normal" for d in one.packing)
    own = (len(mine) - packs) // one.steps
    if packs + own * one.steps != len(mine):
        return
    starts = np.cumsum([0, *(d.size for d in mine)])
    straight = tuple(range(own))
    orders: Iterable[tuple[int, ...]] = itertools.permutations(straight) if own <= 6 else ()
    free = packs + own
    signs = list(itertools.product((1.0, -1.0), repeat=free)) if free <= 8 else [(1.0,) * free]
    for order in itertools.chain([straight], (o for o in orders if o != straight)):
        whole = (*range(packs), *(packs + own * step + i for step in range(one.steps) for i in order))
        if not _fits(whole, mine, its):
            continue
        index = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in whole] or [np.zeros(0)]).astype(int)
        # all sign patterns for the order as it is, equal signs for the others
        for sign in signs if order == straight else signs[:1]:
            each = (*sign[:packs], *sign[packs:] * one.steps)
            yield index, np.concatenate([np.full(d.size, s) for d, s in zip(its, each, strict=True)] or [np.zeros(0)])


def _fits(order: tuple[int, ...], mine: list[Draw], its: list[Draw]) -> bool:
    return all(mine[i].shape == d.shape for i, d in zip(order, its, strict=True))


# Host samplers ------------------------------------------------------------------------------------------------------


class _Flipped:
    """A NumPy generator whose standard normals have the other sign."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def standard_normal(self, *args: Any, **kwargs: Any):
        return -self._generator.standard_normal(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)


def _same_host(row: Row, changed: Row, number: int) -> str | None:
    """The same numbers from the same stream of the generator, or from that with the other sign of all normals."""
    setting = settings(row)[number]
    subject, target = setting.subject(row), cached_target(setting.target)
    hs = [f * subject.step_size(target) for f in FACTORS]

    def ends(which: Row, wrap: Callable[[Any], Any]) -> np.ndarray:
        chosen = setting.subject(which)
        sampler, estimator = chosen.sampler(target), chosen.estimator(target)
        rows = []
        for seed, h in itertools.product(range(POINTS), hs):
            state = sampler.init(np.random.default_rng(seed), target.example, estimator)
            for i, used in enumerate((estimator, Shifted(estimator, 0.731))):
                state = sampler.step(wrap(np.random.default_rng([seed, i])), state, float(h), used)
                rows.append(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(sampler.position(state))]))
        return np.stack(rows)

    expected = ends(row, lambda g: g)
    for family, wrap in ((SAME, lambda g: g), (SIGNS, _Flipped)):
        if _equal(expected, ends(changed, wrap)):
            return family
    return None


# Arguments of a sampler ---------------------------------------------------------------------------------------------


def _valid_metric(mutant: Mutant) -> bool:
    """True if the changed metric is one: symmetric, positive definite, with its square root, at random points.

    A sampler takes any metric as an argument; with another one it is another correct sampler of the same law.
    """
    from sgmcmc_verification.checks.mutation.load import load

    name = mutant.place.qualname.split(".")[0]
    if name == wave.__name__:  # the default of that metric
        name = DiagonalMetric.__name__
    copy = getattr(load(mutant.place.module, mutant.swaps)[mutant.place.module], name)
    rng = np.random.default_rng(0)
    if name == "RecipeMetric":
        law = cached_target("double-well")
        assert isinstance(RecipeMetric(law, offset=RECIPE_OFFSET), RecipeMetric)
        make, points = lambda: copy(law, offset=RECIPE_OFFSET), rng.normal(size=(20, 1))
    elif name == "PositiveMetric":
        make, points = copy, rng.exponential(size=(20, 2))
    elif name in ("ReducedMeanMetric", "ReducedNaturalMetric"):
        make, points = lambda: copy(sum(REDUCED)), rng.dirichlet(np.ones(3), size=20)[:, :2]
    else:
        make, points = copy, 2 * rng.normal(size=(20, 2))
    try:  # a copy that cannot be made, or evaluated, is no metric
        metric = make()
        inverse = np.asarray(jax.vmap(lambda x: dense(metric.inverse(x)))(jnp.asarray(points)))
        root = np.asarray(jax.vmap(lambda x: dense(metric.inverse_sqrt(x)))(jnp.asarray(points)))
    except Exception:
        return False
    if inverse.shape != root.shape or inverse.shape[1:] != (points.shape[1],) * 2:
        return False
    if not (np.all(np.isfinite(inverse)) and np.all(np.isfinite(root))):
        return False
    scale = 1e3 * EPS * (1 + np.abs(inverse).max())
    symmetric = np.abs(root - root.swapaxes(1, 2)).max() <= scale
    squared = np.abs(root @ root - inverse).max() <= scale
    return bool(symmetric and squared and np.linalg.eigvalsh((inverse + inverse.swapaxes(1, 2)) / 2).min() > 0)
