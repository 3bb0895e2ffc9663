"""Helpers of the adapters: importing a library, the state, and the gradient noise of one minibatch as data."""

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics
from sgmcmc_verification.samplers.entry import LAW_TIERS, NO_DYNAMICS, Row
from sgmcmc_verification.samplers.estimators.basic import Minibatch
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.interface.aliases import (
    Builder,
    Estimator,
    EstimatorState,
    Options,
    Position,
    State,
    Tree,
)
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    Composite,
    Diffusion,
    Source,
    StationaryLaw,
    StationaryMoments,
)
from sgmcmc_verification.samplers.interface.from_step import PositionMixin
from sgmcmc_verification.samplers.validation import require_positive
from sgmcmc_verification.targets.target import Target


class MissingLibrary(ImportError):
    """A library is not installed; the message is one line with the command that installs it."""


def load(module: str, extra: str | None = None, distribution: str | None = None, then: str = "") -> ModuleType:
    """Import a module of a library.

    Args:
        module: name of the module.
        extra: extra of this project that installs the library; default: the top-level name of the module.
        distribution: name of the library where it differs from that of the module.
        then: command that has to follow the installation of the extra.

    Raises:
        MissingLibrary: if it cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        install = f"pip install 'sgmcmc-verification[{extra or name}]'" + (f" && {then}" if then else "")
        raise MissingLibrary(f"needs {distribution or name}: {install}") from error


Foreign = Any
"""An object of another library: its state, kernel or optimiser."""


class PeerState(NamedTuple):
    """The library's own state and the estimator's."""

    inner: Foreign
    estate: EstimatorState


def frozen(
    target: Target, estimator: Estimator, key: jax.Array, estate: EstimatorState, position: Position
) -> tuple[Callable[[Position], tuple[State, Tree]], EstimatorState]:
    """The potential with the gradient noise of one minibatch held fixed, and the estimator's new state.

    Returns:
        `theta -> (U~(theta), grad U~(theta))` and the state. `Minibatch` keeps its data; the noise of any other
        estimator is additive: U~(theta) = U(theta) + eta . theta, eta = estimate - grad U at `position`. A library
        that differentiates a log-density itself is given -U~.
    """
    if isinstance(estimator, Minibatch):
        indices = estimator.draw(key)

        def at_minibatch(theta: Position) -> tuple[jax.Array | None, Tree]:
            estimate = estimator.at(indices, theta)
            return estimate.potential, estimate.gradient

        return at_minibatch, estate
    estimate, estate = estimator.estimate(key, estate, position)
    eta = ravel_pytree(jax.tree.map(jnp.subtract, estimate.gradient, jax.grad(target.potential)(position)))[0]
    return jax.value_and_grad(lambda theta: target.potential(theta) + eta @ ravel_pytree(theta)[0]), estate


def composite_claims(source: Source, temperature: float = 1.0, *conditions: str) -> Claims:
    """Claims for a step of several inner iterations, or with a memory: no dynamics, a law up to a bias O(h)."""
    return Claims(
        source,
        StationaryLaw(order=1, temperature=temperature),
        Composite(),
        conditions=("exact gradient", *conditions),
    )


def preconditioned_claims(source: Source, temperature: float = 1.0) -> Claims:
    """Claims for SGLD or SGHMC with a moving average of squared gradients as preconditioner.

    Draws of exp(-U / T), up to a bias that vanishes with the step size: the use that the libraries offer it for. The
    average is part of the Markov chain and no dynamics are declared; li2016preconditioned drops Gamma, the divergence
    of the preconditioner, knowingly, and no step size brings it back.
    """
    return composite_claims(source, temperature, "Gamma dropped")


def first(particles: Position) -> Position:
    """The first particle."""
    return jax.tree.map(lambda leaf: leaf[0], particles)


# What rows of adapters share -----------------------------------------------------------------------------------------

COMPOSITE = {
    "recipe": "the state is the position alone: the momentum is drawn afresh in every step",
    "generator": "a step of several inner iterations with a full refresh has no generator; its limit h -> 0 counts",
    "order": "a step of several inner iterations with a full refresh has no local expansion in the step size",
}
PARTICLES = {
    "recipe": "a particle method: no diffusion is declared",
    "generator": "a particle method: no diffusion is declared",
    "order": "a particle method: no invariant law for finitely many particles",
}
# each step of TFP compiles for seconds, and one of torch runs for a millisecond
FEW = ("gaussian-1d-scaled", "gaussian-correlated-2d", "double-well")


def sgld_claims(temperature: float) -> Claims:
    """Claims of theta' = theta - h grad U + N(0, 2 h T)."""
    return Claims(
        Source("welling2011bayesian", "equation (4)"),
        StationaryLaw(order=1, temperature=temperature),
        Diffusion(lambda target: overdamped_dynamics(target, temperature), weak_order=1),
        # (1 - h lambda)^2 s + 2 h T = s: the fixed point of the recursion of the variance
        StationaryMoments(lambda h, curvature: {"position": temperature / curvature / (1 - h * curvature / 2)}),
        conditions=("exact gradient",),
    )


class LangevinMixin(PositionMixin):
    """All but the step of a sampler of `library` that is held to SGLD, with the option `temperature`."""

    temperature: float
    library: ClassVar[str]

    backend = "jax"
    needs = frozenset({"gradient"})

    def __post_init__(self) -> None:
        require_positive(self, "temperature")
        load(self.library)

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return sgld_claims(self.temperature)


def on_target(adapter: Builder, **fixed: Any) -> Builder:
    """A builder for an adapter that needs the exact gradient of the target."""
    return lambda target, **options: adapter(target, **fixed, **options)


def kernel_row(name: str, build: Builder, composite: bool, **more: Any) -> Row:
    """A row of a Markov kernel that declares no dynamics; a composite one has inner iterations, such as leapfrog steps.

    Its step size is that of the library in the first case, h of a diffusion in the other.
    """
    kept: dict[str, Any] = {"targets": FEW, "step_size": 0.2, "step_power": 0.5 if composite else 1.0, **more}
    return Row(name, build, tiers=LAW_TIERS, unsupported=COMPOSITE if composite else NO_DYNAMICS, **kept)


def torch_row(name: str, adapter: Builder, fixed: Options | None = None, **more: Any) -> Row:
    """A row of a torch library: a host sampler, run once a path in Python, on few targets."""
    return Row(name, on_target(adapter, **(fixed or {})), targets=FEW, estimator=HostExact, **more)
