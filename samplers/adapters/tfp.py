"""TensorFlow Probability (nightly 0.26) on JAX: `tfp.substrates.jax.mcmc` under the interface of this suite.

What all of them share: the library takes a log-density and differentiates it itself; it is given -U~ of one minibatch,
which the whole step sees (see `frozen`). A position goes in as the list of its leaves. Step sizes are arguments of the
kernel, and the results of a step hold quantities that were computed with them (the drift of the Langevin kernels): a
kernel with another step size must not be given the old results. Here every step starts from `bootstrap_results`.

There is no temperature: one is had by dividing the log-density. `StochasticGradientLangevinDynamics` and
`VariationalSGD` are not in the JAX substrate (see UNSUPPORTED in the registry).
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.adapters.common import (
    COMPOSITE,
    FEW,
    LAW_TIERS,
    Foreign,
    frozen,
    kernel_row,
    load,
    on_target,
)
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics, reversible_dynamics
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.aliases import Estimator, Scalar
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    Composite,
    Diffusion,
    ExactLaw,
    HamiltonianProposal,
    Source,
    StationaryLaw,
    StationaryMoments,
)
from sgmcmc_verification.samplers.interface.from_step import PositionMixin, PositionState
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.target import Target

Volatility = Literal["one", "constant", "position"]
CONSTANT = 0.7


def library() -> ModuleType:
    """Import the module `tfp.mcmc` of the JAX substrate. Raises ImportError that says how to install it."""
    return load("tensorflow_probability.substrates.jax", "tfp", "tfp-nightly").mcmc


def volatility_function(name: Volatility) -> Callable[..., list[jax.Array]] | None:
    """sigma of the Langevin kernels, for leaves: 1 (the library's default), 0.7, or 1 / sqrt(1 + |theta|^2 / 4)."""
    if name == "one":
        return None

    def volatility(*leaves: jax.Array) -> list[jax.Array]:
        if name == "constant":
            return [jnp.full_like(leaf, CONSTANT) for leaf in leaves]
        square = sum(jnp.sum(leaf**2) for leaf in leaves)
        return [jnp.broadcast_to(jax.lax.rsqrt(1 + square / 4), leaf.shape) for leaf in leaves]

    return volatility


def langevin_dynamics(target: Target, name: Volatility) -> Dynamics:
    """H = U, D = diag(sigma^2), Q = 0."""
    n = target.size

    def D(z: jax.Array) -> jax.Array:
        sigma = volatility_function(name)
        return jnp.eye(n, dtype=z.dtype) if sigma is None else jnp.diag(sigma(z)[0] ** 2)

    return reversible_dynamics(target, D)


class KernelMixin(PositionMixin):
    """Steps of a kernel of the library, each from fresh results."""

    target: Target
    kernel: Callable[[Callable[..., jax.Array], Scalar], Foreign]
    """Log-density and step size -> kernel of the library."""

    backend = "jax"
    needs = frozenset({"gradient"})

    def step(self, key: jax.Array, state: PositionState, step_size: Scalar, estimator: Estimator) -> PositionState:
        """Take one step."""
        gradient_key, step_key = jax.random.split(key)
        potential, estate = frozen(self.target, estimator, gradient_key, state.estate, state.position)
        leaves, structure = jax.tree.flatten(state.position)
        log_density = lambda *leaves: -potential(jax.tree.unflatten(structure, leaves))[0]
        kernel = self.kernel(log_density, step_size)
        moved, _ = kernel.one_step(leaves, kernel.bootstrap_results(leaves), seed=step_key)
        return PositionState(jax.tree.unflatten(structure, moved), estate)


@dataclass(frozen=True)
class UncalibratedLangevin(KernelMixin):
    """`tfp.mcmc.UncalibratedLangevin`: with g = -grad U~ and the volatility sigma, a vector,

        theta' = theta + (s / 2) (sigma^2 g + d sigma^2) + sigma sqrt(s) xi,   (d sigma^2)_i = d sigma_i^2 / d theta_i

    Conventions: the library's step size s is *twice* the epsilon of SDE time; the adapter passes s = 2 h. sigma = 1 is
    SGLD with epsilon = h; otherwise D = diag(sigma^2), and d sigma^2 is its divergence, the Gamma of the recipe.

    Source: the module `tfp.mcmc.langevin`; roberts1996exponential, section 1.4; ma2015complete, section 3.1.

    Args:
        target: gives the exact gradient, from which the noise of an estimator is told.
        volatility: `"one"` (the library's default), `"constant"` 0.7, or `"position"` 1 / sqrt(1 + |theta|^2 / 4).
    """

    target: Target
    volatility: Volatility = "one"

    def __post_init__(self) -> None:
        require(self.volatility in ("one", "constant", "position"), "volatility: unknown", self.volatility)
        library()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("roberts1996exponential", "section 1.4"),
            StationaryLaw(order=1),
            Diffusion(lambda target: langevin_dynamics(target, self.volatility), weak_order=1),
            None if self.volatility == "position" else StationaryMoments(self.discrete_law),
            conditions=("exact gradient",),
        )

    def discrete_law(self, h: float, curvature: float) -> dict[str, float]:
        """Variance of SGLD at the step size h sigma^2, with a constant sigma."""
        square = CONSTANT**2 if self.volatility == "constant" else 1.0
        return {"position": 1 / curvature / (1 - h * square * curvature / 2)}

    def kernel(self, log_density: Callable[..., jax.Array], step_size: Scalar) -> Foreign:
        """Kernel of the library at a step size."""
        sigma = volatility_function(self.volatility)
        return library().UncalibratedLangevin(log_density, 2 * step_size, volatility_fn=sigma)


@dataclass(frozen=True)
class MALA(UncalibratedLangevin):
    """`tfp.mcmc.MetropolisAdjustedLangevinAlgorithm`: the step of `UncalibratedLangevin` as a proposal.

    Conventions: as in `UncalibratedLangevin`; unlike it exact at every step size, for an exact log-density.

    Source: the module `tfp.mcmc.langevin`; roberts1996exponential, section 1.4.

    Args: as of `UncalibratedLangevin`.
    """

    needs = frozenset({"gradient", "potential"})

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("roberts1996exponential", "section 1.4"),
            ExactLaw(),
            Diffusion(lambda target: langevin_dynamics(target, self.volatility)),
            StationaryMoments(lambda h, curvature: {"position": 1 / curvature}),
            conditions=("exact potential and gradient",),
        )

    def kernel(self, log_density: Callable[..., jax.Array], step_size: Scalar) -> Foreign:
        """Kernel of the library at a step size."""
        sigma = volatility_function(self.volatility)
        return library().MetropolisAdjustedLangevinAlgorithm(log_density, 2 * step_size, volatility_fn=sigma)


@dataclass(frozen=True)
class UncalibratedHMC(KernelMixin):
    """`tfp.mcmc.UncalibratedHamiltonianMonteCarlo`: r ~ N(0, I), then L leapfrog steps of size h; no accept-reject.

    Conventions: unit mass; h is the leapfrog step, not the length of the trajectory; the state is the position alone.

    Source: the module `tfp.mcmc.hmc`; neal2011mcmc, section 5.3.2.

    Args:
        target: gives the exact gradient, from which the noise of an estimator is told.
        num_leapfrog_steps: L >= 1.
    """

    target: Target
    num_leapfrog_steps: int = 3

    def __post_init__(self) -> None:
        require(self.num_leapfrog_steps >= 1, "num_leapfrog_steps: must be positive", self.num_leapfrog_steps)
        library()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("neal2011mcmc", "section 5.3.2"),
            StationaryLaw(order=2),
            # leapfrog conserves r^2 + curvature x^2 (1 - h^2 curvature / 4), and r ~ N(0, 1) is drawn afresh
            StationaryMoments(lambda h, curvature: {"position": 1 / curvature / (1 - h * h * curvature / 4)}),
            Composite(),
            conditions=("exact gradient",),
        )

    def kernel(self, log_density: Callable[..., jax.Array], step_size: Scalar) -> Foreign:
        """Kernel of the library at a step size."""
        return library().UncalibratedHamiltonianMonteCarlo(log_density, step_size, self.num_leapfrog_steps)


@dataclass(frozen=True)
class HMC(UncalibratedHMC):
    """`tfp.mcmc.HamiltonianMonteCarlo`: the step of `UncalibratedHMC` as proposal, then accept-reject.

    Source: the module `tfp.mcmc.hmc`; neal2011mcmc, section 5.3.2.

    Args: as of `UncalibratedHMC`.
    """

    needs = frozenset({"gradient", "potential"})

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("neal2011mcmc", "section 5.3.2"),
            ExactLaw(),
            StationaryMoments(lambda h, curvature: {"position": 1 / curvature}),
            Composite(),
            HamiltonianProposal(self.num_leapfrog_steps, overdamped_dynamics),
            conditions=("exact potential and gradient",),
        )

    def kernel(self, log_density: Callable[..., jax.Array], step_size: Scalar) -> Foreign:
        """Kernel of the library at a step size."""
        return library().HamiltonianMonteCarlo(log_density, step_size, self.num_leapfrog_steps)


@dataclass(frozen=True)
class NUTS(KernelMixin):
    """`tfp.mcmc.NoUTurnSampler`, with four doublings at most.

    Conventions: unit mass; h is the leapfrog step.

    Source: the module `tfp.mcmc.nuts`; hoffman2014nuts, algorithm 3, with multinomial weights.

    Args:
        target: gives the exact gradient, from which the noise of an estimator is told.
    """

    target: Target

    needs = frozenset({"gradient", "potential"})

    def __post_init__(self) -> None:
        library()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        conditions = ("exact potential and gradient",)
        return Claims(Source("hoffman2014nuts", "algorithm 3"), ExactLaw(), Composite(), conditions=conditions)

    def kernel(self, log_density: Callable[..., jax.Array], step_size: Scalar) -> Foreign:
        """Kernel of the library at a step size."""
        return library().NoUTurnSampler(log_density, step_size, max_tree_depth=4)


@dataclass(frozen=True)
class RandomWalk(NUTS):
    """`tfp.mcmc.RandomWalkMetropolis`: theta' = theta + sqrt(2 h) xi, then accept-reject.

    Source: the module `tfp.mcmc.random_walk_metropolis`; metropolis1953equation, section II.

    Args: as of `NUTS`.
    """

    needs = frozenset({"potential"})

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(Source("metropolis1953equation", "section II"), ExactLaw(), conditions=("exact potential",))

    def kernel(self, log_density: Callable[..., jax.Array], step_size: Scalar) -> Foreign:
        """Kernel of the library at a step size."""
        mcmc = library()
        proposal = mcmc.random_walk_normal_fn(scale=jnp.sqrt(2 * step_size))
        return mcmc.RandomWalkMetropolis(log_density, new_state_fn=proposal)


@dataclass(frozen=True)
class Slice(NUTS):
    """`tfp.mcmc.SliceSampler`: slices along random directions, of width h, with five doublings at most.

    Source: the module `tfp.mcmc.slice_sampler_kernel`; neal2003slice, section 4.

    Args: as of `NUTS`.
    """

    needs = frozenset({"potential"})

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        source = Source("neal2003slice", "section 4")
        return Claims(source, ExactLaw(), Composite(), conditions=("exact potential",))

    def kernel(self, log_density: Callable[..., jax.Array], step_size: Scalar) -> Foreign:
        """Kernel of the library at a step size."""
        return library().SliceSampler(log_density, step_size, max_doublings=5)


_VOLATILITIES = ({"volatility": "constant"}, {"volatility": "position"})
_LEAPFROG = ({"num_leapfrog_steps": 1}, {"num_leapfrog_steps": 2})

ENTRIES: tuple[Row, ...] = (
    Row(
        "tfp/uncalibrated_langevin",
        on_target(UncalibratedLangevin),
        targets=FEW,
        variants=_VOLATILITIES,
    ),
    Row("tfp/mala", on_target(MALA), targets=FEW, variants=_VOLATILITIES),
    Row(
        "tfp/uncalibrated_hmc",
        on_target(UncalibratedHMC),
        tiers=LAW_TIERS,
        unsupported=COMPOSITE,
        targets=FEW,
        variants=_LEAPFROG,
        step_size=0.2,
        step_power=0.5,
    ),
    Row("tfp/hmc", on_target(HMC), targets=FEW, variants=_LEAPFROG, step_size=0.2, step_power=0.5),
    kernel_row("tfp/nuts", on_target(NUTS), composite=True),
    kernel_row("tfp/random_walk", on_target(RandomWalk), composite=False),
    kernel_row("tfp/slice", on_target(Slice), composite=True, step_size=0.1),
)
