"""The claims of a sampler: one small type per claim, and the record that holds those that were made.

A check names in its signature the claims that it needs. A sampler that does not make one of them is not held to it;
a new kind of claim is a type here and a check of it, and nothing else has to know.
"""

import copy
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import jax
import numpy as np
from jax.typing import ArrayLike

from sgmcmc_verification.samplers.dynamics.charts import InChart
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.embedded import EmbeddedDynamics
from sgmcmc_verification.samplers.interface.trees import Tree
from sgmcmc_verification.targets.manifolds.base import Manifold
from sgmcmc_verification.targets.target import Target


@dataclass(frozen=True)
class Source:
    """Source of a method: a key of references.bib and the place in it (equation, algorithm)."""

    key: str
    where: str


class Claim:
    """One statement about a sampler that a check can hold it to."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Law(Claim):
    """The law that a sampler keeps or tends to, exp(-U / temperature); every sampler claims exactly one.

    Attributes:
        temperature: T > 0.
    """

    temperature: float = 1.0
    kind: ClassVar[str]


@dataclass(frozen=True, eq=False, kw_only=True)
class StationaryLaw(Law):
    """The stationary distribution pi_h of a discretised SDE at a fixed step size h, pi_h = pi + O(h^order).

    Attributes:
        order: of the error in the law of `position(state)`; None if no order is claimed.
    """

    order: int | None = None
    kind: ClassVar[str] = "fixed-step"


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactLaw(Law):
    """The target is invariant at every step size."""

    kind: ClassVar[str] = "exact"


@dataclass(frozen=True, eq=False, kw_only=True)
class AdaptiveLaw(Law):
    """A kernel that learns from the run, without a law at a fixed step size."""

    kind: ClassVar[str] = "adaptive"


@dataclass(frozen=True, eq=False, kw_only=True)
class ParticleLaw(Law):
    """Interacting particles that represent the target in the limit of many."""

    kind: ClassVar[str] = "particle"


@dataclass(frozen=True, eq=False)
class StochasticEquation(Claim):
    """The SDE that a step discretises, in one of two coordinates: `Diffusion` or `EmbeddedDiffusion`.

    Attributes:
        dynamics: target -> the SDE.
        weak_order: p with a local weak error O(h^(p+1)) under `Claims.conditions`; None if no order is claimed.
    """

    dynamics: Callable[[Target], Dynamics | EmbeddedDynamics]
    weak_order: int | None = None


@dataclass(frozen=True, eq=False)
class Diffusion(StochasticEquation):
    """The SDE in the coordinates of `ravel_pytree(unpack(state))`."""

    dynamics: Callable[[Target], Dynamics]


@dataclass(frozen=True, eq=False)
class EmbeddedDiffusion(StochasticEquation):
    """The SDE on a manifold, where z = (x, v, ..) are ambient coordinates.

    Attributes:
        charts: target -> the dynamics in charts of that manifold, for which the recipe is decided.
    """

    dynamics: Callable[[Target], EmbeddedDynamics]
    charts: Callable[[Target], tuple[InChart, ...]] | None = None


@dataclass(frozen=True, eq=False)
class StationaryMoments(Claim):
    """Closed form of the second moments of pi_h on U = curvature x^2 / 2: an oracle independent of the code.

    Attributes:
        values: (step size, curvature) -> {name: value}, names among `position`, `momentum` (variances), `covariance`.
    """

    values: Callable[[float, float], dict[str, float]]


@dataclass(frozen=True, eq=False)
class KineticEnergy(Claim):
    """Closed form of E |v|^2 / (m T) under pi_h for U = 0 on a compact manifold of dimension m.

    Attributes:
        ratio: step size -> value; an oracle independent of the code.
    """

    ratio: Callable[[float], float]


@dataclass(frozen=True, eq=False)
class Composite(Claim):
    """One step holds inner iterations or a full refresh of the momentum.

    It has no generator in the augmented variable; its limit h -> 0 is what counts.
    """


@dataclass(frozen=True, eq=False)
class UncompensatedNoise(Claim):
    """The sampler reads the covariance of its gradients and does not restore the law of exact gradients."""


@dataclass(frozen=True, eq=False)
class Reversal(Claim):
    """Balance of an exact kernel up to an involution R: pi(z) k(z, z') = pi(R z') k(R z', R z).

    Attributes:
        map: z -> R z, which keeps the law.
    """

    map: Callable[[Tree], Tree]


@dataclass(frozen=True, eq=False)
class HamiltonianProposal(Claim):
    """The proposal of a Metropolis kernel is L steps along a Hamiltonian flow from a fresh momentum.

    With H = U + p^T A(x) p / 2 - T log |A(x)| / 2 and p ~ N(0, T A^-1(x)), the flow has Cov dx/dt = T A and
    E d^2x/dt^2 = -A grad U + T div A: for small h the proposal is a Langevin step of the time (L h)^2 / 2.

    Attributes:
        steps: L, of the integrator.
        dynamics: target -> that Langevin equation, of the position alone.
    """

    steps: int
    dynamics: Callable[[Target], Dynamics | EmbeddedDynamics]


@dataclass(frozen=True, eq=False)
class FlattenedLaw(Claim):
    """With kept weights w a contour sampler has the law exp(-U / tau) / Psi(U)^zeta.

    z is the position with the logarithms of the weights.

    Attributes:
        temperature: tau.
        zeta: exponent; 0 for no flattening.
        edges: upper edges (m,) of the bins of the energy, equally spaced.
        rate: of learning the weights, per unit of time.
    """

    temperature: float
    zeta: float
    edges: np.ndarray
    rate: float


@dataclass(frozen=True, eq=False)
class Exchange(Claim):
    """Two chains that change places; `Diffusion` and its weak order are meant for both between two exchanges.

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
class CyclicalSchedule(Claim):
    """A run under a cyclical schedule: its sampling stage has the claimed law.

    Attributes:
        explore_above: the step size above which a step has no noise.
        refreshed: the momentum is drawn afresh in the first step of a cycle.
    """

    explore_above: float
    refreshed: bool = False


@dataclass(frozen=True, eq=False)
class ShearingForce(Claim):
    """The force only shears z, as in symplectic Euler steps, leapfrog and splittings.

    The volume of a step does not depend on the Hessian of U.
    """


@dataclass(frozen=True, eq=False)
class ExactFreeMotion(Claim):
    """For U = 0 a step of any size is the exact transition of the SDE."""


@dataclass(frozen=True, eq=False)
class IndependentNoise(Claim):
    """The noise of successive steps is independent: a step reads z and its own draws, and no earlier draw."""


@dataclass(frozen=True, eq=False)
class EpochLaw(Claim):
    """The law of the position at the end of an epoch of minibatches, each used once, errs by O(h^order).

    It holds for an order of the batches that is drawn anew in every epoch. One step of batch i is
    exp(h L_i) + O(h^(p+1)), L_i = L - xi_i . d/dr with sum xi_i = 0. Over all orders the K steps have the mean
    exp(K h L) + O(h^3), where steps with independent batches have h^2 times the mean of L_i^2 - L^2: an error O(h) of
    the law becomes O(h^2).

    Attributes:
        order: of the error.
    """

    order: int


@dataclass(frozen=True, eq=False)
class CarriedState(Claim):
    """The state holds more than z, and the next step reads it: draws made ahead, averages, the state of an optimiser.

    The law of z alone is then that of `pack`, which makes the rest anew; the laws on Gaussians are those of all of the
    state.

    Attributes:
        what: is carried, in words.
    """

    what: str


@dataclass(frozen=True, eq=False)
class Moves(Claim):
    """A step moves a part of the position and leaves the rest: its law is that of the part, given the rest.

    Every other claim is about the part. The checks put numbers of their own into the rest.

    Attributes:
        whole: part -> the position that the sampler takes; each number of the part stands in one place of it, and what
            stands elsewhere does not matter.
    """

    whole: Callable[[Tree], Tree]


@dataclass(frozen=True, eq=False)
class ReflectsAtZero(Claim):
    """A step is the fold at zero of the step without a mirror: theta -> |theta|, and r changes sign where theta does.

    Attributes:
        sampler: the one that claims it, a dataclass with the option `reflect`.
    """

    sampler: Any

    @property
    def free(self) -> Any:
        """The sampler without the mirror."""
        return dataclasses.replace(self.sampler, reflect=False)


@dataclass(frozen=True, eq=False)
class FollowsGeodesics(Claim):
    """The free motion is along geodesics.

    Attributes:
        manifold: whose `geodesic(x, v, t) -> (x, v)` the step follows.
    """

    manifold: Manifold


@dataclass(frozen=True, eq=False)
class LearntPreconditioner(Claim):
    """A preconditioner M_t that is learnt from all gradients so far: `FisherScoring` or `RunningSquares`."""


@dataclass(frozen=True, eq=False)
class FisherScoring(LearntPreconditioner):
    """M = (B / h + F / 2)^-1 with F = (1 + n/N) times the mean of the covariances V_1 .. V_t.

    Source: ahn2012bayesian, Algorithm 1.

    Attributes:
        preconditioner: B, a number or (d, d).
        batch_fraction: n / N.
        diagonal: only the diagonals of B and F are used.
    """

    preconditioner: ArrayLike
    batch_fraction: float
    diagonal: bool


@dataclass(frozen=True, eq=False)
class RunningSquares(LearntPreconditioner):
    """G = diag 1 / (lambda + sqrt V), V <- alpha V + (1 - alpha) (g / N)^2.

    Source: li2016preconditioned, Algorithm 1.

    Attributes:
        decay: alpha.
        second_moment: V before the first step.
        data_size: N.
        regularisation: lambda.
    """

    decay: float
    second_moment: Tree
    data_size: float
    regularisation: float


@dataclass(frozen=True, eq=False)
class ParticleVelocity(Claim):
    """The velocity of weighted particles, of which a step is the one with equal weights.

    Attributes:
        field: (particles (M, n), grad U (M, d), weights (M,)) -> velocities (M, n).
    """

    field: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


@dataclass(frozen=True, eq=False)
class BalancedVelocity(Claim):
    """Without a gradient the weighted velocities of all particles sum to zero."""


@dataclass(frozen=True, eq=False)
class AdaGradSteps(Claim):
    """A step is h v / (10^-6 + sqrt(s)), s <- 0.9 s + 0.1 v^2 from s = v^2, in place of h times the velocity v.

    Source: the released code of liu2016stein.
    """


@dataclass(frozen=True, eq=False)
class SteinVelocity(Claim):
    """v(y) = sum_i w_i [k(x_i, y) grad log p(x_i) + grad_x k(x_i, y)].

    Attributes:
        kernel: particles (M, d) -> the kernel k(x (d,), y (d,)) of a step from them.
    """

    kernel: Callable[[jax.Array], Callable[[jax.Array, jax.Array], jax.Array]]


@dataclass(frozen=True, eq=False)
class RiemannianVelocity(Claim):
    """v = G^-1 grad f, f = sum_i w_i (1 / p) div(p G^-1 grad k), the same in every chart.

    Attributes:
        kernel: particles (M, d) -> the kernel k(x (d,), y (d,)) of a step from them.
        inverse_metric: theta (d,) -> G^-1, (d, d) or its diagonal; None for the metric of the ambient space.
    """

    kernel: Callable[[jax.Array], Callable[[jax.Array, jax.Array], jax.Array]]
    inverse_metric: Callable[[jax.Array], Any] | None = None


@dataclass(frozen=True, eq=False)
class KernelWidth(Claim):
    """An option that sets the width of a kernel.

    Attributes:
        sampler: the one that claims it, a dataclass.
        option: name of the option: a number, several, or the name of a rule.
    """

    sampler: Any
    option: str

    @property
    def value(self) -> Any:
        """Value of the option."""
        return getattr(self.sampler, self.option)

    def given(self, value: Any) -> Any:
        """The same sampler with another value."""
        return dataclasses.replace(self.sampler, **{self.option: value})


@dataclass(frozen=True, eq=False)
class DensityEstimate(Claim):
    """The velocity holds an estimate of the density of the particles themselves.

    The target is a fixed point as the bandwidth of the estimate goes to 0 only.

    Attributes:
        sampler: the one that claims it, with the options `density`, the name of an estimate of grad log q
            (`samplers.particles.density_gradients`), `bandwidth` and `ridge`, its regularisation.
        form: `det`, D (grad log p - grad log q) + Q grad log p + div Q, or `fgh`, (D + Q) grad log (p / q).
        joint: one estimate for all of z rather than one for positions and one for auxiliary variables.
    """

    sampler: Any
    form: str = "det"
    joint: bool = False

    def given(self, bandwidth: Any, ridge: Any) -> Any:
        """The same sampler with another bandwidth and ridge, which may be traced: they are not looked at."""
        other = copy.copy(self.sampler)
        object.__setattr__(other, "bandwidth", bandwidth)
        object.__setattr__(other, "ridge", ridge)
        return other


@dataclass(frozen=True, eq=False)
class MarginalFlow(Claim):
    """Particles that follow the marginals of an SDE where the estimate of their density is exact.

    Attributes:
        dynamics: target -> that SDE.
    """

    dynamics: Callable[[Target], Dynamics]


C = TypeVar("C", bound=Claim)


class Claims:
    """The claims of a sampler, and what they rest on.

    Args:
        source: of the method.
        law: the law that the sampler keeps or tends to.
        claims: further claims, at most one per type; None stands for one that is not made.
        conditions: what the orders rest on, such as `"exact gradient"`.
        spaces: manifolds the sampler runs on: `euclidean`, `positive`, `sphere`, `simplex`, ...

    Raises:
        ValueError: if two claims have the same type.
    """

    def __init__(
        self,
        source: Source,
        law: Law,
        *claims: Claim | None,
        conditions: tuple[str, ...] = (),
        spaces: tuple[str, ...] = ("euclidean",),
    ) -> None:
        self.source, self.law, self.conditions, self.spaces = source, law, conditions, spaces
        self._made: tuple[Claim, ...] = (law, *(claim for claim in claims if claim is not None))
        types = [_family(claim) for claim in self._made]
        twice = [t.__name__ for t in dict.fromkeys(types) if types.count(t) > 1]
        if twice:
            raise ValueError(f"claims: more than one {twice[0]}")

    def get(self, kind: type[C]) -> C | None:
        """The claim of a type, or None if it is not made."""
        return next((claim for claim in self._made if isinstance(claim, kind)), None)

    def __getitem__(self, kind: type[C]) -> C:
        """The claim of a type. Raises KeyError if it is not made."""
        claim = self.get(kind)
        if claim is None:
            raise KeyError(f"claims no {kind.__name__}")
        return claim

    def __contains__(self, kind: type[Claim]) -> bool:
        return self.get(kind) is not None

    def __iter__(self) -> Iterator[Claim]:
        return iter(self._made)

    @property
    def temperature(self) -> float:
        """T of the law exp(-U / T)."""
        return self.law.temperature

    @property
    def weak_order(self) -> int | None:
        """The weak order of the step, or None if none is claimed."""
        equation = self.get(StochasticEquation)
        return None if equation is None else equation.weak_order

    @property
    def invariant_order(self) -> int | None:
        """The order of the error in the stationary distribution, or None if none is claimed."""
        law = self.get(StationaryLaw)
        return None if law is None else law.order

    def amended(
        self,
        *claims: Claim,
        without: tuple[type[Claim], ...] = (),
        source: Source | None = None,
        conditions: tuple[str, ...] | None = None,
    ) -> "Claims":
        """The same claims with some added or replaced, those of the types `without` withdrawn.

        A law takes the place of the law, an equation that of the equation.
        """
        new = {_family(claim) for claim in claims}
        kept = [c for c in self._made if _family(c) not in new and not isinstance(c, without)]
        law, *others = sorted((*kept, *claims), key=lambda claim: not isinstance(claim, Law))
        assert isinstance(law, Law)
        return Claims(
            source or self.source,
            law,
            *others,
            conditions=self.conditions if conditions is None else conditions,
            spaces=self.spaces,
        )


def _family(claim: Claim) -> type[Claim]:
    """The type of which a sampler makes at most one claim: the one directly below `Claim`."""
    return type(claim).__mro__[type(claim).__mro__.index(Claim) - 1]


def claim_types() -> tuple[type[Claim], ...]:
    """All types of claims that can be made, laws first, in the order of their definition."""

    def leaves(kind: type[Claim]) -> list[type[Claim]]:
        below = kind.__subclasses__()
        return [leaf for sub in below for leaf in leaves(sub)] if below else [kind]

    return tuple(leaves(Claim))
