"""The uninterpreted potential: a JAX primitive whose derivative is the next one of its kind.

    U_k(x) = the tensor of the derivatives of order k of U at x,   d U_k = U_(k+1) dx

U_0 is an ordinary function of JAX inside an ordinary `Target`. Exact gradients, Hessians, metrics and the declared
dynamics are made of it by the code that makes them of any other potential, and a jaxpr of them holds U_k and nothing
that is known of U. A reader puts a `Jet` in the place of each entry.

U is a sum over data at the same time, with uninterpreted terms L_1, .., L_N and the prior U - sum_i L_i. That is no
restriction: any U and any terms have a prior of this form, and who never asks for the terms meets U alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jax.flatten_util import ravel_pytree
from jax.interpreters import ad, batching

from sgmcmc_verification.checks.programs.trees import placed
from sgmcmc_verification.checks.proof.ring import Free, Polynomial, Ring
from sgmcmc_verification.samplers.interface.aliases import EstimatorState
from sgmcmc_verification.samplers.interface.sampler import Estimate, Stateless
from sgmcmc_verification.samplers.interface.trees import Position
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.manifolds.orthant import Positive
from sgmcmc_verification.targets.target import DataTerms, Target

primitive = core.Primitive("uninterpreted")
"""(d,) -> (d,) * order: all derivatives of one order of the function of a name; it has no values.

A second operand (), a whole number, is part of the name: it tells the functions of a family apart.
"""
DATA = 3
"""N, the number of data: 2 would hide a factor N - 1, and all batches of 3 can be enumerated."""
DATUM = "L"
"""The name of the terms of the data."""
MEMORY = "memory"
"""The name of the numbers in the state of an estimator (`memory.Remembering`)."""


def uninterpreted(x: jax.Array, name: str = "U", order: int = 0, *number: Any) -> jax.Array:
    """The derivatives of an order of the function of a name, at a flat point (d,)."""
    return primitive.bind(x, *number, name=name, order=order)


def _abstract(x: Any, *number: Any, name: str, order: int) -> Any:
    del name, number
    return jax.core.ShapedArray((x.shape[0],) * order, x.dtype)


def _derivative(primals: Any, tangents: Any, *, name: str, order: int) -> tuple[jax.Array, jax.Array]:
    (x, *number), (dx, *others) = primals, tangents
    if any(not isinstance(t, ad.Zero) for t in others):
        raise TypeError("a derivative by a datum")
    slope = uninterpreted(x, name, order + 1, *number)
    return uninterpreted(x, name, order, *number), jnp.tensordot(slope, ad.instantiate_zeros(dx), 1)


def _batched(args: Any, dims: Any, *, name: str, order: int) -> tuple[jax.Array, int]:
    size = next(a.shape[axis] for a, axis in zip(args, dims, strict=True) if axis is not None)
    pairs = zip(args, dims, strict=True)
    columns = [[a] * size if axis is None else list(jnp.moveaxis(a, axis, 0)) for a, axis in pairs]
    return jnp.stack([uninterpreted(x, name, order, *number) for x, *number in zip(*columns, strict=True)]), 0


primitive.def_abstract_eval(_abstract)
ad.primitive_jvps[primitive] = _derivative
batching.primitive_batchers[primitive] = _batched


@dataclass(frozen=True)
class Coordinate(Free):
    """A number of the state.

    Attributes:
        name: for readers.
        index: its place in z, or a number of its own for one outside of z.
        positive: whether it is positive on all of the state space.
    """

    name: str
    index: int
    positive: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Memory(Free):
    """A number of the state that is not in z, or a counter, of which nothing is known but a bound.

    Attributes:
        name: for readers.
        least: a bound from below; None if none is known.
    """

    name: str
    least: int | None = None

    @property
    def positive(self) -> bool:
        """True if the bound is positive."""
        return self.least is not None and self.least > 0

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class StepRoot(Free):
    """s = sqrt(h) as an element of the ring, where a step is read at finite h."""

    positive = True

    def __str__(self) -> str:
        return "s"


@dataclass(frozen=True)
class Jet(Free):
    """A derivative of the uninterpreted function at a point.

    Attributes:
        name: of the function.
        orders: how often it is derived by each coordinate.
        point: the point, a polynomial a coordinate.
    """

    name: str
    orders: tuple[int, ...]
    point: tuple[Polynomial, ...]

    @property
    def arguments(self) -> tuple[Polynomial, ...]:
        """The point."""
        return self.point

    def derivative(self, ring: Ring, number: int, variable: int) -> Polynomial:
        """The chain rule: sum_j U_(b + e_j) d point_j."""
        del number
        total = ring.zero
        for j, coordinate in enumerate(self.point):
            inner = coordinate.derivative(variable)
            if inner:
                total = total + ring.generator(self.raised(j)) * inner
        return total

    def raised(self, j: int) -> "Jet":
        """Derived once more by coordinate j."""
        orders = tuple(b + (i == j) for i, b in enumerate(self.orders))
        return Jet(self.name, orders, self.point)

    def __str__(self) -> str:
        count = sum(self.orders)
        if len(self.orders) == 1:
            text = self.name + ("'" * count if count < 4 else f"({count})")
        else:
            indices = "".join(str(i + 1) * b for i, b in enumerate(self.orders))
            text = self.name + (f"_{indices}" if indices else "")
        place = [p.text(3) for p in self.point]
        plain = all((word.startswith("x") and word[1:].isdigit()) or word == "x" for word in place)
        return text if plain else f"{text}[{', '.join(place)}]"


def is_memory(p: Polynomial) -> bool:
    """True if memory is in a polynomial: of the sampler, a counter, or the state of an estimator."""
    generators = (p.ring.generators[number] for number in p.atoms())
    return any(isinstance(g, Memory) or (isinstance(g, Jet) and g.name.startswith(MEMORY)) for g in generators)


def any_target(dimension: int, positive: bool = False) -> Target:
    """A target whose potential is not interpreted, on R^d or on the positive orthant."""
    return any_like(placed(np.full(dimension, float(positive))), positive)


def any_matrix(positive: bool = False) -> Target:
    """A target whose positions are matrices (2, 3)."""
    return any_like(placed(np.full((2, 3), float(positive))), positive)


def target_of_tree(positive: bool = False, words: Sequence[str] = ()) -> Target:
    """A target whose positions are a pytree: two leaves of one shape, a number, a matrix, and an array of five axes.

    The names are as long as those of a model, and differ at their ends alone.

    Args:
        positive: whether its numbers are.
        words: names of further leaves of one number each.
    """
    fill = lambda shape: placed(np.full(shape, float(positive)))
    attention = {"query": {"kernel": fill(2)}, "value": {"kernel": fill(2)}}
    stem = {"kernel": fill((2, 1, 1, 1, 1)), "scale": fill(())}
    tree = {"encoder": {"layer_0": {"attention": attention}}, "head": fill((2, 2)), "stem": stem}
    return any_like(tree | _named(words, fill), positive)


def target_of_few_leaves(positive: bool = False, words: Sequence[str] = ()) -> Target:
    """A smaller pytree, of a vector, a number and a row; otherwise as `target_of_tree`."""
    fill = lambda shape: placed(np.full(shape, float(positive)))
    tree = {"encoder": {"kernel": fill(2), "scale": fill(())}, "head": fill((1, 2))}
    return any_like(tree | _named(words, fill), positive)


def _named(words: Sequence[str], fill: Callable[[tuple[int, ...]], jax.Array]) -> dict[str, dict[str, jax.Array]]:
    return {"parameters": {word: fill(()) for word in words}} if words else {}


def any_like(example: Position, positive: bool = False) -> Target:
    """A target whose positions have the shape of an example."""
    size = sum(np.size(leaf) for leaf in jax.tree.leaves(example))
    manifold = Positive(size) if positive else Euclidean(size)
    numbers = Target("a stand-in", manifold, example, _some_potential, terms=_terms(_some_potential, _some_datum))
    value = lambda x: uninterpreted(ravel_pytree(x)[0])
    datum = lambda x, number: uninterpreted(ravel_pytree(x)[0], DATUM, 0, number)
    return Target("any", manifold, example, value, terms=_terms(value, datum), stand_in=numbers)


def _terms(value: Callable[..., Any], datum: Callable[..., Any]) -> DataTerms:
    """U as a sum over data: the terms L_1, .., L_N and the prior U - sum_i L_i."""
    data = np.arange(1.0, DATA + 1)
    return DataTerms(lambda x: value(x) - sum(datum(x, number) for number in data), datum, data, DATA)


def _some_potential(x: Position) -> jax.Array:
    """A potential with values: neither quadratic, nor symmetric, nor a sum over coordinates."""
    flat = ravel_pytree(x)[0]
    return jnp.sum((flat - 0.3) ** 2 / 2 + flat**4 / 12) + 0.2 * jnp.sum(jnp.sin(flat) * jnp.cos(jnp.roll(flat, 1)))


def _some_datum(x: Position, number: Any) -> jax.Array:
    """The term of a datum of the potential with values."""
    return 0.05 * jnp.sum((ravel_pytree(x)[0] - number) ** 2)


@dataclass(frozen=True, eq=False)
class UninterpretedNoise(Stateless):
    """grad U + N(0, diag V(x)) with variances V_1(x), .., V_d(x) that are not interpreted."""

    target: Target

    def estimate(self, key: jax.Array, estate: EstimatorState, position: Any) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and the next state of the estimator."""
        value, gradient = jax.value_and_grad(self.target.potential)(position)
        flat, unravel = ravel_pytree(gradient)
        place = ravel_pytree(position)[0]
        variance = jnp.stack([uninterpreted(place, f"V{i + 1}") for i in range(flat.size)])
        noisy = flat + jnp.sqrt(variance) * jax.random.normal(key, flat.shape, flat.dtype)
        return Estimate(unravel(noisy), value), estate
