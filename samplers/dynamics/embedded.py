"""The dynamics of samplers on embedded manifolds, in ambient coordinates: z = (x, v) or (x, v, xi)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from sgmcmc_verification.samplers.dynamics.complete_recipe import MatrixField, Vector, VectorField, coordinate_names
from sgmcmc_verification.targets.manifolds.base import Manifold, Point
from sgmcmc_verification.targets.target import Target

Friction = float | Float[Array | np.ndarray, "..."] | Sequence[Sequence[float]]
"""A number or a matrix (n, n)."""
Between = Callable[[Vector, Vector], Float[Array, " n"]]


@dataclass(frozen=True, eq=False)
class EmbeddedDynamics:
    """dz = f(z) dt + sqrt(2 D(z)) dW on the tangent bundle of a manifold, z in the coordinates of the ambient space.

    The recipe is about Euclidean spaces, so it does not apply to z; it is proved for the same dynamics in charts
    (`samplers.dynamics.charts`). f is tangent to the bundle and the noise moves v alone, along straight lines within
    the tangent space, so L phi = f . grad phi + D : Hess phi depends on phi on the bundle only, and L can be iterated
    with any smooth extension of f and D off the manifold.

    Attributes:
        drift: z (n,) -> f (n,).
        D: z -> (n, n).
        names: a name for each coordinate of z.
        size: number of leading coordinates of z that are the (ambient) position.
        temperature: T; given x the velocity has the law N(0, T P(x)), P the tangent projection.
        thermostat: mean and variance of xi, which is normal and independent of (x, v); None where there is none.
    """

    drift: VectorField
    D: MatrixField
    names: tuple[str, ...]
    size: int
    temperature: float = 1.0
    thermostat: tuple[float, float] | None = None

    @property
    def dim(self) -> int:
        """Number of coordinates of z."""
        return len(self.names)


def projection(manifold: Manifold, position: Point) -> Float[Array, "n n"]:
    """The matrix P (n, n) of the tangent projection at a point, in ravel order."""
    flat, unravel = ravel_pytree(position)
    column = lambda u: ravel_pytree(manifold.tangent(position, unravel(u)))[0]
    return jax.vmap(column)(jnp.eye(flat.size, dtype=flat.dtype))  # P is symmetric: rows are columns


def friction_matrix(friction: Friction, size: int) -> Float[np.ndarray, "n n"]:
    """C (n, n) of a scalar or of a matrix."""
    given = np.asarray(friction, np.float64)
    return given * np.eye(size) if given.ndim == 0 else given


def _parts(target: Target) -> tuple[Between, Between, VectorField]:
    """(acceleration(x, v), tangent(x, u), gradient(x)) as functions of flat vectors (n,)."""

    def tangent(x: Vector, u: Vector) -> Float[Array, " n"]:
        return ravel_pytree(target.manifold.tangent(target.unravel(x), target.unravel(u)))[0]

    def acceleration(x: Vector, v: Vector) -> Float[Array, " n"]:
        # v = P(x) v along a geodesic and P v' = 0, so v' = (d/dt P(x)) v: the derivative of P in the direction v.
        # The code of the geodesic flow does not enter.
        return jax.jvp(lambda y: tangent(y, v), (x,), (v,))[1]

    return acceleration, tangent, jax.grad(target.flat_potential)


def geodesic_overdamped(target: Target, temperature: float = 1.0) -> EmbeddedDynamics:
    """Overdamped Langevin dynamics on a manifold, of the position alone:

        dx = -P grad U dt + T sum_j (dP/d(P e_j)) P e_j dt + sqrt(2 T) P dW

    The sum is the mean normal acceleration of geodesics whose velocity is N(0, P): with it the path stays on the
    manifold. The law exp(-U / T) is stationary.

    Source: byrne2013geodesic, the geodesic flow in embedded coordinates; in the limit of one small step from a fresh
    velocity.
    """
    n = target.size
    acceleration, tangent, gradient = _parts(target)

    def drift(x: Vector) -> Float[Array, " n"]:
        P = projection(target.manifold, target.unravel(x))
        bend = jnp.sum(jax.vmap(lambda u: acceleration(x, u))(P), axis=0)
        return temperature * bend - tangent(x, gradient(x))

    D = lambda x: temperature * projection(target.manifold, target.unravel(x))
    return EmbeddedDynamics(drift, D, coordinate_names(n), n, temperature)


def geodesic_langevin(target: Target, friction: Friction, temperature: float = 1.0) -> EmbeddedDynamics:
    """Langevin dynamics on a manifold (P the tangent projection at x, U = -log density, Hausdorff):

        dx = v dt,   dv = (dP/dt) v dt - P [grad U + C v] dt + sqrt(2 T) P C^(1/2) dW

    (dP/dt) v is the normal acceleration of the geodesic through (x, v). The law exp(-U / T), v ~ N(0, T P(x)), is
    stationary.

    Source: liu2016stochastic, equation (5), in the embedded variables of its section 3.3; at temperature T.

    Args:
        target: potential and manifold.
        friction: C, a positive number or a symmetric positive definite matrix (n, n) on the ambient space.
        temperature: T.
    """
    n, C = target.size, jnp.asarray(friction_matrix(friction, target.size))
    acceleration, tangent, gradient = _parts(target)

    def drift(z: Vector) -> Float[Array, " n"]:
        x, v = z[:n], z[n:]
        return jnp.concatenate([v, acceleration(x, v) - tangent(x, gradient(x) + C @ v)])

    def D(z: Vector) -> Float[Array, "n n"]:
        P, zero = projection(target.manifold, target.unravel(z[:n])), jnp.zeros((n, n), z.dtype)
        return jnp.block([[zero, zero], [zero, temperature * P @ C @ P.T]])

    return EmbeddedDynamics(drift, D, coordinate_names(n, "v"), n, temperature)


def geodesic_thermostat(
    target: Target, diffusion: float, temperature: float = 1.0, thermal_mass: float | None = None
) -> EmbeddedDynamics:
    """Langevin dynamics on a manifold of dimension m whose friction xi is driven by the kinetic energy:

        dx = v dt,   dv = (dP/dt) v dt - P grad U dt - xi v dt + sqrt(2 A T) P dW,   d xi = (|v|^2 - m T) / mu dt

    with xi ~ N(A, T / mu), independent of x and v; mu = m if `thermal_mass` is None.

    Source: liu2016stochastic, equation (6), in the embedded variables of its section 3.3; with the temperature T and
    the thermal mass mu (leimkuhler2016adaptive).
    """
    n, m, A, T = target.size, target.manifold.dim, diffusion, temperature
    mu = m if thermal_mass is None else thermal_mass
    acceleration, tangent, gradient = _parts(target)

    def drift(z: Vector) -> Float[Array, " n"]:
        x, v, xi = z[:n], z[n : 2 * n], z[2 * n]
        force = acceleration(x, v) - tangent(x, gradient(x)) - xi * v
        return jnp.concatenate([v, force, jnp.reshape((v @ v - m * T) / mu, (1,))])

    def D(z: Vector) -> Float[Array, "n n"]:
        P = projection(target.manifold, target.unravel(z[:n]))
        return jnp.zeros((2 * n + 1, 2 * n + 1), z.dtype).at[n : 2 * n, n : 2 * n].set(A * T * P @ P.T)

    return EmbeddedDynamics(drift, D, coordinate_names(n, "v", scalars=("xi",)), n, T, (A, T / mu))
