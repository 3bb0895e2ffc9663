"""State of particle methods, and one step along a velocity."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.entry import PARTICLE_TIERS, Row
from sgmcmc_verification.samplers.interface.aliases import Builder, Estimator, EstimatorState, Position, Scalar, State
from sgmcmc_verification.samplers.interface.from_step import PositionMixin
from sgmcmc_verification.samplers.particles.kernels import Bandwidth, bandwidths_of, first_bandwidth


class Particles(NamedTuple):
    """Particles (leading axis M in every leaf), steps, what the bandwidth rule carries, estimators' states."""

    position: Position
    count: jax.Array  # pyright: ignore[reportIncompatibleMethodOverride]  # hides tuple.count
    bandwidth: jax.Array
    estate: EstimatorState


def flatten(position: Position) -> jax.Array:
    """Particles as rows (M, d), in ravel order."""
    return jax.vmap(lambda x: ravel_pytree(x)[0])(position)


def unflatten(position: Position) -> Callable[[jax.Array], Position]:
    """The inverse of `flatten`: rows (M, d) -> particles with the structure of `position`."""
    return jax.vmap(ravel_pytree(jax.tree.map(lambda leaf: leaf[0], position))[1])


def estimates(
    estimator: Estimator, key: jax.Array, estate: EstimatorState, position: Position
) -> tuple[jax.Array, EstimatorState]:
    """(grad U~ (M, d), the estimators' states): one key, so that all particles see the same minibatch."""
    estimate, estate = jax.vmap(estimator.estimate, (None, 0, 0))(key, estate, position)
    return flatten(estimate.gradient), estate


def uniform_weights(particles: jax.Array) -> jax.Array:
    """1 / M for every particle."""
    return jnp.full(particles.shape[0], 1.0 / particles.shape[0], particles.dtype)


class ParticleMixin(PositionMixin):
    """A sampler whose state is its particles, from `move`, in a flat space.

    `move(particles (M, d), gradients of U (M, d), weights (M,), bandwidths) -> (M, d)` is the velocity of every
    particle when the others carry `weights`, which sum to one. The step has equal weights. With the weights of a
    quadrature rule for a law q it is the mean-field velocity under q; a particle without weight is moved by the
    others, and does not move them.

    All particles see the same minibatch: the estimator is called once for each with the same key, and each particle
    carries an estimator's state of its own.
    """

    backend: ClassVar[str] = "jax"
    needs: ClassVar[frozenset[str]] = frozenset({"gradient"})
    bandwidth: Bandwidth
    move: Callable[..., jax.Array]

    def velocity(self, particles: jax.Array, gradients: jax.Array, weights: jax.Array) -> jax.Array:
        """The velocity (M, n) of particles z (M, n) with weights (M,), given grad U (M, d) at their positions."""
        start = first_bandwidth(self.bandwidth, particles)
        return self.move(particles, gradients, weights, bandwidths_of(self.bandwidth, particles, start)[0])

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> State:
        """Start a chain at a position."""
        estate = jax.vmap(lambda x: estimator.init(key, x))(position)
        bandwidth = first_bandwidth(self.bandwidth, flatten(position))
        return Particles(position, jnp.zeros((), jnp.int32), bandwidth, estate)

    def step(self, key: jax.Array, state: State, step_size: Scalar, estimator: Estimator) -> State:
        """Take one step."""
        gradients, estate = estimates(estimator, key, state.estate, state.position)
        particles = flatten(state.position)
        bandwidths, carried = bandwidths_of(self.bandwidth, particles, state.bandwidth)
        move = self.move(particles, gradients, uniform_weights(particles), bandwidths)
        position = unflatten(state.position)(particles + step_size * move)
        return Particles(position, state.count + 1, carried, estate)


PARTICLES: dict[str, str] = dict.fromkeys(
    ("recipe", "generator", "order"), "a deterministic flow of interacting particles: its step is no diffusion"
)
PARTICLE_FLAT = ("gaussian-1d-scaled", "anharmonic", "gaussian-correlated-2d")
BANDWIDTHS = ({"bandwidth": 0.5}, {"bandwidth": "he"})


def particle_row(name: str, build: Builder, targets: tuple[str, ...], *variants: Any, **more: Any) -> Row:
    """The row of a particle method."""
    return Row(name, build, PARTICLE_TIERS, PARTICLES, targets, variants, **more)
