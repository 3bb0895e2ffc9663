"""Any function that returns an `optax.GradientTransformation` as a sampler, its learning rate an argument.

The library keeps a key in its state. A step of a sampler brings its own: keys that the library renews in every step are
replaced by it, and keys that it does not renew are left, with the numbers that they give again and again.
"""

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from sgmcmc_verification.samplers.adapters.common import Foreign, load
from sgmcmc_verification.samplers.adapters.optimisers.convention import PAST
from sgmcmc_verification.samplers.adapters.optimisers.reading import (
    GRADIENT,
    POSITION,
    ROWS,
    Counts,
    Draw,
    Schedule,
    effect_of_schedule,
    filled,
)
from sgmcmc_verification.samplers.adapters.optimisers.refusal import Refused
from sgmcmc_verification.samplers.estimators.host import Unintercepted
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Options, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import Claims
from sgmcmc_verification.samplers.interface.from_step import simple_sampler
from sgmcmc_verification.samplers.interface.sampler import Sampler
from sgmcmc_verification.samplers.interface.whole_state import fresh_key, is_key, key_words

INLINED = ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call")
LOOPS = ("scan", "while", "cond")
NORMAL = "erf_inv"
"""The primitive by which JAX makes normal numbers, over sqrt(2), of uniform ones."""


@dataclass(frozen=True, eq=False)
class Transformation:
    """A function of a learning rate that returns a transformation of gradients.

    Attributes:
        function: it.
        rate: name of its learning rate.
        options: its other arguments.
        scheduled: the learning rate is a schedule, that of the first step twice that of all others.
        burn_in: name of the option for the steps of a burn-in; empty if there is none.
    """

    function: Callable[..., Foreign]
    rate: str
    options: Options
    scheduled: bool = False
    burn_in: str = ""

    def build(self, rate: Scalar) -> Foreign:
        """The transformation at a learning rate. Raises Refused if the function returns anything else."""
        schedule = lambda count: jnp.where(count < 1, 2 * rate, rate)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.function(**{self.rate: schedule if self.scheduled else rate}, **self.options)
        if not (callable(getattr(found, "init", None)) and callable(getattr(found, "update", None))):
            raise Refused(f"it returns a {type(found).__name__}, not an optax.GradientTransformation")
        return found

    def init(self, rate: Scalar, position: Position) -> Tree:
        """The library's state after its burn-in, under gradients of one size, at a position."""
        made = self.build(rate)
        inner, steps = made.init(position), self.options.get(self.burn_in, 0)
        if not steps:
            return inner
        ones = jax.tree.map(jnp.ones_like, position)
        gradient = lambda number: jax.tree.map(lambda one: (1 - 2 * (number % 2)) * one, ones)
        return jax.lax.fori_loop(0, steps + PAST, lambda i, each: made.update(gradient(i), each, position)[1], inner)

    def update(self, rate: Scalar, gradient: Tree, inner: Tree, position: Position) -> tuple[Position, Tree]:
        """The position and the library's state after a step."""
        updates, inner = self.build(rate).update(gradient, inner, position)
        return load("optax").apply_updates(position, updates), inner


Keys = Literal["renewed", "counted", "kept"]
"""Keys in the state that each step changes, that stay and are combined with a count of the steps, or none of this."""


class OptaxState(NamedTuple):
    """Position, the library's state and the estimator's."""

    position: Position
    inner: Tree
    estate: EstimatorState


def keys_of(transformation: Transformation, rate: float) -> Keys:
    """The use that steps make of the keys in a state."""
    zero = jnp.zeros(1)
    before = transformation.init(rate, zero)
    first, after = transformation.update(rate, zero, before, zero)
    pairs = list(zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True))
    changed = [not np.array_equal(key_words(old), key_words(new)) for old, new in pairs if is_key(old)]
    if changed and all(changed):
        return "renewed"
    # the same state, but for what counts: if the move is another, so are the numbers that it draws
    counts = [new if jnp.issubdtype(old.dtype, jnp.integer) and not is_key(old) else old for old, new in pairs]
    second, _ = transformation.update(rate, zero, jax.tree.unflatten(jax.tree.structure(before), counts), zero)
    return "counted" if changed and not np.array_equal(first, second) else "kept"


def with_keys(key: jax.Array, inner: Tree) -> Tree:
    """The state of a library with a new key in the place of each of its own."""
    leaves, structure = jax.tree.flatten(inner)
    for i, leaf in enumerate(leaves):
        if is_key(leaf):
            new = jax.random.fold_in(key, i)
            words = jax.random.key_data(new)
            if leaf.dtype == new.dtype and leaf.shape == new.shape:
                leaves[i] = new
            else:
                leaves[i] = words if (leaf.dtype, leaf.shape) == (words.dtype, words.shape) else fresh_key(new, leaf)
    return jax.tree.unflatten(structure, leaves)


def optax_sampler(
    transformation: Transformation,
    rate_of: Callable[[Scalar], Scalar],
    scale: float,
    prior: Callable[[int], float],
    claims: Claims,
    keys: Keys,
) -> Sampler:
    """A sampler that takes one step of a transformation.

    Args:
        transformation: the function, with its options.
        rate_of: step size in time of the differential equation -> learning rate.
        scale: of the loss: the gradient handed over is `scale` times that of U + prior |theta|^2 / 2.
        prior: number of axes of a leaf -> second derivative that is added to U.
        claims: what it is held to.
        keys: of its state.
    """

    def init(key: jax.Array, position: Position, estimator: Estimator) -> OptaxState:
        inner = transformation.init(rate_of(0.01), position)
        if keys == "counted":
            inner = with_keys(jax.random.fold_in(key, 1), inner)
        return OptaxState(position, inner, estimator.init(key, position))

    def step(key: jax.Array, state: OptaxState, step_size: Scalar, estimator: Estimator) -> OptaxState:
        gradient_key, noise_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        gradient = jax.tree.map(lambda g, x: scale * (g + prior(jnp.ndim(x)) * x), estimate.gradient, state.position)
        inner = with_keys(noise_key, state.inner) if keys == "renewed" else state.inner
        position, inner = transformation.update(rate_of(step_size), gradient, inner, state.position)
        return OptaxState(position, inner, estate)

    return simple_sampler(step, init=init, claims=claims)


class Memory(NamedTuple):
    """A learning rate, the compiled step with given draws, the number of draws, and the library's state."""

    rate: float
    step: Callable[..., tuple[jax.Array, Tree]]
    shapes: tuple[tuple[int, ...], ...]
    inner: Tree


@dataclass(frozen=True, eq=False)
class OptaxProbe:
    """A `Probe` of a function that returns a transformation."""

    function: Callable[..., Foreign]
    rate: str
    burn_in: str = ""
    shape: tuple[int, ...] = POSITION.shape
    scheduled: bool = False
    _compiled: dict[str, Foreign] = field(default_factory=dict)

    def start(self, rate: float, options: Options) -> Memory:
        """A new transformation, of six parameters."""
        transformation = Transformation(self.function, self.rate, options, self.scheduled, self.burn_in)
        zero = jnp.zeros(self.shape)
        inner = transformation.init(rate, zero)
        name = repr(sorted(options.items()))
        if name not in self._compiled:
            traced = jax.make_jaxpr(transformation.update, return_shape=True)(rate, zero, inner, zero)
            program, shape = traced
            shapes = tuple(draws_of(program.jaxpr))
            self._compiled[name] = jax.jit(partial(_scripted, program, jax.tree.structure(shape))), shapes
        step, shapes = self._compiled[name]
        return Memory(rate, step, shapes, inner)

    def of_matrices(self) -> "OptaxProbe":
        """That of a matrix."""
        return OptaxProbe(self.function, self.rate, self.burn_in, ROWS, self.scheduled)

    def copy(self, memory: Memory) -> Memory:
        """Itself: nothing changes it."""
        return memory

    def step(
        self, memory: Memory, position: np.ndarray, gradient: np.ndarray, draw: Draw
    ) -> tuple[np.ndarray, Memory, Counts]:
        """Take one step."""
        draws = [filled(draw(i), self.shape, shape) for i, shape in enumerate(memory.shapes)]
        gradient, position = gradient.reshape(self.shape), position.reshape(self.shape)
        after, inner = memory.step(draws, memory.rate, gradient, memory.inner, position)
        return np.asarray(after).ravel(), memory._replace(inner=inner), Counts(len(draws), 1)


def schedule_of(probe: OptaxProbe, rate: float, options: Options) -> Schedule:
    """Effect of a learning rate that is a schedule, after its first step, beside that of a number."""
    zero, ends = np.zeros(POSITION.shape), []
    scheduled = OptaxProbe(probe.function, probe.rate, probe.burn_in, scheduled=True)
    for each, given in ((scheduled, rate), (probe, rate), (probe, 2 * rate)):
        try:
            _, memory, _ = each.step(each.start(given, options), zero, zero, lambda _: 0.0)
            ends.append(each.step(memory, POSITION, GRADIENT, lambda _: 1.0)[0])
        except Exception:
            return "followed"
    return effect_of_schedule(*ends)


def draws_of(jaxpr: Foreign) -> list[tuple[int, ...]]:
    """Shapes of the normal draws of a program. Raises Unintercepted for draws within loops and branches."""
    shapes: list[tuple[int, ...]] = []
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name in INLINED:
            inner = equation.params.get("jaxpr") or equation.params.get("call_jaxpr")
            shapes += draws_of(getattr(inner, "jaxpr", inner))
        elif name == NORMAL:
            shapes.append(equation.outvars[0].aval.shape)
        elif name in LOOPS and (NORMAL in str(equation.params) or "random_bits" in str(equation.params)):
            raise Unintercepted(f"draws within a {name} of JAX")
    return shapes


def _scripted(program: Foreign, structure: Foreign, draws: list[jax.Array], *arguments: Foreign) -> Foreign:
    """The values of a program with given normal draws."""
    given = iter(draws)
    outputs = _evaluate(program.jaxpr, program.consts, jax.tree.leaves(arguments), given)
    return jax.tree.unflatten(structure, outputs)


def _evaluate(jaxpr: Foreign, constants: Foreign, arguments: Foreign, draws: Foreign) -> list[Foreign]:
    values: dict[Foreign, Foreign] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*constants, *arguments), strict=True))
    read = lambda variable: variable.val if isinstance(variable, core.Literal) else values[variable]
    for equation in jaxpr.eqns:
        inputs = [read(v) for v in equation.invars]
        if equation.primitive.name in INLINED:
            inner = equation.params.get("jaxpr") or equation.params.get("call_jaxpr")
            closed = hasattr(inner, "consts")
            outputs = _evaluate(inner.jaxpr if closed else inner, inner.consts if closed else (), inputs, draws)
        elif equation.primitive.name == NORMAL:
            outputs = [next(draws) / np.sqrt(2.0)]
        else:
            found = equation.primitive.bind(*inputs, **equation.params)
            outputs = found if equation.primitive.multiple_results else [found]
        values.update(zip(equation.outvars, outputs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def check_function(reference: str, value: Foreign) -> Callable[..., Foreign]:
    """The function itself. Raises Refused if it is a transformation already, or no function."""
    if hasattr(value, "update") and hasattr(value, "init"):
        raise Refused(
            f"{reference}: it is a transformation already, with a learning rate of its own; name the function of the "
            "learning rate that returns it"
        )
    if not callable(value) or (inspect.isclass(value) and not hasattr(value, "_fields")):
        raise Refused(f"{reference}: a {type(value).__name__} is no function that returns a GradientTransformation")
    return value
