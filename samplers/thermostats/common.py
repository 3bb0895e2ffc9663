"""State, full variable and dynamics of the Nose-Hoover samplers, with one thermostat or one per coordinate."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, coordinate_names
from sgmcmc_verification.samplers.interface.aliases import EstimatorState, Position, Tree
from sgmcmc_verification.samplers.interface.from_step import PointMixin
from sgmcmc_verification.targets.target import Target


class ThermostatPoint(NamedTuple):
    """The full variable z = (theta, r, xi)."""

    position: Position
    momentum: Tree
    thermostat: Tree


class ThermostatState(NamedTuple):
    """Position, momentum, thermostat xi (a scalar, or a pytree like the position) and the estimator's own state."""

    position: Position
    momentum: Tree
    thermostat: Tree
    estate: EstimatorState


def squared_norm(tree: Tree) -> jax.Array:
    """|r|^2, summed over all leaves."""
    return jnp.sum(jnp.stack([jnp.sum(leaf * leaf) for leaf in jax.tree.leaves(tree)]))


def count(tree: Tree) -> int:
    """Number of coordinates d of a position."""
    return sum(int(jnp.size(leaf)) for leaf in jax.tree.leaves(tree))


def scalar_thermostat(tree: Tree, value: float) -> jax.Array:
    """A scalar xi of the dtype of the leaves of `tree`."""
    return jnp.asarray(value, jnp.result_type(*jax.tree.leaves(tree)))


def thermostat_dynamics(
    target: Target, diffusion: float, temperature: float = 1.0, thermal_mass: float | None = None
) -> Dynamics:
    """Langevin dynamics whose friction xi is driven by the kinetic energy:

        d theta = r dt,  dr = -grad U dt - xi r dt + sqrt(2 A T) dW,  d xi = (|r|^2 - d T) / mu dt
        H = (U + |r|^2 / 2 + mu (xi - A)^2 / 2) / T,  D = diag(0, A T I, 0),
        Q = T [[0, -I, 0], [I, 0, r / mu], [0, -r^T / mu, 0]],  Gamma = (0, 0, -d T / mu)

    Source: ma2015complete, section 3.1 (SGNHT: T = 1 and mu = d, so that Gamma = (0, 0, -1)). Differs from the
    source in:
        1. the potential of xi, printed there as (xi - A)^2 / (2 d): with it exp(-H) is not stationary;
        2. the temperature and the thermal mass mu (leimkuhler2016adaptive): xi ~ N(A, T / mu).
    """
    n, A, T = target.size, diffusion, temperature
    mu = n if thermal_mass is None else thermal_mass

    def H(z: jax.Array) -> jax.Array:
        r, xi = z[n : 2 * n], z[2 * n]
        return (target.flat_potential(z[:n]) + 0.5 * r @ r + 0.5 * mu * (xi - A) ** 2) / T

    def D(z: jax.Array) -> jax.Array:
        return jnp.diag(jnp.zeros(2 * n + 1, z.dtype).at[n : 2 * n].set(A * T))

    def Q(z: jax.Array) -> jax.Array:
        r = (T / mu) * z[n : 2 * n, None]
        one, column = T * jnp.eye(n, dtype=z.dtype), jnp.zeros((n, 1), z.dtype)
        zero = jnp.zeros((n, n), z.dtype)
        return jnp.block([[zero, -one, column], [one, zero, r], [column.T, -r.T, jnp.zeros((1, 1), z.dtype)]])

    return Dynamics(H, D, Q, coordinate_names(n, "r", scalars=("xi",)), n)


def elementwise_thermostat_dynamics(target: Target, diffusion: float, temperature: float = 1.0) -> Dynamics:
    """Langevin dynamics with a thermostat for every coordinate:

        d theta = r dt,  dr = -grad U dt - xi * r dt + sqrt(2 A T) dW,  d xi_i = (r_i^2 - T) dt
        H = (U + |r|^2 / 2 + |xi - A|^2 / 2) / T,  D = diag(0, A T I, 0),
        Q_{theta r} = -T I,  Q_{r_i xi_i} = T r_i, and minus their transposes,  Gamma = (0, 0, -T)

    Source: chen2015convergence, the multivariate thermostat (mSGNHT), written as in ma2015complete. Differs from the
    source in:
        1. the temperature: xi_i ~ N(A, T).
    """
    n, A, T = target.size, diffusion, temperature

    def H(z: jax.Array) -> jax.Array:
        r, xi = z[n : 2 * n], z[2 * n :]
        return (target.flat_potential(z[:n]) + 0.5 * r @ r + 0.5 * (xi - A) @ (xi - A)) / T

    def D(z: jax.Array) -> jax.Array:
        return jnp.diag(jnp.zeros(3 * n, z.dtype).at[n : 2 * n].set(A * T))

    def Q(z: jax.Array) -> jax.Array:
        zero, one, r = jnp.zeros((n, n), z.dtype), T * jnp.eye(n, dtype=z.dtype), T * jnp.diag(z[n : 2 * n])
        return jnp.block([[zero, -one, zero], [one, zero, r], [zero, -r, zero]])

    return Dynamics(H, D, Q, coordinate_names(n, "r", "xi"), n)


class ThermostatMixin(PointMixin):
    """position, unpack and pack of a sampler with a `ThermostatState`."""

    point = ThermostatPoint
    state = ThermostatState
