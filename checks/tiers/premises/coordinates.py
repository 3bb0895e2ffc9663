"""Dimension: many equal coordinates are treated alike, whatever their number.

On a product of equal laws, at a state whose coordinates are all equal, a method that treats coordinates alike has a
derivative that commutes with their permutations: a multiple of the identity and of the matrix of ones. A vector w with
sum 0 is therefore an eigenvector of the drift and of the covariance of the noise, block by block. Two products with a
matrix show that of thousands of coordinates; no law is needed, and no number of draws is too many.

A derivative at one state does not reach a face of the positive orthant. There equal coordinates with equal draws have
to stay equal.
"""

import contextlib
import dataclasses
import itertools
import operator
from collections.abc import Iterable
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach, statement
from sgmcmc_verification.checks.core.error_origin import RAISED, one_line
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.obligations import HIGH_DIMENSION
from sgmcmc_verification.checks.core.obligations import MANY as FIFTY
from sgmcmc_verification.checks.core.selection import claims_of
from sgmcmc_verification.checks.core.start_position import program_of_first_step, start_state
from sgmcmc_verification.checks.programs.operations import (
    one_program,
    operation_names,
    operations_and_numbers,
    subjaxprs,
)
from sgmcmc_verification.checks.programs.trees import placed
from sgmcmc_verification.checks.proof.of_subject import proof_for_fifty, proved_for_vectors
from sgmcmc_verification.checks.tiers.premises.fresh_draws import repeated
from sgmcmc_verification.checks.tracing.acceptance import accepted_share
from sgmcmc_verification.checks.tracing.host_branching import ScriptedGenerator
from sgmcmc_verification.checks.tracing.key_lineage import consumed_keys
from sgmcmc_verification.checks.tracing.noise_tape import Noise, NotFed, Program, record, require_fed
from sgmcmc_verification.checks.tracing.step_map import HIGHEST, LOWEST, is_affine
from sgmcmc_verification.samplers.estimators.host import Unintercepted
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import ParticleLaw
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.manifolds.orthant import Positive
from sgmcmc_verification.targets.target import DataTerms, Target

FEW, MANY, IN_TURN, WITH_MATRICES, ON_HOST = (5, 17), 70_001, 37, 257, 1031
"""Numbers of coordinates: primes, so that no block, row or tile fits, the largest beyond what 16 bits count; fewer for
methods that take all coordinates for each of them in turn, whose loop is written out, with dense matrices, and on the
host, where each draw is moved by itself."""
SMALLER = (2, 3, 4, 7)
"""Numbers of coordinates for which the response is asked where the program is another one than for the first of few."""
BETWEEN = (67, 521, 8209)
"""The same between few and many, where the operations are others, whatever the numbers in them."""
PLACES, SHOCKS = (-9.0, -4.0, -2.5, -1.6, -0.8, 0.3, 1.2, 1.9, 3.0, 6.0), (-4.0, 0.0, 1.5, 5.0)
"""Values of all coordinates, and of all draws, at which a step of another program is compared with that of few."""
PULLS = tuple(sign * 0.25**k for k in range(9) for sign in (1.0, -1.0))
"""Values of all draws at which acceptances are compared: one of them has a chance that is neither 0 nor 1."""
ADDITIVE = 1e-5
"""Relative error of a logarithm of a chance, known to 1e-16, that is 1e-10 below 1 or more."""
RATIO = "the logarithm of the chance is not so many times that of one"
CORRELATED = "gaussian-correlated-2d"
"""A Gaussian on which a step in Python may be affine: its law is then known in fifty coordinates too."""
FLAT, LARGE = (2, 3), ((3, 131), (131, 3), (71, 73))
"""Shapes of a small matrix, whose entries have to be treated alike, and of some for which operations may be others."""
CLOUDS = (2, 3, 7, 23)
"""Numbers of coordinates of particles, and of positive vectors near a face."""
FACE, THROUGH = 1e-3, 4.0
"""A coordinate near a face, in units of the law, and the standard normal draw by which it gets through."""
SHIFT = 1e-3
"""Shift of a difference on the host; its round-off is 1e-13 of the size of a state."""
DIFFERENCES = 1e-4
"""Relative residual of differences on the host, whose error is of the order of a curvature times `SHIFT`^2."""
SMALL = 64.0
"""Share of the usual step size that is taken: what depends on h times the norm of a gradient gives way."""
FINE = 1e4
"""Part of that at which an energy of many coordinates, too, falls to the side of a number of z that a few fall to."""
GROWTH = 10.0
"""Factor between differences at many and at few coordinates; of what is smooth in 1/n or log n it is below 5."""
TOLERANCE = 1e-9
"""Relative residual: 4e6 units in the last place, of sums over the coordinates and of solvers."""


class Response(NamedTuple):
    """Linear response of a step at a state of equal coordinates.

    Attributes:
        residual: largest part of a response to w that is not along w, relative to the largest response.
        factors: of w in all pairs of blocks, of the noise and of the drift.
        where: coordinates in which the residual is large.
        dense: whether the step makes matrices of the size of the coordinates squared.
        work: numbers that it makes at most in one place of the program, in all turns of the loops around it.
        coins: uniforms that it draws.
        rest: what else z holds after the step, which has no number per coordinate.
    """

    residual: float
    factors: np.ndarray
    where: np.ndarray
    dense: bool = False
    work: int = 0
    coins: int = 0
    rest: np.ndarray = np.zeros(0)


class Traced(NamedTuple):
    """A step as a program of z and its draws.

    Attributes:
        program: z, draws -> the blocks of z', the position, and what is left of z'.
        start: z with equal coordinates.
        blocks: parts of z with a number per coordinate.
    """

    program: Program
    start: jax.Array
    blocks: list[slice]


def energy_of_product(x: Any) -> jax.Array:
    """U = sum x^2 / 2 + x^4 / 12 over all coordinates of an array or a tree."""
    return jax.tree.reduce(operator.add, jax.tree.map(lambda leaf: jnp.sum(leaf**2 / 2 + leaf**4 / 12), x))


@lru_cache(maxsize=16)
def product(shape: int | tuple[int, ...], positive: bool = False) -> Target:
    """Equal coordinates, so many or in this shape, with U = sum x^2 / 2 + x^4 / 12, of which a gradient is asked for.

    The quartic part is the sum over five equal data, for samplers that have data. Positive ones have the same U.
    """
    datum = lambda x, weight: weight * jnp.sum(x**4 / 12)
    size = int(np.prod(shape))
    return Target(
        name=f"product-{shape}",
        manifold=Positive(size) if positive else Euclidean(size),
        example=placed(np.full(shape, 0.7)),
        potential=energy_of_product,
        curvature=2.0,
        terms=DataTerms(lambda x: jnp.sum(x**2 / 2), datum, placed(np.full(5, 0.2)), 5),
    )


@lru_cache(maxsize=64)
def growing_leaves(subject: Subject, positive: bool) -> frozenset[int]:
    """The leaves of z that have a number per coordinate, whatever their number; others may have as many by chance."""

    def of(size: int) -> set[int]:
        target = product(size, positive)
        sampler, estimator = subject.sampler(target), subject.estimator(target)
        if on_host(sampler):
            start = sampler.init(np.random.default_rng(0), np.asarray(target.example), estimator)
        else:
            start = start_state(sampler, jax.random.key(0), target.example, estimator)
        return {i for i, leaf in enumerate(jax.tree.leaves(sampler.unpack(start))) if np.size(leaf) == size}

    return frozenset(set.intersection(*(of(size) for size in FEW)))


def traced(subject: Subject, shape: int | tuple[int, ...], positive: bool = False, share: float = SMALL) -> Traced:
    """A step of a part of the usual size on `product(shape, positive)`.

    Raises NotFed where the tape cannot feed its draws, NotApplicable without blocks.
    """
    found = _recorded(subject, shape, positive, share)
    require_fed(found.program)
    return found


@lru_cache(maxsize=16)
def _recorded(subject: Subject, shape: int | tuple[int, ...], positive: bool, share: float) -> Traced:
    """The same with all draws, those among them that the tape cannot feed."""
    target = product(shape, positive)
    h = subject.step_size(target) / share
    sampler, estimator, size = subject.sampler(target), subject.estimator(target), target.size
    start = start_state(sampler, jax.random.key(0), target.example, estimator)
    flat, unravel = ravel_pytree(sampler.unpack(start))
    # blocks of z that have one number per coordinate, made equal within each
    shapes = [np.size(leaf) for leaf in jax.tree.leaves(sampler.unpack(start))]
    ends, growing = np.cumsum([0, *shapes]), growing_leaves(subject, isinstance(target.manifold, Positive))
    pairs = enumerate(itertools.pairwise(ends))
    blocks = [slice(int(a), int(b)) for i, (a, b) in pairs if b - a == size and i in growing]
    if not blocks:
        raise NotApplicable("z has no part with a number per coordinate")
    values, rest = np.array(flat), np.ones(len(flat), bool)
    for i, block in enumerate(blocks):
        values[block] = 0.7 - 0.4 * i
        rest[block] = False
    z0 = jax.device_put(values)

    def move(z: jax.Array) -> jax.Array:
        pack_key, step_key = jax.random.split(jax.random.key(0))
        after = sampler.step(step_key, sampler.pack(pack_key, unravel(z), estimator), h, estimator)
        moved = ravel_pytree(sampler.unpack(after))[0]
        # XLA aborts on some programs with a gather of nothing
        left = [moved[np.flatnonzero(rest)]] if rest.any() else []
        return jnp.concatenate([*(moved[b] for b in blocks), ravel_pytree(sampler.position(after))[0], *left])

    return Traced(record(move, z0), z0, blocks)


def response(subject: Subject, shape: int | tuple[int, ...], positive: bool, share: float = SMALL) -> Response:
    """The response of a step on `product(shape)`. Raises NotFed where the tape cannot feed its draws."""
    size = int(np.prod(shape))
    program, z0, blocks = traced(subject, shape, positive, share)
    uniforms, integers = np.zeros(program.count("uniform")), np.zeros(program.count("integer"), int)
    count = (len(blocks) + 1) * size
    whole = lambda z, e: program(Noise(e, uniforms, integers), z)
    at = lambda z, e: whole(z, e)[:count]

    @jax.jit
    def answers(z: jax.Array, e: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        out, back = jax.vjp(partial(at, z), e)
        rows = out.reshape(-1, size)
        units = jnp.eye(len(rows))[:, :, None] * w  # w in one block of the result
        noise = jax.vmap(lambda u: jax.jvp(partial(at, z), (e,), back(u.ravel()))[1])(units)
        pushes = jnp.stack([jnp.zeros_like(z).at[b].set(w) for b in blocks])
        drift = jax.vmap(lambda v: jax.jvp(lambda y: at(y, e), (z,), (v,))[1])(pushes)
        return noise.reshape(-1, size), drift.reshape(-1, size), whole(z, e)[count:]

    w = direction(size)
    noise, drift, rest = (np.asarray(a) for a in answers(z0, np.zeros(program.count("normal")), w))
    found = _summary(noise, drift, w, TOLERANCE)
    jaxpr = program.jaxpr.jaxpr
    dense, work = largest(jaxpr) >= size**2, largest(jaxpr, turns=True)
    return found._replace(dense=dense, work=work, coins=len(uniforms), rest=rest)


def _summary(noise: np.ndarray, drift: np.ndarray, w: np.ndarray, tolerance: float) -> Response:
    """The response from that of the noise and of the drift, each (pairs of blocks, size), to w."""
    both = np.concatenate([noise / max(np.abs(noise).max(), 1e-300), drift / max(np.abs(drift).max(), 1e-300)])
    # the median over the coordinates, which those that are treated otherwise do not move
    gaps = np.abs(both - np.median(both / w, axis=1)[:, None] * w)
    raw = np.median(np.concatenate([noise, drift]) / w, axis=1)
    return Response(float(gaps.max()), raw, np.flatnonzero(gaps.max(axis=0) > tolerance))


def host_response(subject: Subject, size: int, positive: bool) -> Response:
    """The same of a host sampler, by differences. Raises NotApplicable where its draws are not normal."""
    target = product(size, positive)
    sampler, estimator, h = subject.sampler(target), subject.estimator(target), subject.step_size(target) / SMALL
    z0 = sampler.unpack(sampler.init(np.random.default_rng(0), np.asarray(target.example), estimator))
    leaves, structure = jax.tree.flatten(z0)
    blocks = [i for i, leaf in enumerate(leaves) if np.size(leaf) == size and i in growing_leaves(subject, positive)]
    if not blocks:
        raise NotApplicable("z has no part with a number per coordinate")
    for number, i in enumerate(blocks):
        leaves[i] = np.full(np.shape(leaves[i]), 0.7 - 0.4 * number)

    def move(shift: np.ndarray, normals: np.ndarray) -> tuple[np.ndarray, int]:
        """The blocks of z' and the position (blocks + 1, size) after a step from a shifted z, and the draws of it."""
        moved = list(leaves)
        for i, part in zip(blocks, shift, strict=True):
            moved[i] = leaves[i] + part.reshape(leaves[i].shape)
        state = sampler.pack(ScriptedGenerator(normals), jax.tree.unflatten(structure, moved), estimator)
        draws = ScriptedGenerator(normals)
        after = sampler.step(draws, state, h, estimator)
        ends = jax.tree.leaves(sampler.unpack(after))
        read = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(sampler.position(after))])
        return np.stack([*(np.ravel(ends[i]) for i in blocks), read]).astype(float), draws.used

    w, still = direction(size), np.zeros((len(blocks), size))
    try:
        base, count = move(still, np.zeros(0))
        columns = np.stack([(move(still, SHIFT * unit)[0] - base) / SHIFT for unit in np.eye(count)], axis=-1)
    except Unintercepted as error:
        raise NotApplicable(f"the step draws from a law that is not normal: {error}") from None
    noise = [columns @ (w @ row) for row in columns]
    drift = []
    for i in range(len(blocks)):
        push = still.copy()
        push[i] = SHIFT * w
        drift.append((move(push, np.zeros(count))[0] - move(-push, np.zeros(count))[0]) / (2 * SHIFT))
    return _summary(np.concatenate(noise), np.concatenate(drift), w, DIFFERENCES)


def direction(size: int) -> np.ndarray:
    """w: no two entries are equal, and their sum is 0."""
    w = np.cos(2.0 * np.arange(size) + 0.3)
    return w - w.mean()


def largest(jaxpr: Any, turns: bool = False) -> int:
    """Number of entries of the largest array of a program; with `turns` those of all turns of a loop are counted."""
    made = [v.aval for e in jaxpr.eqns for v in e.outvars] + [v.aval for v in jaxpr.constvars]
    sizes = [int(np.prod(aval.shape)) for aval in made if hasattr(aval, "shape")]
    times = lambda equation: equation.params["length"] if turns and equation.primitive.name == "scan" else 1
    return max(
        [*sizes, *(times(e) * largest(sub, turns) for e in jaxpr.eqns for sub in subjaxprs(e.params))], default=0
    )


def _few(subject: Subject, host: bool, positive: bool, tolerance: float) -> dict[int, Response]:
    """The responses for few coordinates. Raises OutOfReach if they are not treated alike."""
    found: dict[int, Response] = {}
    for size in FEW:
        found[size] = _response(subject, size, host, positive)
        if found[FEW[0]].residual > tolerance:
            raise OutOfReach("the method does not treat coordinates alike")
    return found


def _many(found: dict[int, Response]) -> int:
    """The number of coordinates that is compared with few: as many as the work that grows with them allows."""
    few, more = (found[size] for size in FEW)
    if 1 < few.coins == more.coins:  # thrown for all of them: by an energy, which grows, it falls to one side alone
        return FIFTY
    if more.dense:
        return WITH_MATRICES
    quadratic = more.work > few.work * (FEW[1] / FEW[0]) ** 1.5
    return IN_TURN if quadratic else MANY


def _targets(subject: Subject) -> tuple[str, ...]:
    return subject.row.targets[:1] if {"euclidean", "positive"} & set(claims_of(subject).spaces) else ()


@statement(
    tier="contract",
    equation="the derivative of a step commutes with permutations of equal coordinates, for 5, 17 and 70,001 of them",
    targets=_targets,
    cost=1.0,
    decides="dynamics",
    once=True,
    about=("first-coordinates",),
)
def equal_coordinates(case: Case) -> Finding:
    """Drift and noise treat equal coordinates alike, and thousands of them as they treat a few.

    The factors of drift and noise have to be the same for many thousand coordinates if they are for 5 and 17; on the
    host, where the response is one of differences, for a thousand. Particles are compared with those whose coordinates
    are in another order, after three steps. A law that is proved for every potential of one and of two coordinates is
    shown for fifty where a step is the same program, with the same numbers in it but for powers of the dimension. Where
    coordinates are not alike by intention its proof for fifty decides.
    """
    if ParticleLaw in claims_of(case.subject):
        return _particles(case)
    host, positive = on_host(case.subject.sampler(case.target)), "euclidean" not in claims_of(case.subject).spaces
    tolerance = DIFFERENCES if host else TOLERANCE
    try:
        found = _few(case.subject, host, positive, tolerance)
    except NotFed:
        same = _finding(case, tolerance, 0.0, "one program, with the same numbers in it, for 1 to 50 coordinates")
        if not (same := _meeting(case, same, not positive)).meets:
            raise
        return same
    except OutOfReach as reason:
        if host or positive or (found := _by_proof(case, str(reason))) is None:
            raise
        return found
    if host:
        return _on_host(case, found, positive)
    return _traced(case, found, positive)


def _on_host(case: Case, found: dict[int, Response], positive: bool) -> Finding:
    found = found | {ON_HOST: _response(case.subject, ON_HOST, True, positive)}
    compared = _compared(case, found, DIFFERENCES)
    if compared.verdict != "pass" or positive or is_affine(case.subject, find_target(CORRELATED)):
        return compared
    return _by_proof(case, compared.reason) or compared


def _traced(case: Case, found: dict[int, Response], positive: bool) -> Finding:
    tolerance, many = TOLERANCE, _many(found)
    programs = {size: _operations(case.subject, size, positive) for size in (*SMALLER, *FEW)}
    programs = {size: each for size, each in programs.items() if each}
    usual = programs.get(FEW[0])
    others = [] if one_program(programs) else [n for n in programs if n in SMALLER and programs[n] != usual]
    larger = _other_programs(case.subject, FEW[-1], (*(n for n in BETWEEN if n < many), many), positive)
    asked = dict.fromkeys((*others, *larger, many))
    found |= {size: _response(case.subject, size, False, positive) for size in asked}
    if repeated := shared_keys(case.subject, many, positive):
        return _finding(case, tolerance, 1.0, f"in {many} dimensions {repeated}")
    if positive and (apart := _near_faces(case.subject)) > TOLERANCE:
        return _finding(case, tolerance, apart, f"near 0 equal coordinates with equal draws end {apart:.3g} apart")
    for size in larger:
        if (gap := _moves_otherwise(case.subject, size, positive)) > TOLERANCE:
            return _finding(case, tolerance, gap, f"{size} equal coordinates with equal draws do not move as few do")
        if not positive and (gap := _accepts_otherwise(case.subject, size)) > ADDITIVE:
            return _finding(case, tolerance, gap, f"{size} equal coordinates are not accepted as few are: {RATIO}")
    with contextlib.suppress(*RAISED):  # a method for vectors
        if not positive and (matrix := _matrices(case)):
            return matrix
    compared = _compared(case, found, tolerance)
    if compared.verdict == "fail" and found[FEW[0]].rest.size and not positive:
        # a uniform that z keeps is compared with the energy of all of them, which is small in small steps only
        finer = {n: response(case.subject, n, positive, SMALL * FINE)._replace(rest=found[n].rest) for n in found}
        compared = _compared(case, finer, tolerance)
    return _meeting(case, compared, not larger and not positive)


def _by_proof(case: Case, reason: str) -> Finding | None:
    """The finding that the proof for fifty coordinates makes; None if it is undecided."""
    proof = proof_for_fifty(case.subject)
    if proof is None or proof.verdict == "undecided":
        return None
    if proof.verdict == "fail":
        return _finding(case, TOLERANCE, 1.0, f"{reason}; the law is not kept in fifty coordinates: {proof.reason}")
    found = _finding(case, TOLERANCE, 0.0, f"{reason}; the law is proved for fifty coordinates")
    return dataclasses.replace(found, meets=(HIGH_DIMENSION,))


def _meeting(case: Case, finding: Finding, possible: bool) -> Finding:
    """The finding, which meets the obligation of fifty coordinates too if it passes and the law is shown for them."""
    meets = possible and finding.verdict == "pass" and proved_for_vectors(case.subject) and same_for_fifty(case.subject)
    return dataclasses.replace(finding, meets=(HIGH_DIMENSION,)) if meets else finding


@lru_cache(maxsize=64)
def same_for_fifty(subject: Subject) -> bool:
    """True if a step is the same program for one, two and fifty coordinates, and for numbers of them in between.

    A number in it is the same or a + b n^p: what is proved for one and for two of them leaves no other a and b.
    """
    programs = {size: _operations(subject, size, positive=False) for size in (1, *SMALLER, *FEW, FIFTY)}
    return all(programs.values()) and one_program(programs)


def _compared(case: Case, found: dict[int, Response], tolerance: float) -> Finding:
    """The responses for all numbers of coordinates against those for few.

    What depends on the number, as h / n does, shows in two small numbers too, and is no fault where it is below the
    tolerance there alone.
    """
    worst, reason = 0.0, f"the same for {', '.join(map(str, found))} coordinates"
    few, more = (found[size] for size in FEW)
    scale = max(np.abs(few.factors).max(), 1e-300)
    for size, each in found.items():
        if each.residual > max(worst, tolerance):
            where = each.where
            places = f"{where[0]} to {where[-1]}" if len(where) > 1 else ", ".join(map(str, where))
            worst, reason = (
                each.residual,
                f"{len(where)} of {size} coordinates ({places}) are not treated as the others",
            )
        small, gap = _gap(few, more) / scale, _gap(few, each) / scale
        if small <= tolerance and gap > max(worst, tolerance, GROWTH * small):
            worst, reason = gap, f"drift and noise of a coordinate are others when there are {size} of them"
        small, gap = _apart(few.rest, more.rest), _apart(few.rest, each.rest)
        # a uniform that z keeps may be multiplied by exp of an energy, which is a sum over the coordinates
        summed = small * max(1.0, (size - FEW[0]) / (FEW[1] - FEW[0]))
        if small <= tolerance and gap > max(worst, tolerance, GROWTH * summed):
            worst, reason = gap, f"what z holds beside the coordinates moves otherwise when there are {size} of them"
    return _finding(case, tolerance, worst, reason)


def _apart(a: np.ndarray, b: np.ndarray) -> float:
    """The relative difference of two vectors, 0 if they have other lengths: z has other parts then."""
    return float(np.abs(a - b).max(initial=0.0) / (1 + np.abs(a).max(initial=0.0))) if a.shape == b.shape else 0.0


Shape = TypeVar("Shape", int, tuple[int, ...])


def _other_programs(subject: Subject, few: Shape, shapes: Iterable[Shape], positive: bool) -> list[Shape]:
    """The shapes, of some, for which the operations of a step are others than for few coordinates.

    The step is that of a sampler for few, which need not be completed anew.
    """
    sampler = subject.sampler(product(few, positive))

    def names(shape: Shape) -> list[str] | None:
        target = product(shape, positive)
        estimator, h = subject.estimator(target), subject.step_size(target)
        try:
            return list(operation_names(program_of_first_step(sampler, estimator, target.example, h).jaxpr))
        except RAISED:
            return None

    usual = names(few)
    return [shape for shape in shapes if names(shape) not in (usual, None)]


def _matrices(case: Case) -> Finding | None:
    """The finding on matrices for which a step is another program than for a small one; None if they are treated alike.

    A method for matrices has its own ways with rows and columns, which a small one shows.
    """
    others = _other_programs(case.subject, FLAT, LARGE, positive=False)
    if not others or not response(case.subject, FLAT, positive=False).residual <= TOLERANCE:
        return None
    for shape in others:
        found = response(case.subject, shape, positive=False)
        if found.residual > TOLERANCE:
            share = f"{len(found.where)} of {np.prod(shape)} entries of a matrix {shape}"
            return _finding(case, TOLERANCE, found.residual, f"{share} are not treated as the others")
    return None


def _moves_otherwise(subject: Subject, size: int, positive: bool) -> float:
    """Largest difference between a step of so many equal coordinates with equal draws and that of few.

    It is 0 where a step of few differs from one of fewer: the method knows the number.
    """

    def ends(size: int) -> np.ndarray | None:
        program, z0, blocks = traced(subject, size, positive)
        uniforms, integers = jnp.zeros(program.count("uniform")), jnp.zeros(program.count("integer"), int)
        if len(uniforms):
            return None  # a coin has its own side for each number of them
        values = (FACE, *(v for v in PLACES if v > 0)) if positive else PLACES
        places = jnp.asarray([(v, e) for v in values for e in SHOCKS])

        @jax.jit
        def at(place: jax.Array) -> jax.Array:
            noise = Noise(jnp.full(program.count("normal"), place[1]), uniforms, integers)
            out = program(noise, z0.at[blocks[0]].set(place[0]))
            rows = out[: (len(blocks) + 1) * size].reshape(-1, size)
            return jnp.concatenate([rows.min(axis=1), rows.max(axis=1)])

        return np.asarray(jax.lax.map(at, places))

    fewer, few, many = (ends(n) for n in (*FEW, size))
    if fewer is None or few is None or many is None:
        return 0.0
    same = np.abs(few - fewer).max() <= TOLERANCE * np.abs(few).max()
    return float(np.abs(many - few).max() / np.abs(few).max()) if same else 0.0


def _accepts_otherwise(subject: Subject, size: int) -> float:
    """Largest relative difference between log a of so many equal coordinates and that many times log a of one.

    a is the chance of acceptance for equal draws, as the one uniform of a step has it. It is 0 where log a of few is no
    such multiple: the ratio is no sum over the coordinates.
    """
    places = np.asarray([(v, e) for v in PLACES for e in PULLS])

    def logarithms(size: int) -> np.ndarray | None:
        program, z0, blocks = traced(subject, size)
        if program.count("uniform") != 1:
            return None
        normals, integers = program.count("normal"), jnp.zeros(program.count("integer"), int)

        @jax.jit
        def share(place: jax.Array) -> tuple[jax.Array, jax.Array]:
            z = z0.at[blocks[0]].set(place[0])
            end = lambda u: program(Noise(jnp.full(normals, place[1]), jnp.full(1, u), integers), z)[: z0.size]
            low, high = end(LOWEST), end(HIGHEST)
            same = accepted_share(lambda u: jnp.max(jnp.abs(end(u) - low)) < jnp.max(jnp.abs(end(u) - high)))
            return same, jnp.max(jnp.abs(low - z)) > jnp.max(jnp.abs(high - z))

        shares, moved = (np.asarray(a) for a in jax.lax.map(share, jnp.asarray(places)))
        with np.errstate(divide="ignore"):
            return np.log(np.where(moved, shares, 1 - shares))

    fewer, few, many = (logarithms(n) for n in (*FEW, size))
    if fewer is None or few is None or many is None:
        return 0.0
    one = fewer / FEW[0]
    usable = (one < -1e-8) & (one * size > -20)
    gaps = [np.abs(log[usable] / (n * one[usable]) - 1).max(initial=0.0) for log, n in ((few, FEW[1]), (many, size))]
    return float(gaps[1]) if gaps[0] <= ADDITIVE else 0.0


def _operations(subject: Subject, size: int, positive: bool) -> list[Any]:
    """The operations of a step in order, and the numbers in them; none where it does not run in so many dimensions."""
    try:
        program = _recorded(subject, size, positive, SMALL).program
    except RAISED:
        return []
    return list(operations_and_numbers(program.jaxpr))


def _particles(case: Case) -> Finding:
    """Particles move alike in any order of their coordinates, for 3, 7 and 23 coordinates if they do for 2."""
    gaps = {size: _turned(case.subject, size) for size in CLOUDS}
    if not gaps[CLOUDS[0]] <= TOLERANCE:
        raise OutOfReach("the method does not treat coordinates alike, or draws noise")
    size = max(CLOUDS, key=lambda n: gaps[n])
    others = f"in {size} coordinates particles move otherwise if their coordinates are in another order"
    fine = f"particles of {', '.join(map(str, CLOUDS))} coordinates move alike in any order of these"
    return _finding(case, TOLERANCE, gaps[size], others if gaps[size] > TOLERANCE else fine)


def _turned(subject: Subject, size: int) -> float:
    """Largest difference after three steps that another order of the coordinates makes, relative to the positions."""
    target = product(size)
    cloud = 0.7 + np.cos(1.9 * np.arange(6 * size) ** 1.5).reshape(6, size)

    def moved(order: np.ndarray) -> np.ndarray:
        state = sampler.init(jax.random.key(0), jnp.asarray(cloud[:, order]), estimator)
        for i in range(3):
            state = step(jax.random.key(i), state)
        return np.asarray(sampler.position(state))[:, np.argsort(order)]

    try:
        sampler, estimator, h = subject.sampler(target), subject.estimator(target), subject.step_size(target)
        step = jax.jit(lambda key, state: sampler.step(key, state, h, estimator))
        ends = [moved(order) for order in (np.arange(size), np.roll(np.arange(size), 1))]
    except Exception as error:
        raise OutOfReach(f"the sampler does not run in {size} dimensions ({one_line(error, 120)})") from None
    gap = float(np.abs(ends[0] - ends[1]).max() / np.abs(ends[0]).max())
    return gap if np.isfinite(gap) else np.inf


def _finding(case: Case, tolerance: float, effect: float, reason: str) -> Finding:
    why = "round-off of sums over the coordinates" if tolerance == TOLERANCE else "error of a difference"
    return Finding(
        effect=effect,
        tolerance=Tolerance(tolerance, why),
        required_sensitivity=1e-6 if tolerance == TOLERANCE else 1e-3,
        reason=reason,
        statistic="part of the response to w that is not along w",
        unit="relative to the largest response",
        step_size=case.step_size,
    )


def _near_faces(subject: Subject) -> float:
    """Largest distance of coordinates that were equal, near 0, after a step with equal draws, over their size.

    It is 0 where it is not in the bulk: the method does not treat coordinates alike.
    """
    size = CLOUDS[-1]
    program, z0, blocks = traced(subject, size, positive=True, share=1.0)
    count = lambda kind: program.count(kind)
    still = jnp.full(count("uniform"), 0.5), jnp.zeros(count("integer"), int)

    @jax.jit
    def spread(z: jax.Array, draw: jax.Array) -> jax.Array:
        rows = program(Noise(jnp.full(count("normal"), draw), *still), z).reshape(-1, size)
        return jnp.max(jnp.ptp(rows, axis=1)) / jnp.max(jnp.abs(rows))

    near = z0.at[blocks[0]].set(FACE)
    if not spread(z0, 0.1) <= TOLERANCE:
        return 0.0
    return max(float(spread(near, sign * THROUGH)) for sign in (1, -1))


def shared_keys(subject: Subject, size: int, positive: bool = False) -> str:
    """The draws of a step in many dimensions that share a key, in words; empty if none do."""
    target = product(size, positive)
    sampler, estimator, h = subject.sampler(target), subject.estimator(target), subject.step_size(target)
    state = start_state(sampler, jax.random.key(7), target.example, estimator)
    # one step: a key that the state holds is the same for all of them
    keys = jax.random.split(jax.random.key(8), 1)
    calls, _ = consumed_keys(lambda key: sampler.step(key, state, h, estimator), keys)
    return "; ".join(repeated(calls, [])[:2])


def _response(subject: Subject, size: int, host: bool, positive: bool) -> Response:
    try:
        return host_response(subject, size, positive) if host else response(subject, size, positive)
    except NotApplicable:
        raise
    except Exception as error:
        raise OutOfReach(f"the sampler does not run in {size} dimensions ({one_line(error, 120)})") from None


def _gap(a: Response, b: Response) -> float:
    """The difference of two responses, 0 where z has other parts."""
    return float(np.abs(a.factors - b.factors).max()) if a.factors.shape == b.factors.shape else 0.0
