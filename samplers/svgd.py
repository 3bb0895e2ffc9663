"""Stein variational gradient descent (SVGD)."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from samplers.types import Claims, Source
from samplers.validate import require


class SVGDState(NamedTuple):
    """Particles (leading axis M), running mean square of the direction, number of steps, estimators' states."""

    position: Any
    square: jax.Array
    count: jax.Array
    estate: Any


def squared_distances(particles: jax.Array) -> jax.Array:
    """|x_i - x_j|^2, (M, M), for particles (M, d); from differences, so that it is zero on the diagonal."""
    return jnp.sum((particles[:, None, :] - particles[None, :, :]) ** 2, axis=-1)


def median_bandwidth(distances: jax.Array) -> jax.Array:
    """h = median(|x_i - x_j|^2) / (2 log(M + 1)) over all pairs, diagonal included; 1 if the particles coincide.

    Source: liu2016stein, section 5, in the variant with M + 1 of the released code, for exp(-|x - y|^2 / (2 h)).
    """
    h = 0.5 * jnp.median(distances) / jnp.log(distances.shape[0] + 1.0)
    return jnp.where(h > 0, h, jnp.ones_like(h))


def stein_direction(particles: jax.Array, gradients: jax.Array, bandwidth: jax.Array | float) -> jax.Array:
    """phi(x_j) = (1/M) sum_i [-K_ij grad U(x_i) + grad_{x_i} K_ij], K_ij = exp(-|x_i - x_j|^2 / (2 h)).

    Source: liu2016stein, equation (8).

    Args:
        particles: (M, d).
        gradients: grad U at the particles, (M, d).
        bandwidth: h, the square of the length scale.

    Returns:
        phi, (M, d).
    """
    kernel = jnp.exp(-squared_distances(particles) / (2 * bandwidth))
    # sum_i grad_{x_i} K_ij = sum_i K_ij (x_j - x_i) / h
    repulsion = (jnp.sum(kernel, axis=0)[:, None] * particles - kernel.T @ particles) / bandwidth
    return (repulsion - kernel.T @ gradients) / particles.shape[0]


@dataclass(frozen=True)
class SVGD:
    """Particles transported along the kernelised gradient of the Kullback-Leibler divergence.

        x_j' = x_j + h phi(x_j),   phi(x_j) = (1/M) sum_i [-K_ij grad U~(x_i) + grad_{x_i} K_ij]

    or, with `adagrad`, x_j' = x_j + h phi / (10^-6 + sqrt(s)), s <- 0.9 s + 0.1 phi^2 (s = phi^2 in the first step).

    Source: liu2016stein, Algorithm 1; the AdaGrad variant is that of its released code.

    Positions have a leading particle axis in every leaf. All particles see the same minibatch: the estimator is
    called once for each with the same key, and each particle carries an estimator's state of its own.

    Args:
        bandwidth: h of the kernel exp(-|x - y|^2 / (2 h)), a squared length, or `"median"`.
        adagrad: scale the steps.

    Error: none is claimed for a finite number of particles; in the mean-field limit the target is stationary.

    Raises:
        ValueError: if `bandwidth` is neither positive nor `"median"`.
    """

    bandwidth: float | Literal["median"] = "median"
    adagrad: bool = False

    backend = "jax"
    needs = frozenset({"gradient"})

    def __post_init__(self):
        valid = self.bandwidth == "median" if isinstance(self.bandwidth, str) else self.bandwidth > 0
        require(valid, 'bandwidth: must be positive or "median"', self.bandwidth)

    @property
    def claims(self):
        return Claims(
            kind="particle",
            source=Source("liu2016stein", "Algorithm 1"),
            conditions=("infinitely many particles",),
        )

    def init(self, key, position, estimator):
        particles = jax.vmap(lambda x: ravel_pytree(x)[0])(position)
        estate = jax.vmap(lambda x: estimator.init(key, x))(position)
        return SVGDState(position, jnp.zeros_like(particles), jnp.zeros((), jnp.int32), estate)

    def step(self, key, state, step_size, estimator):
        flatten = jax.vmap(lambda x: ravel_pytree(x)[0])
        unravel = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], state.position))[1]
        estimate, estate = jax.vmap(estimator.estimate, (None, 0, 0))(key, state.estate, state.position)
        particles = flatten(state.position)
        bandwidth = median_bandwidth(squared_distances(particles)) if self.bandwidth == "median" else self.bandwidth
        direction = stein_direction(particles, flatten(estimate.gradient), bandwidth)
        square = direction**2
        square = jnp.where(state.count == 0, square, 0.9 * state.square + 0.1 * square)
        move = direction / (1e-6 + jnp.sqrt(square)) if self.adagrad else direction
        position = jax.vmap(unravel)(particles + step_size * move)
        return SVGDState(position, square, state.count + 1, estate)

    def position(self, state):
        return state.position

    def unpack(self, state):
        return state.position

    def pack(self, key, z, estimator):
        return self.init(key, z, estimator)
