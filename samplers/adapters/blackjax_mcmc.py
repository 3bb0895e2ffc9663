"""BlackJAX (1.7): its Markov kernels that take a whole log-density, each under the name that the library exports.

They keep exp(-U) at every step size, but for MCLMC, whose bias is O(h^2). A step is one call of the library's own step,
and the library's own state is carried from step to step, with what it caches. Step sizes are the library's, but for
random walks and Barker's proposal, whose scale is sqrt(2 h), so that h is time of the limit h -> 0 everywhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.adapters.blackjax import library
from sgmcmc_verification.samplers.adapters.common import FEW, Foreign, PeerState, frozen, kernel_row, on_target
from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import (
    Claim,
    Claims,
    Composite,
    Diffusion,
    ExactLaw,
    HamiltonianProposal,
    Source,
    StationaryLaw,
)
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.target import Target

LEAPFROG = 3
"""Leapfrog steps of the kernels whose number of them is an argument."""
PRIOR = 4.0
"""Variance of the Gaussian prior of the kernels that need one; the rest of the density is their likelihood."""
IN_A_PLANE = ("gaussian-correlated-2d", "banana")
"""Targets of two coordinates."""
DIRECTION = 2.0
"""Length in time after which MCLMC has forgotten its direction."""

LogDensity = Callable[[Position], jax.Array]


@dataclass(frozen=True)
class Kernel:
    """A kernel of the library.

    Attributes:
        build: library, log-density, step size, example position -> its algorithm.
        source: where the method is from.
        claims: beside the law.
        kept: fields of its state beside the position that later steps read.
        biased: whether it keeps the target up to O(h^2) only.
        key: whether its `init` takes a key.
        composite: whether a step has inner iterations, so that it has no generator.
        power: of the curvature, by which the step size scales.
        targets: on which it runs; the direction of a microcanonical kernel needs two coordinates.
    """

    build: Callable[[Any, LogDensity, Scalar, Position], Foreign]
    source: Source
    claims: tuple[Claim, ...] = ()
    kept: tuple[str, ...] = ()
    biased: bool = False
    key: bool = False
    composite: bool = True
    power: float = 0.5
    targets: tuple[str, ...] = FEW


def _scale(h: Scalar) -> Scalar:
    """Scale of the increments of a walk whose limit is a diffusion of unit temperature in the time h."""
    return jnp.sqrt(2 * h)


def _unit_mass(example: Position) -> jax.Array:
    flat, _ = ravel_pytree(example)
    return jnp.ones_like(flat)


def _likelihood(density: LogDensity) -> LogDensity:
    """The log-density relative to N(0, PRIOR)."""
    return lambda x: density(x) + jnp.sum(ravel_pytree(x)[0] ** 2) / (2 * PRIOR)


def _walk(h: Scalar) -> Callable[..., Position]:
    """A symmetric proposal, key and position -> proposed position."""

    def propose(key: jax.Array, position: Position) -> Position:
        flat, unravel = ravel_pytree(position)
        return unravel(flat + _scale(h) * jax.random.normal(key, flat.shape, flat.dtype))

    return propose


def _independent(example: Position) -> dict[str, Any]:
    """Draws of N(0, PRIOR) and their log-density."""
    flat, unravel = ravel_pytree(example)

    def density(old: Foreign, new: Foreign) -> jax.Array:
        del old
        return -jnp.sum(ravel_pytree(new.position)[0] ** 2) / (2 * PRIOR)

    draw = lambda key: unravel(PRIOR**0.5 * jax.random.normal(key, flat.shape, flat.dtype))
    return {"proposal_distribution": draw, "proposal_logdensity_fn": density}


NEAL = Source("neal2011mcmc", "section 5.3.2")
METROPOLIS = Source("metropolis1953equation", "section II")
HASTINGS = Source("hastings1970monte", "section 2.3")
NUTS = Source("hoffman2014nuts", "algorithm 3")
MAMS = Source("robnik2025mams", "section 3")
KERNELS: Mapping[str, Kernel] = MappingProxyType(
    {
        "mala": Kernel(
            lambda b, p, h, x: b.mala(p, h),
            Source("roberts1996exponential", "section 1.4"),
            (Diffusion(overdamped_dynamics),),
            composite=False,
            power=1.0,
        ),
        "barker": Kernel(
            lambda b, p, h, x: b.barker(p, _scale(h)),
            Source("livingstone2022barker", "algorithm 2"),
            composite=False,
            power=1.0,
        ),
        "additive_step_random_walk": Kernel(
            lambda b, p, h, x: b.additive_step_random_walk.normal_random_walk(p, _scale(h) * jnp.diag(_unit_mass(x))),
            METROPOLIS,
            composite=False,
            power=1.0,
        ),
        "rmh": Kernel(lambda b, p, h, x: b.rmh(p, _walk(h)), METROPOLIS, composite=False, power=1.0),
        "irmh": Kernel(lambda b, p, h, x: b.irmh(p, **_independent(x)), HASTINGS, composite=False),
        "hmc": Kernel(
            lambda b, p, h, x: b.hmc(p, h, _unit_mass(x), LEAPFROG),
            NEAL,
            (HamiltonianProposal(LEAPFROG, overdamped_dynamics),),
        ),
        "mhmc": Kernel(lambda b, p, h, x: b.mhmc(p, h, _unit_mass(x), LEAPFROG), NEAL),
        "rmhmc": Kernel(lambda b, p, h, x: b.rmhmc(p, h, _unit_mass(x), LEAPFROG), NEAL),
        "dhmc": Kernel(lambda b, p, h, x: b.dhmc(p, h, _unit_mass(x)), NEAL, key=True),
        "dmhmc": Kernel(lambda b, p, h, x: b.dmhmc(p, h, _unit_mass(x)), NEAL, key=True),
        "nuts": Kernel(lambda b, p, h, x: b.nuts(p, h, _unit_mass(x), max_num_doublings=4), NUTS),
        "gist_step_size": Kernel(
            lambda b, p, h, x: b.gist_step_size(p, _unit_mass(x), h), Source("bourabee2024gist", "section 2")
        ),
        "gist_trajectory_length": Kernel(
            lambda b, p, h, x: b.gist_trajectory_length(p, _unit_mass(x), h, max_num_steps=32),
            Source("bourabee2024gist", "section 2"),
        ),
        "ghmc": Kernel(
            lambda b, p, h, x: b.ghmc(p, h, jax.tree.map(jnp.ones_like, x), alpha=0.5, delta=0.3),
            Source("hoffman2022meads", "algorithm 1"),
            kept=("momentum", "slice"),
            key=True,
        ),
        "slice_sampling": Kernel(lambda b, p, h, x: b.slice_sampling(p), Source("neal2003slice", "section 4")),
        "coordinate_slice": Kernel(lambda b, p, h, x: b.coordinate_slice(p), Source("neal2003slice", "section 4")),
        "elliptical_slice": Kernel(
            lambda b, p, h, x: b.elliptical_slice(
                _likelihood(p), mean=jnp.zeros_like(_unit_mass(x)), cov=PRIOR * jnp.diag(_unit_mass(x))
            ),
            Source("murray2010elliptical", "figure 2"),
        ),
        "mgrad_gaussian": Kernel(
            lambda b, p, h, x: b.mgrad_gaussian(
                _likelihood(p), covariance=PRIOR * jnp.diag(_unit_mass(x)), step_size=h
            ),
            Source("titsias2018auxiliary", "section 3"),
            composite=False,
            power=1.0,
        ),
        "mclmc": Kernel(
            lambda b, p, h, x: b.mclmc(p, L=DIRECTION, step_size=h),
            Source("robnik2023microcanonical", "section 3"),
            kept=("momentum",),
            biased=True,
            key=True,
            targets=IN_A_PLANE,
        ),
        "adjusted_mclmc": Kernel(
            lambda b, p, h, x: b.adjusted_mclmc(p, h, num_integration_steps=LEAPFROG), MAMS, targets=IN_A_PLANE
        ),
        "adjusted_mclmc_dynamic": Kernel(
            lambda b, p, h, x: b.adjusted_mclmc_dynamic(p, h), MAMS, key=True, targets=IN_A_PLANE
        ),
    }
)
"""Exported name -> the kernel."""


@dataclass(frozen=True)
class Exported:
    """A kernel of BlackJAX by the name that the library exports.

    Conventions: unit mass; the log-density is -U, whole. Numbers of leapfrog steps are 3 where they are an argument;
    the Gaussian prior of the kernels that need one is N(0, 4), and the likelihood the rest of the density.

    Args:
        target: gives the exact gradient, from which the noise of an estimator is told.
        name: a key of `KERNELS`.
    """

    target: Target
    name: str

    backend = "jax"
    needs = frozenset({"gradient", "potential"})

    def __post_init__(self) -> None:
        require(self.name in KERNELS, f"name: must be one of {', '.join(KERNELS)}", self.name)
        library()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        kernel = KERNELS[self.name]
        return Claims(
            kernel.source,
            StationaryLaw(order=2) if kernel.biased else ExactLaw(),
            *((Composite(),) if kernel.composite else ()),
            *kernel.claims,
            conditions=("exact potential and gradient",),
        )

    def _algorithm(self, density: LogDensity, step_size: Scalar, like: Position) -> Foreign:
        """The library's algorithm, with all its parameters in the precision of the position."""
        kind = jnp.result_type(*jax.tree.leaves(like))
        same_kind = lambda x: jnp.asarray(density(x), kind)
        return KERNELS[self.name].build(library(), same_kind, jnp.asarray(step_size, kind), like)

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> PeerState:
        """Start a chain at a position."""
        inner_key, estimator_key = jax.random.split(key)
        algorithm = self._algorithm(lambda x: -self.target.potential(x), 1.0, position)
        keys = (inner_key,) if KERNELS[self.name].key else ()
        return PeerState(algorithm.init(position, *keys), estimator.init(estimator_key, position))

    def step(self, key: jax.Array, state: PeerState, step_size: Scalar, estimator: Estimator) -> PeerState:
        """Take one step."""
        gradient_key, step_key = jax.random.split(key)
        potential, estate = frozen(self.target, estimator, gradient_key, state.estate, state.inner.position)
        algorithm = self._algorithm(lambda x: -potential(x)[0], step_size, state.inner.position)
        return PeerState(algorithm.step(step_key, state.inner)[0], estate)

    def position(self, state: PeerState) -> Position:
        """Position of a state."""
        return state.inner.position

    def unpack(self, state: PeerState) -> Tree:
        """Full variable z of a state."""
        kept = KERNELS[self.name].kept
        return {name: getattr(state.inner, name) for name in ("position", *kept)} if kept else state.inner.position

    def pack(self, key: jax.Array, z: Tree, estimator: Estimator) -> PeerState:
        """State with the full variable z; caches are computed anew."""
        kept = KERNELS[self.name].kept
        if not kept:
            return self.init(key, z, estimator)
        state = self.init(key, z["position"], estimator)
        return state._replace(inner=state.inner._replace(**{name: z[name] for name in kept}))


ENTRIES: tuple[Row, ...] = tuple(
    kernel_row(
        f"blackjax/{name}",
        on_target(Exported, name=name),
        kernel.composite,
        targets=kernel.targets,
        step_power=kernel.power,
    )
    for name, kernel in KERNELS.items()
)
