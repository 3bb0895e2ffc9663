"""The dynamics of samplers on manifolds in ambient coordinates: what the checks need to know of z = (x, v, xi)."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.numerics.quadrature import gauss_hermite
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.embedded import EmbeddedDynamics
from sgmcmc_verification.samplers.interface.claims import Claims, EmbeddedDiffusion
from sgmcmc_verification.targets.target import Target

VELOCITY_NODES = 6
"""Nodes for each intrinsic direction of the velocity, and for a thermostat."""


def generator_of(dynamics: Dynamics | EmbeddedDynamics) -> Callable:
    """phi -> L phi, functions of z (n,) -> (K,), by automatic differentiation in forward mode; can be iterated.

        L phi = f . grad phi + sum_ij D_ij d_i d_j phi

    For embedded dynamics this is the generator on the tangent bundle, L phi = d/dt phi(geodesic) + (P force) . d_v phi
    + T P C P : d_v d_v phi, as f is tangent to the bundle and D has its range in the tangent space of v.
    """

    def generator(phi: Callable):
        def along(direction: jax.Array, y: jax.Array):
            return jax.jvp(phi, (y,), (direction,))[1]

        def applied(z: jax.Array):
            # sum_ij D_ij d_i d_j phi as n second derivatives along (D e_j, e_j): far fewer terms than full Hessians
            # when L is applied to L phi.
            D, basis = dynamics.D(z), jnp.eye(z.size, dtype=z.dtype)
            second = jax.vmap(lambda d, e: jax.jvp(lambda y: along(d, y), (z,), (e,))[1])(D.T, basis)
            return along(dynamics.drift(z), z) + jnp.sum(second, axis=0)

        return applied

    return generator


def tangent_frames(target: Target, points: np.ndarray) -> np.ndarray:
    """An orthonormal basis (P, d, m) of the tangent space at each point: the range of the projection."""

    def project(x: jax.Array, u: jax.Array):
        return target.ravel(target.manifold.tangent(target.unravel(x), target.unravel(u)))

    rows = jax.jit(jax.vmap(jax.vmap(project, (None, 0)), (0, None)))
    left, _, _ = np.linalg.svd(np.asarray(rows(jnp.asarray(points), jnp.eye(target.size))))
    return left[:, :, : target.manifold.dim]


def tangent_rule(
    target: Target, claims: Claims, points: np.ndarray, weights: np.ndarray, refine: int
) -> tuple[np.ndarray, np.ndarray]:
    """A rule for the law of z from one for the position: v ~ N(0, T P(x)), and the thermostat where there is one."""
    thermostat = claims[EmbeddedDiffusion].dynamics(target).thermostat if EmbeddedDiffusion in claims else None
    m, per_axis = target.manifold.dim, VELOCITY_NODES + refine
    extra = 0 if thermostat is None else 1
    try:
        nodes, w = gauss_hermite(m + extra, per_axis)
    except ValueError as error:
        raise OutOfReach(f"{m + extra} auxiliary variables are too many for a grid") from error
    velocities = np.sqrt(claims.temperature) * np.einsum("pij,mj->pmi", tangent_frames(target, points), nodes[:, :m])
    columns = [np.repeat(points, len(nodes), axis=0), velocities.reshape(-1, target.size)]
    if thermostat is not None:
        mean, variance = thermostat
        columns.append(np.tile(mean + np.sqrt(variance) * nodes[:, m:], (len(points), 1)))
    return np.concatenate(columns, axis=1), np.repeat(weights, len(nodes)) * np.tile(w, len(points))


def draw_tangent(
    target: Target, claims: Claims, positions: np.ndarray, generator: np.random.Generator, extra: int
) -> np.ndarray:
    """z (count, d + extra) from positions (count, d): v ~ N(0, T P(x)), and the thermostat where there is one."""

    def project(x: jax.Array, u: jax.Array):
        return target.ravel(target.manifold.tangent(target.unravel(x), target.unravel(u)))

    normals = generator.standard_normal((len(positions), extra))
    tangent = jax.jit(jax.vmap(project))(jnp.asarray(positions), jnp.asarray(normals[:, : target.size]))
    columns = [positions, np.sqrt(claims.temperature) * np.asarray(tangent)]
    thermostat = claims[EmbeddedDiffusion].dynamics(target).thermostat if EmbeddedDiffusion in claims else None
    if thermostat is not None:
        columns.append(thermostat[0] + np.sqrt(thermostat[1]) * normals[:, target.size :])
    return np.concatenate(columns, axis=1)


def on_tangent_bundle(target: Target, points: np.ndarray, wiggles: np.ndarray) -> np.ndarray:
    """Ambient vectors made points of the tangent bundle.

    Args:
        target: gives the manifold and its example.
        points: (count, d), how far each goes from the example, along a geodesic.
        wiggles: (count, k), velocities (k = d), with more variables behind them (k > d), or nothing (k = 0).

    Returns:
        (count, d + k).
    """
    manifold, base, d = target.manifold, target.example, target.size

    def place(shift: jax.Array, aux: jax.Array):
        along = manifold.tangent(base, target.unravel(shift))
        x, _ = manifold.geodesic(base, along, jnp.asarray(1.0))
        if aux.size < d:
            return jnp.concatenate([target.ravel(x), aux])
        v = manifold.tangent(x, target.unravel(aux[:d]))
        return jnp.concatenate([target.ravel(x), target.ravel(v), aux[d:]])

    return np.asarray(jax.jit(jax.vmap(place))(jnp.asarray(points), jnp.asarray(wiggles)))
