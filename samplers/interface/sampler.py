"""The interfaces of the suite: what an estimator and a sampler are, and what a sampler claims.

There is no base class to inherit. Every object with these attributes is a sampler; `samplers.simple` fills in
what a sampler whose state is its position does not want to write.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax

from samplers.dynamics.charts import InChart
from samplers.dynamics.complete_recipe import Dynamics
from samplers.dynamics.embedded import EmbeddedDynamics
from targets.target import Target

Position = Any
State = Any
Kind = Literal["fixed-step", "exact", "scheduled", "adaptive", "particle"]
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

    gradient: Any
    potential: jax.Array | None = None
    covariance: jax.Array | None = None
    statistics: Any = None


@runtime_checkable
class Estimator(Protocol):
    """A map from a position to an `Estimate`: exact, known noise, minibatch, control variates, SAGA, Gibbs.

    The estimator's own state (a pytree; `()` if it has none) is carried by the sampler inside its `State`. `key` is a
    typed JAX key, or a `numpy.random.Generator` for an estimator with `backend == "host"`.
    """

    def init(self, key: Any, position: Position) -> Any:
        """First state of the estimator."""
        ...

    def estimate(self, key: Any, estate: Any, position: Position) -> tuple[Estimate, Any]:
        """Estimate at a position, and the next state of the estimator."""
        ...


@dataclass(frozen=True)
class Source:
    """Where a method comes from: a key of references.bib and the place in it (equation, algorithm)."""

    key: str
    where: str


@dataclass(frozen=True, eq=False)
class ParticleClaims:
    """What a particle method claims of its velocity field besides.

    Attributes:
        smoothed: its velocity holds an estimate of the density of the particles themselves, so that the target is a
            fixed point as the bandwidth of the estimate goes to 0 only.
        balanced: without a gradient the velocities of all particles sum to zero.
        scaled: a step is not the velocity times the step size (AdaGrad).
        flow: target -> the SDE whose marginals the particles follow where the estimate is exact; None if they follow
            none (kernelised velocities).
    """

    smoothed: bool = False
    balanced: bool = False
    scaled: bool = False
    flow: Callable[[Target], Dynamics] | None = None


@dataclass(frozen=True, eq=False)
class CycleClaims:
    """What a sampler claims of a run under a cyclical schedule, besides the law of its sampling stage.

    Attributes:
        explore_above: the step size above which a step has no noise.
        refreshed: the momentum is drawn afresh in the first step of a cycle.
    """

    explore_above: float
    refreshed: bool = False


@dataclass(frozen=True, eq=False)
class ExchangeClaims:
    """What a sampler of two chains that change places claims of that, besides the diffusion between two exchanges.

    z = (x, y) has the law exp(-U(x) / T - U(y) / T'); both halves are exchanged with the probability
    min(1, rate h) E min(1, S), S = exp((1 / T - 1 / T') (U(x) - U(y))) up to the noise of U.

    Attributes:
        temperature: T' of the second chain.
        rate: exchanges that are tried per unit of time.
        energy_variance: variance of the Gaussian noise of each of the two potentials.
    """

    temperature: float
    rate: float
    energy_variance: float = 0.0


@dataclass(frozen=True, eq=False)
class TrajectoryClaims:
    """What a Metropolis kernel claims of its proposal: L steps along a Hamiltonian flow from a fresh momentum.

    With H = U + p^T A(x) p / 2 - T log |A(x)| / 2 and p ~ N(0, T A^-1(x)), the flow has Cov dx/dt = T A and
    E d^2x/dt^2 = -A grad U + T div A: for small h the proposal is a Langevin step of the time (L h)^2 / 2.

    Attributes:
        steps: L, of the integrator.
        dynamics: target -> that Langevin equation, of the position alone.
    """

    steps: int
    dynamics: Callable[[Target], Dynamics | EmbeddedDynamics]


@dataclass(frozen=True, eq=False)
class ContourClaims:
    """What a contour sampler claims besides: with kept weights w the law is exp(-U / tau) / Psi(U)^zeta.

    Attributes:
        temperature: tau.
        zeta: how flat.
        edges: upper edges (m,) of the bins of the energy, equally spaced.
        rate: of learning the weights, per unit of time.
    """

    temperature: float
    zeta: float
    edges: Any
    rate: float


@dataclass(frozen=True, eq=False)
class Claims:
    """What a sampler says of itself, and what the checks hold it to.

    Attributes:
        kind: `fixed-step` (a discretised SDE), `exact` (leaves the target invariant at every step size),
            `scheduled`, `adaptive` or `particle`.
        weak_order: p with local weak error O(h^(p+1)) under `conditions`; None if no such claim.
        invariant_order: q with pi_h = pi + O(h^q) for the law of `position(state)`; None if no such claim.
        temperature: the law is exp(-U / temperature).
        dynamics: target -> the SDE that the step discretises, in the coordinates of `ravel_pytree(unpack(state))`.
        embedded: target -> the same on a manifold, where z = (x, v, ..) are ambient coordinates and `dynamics` is None.
        charts: target -> the dynamics in charts of that manifold, for which the recipe is decided.
        discrete_law: closed form of the exact stationary law on U = curvature x^2 / 2 in one dimension:
            `(step_size, curvature) -> {name: value}`, names among `position`, `momentum` (variances) and
            `covariance`; an oracle independent of the code.
        kinetic_energy: closed form of E |v|^2 / (m T) in the stationary law for U = 0 on a compact manifold of
            dimension m: `step_size -> value`; an oracle independent of the code.
        composite: True when one step holds inner iterations or a full refresh of the momentum, so that it has no
            generator in the augmented variable (its h -> 0 limit is what counts).
        compensated: of a sampler that reads the covariance of its gradients: it has the law that exact gradients give.
        conditions: what the orders rest on, such as `"exact gradient"`.
        spaces: manifolds the sampler runs on: `euclidean`, `positive`, `sphere`, `simplex`, ...
        particles: what a particle method claims besides.
        cycle: what a sampler for cyclical step sizes claims besides.
        trajectory: what a kernel claims of its proposal that is the end of a Hamiltonian trajectory.
        contour: what a contour sampler claims besides; z is then the position with the logarithms of the weights.
        reversal: z -> R z, an involution that keeps the law, with which an exact kernel is balanced:
            pi(z) k(z, z') = pi(R z') k(R z', R z); None for the identity, or where balance is not claimed.
        exchange: what a sampler of two chains that change places claims besides; `dynamics` is then that of both
            between two exchanges, and `weak_order` is meant for it.
        shears: the force only shears z, as in symplectic Euler steps, leapfrog and splittings: the volume of a step
            does not depend on the Hessian of U.
        free_motion: for U = 0 a step of any size is the exact transition of `dynamics`.
        source: where the method comes from.
    """

    kind: Kind
    source: Source
    weak_order: int | None = None
    invariant_order: int | None = None
    temperature: float = 1.0
    dynamics: Callable[[Target], Dynamics] | None = None
    embedded: Callable[[Target], EmbeddedDynamics] | None = None
    charts: Callable[[Target], tuple[InChart, ...]] | None = None
    discrete_law: Callable[[float, float], dict[str, float]] | None = None
    kinetic_energy: Callable[[float], float] | None = None
    composite: bool = False
    conditions: tuple[str, ...] = ()
    compensated: bool = True
    spaces: tuple[str, ...] = ("euclidean",)
    particles: ParticleClaims | None = None
    cycle: CycleClaims | None = None
    exchange: ExchangeClaims | None = None
    reversal: Callable[[Any], Any] | None = None
    trajectory: TrajectoryClaims | None = None
    contour: ContourClaims | None = None
    shears: bool = False
    free_motion: bool = False


@runtime_checkable
class Sampler(Protocol):
    """A Markov kernel with its claims.

    `backend` is `"jax"` or `"host"`, `needs` a subset of `Need`. `step` is pure, jit-able and unbatched for
    `backend == "jax"`; chains are vmapped by the runner. For `backend == "host"` (NumPy, numba, torch, another library)
    `key` is a `numpy.random.Generator` and nothing is traced. `step_size` is the epsilon of dz = f dt + sqrt(2 D) dW
    (SDE time): SGLD is theta - epsilon grad U + N(0, 2 epsilon).

    `unpack(state)` gives the full variable z = (theta, r, xi, ...) of the claimed law, a pytree whose
    `ravel_pytree` is the vector that `Claims.dynamics` acts on; `pack` is its inverse and recomputes caches.
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

    def init(self, key: Any, position: Position, estimator: Estimator) -> State:
        """Start a chain at a position."""
        ...

    def step(self, key: Any, state: State, step_size: Any, estimator: Estimator) -> State:
        """Take one step."""
        ...

    def position(self, state: State) -> Position:
        """Position of a state."""
        ...

    def unpack(self, state: State) -> Any:
        """Full variable z of a state."""
        ...

    def pack(self, key: Any, z: Any, estimator: Estimator) -> State:
        """State with the full variable z; caches are computed anew."""
        ...
