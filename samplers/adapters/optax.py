"""optax (0.2): its noisy gradient transformations, at the settings under which they are SGLD or SGHMC.

None of them claims to be a sampler: they add N(0, sigma^2) to a gradient *before* the learning rate multiplies it, so
that the noise of a step is learning_rate^2 sigma^2, and their defaults cool down. With a learning rate h and sigma^2 =
2 T / h the noise is 2 T h: SGLD. At a fixed sigma^2 the law is that of the temperature h sigma^2 / 2, which goes to 0
with h.

What all of them share: the gradient that they are given is +grad U~ (optax descends), summed over the data; nothing is
rescaled here. The library keeps its key in its state; a fresh state with the key of the step is made for every step, so
that chains differ and the count of its annealing stays at the first step.
"""

from dataclasses import dataclass
from types import ModuleType

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.adapters.common import Foreign, LangevinMixin, load
from sgmcmc_verification.samplers.dynamics.underdamped import MomentumMixin, MomentumState, langevin_dynamics
from sgmcmc_verification.samplers.entry import FRICTIONS, TEMPERATURES, Row, plain
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import Claims, Diffusion, Source, StationaryLaw, StationaryMoments
from sgmcmc_verification.samplers.interface.from_step import PositionState
from sgmcmc_verification.samplers.validation import require_positive

CLIP = 1e8
"""Norm above which `DifferentiallyPrivate` clips: far above any gradient that is met."""


def library() -> ModuleType:
    """Import the module `optax`. Raises ImportError that says how to install it."""
    return load("optax")


@dataclass(frozen=True)
class NoisySGD(LangevinMixin):
    """`optax.noisy_sgd(h, eta, gamma)`: theta' = theta - h (grad U~ + N(0, eta / t^gamma)) in step t = 1, 2, ...

    Conventions: eta is a variance, of the noise in the *gradient*; here eta = 2 T / h and gamma = 0, which is SGLD.
    The library's defaults (eta = 0.01, gamma = 0.55) have no stationary law: the temperature of step t is
    h eta / (2 t^gamma).

    Source: `optax._src.alias.noisy_sgd`; welling2011bayesian, equation (4), for the law.

    Args:
        temperature: T > 0.
    """

    temperature: float = 1.0

    library = "optax"

    def step(self, key: jax.Array, state: PositionState, step_size: Scalar, estimator: Estimator) -> PositionState:
        """Take one step."""
        gradient_key, noise_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        optimizer = library().noisy_sgd(step_size, eta=2 * self.temperature / step_size, gamma=0.0, key=noise_key)
        return PositionState(_apply(optimizer, estimate.gradient, state.position), estate)


@dataclass(frozen=True)
class DifferentiallyPrivate(LangevinMixin):
    """`optax.contrib.differentially_private_aggregate(C, m)` before a learning rate h, fed the gradient as one example:

        theta' = theta - h (clip(grad U~, C) + N(0, (m C)^2)),   clip(g, C) = g min(1, C / |g|)

    Conventions: m is a standard deviation in units of C; here m = sqrt(2 T / h) / C, which is SGLD wherever
    |grad U~| <= C = 1e8. With B examples the library divides sum and noise by B: a *mean* gradient, whose rate is h B.

    Source: `optax.contrib._privacy.differentially_private_aggregate`; welling2011bayesian, equation (4), for the law.

    Args:
        temperature: T > 0.
    """

    temperature: float = 1.0

    library = "optax"

    def step(self, key: jax.Array, state: PositionState, step_size: Scalar, estimator: Estimator) -> PositionState:
        """Take one step."""
        gradient_key, noise_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        multiplier = jnp.sqrt(2 * self.temperature / step_size) / CLIP
        optimizer = library().chain(
            load("optax.contrib").differentially_private_aggregate(CLIP, multiplier, key=noise_key),
            library().scale_by_learning_rate(step_size),
        )
        examples = jax.tree.map(lambda g: g[None], estimate.gradient)
        return PositionState(_apply(optimizer, examples, state.position), estate)


@dataclass(frozen=True)
class AddNoise(MomentumMixin):
    """`optax.chain(add_noise(eta, 0), trace(decay), scale_by_learning_rate(h^2))`, the noisy heavy ball:

        m' = decay m + grad U~ + N(0, eta),   theta' = theta - h^2 m'

    With r = -h m, decay = 1 - C h and eta = 2 C T / h this is SGHMC: r' = r - h grad U~ - C h r + N(0, 2 C T h),
    theta' = theta + h r'. Conventions: eta as in `NoisySGD`; the learning rate is the *square* of the step of SDE time.

    Source: `optax.transforms._adding.add_noise`, `optax.transforms._accumulation.trace`; chen2014stochastic,
    equation (13), for the law.

    Args:
        friction: C > 0.
        temperature: T > 0.
    """

    friction: float = 1.0
    temperature: float = 1.0

    backend = "jax"
    needs = frozenset({"gradient"})

    def __post_init__(self) -> None:
        require_positive(self, "friction", "temperature")
        library()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC

        friction, temperature = self.friction, self.temperature
        return Claims(
            Source("chen2014stochastic", "equation (13)"),
            StationaryLaw(order=1, temperature=temperature),
            Diffusion(lambda target: langevin_dynamics(target, friction, temperature), weak_order=1),
            StationaryMoments(SGHMC(friction, temperature).discrete_law),
            conditions=("exact gradient",),
        )

    def step(self, key: jax.Array, state: MomentumState, step_size: Scalar, estimator: Estimator) -> MomentumState:
        """Take one step."""
        optax = library()
        gradient_key, noise_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        h = step_size
        optimizer = optax.chain(
            optax.add_noise(2 * self.friction * self.temperature / h, 0.0, noise_key),
            optax.trace(1 - self.friction * h),
            optax.scale_by_learning_rate(h * h),
        )
        noise, trace, scale = optimizer.init(state.position)
        inner = (noise, trace._replace(trace=jax.tree.map(lambda r: -r / h, state.momentum)), scale)
        updates, (_, trace, _) = optimizer.update(estimate.gradient, inner, state.position)
        momentum = jax.tree.map(lambda m: -h * m, trace.trace)
        return MomentumState(optax.apply_updates(state.position, updates), momentum, estate)


def _apply(optimizer: Foreign, gradient: Tree, position: Position) -> Position:
    """Take one step of a fresh optimiser."""
    updates, _ = optimizer.update(gradient, optimizer.init(position), position)
    return library().apply_updates(position, updates)


_FLAT = ("gaussian-1d-scaled", "gaussian-correlated-2d", "double-well", "tiny-gaussian-data")

ENTRIES: tuple[Row, ...] = (
    # not samplers by claim: at the settings of this module they are SGLD and SGHMC
    Row("optax/noisy_sgd", plain(NoisySGD), targets=_FLAT, variants=TEMPERATURES),
    Row(
        "optax/differentially_private_aggregate",
        plain(DifferentiallyPrivate),
        targets=_FLAT,
        variants=TEMPERATURES,
    ),
    Row(
        "optax/add_noise-momentum",
        plain(AddNoise),
        targets=_FLAT,
        variants=FRICTIONS,
        step_power=0.5,
    ),
)
