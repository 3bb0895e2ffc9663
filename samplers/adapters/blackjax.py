"""BlackJAX (1.7): its SG-MCMC samplers and SVGD under the interface of this suite.

Common to all: the library ascends an estimate of the gradient of the log-density, +grad log pi = -grad U,
*summed* over the data, prior included once (its `grad_estimator` is grad log prior + N mean_S grad log-likelihood), so
that N enters through the estimate alone and nothing is rescaled here. Its step size is the epsilon of SDE time.

One call of a library's step sees one minibatch, also where it evaluates the gradient several times. An estimator that
can hold a minibatch fixed does so; the noise of any other enters as data: U(theta) + eta . theta with one eta per step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.adapters.common import (
    COMPOSITE,
    LAW_TIERS,
    PARTICLES,
    Foreign,
    LangevinMixin,
    PeerState,
    composite_claims,
    first,
    frozen,
    load,
    on_target,
)
from sgmcmc_verification.samplers.entry import TEMPERATURES, Row, plain
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import (
    AdaptiveLaw,
    CarriedState,
    Claims,
    Diffusion,
    ParticleLaw,
    Source,
    StationaryLaw,
)
from sgmcmc_verification.samplers.interface.from_step import PositionMixin, PositionState, PositionVariable
from sgmcmc_verification.samplers.thermostats.common import ThermostatPoint, thermostat_dynamics
from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.target import Target


def library() -> ModuleType:
    """Import the module `blackjax`. Raises ImportError that says how to install it."""
    return load("blackjax")


def ascent(
    estimator: Estimator, key: jax.Array, estate: EstimatorState, position: Position
) -> tuple[Tree, EstimatorState]:
    """-grad U~(position), an estimate of the gradient of the log-density, and the estimator's new state."""
    estimate, estate = estimator.estimate(key, estate, position)
    return jax.tree.map(jnp.negative, estimate.gradient), estate


def given(position: Position, minibatch: Tree) -> Tree:
    """A `grad_estimator` whose minibatch *is* the gradient, for steps that ask for it once, where they start."""
    del position
    return minibatch


@dataclass(frozen=True)
class SGLD(LangevinMixin):
    """`blackjax.sgld`: theta' = theta + h g + sqrt(2 T h) xi, with g = -grad U~(theta).

    Conventions: h multiplies the whole gradient (epsilon of this suite, twice the h of half-drift conventions); the
    noise has variance 2 T h; gradient noise is not compensated.

    Source: the module `blackjax.sgmcmc.sgld`; welling2011bayesian.

    Args:
        temperature: T > 0.
    """

    temperature: float = 1.0

    library = "blackjax"

    def step(self, key: jax.Array, state: PositionState, step_size: Scalar, estimator: Estimator) -> PositionState:
        """Take one step."""
        gradient_key, step_key = jax.random.split(key)
        gradient, estate = ascent(estimator, gradient_key, state.estate, state.position)
        position = library().sgld(given).step(step_key, state.position, gradient, step_size, self.temperature)
        return PositionState(position, estate)


@dataclass(frozen=True)
class SGHMC(PositionMixin):
    """`blackjax.sghmc`: momentum r ~ N(0, I), then L times, with g = -grad U~(theta) at the *old* theta,

        theta' = theta + h r,   r' = (1 - alpha h) r + h g + sqrt(h T (2 alpha - h T beta)) xi

    Conventions: unit mass; alpha is the friction in SDE time (alpha h r is lost in a step); beta is meant as the
    variance of the gradient noise (its factor T^2 is the library's); the state is the position alone, and one step
    holds a full refresh of the momentum. One minibatch serves all L gradients.

    Source: the module `blackjax.sgmcmc.sghmc`; chen2014stochastic, Algorithm 2; ma2015complete, section 3.1.

    Args:
        target: gives the exact gradient, from which the noise of an estimator is told.
        num_integration_steps: L >= 1.
        alpha: friction, > 0.
        beta: estimate of the variance of the gradient noise, >= 0.
        temperature: T > 0.
    """

    target: Target
    num_integration_steps: int = 10
    alpha: float = 0.01
    beta: float = 0.0
    temperature: float = 1.0

    backend = "jax"
    needs = frozenset({"gradient"})

    def __post_init__(self) -> None:
        require(self.num_integration_steps >= 1, "num_integration_steps: must be positive", self.num_integration_steps)
        require_positive(self, "alpha")
        require(self.beta >= 0, "beta: must not be negative", self.beta)
        require_positive(self, "temperature")
        library()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return composite_claims(Source("chen2014stochastic", "Algorithm 2"), self.temperature)

    def step(self, key: jax.Array, state: PositionState, step_size: Scalar, estimator: Estimator) -> PositionState:
        """Take one step."""
        gradient_key, step_key = jax.random.split(key)
        potential, estate = frozen(self.target, estimator, gradient_key, state.estate, state.position)

        def grad_estimator(position: Position, minibatch: Tree) -> Tree:
            del minibatch
            return jax.tree.map(jnp.negative, potential(position)[1])

        sampler = library().sghmc(grad_estimator, self.num_integration_steps, self.alpha, self.beta)
        return PositionState(sampler.step(step_key, state.position, None, step_size, self.temperature), estate)


@dataclass(frozen=True)
class SGNHT:
    """`blackjax.sgnht`: with g = -grad U~(theta) at the old theta and d coordinates,

        theta' = theta + h r,   r' = (1 - xi h) r + h g + sqrt(h T (2 alpha - h T beta)) noise,
        xi' = xi + h (|r'|^2 / d - T)

    Conventions: unit mass; alpha is the diffusion A of ding2014bayesian (and the mean of xi); beta as in `SGHMC`;
    the thermostat compares |r'|^2 / d with T, so xi ~ N(alpha, T / d). The momentum starts from N(0, I) at every T.

    Source: the module `blackjax.sgmcmc.sgnht`; ding2014bayesian; ma2015complete, section 3.1.

    Args:
        alpha: A > 0.
        beta: estimate of the variance of the gradient noise, >= 0.
        temperature: T > 0.
        init_xi: the first xi; None for the library's default, alpha.
    """

    alpha: float = 0.01
    beta: float = 0.0
    temperature: float = 1.0
    init_xi: float | None = None

    backend = "jax"
    needs = frozenset({"gradient"})

    def __post_init__(self) -> None:
        require_positive(self, "alpha")
        require(self.beta >= 0, "beta: must not be negative", self.beta)
        require_positive(self, "temperature")
        library()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("ding2014bayesian", "the SGNHT algorithm"),
            StationaryLaw(order=1, temperature=self.temperature),
            Diffusion(lambda target: thermostat_dynamics(target, self.alpha, self.temperature), weak_order=1),
            conditions=("exact gradient",),
        )

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> PeerState:
        """Start a chain at a position."""
        momentum_key, estimator_key = jax.random.split(key)
        inner = library().sgnht(given, self.alpha, self.beta).init(position, momentum_key, self.init_xi)
        # the library starts xi as a Python number, which the first step turns into an array
        xi = jnp.asarray(inner.xi, jnp.result_type(*jax.tree.leaves(position)))
        return PeerState(inner._replace(xi=xi), estimator.init(estimator_key, position))

    def step(self, key: jax.Array, state: PeerState, step_size: Scalar, estimator: Estimator) -> PeerState:
        """Take one step."""
        gradient_key, step_key = jax.random.split(key)
        gradient, estate = ascent(estimator, gradient_key, state.estate, state.inner.position)
        sampler = library().sgnht(given, self.alpha, self.beta)
        return PeerState(sampler.step(step_key, state.inner, gradient, step_size, self.temperature), estate)

    def position(self, state: PeerState) -> Position:
        """Position of a state."""
        return state.inner.position

    def unpack(self, state: PeerState) -> ThermostatPoint:
        """Full variable z of a state."""
        return ThermostatPoint(state.inner.position, state.inner.momentum, state.inner.xi)

    def pack(self, key: jax.Array, z: ThermostatPoint, estimator: Estimator) -> PeerState:
        """State with the full variable z; caches are computed anew."""
        from blackjax.sgmcmc.sgnht import SGNHTState

        return PeerState(SGNHTState(z.position, z.momentum, z.thermostat), estimator.init(key, z.position))


class ContourPoint(NamedTuple):
    """(theta, p) of contour SGLD."""

    position: Position
    energy_pdf: jax.Array


@dataclass(frozen=True)
class ContourSGLD:
    """`blackjax.csgld`: SGLD whose gradient is scaled by the slope of an adaptive estimate p of the energy's law,

        theta' = theta + h [1 + zeta T (log p_J - log p_{J-1}) / gap] g + sqrt(2 T h) xi
        J' = clip(floor((U~(theta') - min_energy) / gap + 1), 1, m - 1),   p' = p + omega p_{J'} (e_{J'} - p)

    Conventions: g = -grad U~(theta), h and noise as in `SGLD`; omega does not decrease. The law of the positions is
    the flattened one, exp(-U / T) / p_J(U)^zeta; exp(-U / T) is had by reweighting with p_J^zeta. With zeta = 0 the
    library promises SGLD, and the full variable is theta; otherwise it is (theta, p), and `pack` starts from the
    partition that `init` starts from.

    Source: the module `blackjax.sgmcmc.csgld`; its docs cite the contour SGLD paper of Deng, Lin and Liang (2020).

    Args:
        target: gives the exact gradient, from which the noise of an estimator is told.
        zeta: >= 0, the strength of the flattening.
        num_partitions: m >= 2.
        energy_gap: width of a partition, in units of U.
        min_energy: lower end of the energies.
        step_size_stoch: omega > 0.
        temperature: T > 0.
    """

    target: Target
    zeta: float = 1.0
    num_partitions: int = 512
    energy_gap: float = 100.0
    min_energy: float = 0.0
    step_size_stoch: float = 1e-3
    temperature: float = 1.0

    backend = "jax"
    needs = frozenset({"gradient", "potential"})

    def __post_init__(self) -> None:
        require(self.zeta >= 0, "zeta: must not be negative", self.zeta)
        require(self.num_partitions >= 2, "num_partitions: must be at least 2", self.num_partitions)
        require_positive(self, "energy_gap", "step_size_stoch", "temperature")
        library()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        if self.zeta == 0:
            return SGLD(self.temperature).claims
        return Claims(
            Source("welling2011bayesian", "with the adaptive weights of contour SGLD"),
            AdaptiveLaw(temperature=self.temperature),
            CarriedState("the energies of the bins and the bin of the last step"),
            conditions=("law after reweighting by p_J^zeta",),
        )

    def _sampler(self, potential: Callable[[Position], tuple]) -> Foreign:
        """The library's sampler; `potential` as from `frozen`."""
        return library().csgld(
            lambda position, minibatch: -potential(position)[0],
            lambda position, minibatch: jax.tree.map(jnp.negative, potential(position)[1]),
            self.zeta,
            self.num_partitions,
            self.energy_gap,
            self.min_energy,
        )

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> PeerState:
        """Start a chain at a position."""
        inner = self._sampler(jax.value_and_grad(self.target.potential)).init(position)
        # the library starts the index as a Python number, which the first step turns into an int32
        return PeerState(inner._replace(energy_idx=jnp.int32(inner.energy_idx)), estimator.init(key, position))

    def step(self, key: jax.Array, state: PeerState, step_size: Scalar, estimator: Estimator) -> PeerState:
        """Take one step."""
        gradient_key, step_key = jax.random.split(key)
        potential, estate = frozen(self.target, estimator, gradient_key, state.estate, state.inner.position)
        sampler = self._sampler(potential)
        inner = sampler.step(step_key, state.inner, None, step_size, self.step_size_stoch, self.temperature)
        return PeerState(inner, estate)

    def position(self, state: PeerState) -> Position:
        """Position of a state."""
        return state.inner.position

    def unpack(self, state: PeerState) -> Tree:
        """Full variable z of a state."""
        if self.zeta == 0:
            return state.inner.position
        return ContourPoint(state.inner.position, state.inner.energy_pdf)

    def pack(self, key: jax.Array, z: Tree, estimator: Estimator) -> PeerState:
        """State with the full variable z; caches are computed anew."""
        if self.zeta == 0:
            return self.init(key, z, estimator)
        state = self.init(key, z.position, estimator)
        return state._replace(inner=state.inner._replace(energy_pdf=z.energy_pdf))


@dataclass(frozen=True)
class SVGD(PositionVariable):
    """`blackjax.svgd`: phi(x_j) = (1/M) sum_i [k(x_i, x_j) g(x_i) + grad_{x_i} k(x_i, x_j)], handed to an optimiser.

    Conventions: k(x, y) = exp(-|x - y|^2 / length_scale), so length_scale is a squared length, twice the bandwidth of
    this suite's SVGD; the step size is the learning rate of the optimiser (`sgd`: x_j' = x_j + h phi); the median rule
    (median of |x_i - x_j|, i < j)^2 / log M is applied *after* each step, and the first step has length_scale 1. All
    particles see the same minibatch. Outside of `jit` the library's step writes the new length_scale into the state
    that it is given; the adapter does not shield the state.

    Source: the module `blackjax.vi.svgd`; liu2016stein, Algorithm 1.

    Args:
        target: gives the exact gradient, from which the noise of an estimator is told.
        length_scale: positive, or `"median"`.
        optimizer: `"sgd"` or `"adagrad"` of optax.
    """

    target: Target
    length_scale: float | Literal["median"] = "median"
    optimizer: Literal["sgd", "adagrad"] = "sgd"

    backend = "jax"
    needs = frozenset({"gradient"})

    def __post_init__(self) -> None:
        valid = self.length_scale == "median" if isinstance(self.length_scale, str) else self.length_scale > 0
        require(valid, 'length_scale: must be positive or "median"', self.length_scale)
        require(self.optimizer in ("sgd", "adagrad"), "optimizer: must be sgd or adagrad", self.optimizer)
        library()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("liu2016stein", "Algorithm 1"),
            ParticleLaw(),
            CarriedState("the length scale of the step before, and the averages of the optimiser"),
            conditions=("infinitely many particles",),
        )

    def _sampler(self, gradient: Callable[[Position], Tree] | None, step_size: Scalar) -> Foreign:
        """The library's sampler; `gradient`: particle -> estimate of the gradient of the log-density."""
        import optax

        optimizer = getattr(optax, self.optimizer)(step_size)
        fixed = {} if self.length_scale == "median" else {"update_kernel_parameters": lambda state: state}
        return library().svgd(gradient, optimizer, **fixed)

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> PeerState:
        """Start a chain at a position."""
        scale = 1.0 if isinstance(self.length_scale, str) else self.length_scale
        # a fresh dictionary: the library's default one is shared between all samplers and keeps what they write
        parameters = {"length_scale": jnp.asarray(scale, jnp.result_type(*jax.tree.leaves(position)))}
        inner = self._sampler(None, 1.0).init(position, parameters)
        return PeerState(inner, estimator.init(key, first(position)))

    def step(self, key: jax.Array, state: PeerState, step_size: Scalar, estimator: Estimator) -> PeerState:
        """Take one step."""
        potential, estate = frozen(self.target, estimator, key, state.estate, first(state.inner.particles))
        gradient = lambda particle: jax.tree.map(jnp.negative, potential(particle)[1])
        return PeerState(self._sampler(gradient, step_size).step(state.inner), estate)

    def position(self, state: PeerState) -> Position:
        """Position of a state."""
        return state.inner.particles


_FLATTENED = "with zeta > 0 the positions follow an adaptively flattened law; the target is had only by reweighting"
_ADAPTIVE: dict[str, str] = dict.fromkeys(("recipe", "generator", "order", "law"), _FLATTENED)

ENTRIES: tuple[Row, ...] = (
    Row(
        "blackjax/sgld",
        plain(SGLD),
        variants=TEMPERATURES,
    ),
    Row(
        "blackjax/sghmc",
        on_target(SGHMC),
        tiers=LAW_TIERS,
        unsupported=COMPOSITE,
        variants=(
            {"num_integration_steps": 1, "alpha": 1.0, "beta": 0.2},
            {"num_integration_steps": 5, "alpha": 0.5, "beta": 0.1, "temperature": 2.0},
            {"temperature": 0.5},
        ),
        step_power=0.5,
    ),
    Row(
        "blackjax/sgnht",
        plain(SGNHT),
        variants=(
            {"alpha": 1.0, "beta": 0.2, "temperature": 0.5, "init_xi": 0.3},
            {"alpha": 0.5, "beta": 0.1, "temperature": 2.0, "init_xi": 0.7},
        ),
        step_power=0.5,
    ),
    Row(
        "blackjax/csgld",
        on_target(ContourSGLD),
        tiers=("contract",),
        unsupported=_ADAPTIVE,
        # each value has to show beside the other defaults too: min_energy by at least one energy_gap of 100
        variants=(
            {
                "zeta": 0.75,
                "num_partitions": 50,
                "energy_gap": 50.0,
                "min_energy": -150.0,
                "step_size_stoch": 0.01,
                "temperature": 0.5,
            },
            {
                "zeta": 0.5,
                "num_partitions": 20,
                "energy_gap": 20.0,
                "min_energy": -250.0,
                "step_size_stoch": 0.02,
                "temperature": 2.0,
            },
        ),
    ),
    # its docs: "If `zeta=0` the function reduces to the SGLD step function"
    Row(
        "blackjax/csgld-without-contour",
        on_target(ContourSGLD, zeta=0.0),
        variants=TEMPERATURES,
    ),
    Row(
        "blackjax/svgd",
        on_target(SVGD),
        tiers=("contract", "law"),
        unsupported=PARTICLES,
        variants=({"length_scale": 0.5, "optimizer": "adagrad"}, {"length_scale": 2.0}),
    ),
)
