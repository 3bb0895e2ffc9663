"""One step of a sampler as a deterministic function of state, noise and step size, and its exact expectations."""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import NOT_TRACED, Inconclusive, NotAffine, NotApplicable, OutOfReach
from sgmcmc_verification.checks.core.error_origin import RAISED, one_line, place
from sgmcmc_verification.checks.core.start_position import start_state
from sgmcmc_verification.checks.numerics.observables import observables
from sgmcmc_verification.checks.numerics.quadrature import noise_rule, symmetric_rule
from sgmcmc_verification.checks.programs.trees import flattened, placed
from sgmcmc_verification.checks.tracing.host_branching import ScriptedGenerator, Unintercepted, branches
from sgmcmc_verification.checks.tracing.live_leaves import live_leaves
from sgmcmc_verification.checks.tracing.noise_tape import Noise, Program, record, require_fed
from sgmcmc_verification.checks.tracing.remote_step_map import MappedProgram, MappedRecursion, mapped_program
from sgmcmc_verification.samplers.interface.capabilities import MappedSampler
from sgmcmc_verification.samplers.interface.claims import Exchange, ParticleLaw
from sgmcmc_verification.targets.target import Target

CHUNK = 400_000
"""Largest number of (point, noise node) pairs that one call evaluates."""


GENERIC = (1.0, 1.0), (-0.5, 2.0), (2.0, -1.0)
"""Factors of displacements and of draws at which an affine map is checked."""
NODES, WALKED = 6, 30
"""Nodes for each draw of a step in Python, and the most nodes of a product of rules, each of which is such a step."""
MAX_HOST_STEPS = 60_000
"""Largest number of steps in Python over all paths: steps that sampling needs are fewer."""
SHORT, KINK = 1e-6, 1e-3
"""A short step, in which a draw moves by 1e-3, and the share of that move by which means of two rules may differ."""
BLOCK = 128
"""Points that one call evaluates."""
ROWS = 16
"""States that one call of an affine fit evaluates: a fit in few coordinates is one call."""
LARGEST = 2048
"""Numbers of a state whose recursion is computed: of matrices of 8,192 one takes half a gigabyte."""
NUMBERS = 40_000_000
"""Numbers that one call may hold, 320 MB."""
LOWEST, HIGHEST = 2.0**-53, 1 - 2.0**-53
"""The smallest and the largest uniform but 0, which decides against u <= a where a is 0."""


class StepMoments(NamedTuple):
    """Expectations over the noise of one step from each of P points z.

    Attributes:
        increment: E[z' - z], (P, n).
        square: E[(z' - z)(z' - z)^T], (P, n, n).
        variable: E[observables(z')], (P, K).
        readout: E[observables(position(state'))], (P, K').
    """

    increment: Any
    square: Any
    variable: Any
    readout: Any


class Affine(NamedTuple):
    """state' = A state + B noise + c for one value of the discrete draws, and position = P state + q.

    `matrix` (m, m), `noise` (m, k), `offset` (m,), `weight` the probability of the discrete draws.
    """

    matrix: np.ndarray
    noise: np.ndarray
    offset: np.ndarray
    weight: float


class AffineChain(NamedTuple):
    """A chain as affine maps, each for every value of its discrete draws.

    Attributes:
        pack: z (n,) -> state (m,).
        step: state -> state.
        last: state -> (z, position) (n + d,), after the last step.
    """

    pack: list[Affine]
    step: list[Affine]
    last: list[Affine]


def _moments_of(z, new_z, x):
    dz = new_z - z
    return StepMoments(dz, jnp.outer(dz, dz), observables(new_z), observables(x))


@dataclass(frozen=True, eq=False)
class JaxStep:
    """The step of a JAX sampler under the noise tape, or of one whose one-step map another process evaluates.

    `recursion` makes the step of the whole state, which is traced when a check first asks for it: most do not.
    """

    target: Target
    sampler: Any
    estimator: Any
    template: Any
    program: Program | MappedProgram
    recursion: Callable[[], Program | MappedRecursion]
    subject: Subject | None = None

    @functools.cached_property
    def state_program(self) -> Program | MappedRecursion:
        """The step as a map of the floats of its whole state."""
        return self.recursion()

    @property
    def size(self) -> int:
        """Length of z."""
        return self.template.size

    @property
    def noise_size(self) -> int:
        """Number of standard normals that pack and step draw."""
        return self.program.count("normal")

    @property
    def exchanging(self) -> bool:
        """True if the uniform of the step decides on an exchange of two chains (`checks.tiers.law.replica_exchange`).

        What the noise-free checks of the diffusion see is then a step without an exchange.
        """
        return Exchange in self.sampler.claims and self.program.count("uniform") == 1

    @functools.cached_property
    def accepting(self) -> tuple[float, float]:
        """Values of a single uniform that accept and that reject a proposal: u < a, 1 - u < a and -log u > b alike.

        The proposal is the end that lies farther from the start, at step sizes of which some reject.
        """
        program, z = self.program, jnp.asarray(self.template.flat)
        kinds = {kind: program.count(kind) for kind in ("normal", "uniform", "integer")}

        def move(normals: jax.Array, h: jax.Array, u: jax.Array) -> jax.Array:
            noise = Noise(normals, jnp.full(kinds["uniform"], u), jnp.zeros(kinds["integer"], int))
            return jnp.abs(program(noise, z, h)[0] - z)[: self.target.size].max()

        normals = np.cos(1.3 * np.arange(8 * kinds["normal"]).reshape(8, -1) + 0.2)
        hs = np.asarray(1e-3 * 2.0 ** np.arange(0, 10, 0.25), z.dtype)
        with jax.core.eval_context():  # asked for while another function is traced, it is no part of that
            moves = jax.jit(jax.vmap(jax.vmap(move, (0, None, None)), (None, 0, None)))
            low, high = (np.asarray(moves(normals, hs, u)) for u in (LOWEST, HIGHEST))
        # for many draws no uniform rejects, or each does; a step too large to be a number is no sign
        votes = float(np.nansum(np.sign(low - high)))
        return (LOWEST, 1.0) if votes >= 0 else (HIGHEST, 0.0)

    def require_known_draws(self) -> None:
        """Raise OutOfReach if a random primitive escaped the tape."""
        require_fed(self.program)

    def require_smooth(self) -> None:
        """Raise unless all randomness of the step is normal and integer draws that the tape feeds."""
        self.require_known_draws()
        if self.program.count("uniform") and not self.exchanging:
            raise OutOfReach("the step draws uniforms (an accept step has kinks): see detailed balance")

    def require_gaussian(self) -> None:
        """Raise unless all randomness of the step is normal draws that the tape feeds."""
        self.require_smooth()
        if any(number > 1 for number in self.program.ranges):
            raise OutOfReach("the step draws integers (minibatches): see the gradient noise checks")

    @property
    def run(self):
        """(z (n,), normals (k,), h) -> (z' (n,), position' (d,)), traceable."""

        def run(z, normals, h):
            # Integers of range 1 (a batch of all data) have one outcome.
            return self.run_with(z, normals, jnp.zeros(self.program.count("integer"), int), h)

        return run

    def run_with(self, z, normals, integers, h):
        """(z' (n,), position' (d,)) for given normals (k,) and integers, traceable."""
        return self.program(Noise(normals, jnp.ones(self.program.count("uniform")), integers), z, h)

    def moments(self, points: np.ndarray, h: float, fewer: int = 0) -> StepMoments:
        """Expectations over normals and integers of one step of size h from each of `points` (P, n).

        Args:
            points: z.
            h: step size.
            fewer: nodes a dimension than usual.

        Raises:
            OutOfReach: if the step draws something else, or too much for quadrature and enumeration, or if a random
                primitive escaped the tape.
        """
        self.require_smooth()
        try:
            normals, weights = noise_rule(self.noise_size, fewer=fewer)
        except ValueError:
            raise OutOfReach(f"{self.noise_size} normals a step are too many for quadrature") from None
        outcomes, shares = _integer_outcomes(self.program.ranges)
        nodes = np.repeat(normals, len(outcomes), axis=0)
        integers = np.tile(outcomes, (len(normals), 1))
        weights = np.outer(weights, shares).ravel()
        numbers = len(nodes) * 2 * (self.size + self.target.size + 4) ** 2  # of squares and observables at one point
        if numbers > NUMBERS:
            raise OutOfReach(f"{self.noise_size} normals a step are too many for quadrature in {self.size} coordinates")
        # Always the same shape, whatever the number of points, so that one compilation serves all checks.
        batch = max(1, min(BLOCK, CHUNK // len(nodes), NUMBERS // numbers))
        parts = []
        for start in range(0, len(points), batch):
            block = points[start : start + batch]
            padded = np.concatenate([block, np.repeat(block[-1:], batch - len(block), axis=0)])
            out = self._compiled(padded, nodes, integers, weights, np.float64(h))
            parts.append([np.asarray(a)[: len(block)] for a in out])
        return StepMoments(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    @property
    def _compiled(self):
        return _compiled_moments(self)

    def affine(self, h: float) -> list[Affine]:
        """The step as an affine map of the *whole* state (caches included) for each value of its discrete draws.

        Raises:
            NotApplicable: if the step is not affine in state and noise, or draws uniforms.
            OutOfReach: if a random primitive escaped the tape, or the state has very many numbers.
        """
        program = self.state_program
        require_fed(program)
        start = np.asarray(ravel_floats(self.template.state)[0])
        if len(start) > LARGEST:
            raise OutOfReach(f"the state has {len(start)} numbers, too many for the matrix of its recursion")
        if program.count("uniform") and not self.exchanging:
            raise OutOfReach("the step draws uniforms (an accept step): its law is not a linear recursion")
        outcomes, weights = _integer_outcomes(program.ranges)
        return [
            fit_affine(lambda s, e, k=k: self._push(s, e, k, h)[0], start, program.count("normal"), w)
            for k, w in zip(outcomes, weights, strict=True)
        ]

    def _push(self, states, normals, integers, h) -> list[np.ndarray]:
        """state' (P, m) of one step from each state (P, m) at its draws (P, k); unpack (P, n) and position (P, d)."""
        require_fed(self.state_program)  # a loop may have no end at a state that is made up
        run = _compiled_push(self)
        return _each_row(lambda s, e: run(s, e, integers, float(h)), np.asarray(states), np.asarray(normals))

    def _read(self, states, which: int) -> np.ndarray:
        """`unpack` (1) or `position` (2) of each state (P, m), by the program of a step, which is at hand."""
        still = np.zeros((len(states), self.state_program.count("normal")))
        return self._push(states, still, np.zeros(self.state_program.count("integer"), int), 0.1)[which]

    def pair(self, h: float) -> Affine:
        """(z', position') as an affine map of z and the noise of one step that starts from `pack(z)`.

        Raises:
            NotApplicable: if it is not affine, or draws something else than normals.
            OutOfReach: if a random primitive escaped the tape.
        """
        self.require_gaussian()
        run = _compiled_pair(self)
        push = lambda z, e: np.concatenate(_each_row(lambda *row: run(*row, float(h)), z, e), axis=1)
        return fit_affine(push, np.asarray(self.template.flat, np.float64), self.noise_size, 1.0)

    def readout_at(self, h: float) -> tuple[np.ndarray, np.ndarray]:
        """`position(state) = P state + q` with P (d, m), q (d,), at a state that a step of size h has produced.

        A state may hold its last step size (a post-processed scheme reads its position with it).
        """
        start = np.asarray(ravel_floats(self.template.state)[0])[None]
        normals = np.zeros((1, self.state_program.count("normal")))
        integers = np.zeros(self.state_program.count("integer"), int)
        reached = self._push(start, normals, integers, h)[0][0]
        return _affine_readout(lambda s: self._read(s, 2), reached)

    def unpacking(self) -> np.ndarray:
        """`unpack(state) = P state + q`: the matrix P (n, m)."""
        return self.unpack_map()[0]

    def unpack_map(self) -> tuple[np.ndarray, np.ndarray]:
        """`unpack(state) = P state + q`: P (n, m) and q (n,)."""
        start = np.asarray(ravel_floats(self.template.state)[0])
        return _affine_readout(lambda s: self._read(s, 1), start)

    def chain(self, h: float) -> "AffineChain":
        """A chain that starts from `pack(z)`, with all that its state carries from one step to the next.

        Unlike in a recursion of `pair`, what `pack` computes is computed once: a gradient that is kept from one step
        to the next keeps its noise, and an estimator keeps its memory.

        Raises:
            NotApplicable: if pack or step is not affine in state and noise, or draws uniforms.
            OutOfReach: if a random primitive escaped the tape.
        """
        steps = self.affine(h)
        packing = self._packing()
        rows = [self.unpack_map(), self.readout_at(h)]
        matrix, offset = (np.concatenate(part) for part in zip(*rows, strict=True))
        last = [Affine(matrix @ m.matrix, matrix @ m.noise, matrix @ m.offset + offset, m.weight) for m in steps]
        return AffineChain(packing, steps, last)

    def _packing(self) -> list[Affine]:
        """The state of `pack(z)` as an affine map of z and noise, for each value of its discrete draws."""
        if isinstance(self.state_program, MappedRecursion):  # its state is z
            return [Affine(np.eye(self.size), np.zeros((self.size, 0)), np.zeros(self.size), 1.0)]
        packed = lambda z: self.sampler.pack(jax.random.key(0), self.template.unravel(z), self.estimator)
        pack = lambda z: ravel_floats(packed(z))[0]
        program = record(pack, jnp.asarray(self.template.flat))
        run = _rows(lambda z, e, k: (program(Noise(e, jnp.zeros(0), k), z),), 1)
        base = np.asarray(self.template.flat, np.float64)
        return [
            fit_affine(
                lambda z, e, k=k: _each_row(lambda *row: run(*row, k), z, e)[0], base, program.count("normal"), w
            )
            for k, w in zip(*_integer_outcomes(program.ranges), strict=True)
        ]


@dataclass(frozen=True, eq=False)
class HostStep:
    """The step of a host sampler, its draws branched or scripted.

    `points` is the number of nodes for each draw of a continuous law.
    """

    target: Target
    sampler: Any
    estimator: Any
    template: Any
    points: int = NODES
    subject: Subject | None = None

    @property
    def size(self) -> int:
        """Length of z."""
        return self.template.size

    def once(self, generator, z, h):
        """(z', position') of a step from `pack(z)` with the draws of a generator.

        Raises:
            Unintercepted: if the step, which runs with a generator of NumPy, does not with one that stands in for it:
                it passes it on to a library, or takes for a whole number what is the node of a rule.
            OutOfReach: if it runs with neither from z, as a velocity of 0 has no direction.
        """

        def step(generator: Any) -> Any:
            state = self.sampler.pack(generator, self.template.unravel(np.asarray(z)), self.estimator)
            return self.sampler.step(generator, state, float(h), self.estimator)

        try:
            state = step(generator)
        except Unintercepted:
            raise
        except Exception as error:
            if isinstance(generator, np.random.Generator):
                raise
            try:
                step(np.random.default_rng(0))
            except Exception as own:
                at = np.round(np.asarray(z), 3).tolist()
                raise OutOfReach(f"the step stops at z = {at}: {one_line(own)}{place(own)}") from own
            raise Unintercepted(f"the step asks for a generator of NumPy ({one_line(error)}{place(error)})") from error
        return host_ravel(self.sampler.unpack(state)), host_ravel(self.sampler.position(state))

    def _scripted(self, z: np.ndarray, normals: np.ndarray, h: float) -> tuple[ScriptedGenerator, Any]:
        """The generator after a step with given normals, and what `once` returns."""
        generator = ScriptedGenerator(normals)
        try:
            return generator, self.once(generator, z, h)
        except Unintercepted as error:
            raise OutOfReach(f"the step draws from a law that is not normal: {error}") from None

    def normals(self, z: np.ndarray, h: float) -> int:
        """The number of normals that a step from z (n,) draws.

        Raises:
            OutOfReach: if it draws from another law.
        """
        return self._scripted(z, np.zeros(0), h)[0].used

    def ends(self, points: Iterable[np.ndarray], draws: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
        """z' (M, n) and positions (M, d) after steps from each z (n,) with the normals of each row (M, k).

        Raises as `normals`.
        """
        found = []
        for z, e in zip(points, draws, strict=False):
            generator, end = self._scripted(z, e, h)
            if generator.used != len(e):
                raise OutOfReach("how many normals the step draws depends on their values")
            found.append(end)
        new_z, x = zip(*found, strict=True)
        return np.stack(new_z), np.stack(x)

    def moments(self, points: np.ndarray, h: float) -> StepMoments:
        """Expectations over the noise of one step from each of `points` (P, n)."""
        rows = []
        for z in points:
            weights, new_z, x = self._by_normals(z, h) or self._by_branches(z, h)
            dz = new_z - z
            square = np.einsum("m,mi,mj->ij", weights, dz, dz)
            rows.append([weights @ dz, square, weights @ observables(new_z), weights @ observables(x)])
        return StepMoments(*(np.array(column) for column in zip(*rows, strict=True)))

    def require_few_paths(self, z: np.ndarray, h: float, times: int) -> None:
        """Raise OutOfReach if `moments` of so many points take too many steps, and as `paths`."""
        most = MAX_HOST_STEPS // times + 1
        if self.paths(z, h, most) >= most:
            raise OutOfReach(f"more than {most - 1} paths of a step in Python from {times} points are too many")

    def paths(self, z: np.ndarray, h: float, most: int) -> int:
        """Steps that `moments` takes from one point (n,), counted up to `most`. Raises as `moments`."""
        by_normals = self._nodes(z, h)
        if by_normals is not None:
            return len(by_normals[1])
        return sum(1 for _ in itertools.islice(self._branches(z, h), most))

    def _nodes(self, z: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray] | None:
        """The rule of `_by_normals`, or None."""
        if self.points > NODES:
            return None
        try:
            count = self.normals(z, h)
            return symmetric_rule(count, 7) if NODES**count > WALKED and self._smooth else None
        except (OutOfReach, ValueError):
            return None

    @functools.cached_property
    def _smooth(self) -> bool:
        """True if the mean of a short step is that by the nodes of the rule turned: the sign of a draw has another one.

        Raises as `ends`.
        """
        z, h = np.asarray(self.template.flat, np.float64), SHORT / self.target.curvature
        nodes, weights = symmetric_rule(self.normals(z, h), 7)
        turn = np.linalg.qr(np.random.default_rng(0).standard_normal(2 * nodes.shape[1:]))[0]
        moves = [self.ends(itertools.repeat(z), each, h)[0] - z for each in (nodes, nodes @ turn)]
        means = [weights @ move for move in moves]
        return bool(np.abs(means[0] - means[1]).max() <= KINK * np.sqrt(np.abs(weights) @ moves[0] ** 2).max())

    def _by_normals(self, z: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Weights (M,), z' (M, n) and positions (M, d) by a rule of degree 7; None where branches are to be walked.

        What the rule leaves out is of order h^4, since a normal comes with sqrt(h): below all terms of a series that
        are read. A rule that has more nodes than usual, for kinks, is a product of rules.
        """
        rule = self._nodes(z, h)
        if rule is None:
            return None
        try:
            return (rule[1], *self.ends(itertools.repeat(z), rule[0], h))
        except (OutOfReach, ValueError):
            return None

    def _by_branches(self, z: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same over all branches of the tree of draws."""
        walked = list(self._branches(z, h))
        new_z, x = (np.stack([ends[i] for _, ends in walked]) for i in (0, 1))
        return np.array([weight for weight, _ in walked]), new_z, x

    def _branches(self, z: np.ndarray, h: float) -> Iterator[tuple[float, tuple[np.ndarray, np.ndarray]]]:
        """Weights, z' and positions, branch by branch."""
        try:
            yield from branches(lambda g: self.once(g, z, h), points=self.points)
        except Unintercepted as error:
            raise Inconclusive(f"a draw that the generator cannot feed: {error}") from None
        except ValueError as error:
            raise OutOfReach(f"too many paths: {error}") from None

    def affine(self, h: float) -> list[Affine]:
        """The step as an affine map of z; raises as `JaxStep.affine`."""
        return [self._affine(lambda new_z, position: new_z, h)]

    def pair(self, h: float) -> Affine:
        """As `JaxStep.pair`."""
        return self._affine(lambda new_z, position: np.concatenate([new_z, position], axis=1), h)

    def _affine(self, read, h: float) -> Affine:
        """Affine map of z and the noise that `read(z', position')` makes of one step."""
        start = np.asarray(self.template.flat, np.float64)
        normals = self.normals(start, h)
        found = fit_affine(lambda z, e: read(*self.ends(z, e, h)), start, normals, 1.0, len(GENERIC))
        if normals and not found.noise.any():
            # a test that comes before its coin may reject all of them
            raise NotAffine("the normals of a step do not enter at the points that were tried")
        return found

    def readout_at(self, h: float) -> tuple[np.ndarray, np.ndarray]:
        """`position = P z + q`."""
        del h
        flat = np.asarray(self.template.flat, np.float64)

        def read(s):
            state = self.sampler.pack(ScriptedGenerator(np.zeros(0)), self.template.unravel(s), self.estimator)
            return host_ravel(self.sampler.position(state))

        return _affine_readout(lambda states: np.stack([read(s) for s in states]), flat)

    def unpack_map(self) -> tuple[np.ndarray, np.ndarray]:
        """The recursion is in z itself."""
        return np.eye(self.size), np.zeros(self.size)

    def unpacking(self) -> np.ndarray:
        """The recursion is in z itself."""
        return np.eye(self.size)

    def chain(self, h: float) -> "AffineChain":
        """A chain in z itself; raises as `JaxStep.chain`."""
        pair, n = self.pair(h), self.size
        start = Affine(np.eye(n), np.zeros((n, 0)), np.zeros(n), 1.0)
        return AffineChain([start], [Affine(pair.matrix[:n], pair.noise[:n], pair.offset[:n], 1.0)], [pair])


def host_ravel(tree) -> np.ndarray:
    """`ravel_pytree` without JAX arrays: a host step is called once a path."""
    return np.concatenate([np.ravel(np.asarray(leaf, np.float64)) for leaf in jax.tree.leaves(tree)])


def host_unravel(tree):
    """The inverse of `host_ravel` for trees like this one."""
    leaves, structure = jax.tree.flatten(tree)
    shapes = [np.shape(leaf) for leaf in leaves]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

    def unravel(flat):
        parts = np.split(np.asarray(flat), ends[:-1])
        return jax.tree.unflatten(structure, [p.reshape(shape) for p, shape in zip(parts, shapes, strict=True)])

    return unravel


class _Template(NamedTuple):
    """Structures of a state and of z at the target's example."""

    state: Any
    flat: Any
    unravel: Any

    @property
    def size(self) -> int:
        return len(self.flat)


def ravel_floats(tree):
    """Flat vector of the floating-point leaves of a state and its inverse; other leaves are kept as they are."""
    leaves, structure = jax.tree.flatten(tree)
    floating = [jnp.issubdtype(jnp.result_type(leaf), jnp.floating) for leaf in leaves]
    flat, unravel = flattened([leaf for leaf, f in zip(leaves, floating, strict=True) if f])

    def restore(vector):
        values = iter(unravel(vector))
        filled = [next(values) if f else leaf for leaf, f in zip(leaves, floating, strict=True)]
        return jax.tree.unflatten(structure, filled)

    return flat, restore


def _live_floats(sampler: Any, state: Any, estimator: Any) -> np.ndarray:
    """True for each entry of `ravel_floats(state)` that a later position depends on."""
    flags = live_leaves(sampler, state, estimator, 0.1)
    leaves, structure = jax.tree.flatten(state)
    marked = [
        np.full(np.shape(leaf), flag, leaf.dtype) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else leaf
        for leaf, flag in zip(leaves, flags, strict=True)
    ]
    return np.asarray(ravel_floats(jax.tree.unflatten(structure, marked))[0]) > 0


def require_traced(step: JaxStep | HostStep) -> JaxStep:
    """The step itself. Raises OutOfReach for one that Python takes."""
    if not isinstance(step, JaxStep):
        raise OutOfReach(NOT_TRACED)
    return step


@lru_cache(maxsize=16)
def step_map(subject: Subject, target: Target, estimator: Any = None) -> JaxStep | HostStep:
    """The step of a subject on a target; `estimator` overrides the one of its row.

    Raises:
        NotApplicable: for a particle method, whose step is of all particles.
    """
    sampler = subject.sampler(target)
    if ParticleLaw in sampler.claims:
        raise NotApplicable("a particle method moves all particles at once: see its mean-field fixed point")
    estimator = estimator or subject.estimator(target)
    if sampler.backend == "host":
        generator = np.random.default_rng(0)
        state = sampler.init(generator, target.example, estimator)
        flat, unravel = host_ravel(sampler.unpack(state)), host_unravel(sampler.unpack(state))
        if isinstance(sampler, MappedSampler):  # the map itself is to be had from where the sampler runs
            program = mapped_program(target, sampler, estimator)
            template = _Template(state, flat, ravel_pytree(jax.tree.map(jnp.asarray, sampler.unpack(state)))[1])
            return JaxStep(target, sampler, estimator, template, program, lambda: MappedRecursion(program), subject)
        return HostStep(target, sampler, estimator, _Template(state, flat, unravel), subject=subject)
    example = jax.tree.map(jnp.asarray, target.example)
    state = start_state(sampler, jax.random.key(0), example, estimator)
    z, unravel = flattened(sampler.unpack(state))
    flat_state, restore = ravel_floats(state)

    def from_variable(z, h):
        pack_key, step_key = jax.random.split(jax.random.key(0))
        new = sampler.step(step_key, sampler.pack(pack_key, unravel(z), estimator), h, estimator)
        return ravel_pytree(sampler.unpack(new))[0], ravel_pytree(sampler.position(new))[0]

    h = placed(0.1, z.dtype)

    def recursion():
        # what no step reads is left as it is: a logged square of gradients makes no step nonlinear
        live = _live_floats(sampler, state, estimator)

        def from_state(s, h):
            new = ravel_floats(sampler.step(jax.random.key(0), restore(s), h, estimator))[0]
            return jnp.where(live, new, flat_state)

        return record(from_state, flat_state, h)

    program = record(from_variable, z, h)
    return JaxStep(target, sampler, estimator, _Template(state, z, unravel), program, recursion, subject)


@lru_cache(maxsize=64)
def is_affine(subject: Subject, target: Target) -> bool:
    """True if a step on a target is an affine map of z and of its noise, at the usual step size."""
    try:
        step_map(subject, target).affine(subject.step_size(target))
    except RAISED:
        return False
    return True


@lru_cache(maxsize=16)
def _compiled_moments(step: JaxStep):
    def moments(points, nodes, integers, weights, h):
        def at(z):
            values = jax.vmap(lambda e, k: _moments_of(z, *step.run_with(z, e, k, h)))(nodes, integers)
            return StepMoments(*(jnp.tensordot(weights, v, axes=1) for v in values))

        return jax.vmap(at)(points)

    return jax.jit(moments)


def _rows(run: Callable[..., tuple[Any, ...]], given: int) -> Callable[..., Any]:
    """`run` of many states and draws at once, compiled, at the same `given` further arguments."""
    return jax.jit(jax.vmap(run, (0, 0, *(None,) * given)))


def _each_row(run: Callable[..., Any], states: np.ndarray, draws: np.ndarray) -> list[np.ndarray]:
    """The results (P, ..) of a program of `_rows`, always in calls of one shape, so that it is compiled once."""
    parts = []
    for begin in range(0, len(states), ROWS):
        block = [a[begin : begin + ROWS] for a in (states, draws)]
        number = len(block[0])
        padded = [np.concatenate([a, np.repeat(a[-1:], ROWS - number, axis=0)]) for a in block]
        parts.append([np.asarray(a)[:number] for a in run(*padded)])
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


@lru_cache(maxsize=16)
def _compiled_pair(step: JaxStep):
    return _rows(step.run, 1)


@lru_cache(maxsize=16)
def _compiled_push(step: JaxStep):
    uniforms = jnp.ones(step.state_program.count("uniform"))  # no exchange
    restore = ravel_floats(step.template.state)[1]
    remote = isinstance(step.state_program, MappedRecursion)

    def run(s, e, k, h):
        after = step.state_program(Noise(e, uniforms, k), s, h)
        if remote:  # its state is z
            return after, s, s[: step.target.size]
        state = restore(s)
        return after, ravel_pytree(step.sampler.unpack(state))[0], ravel_pytree(step.sampler.position(state))[0]

    return _rows(run, 2)


def _integer_outcomes(ranges: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """All values of the integer draws (each uniform) and their probabilities."""
    total = math.prod(ranges)
    if total > 4096:
        raise OutOfReach(f"{total} outcomes of the integer draws are too many to enumerate")
    outcomes = np.array(np.unravel_index(np.arange(total), ranges)).T if ranges else np.zeros((1, 0), int)
    return outcomes, np.full(total, 1 / total)


def fit_affine(
    push: Callable[[np.ndarray, np.ndarray], np.ndarray],
    start: np.ndarray,
    noise_size: int,
    weight: float,
    checked: int = 1,
) -> Affine:
    """The affine map through a base point, unit displacements and a check at generic points.

    Args:
        push: states (P, m) and draws (P, k) -> what becomes of them (P, ..).
        start: (m,).
        noise_size: k.
        weight: of the map.
        checked: generic points, up to `len(GENERIC)`. The branches of a traced step are seen; those in Python are not.
    """
    base = np.asarray(start, np.float64)
    m, k = len(base), noise_size
    generic, shock = (
        np.outer(factors[:checked], np.cos(a * np.arange(n) + b))
        for factors, n, a, b in zip(zip(*GENERIC, strict=True), (m, k), (1.7, 2.3), (0.4, 0.9), strict=True)
    )
    states = base + np.concatenate([np.zeros((1, m)), np.eye(m), np.zeros((k, m)), generic])
    draws = np.concatenate([np.zeros((1 + m, k)), np.eye(k), shock])
    ends = push(states, draws)
    origin, actual = ends[0], ends[1 + m + k :]
    matrix, noise = (ends[1 : 1 + m] - origin).T, (ends[1 + m : 1 + m + k] - origin).T
    predicted = origin + generic @ matrix.T + shock @ noise.T
    scale = np.abs(origin).max(initial=1.0) + np.abs(matrix).sum() + np.abs(noise).sum()
    if not np.allclose(actual, predicted, rtol=0, atol=1e4 * np.finfo(float).eps * scale):
        raise NotAffine("the step is not affine in state and noise on this target")
    return Affine(matrix, noise, origin - matrix @ base, weight)


def _affine_readout(read: Callable[[np.ndarray], np.ndarray], flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    base = np.asarray(flat, np.float64)
    ends = read(base + np.concatenate([np.zeros((1, len(base))), np.eye(len(base))]))
    matrix = (ends[1:] - ends[0]).T
    return matrix, ends[0] - matrix @ base
