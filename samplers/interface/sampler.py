"""The interfaces of the suite: estimators and samplers; claims are in `samplers.interface.claims`.

There is no base class to inherit. Every object with these attributes is a sampler; `samplers.simple` fills in
what a sampler whose state is its position does not want to write.
"""

from typing import Literal, NamedTuple, Protocol, runtime_checkable

import jax

from sgmcmc_verification.samplers.interface.claims import Claims
from sgmcmc_verification.samplers.interface.trees import EstimatorState, Key, Position, Scalar, State, Tree

Need = Literal["gradient", "potential", "covariance", "statistics"]


class Estimate(NamedTuple):
    """Estimate of the gradient at a position, and of all else that a sampler needs.

    Attributes:
        gradient: unbiased for +grad U (a pytree like the position), summed over the data; U = -log density with
            respect to Lebesgue measure, Hausdorff on a manifold. The sign and the sum are fixed here, once.
        potential: unbiased for U, a scalar, or None.
        covariance: V-hat (d, d), an estimate of the covariance of `gradient` (ravel order) from the same
            minibatch, or None.
        statistics: unbiased sufficient counts, for conditionally conjugate samplers (SCIR, DP), or None.
    """

    gradient: Tree
    potential: jax.Array | None = None
    covariance: jax.Array | None = None
    statistics: Tree = None


@runtime_checkable
class Estimator(Protocol):
    """A map from a position to an `Estimate`: exact, known noise, minibatch, control variates, SAGA, Gibbs.

    The estimator's own state (a pytree; `()` if it has none) is carried by the sampler inside its `State`. `key` is a
    typed JAX key, or a `numpy.random.Generator` for an estimator with `backend == "host"`.
    """

    def init(self, key: Key, position: Position) -> EstimatorState:
        """First state of the estimator."""
        ...

    def estimate(self, key: Key, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and the next state of the estimator."""
        ...


class Stateless:
    """`init` of an estimator that has no state of its own."""

    def init(self, key: Key, position: Position) -> tuple[()]:
        """No state: an empty tuple."""
        del key, position
        return ()


@runtime_checkable
class Sampler(Protocol):
    """A Markov kernel with its claims.

    `backend` is `"jax"` or `"host"`, `needs` a subset of `Need`. `step` is pure, jit-able and unbatched for
    `backend == "jax"`; chains are vmapped by the runner. For `backend == "host"` (NumPy, numba, torch, another library)
    `key` is a `numpy.random.Generator` and nothing is traced. `step_size` is the epsilon of dz = f dt + sqrt(2 D) dW
    (SDE time): SGLD is theta - epsilon grad U + N(0, 2 epsilon).

    `unpack(state)` gives the full variable z = (theta, r, xi, ...) of the claimed law, a pytree whose
    `ravel_pytree` is the vector that the claimed `Diffusion` acts on; `pack` is its inverse and recomputes caches.
    """

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        ...

    @property
    def backend(self) -> str:
        """`"jax"` or `"host"`."""
        ...

    @property
    def needs(self) -> frozenset[str]:
        """Parts of an estimate that a step reads."""
        ...

    def init(self, key: Key, position: Position, estimator: Estimator) -> State:
        """Start a chain at a position."""
        ...

    def step(self, key: Key, state: State, step_size: Scalar, estimator: Estimator) -> State:
        """Take one step."""
        ...

    def position(self, state: State) -> Position:
        """Position of a state."""
        ...

    def unpack(self, state: State) -> Tree:
        """Full variable z of a state."""
        ...

    def pack(self, key: Key, z: Tree, estimator: Estimator) -> State:
        """State with the full variable z; caches are computed anew."""
        ...
