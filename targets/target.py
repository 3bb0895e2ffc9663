"""Definition of a target: a law on a manifold with its potential and every exact oracle that is known for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.targets.manifolds.base import Manifold
from sgmcmc_verification.targets.numerics.arrays import AnyArray

Position = Any
"""Any pytree of float arrays."""


class Moment(NamedTuple):
    """An expectation under the target.

    Attributes:
        function: position -> scalar.
        value: its exact expectation.
        error: absolute error bound of `value` (0.0 for a closed form evaluated in float64).
    """

    function: Callable[[Position], jax.Array]
    value: float
    error: float = 0.0


class Cdf(NamedTuple):
    """The exact law of a scalar statistic of the position.

    Attributes:
        function: position -> scalar.
        cdf: NumPy-vectorised cumulative distribution function of that scalar.
    """

    function: Callable[[Position], jax.Array]
    cdf: Callable[[np.ndarray], np.ndarray]


class GaussianLaw(NamedTuple):
    """Mean (d,) and precision (d, d) of a Gaussian target, in the order of `ravel_pytree`."""

    mean: np.ndarray
    precision: np.ndarray


class DataTerms(NamedTuple):
    """A potential that is a sum over data: U(x) = prior(x) + sum_i datum(x, data[i]).

    Attributes:
        prior: position -> scalar, the potential of the prior.
        datum: (position, datum) -> scalar, minus the log-likelihood of one datum.
        data: pytree of arrays with a common leading axis of length `size`.
        size: N, the number of data.
    """

    prior: Callable[[Position], jax.Array]
    datum: Callable[[Position, Any], jax.Array]
    data: Any
    size: int


class FiniteLaw(NamedTuple):
    """A law on finitely many states, and the potential between them, whose gradient guides a sampler.

    Attributes:
        states: (S, d), all of them, in the order of `ravel_pytree`.
        probabilities: (S,).
        place: points (.., d) -> their places among the states, -1 for one that is none.
        relaxed: position -> its code, an array of floats: the position itself, or each coordinate as a unit vector.
        extension: code -> U, a smooth function that is the potential at the codes of states.
    """

    states: np.ndarray
    probabilities: np.ndarray
    place: Callable[[np.ndarray], np.ndarray]
    relaxed: Callable[[Position], jax.Array]
    extension: Callable[[jax.Array], jax.Array]


@dataclass(frozen=True, eq=False)
class Target:
    """A law to sample, density exp(-U) with respect to Lebesgue (or Hausdorff, on a manifold) measure.

    Attributes:
        name: registry name.
        manifold: where it lives.
        example: a position of the right structure, shape and dtype, in the bulk of the law.
        potential: U = -log density up to a constant; position -> scalar; jax-traceable.
        sample: exact sampler `(key, n) -> positions` with a leading axis n, or None where there is none.
        moments: exact expectations by name.
        cdfs: exact laws of scalar statistics by name.
        quadrature: `n -> (points, weights)`: a rule for expectations under the law, points (m, d) in ravel
            order, weights (m,) summing to one; exact (Gauss) or converging geometrically in n. None where no
            such rule is known.
        characteristic: w (J, d) -> E exp(i w . x) (J,), x in ravel order, for laws whose dimension no rule is for.
        interval: for a one-dimensional law, `(low, high)` outside which the mass is below 1e-14.
        gaussian: mean and precision if the law is Gaussian.
        terms: the sum over data, if there is one.
        finite: states and probabilities if the law has finitely many states.
        curvature: an upper bound of the largest eigenvalue of the Hessian of U in the bulk; 1 / sqrt of it is
            the length and time scale that step sizes are quoted in.
        tempered: `temperature -> Target` with density exp(-U / temperature) and its own exact sampler, for laws that
            are neither Gaussian nor one-dimensional (those need no such help); None where none is known.
        separated: True for a law with modes that a local move does not connect in reasonable time.
        stand_in: a target of the same positions with values, for a potential that has none: where a sampler is run to
            find out how its states are made.
        source: where the law and its oracles come from (references.bib key, equation), or a short derivation.
    """

    name: str
    manifold: Manifold
    example: Position
    potential: Callable[[Position], jax.Array]
    sample: Callable[[jax.Array, int], Position] | None = None
    moments: Mapping[str, Moment] = field(default_factory=dict)
    cdfs: Mapping[str, Cdf] = field(default_factory=dict)
    quadrature: Callable[[int], tuple[np.ndarray, np.ndarray]] | None = None
    characteristic: Callable[[np.ndarray], np.ndarray] | None = None
    interval: tuple[float, float] | None = None
    gaussian: GaussianLaw | None = None
    terms: DataTerms | None = None
    finite: FiniteLaw | None = None
    curvature: float = 1.0
    tempered: Callable[[float], "Target"] | None = None
    separated: bool = False
    stand_in: "Target | None" = None
    source: str = ""

    @property
    def size(self) -> int:
        """Number of coordinates of a position (ambient, on a manifold)."""
        return sum(int(np.size(leaf)) for leaf in jax.tree.leaves(self.example))

    def ravel(self, position: Position) -> jax.Array:
        """Position -> flat vector (size,)."""
        return ravel_pytree(position)[0]

    def unravel(self, flat: AnyArray) -> Position:
        """Flat vector (size,) -> position with the structure of `example`."""
        return ravel_pytree(self.example)[1](jnp.asarray(flat))

    def flat_potential(self, flat: AnyArray) -> jax.Array:
        """U as a function of the flat vector."""
        return self.potential(self.unravel(flat))

    def relaxed(self, position: Position) -> Position:
        """Code of a position on a finite space, by which U is differentiated; elsewhere the position itself."""
        return position if self.finite is None else self.finite.relaxed(position)

    def value_and_gradient(self, position: Position) -> tuple[jax.Array, Position]:
        """U at a position and its gradient, shaped like `relaxed(position)`."""
        return self._slope(self.relaxed(position))

    @cached_property
    def _slope(self) -> Callable[[Position], tuple[jax.Array, Position]]:
        """Value and gradient at a code, traced once for all programs that have them in them."""
        return jax.jit(jax.value_and_grad(self.potential if self.finite is None else self.finite.extension))
