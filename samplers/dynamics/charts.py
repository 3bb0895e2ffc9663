"""The dynamics of samplers on manifolds in coordinate charts, where the complete recipe applies.

A sampler on an embedded manifold runs in ambient coordinates, which are not those of a Euclidean space. The recipe is
decided for the same dynamics in charts: z = (q, p) or (q, p, xi), q the coordinates and p the momentum G(q) dq/dt.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, ScalarField, Vector, coordinate_names
from sgmcmc_verification.samplers.dynamics.embedded import Friction, friction_matrix
from sgmcmc_verification.targets.manifolds.base import Manifold
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.target import Target

Coordinates = Float[Array, " m"]


@dataclass(frozen=True, eq=False)
class Chart:
    """Coordinates of an open part of a manifold, given by their inverse.

    Attributes:
        name: such as `stereographic`.
        dim: number of coordinates m.
        embed: q (m,) -> x (n,), the point in ambient coordinates (ravel order); an isometric embedding, so that the
            metric is G = M^T M with the Jacobian M = dx / dq.
        centre: q (m,) in the middle of the chart.
        spread: a length in q over which the chart is far from singular.
    """

    name: str
    dim: int
    embed: Callable[[Coordinates], Float[Array, " n"]]
    centre: tuple[float, ...]
    spread: float

    def jacobian(self, q: Coordinates) -> Float[Array, "n m"]:
        """M (n, m)."""
        return jax.jacfwd(self.embed)(q)

    def metric(self, q: Coordinates) -> Float[Array, "m m"]:
        """G = M^T M (m, m)."""
        M = self.jacobian(q)
        return M.T @ M


class InChart(NamedTuple):
    """A chart and the dynamics in it."""

    chart: Chart
    dynamics: Dynamics


def _vector(*entries: Float[Array, "..."]) -> Float[Array, " k"]:
    """Scalars -> (k,); the transpose of `jnp.stack` is a primitive that computer algebra systems are not told of."""
    return jnp.concatenate([jnp.reshape(entry, (1,)) for entry in entries])


def _angle(q: Coordinates) -> Float[Array, " n"]:
    return _vector(jnp.cos(q[0]), jnp.sin(q[0]))


def _spherical(q: Coordinates) -> Float[Array, " n"]:
    return _vector(jnp.sin(q[0]) * jnp.cos(q[1]), jnp.sin(q[0]) * jnp.sin(q[1]), jnp.cos(q[0]))


def _stereographic(q: Coordinates) -> Float[Array, " n"]:
    squared = jnp.sum(q * q)
    return jnp.concatenate([2 * q, _vector(squared - 1)]) / (1 + squared)


ANGLE = Chart("angle", 1, _angle, (0.4,), 1.0)
SPHERICAL = Chart("spherical", 2, _spherical, (1.5, 0.3), 0.4)


def stereographic(dim: int) -> Chart:
    """All of S^m but the last pole e_n: x = (2 q, |q|^2 - 1) / (1 + |q|^2), G = 4 / (1 + |q|^2)^2 I."""
    return Chart("stereographic", dim, _stereographic, (0.0,) * dim, 0.7)


def charts_of(manifold: Manifold) -> tuple[Chart, ...]:
    """The charts of a manifold that the recipe is decided in: of spheres; () for others."""
    if not isinstance(manifold, Sphere):
        return ()
    own = {1: (ANGLE,), 2: (SPHERICAL,)}.get(manifold.dim, ())
    return (*own, stereographic(manifold.dim))


def pulled_back(target: Target, chart: Chart, temperature: float = 1.0) -> Target:
    """The law of the coordinates q of a chart: Lebesgue density exp(-U / T) on R^m, for exp(-U_H / T) on the manifold.

        U(q) = U_H(x(q)) - (T / 2) log |G(q)|

    The charts leave out a null set. Where q has a period, U has it too, and the law is that of one period.

    Source: liu2016stochastic, section 3.1 (densities in the two spaces); at temperature T.
    """

    def potential(q: Coordinates) -> Float[Array, ""]:
        return target.flat_potential(chart.embed(q)) - 0.5 * temperature * _log_det(chart.metric(q))

    return Target(
        name=f"{target.name} in {chart.name} coordinates",
        manifold=Euclidean(chart.dim),
        example=jnp.asarray(chart.centre),
        potential=potential,
        source="liu2016stochastic, section 3.1",
    )


def langevin_in_chart(target: Target, chart: Chart, friction: Friction, temperature: float = 1.0) -> Dynamics:
    """H = U / T + log |G| / 2 + p^T G^-1 p / (2 T), D = T diag(0, M^T C M), Q = T [[0, -I], [I, 0]].

    Source: liu2016stochastic, section 3.2, equation (5). Differs from the source in:
        1. the temperature T: p ~ N(0, T G), whose normalisation is what log |G| / 2 makes up for at every T.

    Args:
        target: the law of the coordinates, Lebesgue (`pulled_back`).
        chart: gives M and G.
        friction: C, a number or a matrix (n, n) on the ambient space.
        temperature: T.
    """
    m, T = chart.dim, temperature

    def D(z: Vector) -> Float[Array, "n n"]:
        M, zero = chart.jacobian(z[:m]), jnp.zeros((m, m), z.dtype)
        C = jnp.asarray(friction_matrix(friction, M.shape[0]))
        return jnp.block([[zero, zero], [zero, T * (M.T @ C @ M)]])

    def Q(z: Vector) -> Float[Array, "n n"]:
        zero, one = jnp.zeros((m, m), z.dtype), T * jnp.eye(m, dtype=z.dtype)
        return jnp.block([[zero, -one], [one, zero]])

    return Dynamics(_energy(target, chart, T), D, Q, _names(m), m)


def thermostat_in_chart(
    target: Target, chart: Chart, diffusion: float, temperature: float = 1.0, thermal_mass: float | None = None
) -> Dynamics:
    """As `langevin_in_chart` with a thermostat: H has + mu (xi - A)^2 / (2 T), and

        D = T diag(0, A G, 0),  Q = T [[0, -I, 0], [I, 0, p / mu], [0, -p^T / mu, 0]],  Gamma = (0, 0, -m T / mu)

    Source: liu2016stochastic, section 3.2, equation (6): T = 1 and mu = m, the dimension of the manifold. Differs from
    the source in:
        1. the temperature and the thermal mass mu (leimkuhler2016adaptive).
    """
    m, A, T = chart.dim, diffusion, temperature
    mu = m if thermal_mass is None else thermal_mass
    energy = _energy(target, chart, T)

    def H(z: Vector) -> Float[Array, ""]:
        return energy(z[: 2 * m]) + 0.5 * mu * (z[2 * m] - A) ** 2 / T

    def D(z: Vector) -> Float[Array, "n n"]:
        zero, side = jnp.zeros((m, m), z.dtype), jnp.zeros((m, 1), z.dtype)
        last = jnp.zeros((1, 1), z.dtype)
        return jnp.block([[zero, zero, side], [zero, A * T * chart.metric(z[:m]), side], [side.T, side.T, last]])

    def Q(z: Vector) -> Float[Array, "n n"]:
        p = (T / mu) * z[m : 2 * m, None]
        zero, one, side = jnp.zeros((m, m), z.dtype), T * jnp.eye(m, dtype=z.dtype), jnp.zeros((m, 1), z.dtype)
        return jnp.block([[zero, -one, side], [one, zero, p], [side.T, -p.T, jnp.zeros((1, 1), z.dtype)]])

    return Dynamics(H, D, Q, _names(m, "xi"), m)


def langevin_in_charts(target: Target, friction: Friction, temperature: float = 1.0) -> tuple[InChart, ...]:
    """`langevin_in_chart` for a law on a manifold, in each of its charts."""
    return _in_charts(target, temperature, lambda law, chart: langevin_in_chart(law, chart, friction, temperature))


def thermostat_in_charts(
    target: Target, diffusion: float, temperature: float = 1.0, thermal_mass: float | None = None
) -> tuple[InChart, ...]:
    """`thermostat_in_chart` for a law on a manifold, in each of its charts."""
    return _in_charts(
        target,
        temperature,
        lambda law, chart: thermostat_in_chart(law, chart, diffusion, temperature, thermal_mass),
    )


def _in_charts(
    target: Target, temperature: float, dynamics: Callable[[Target, Chart], Dynamics]
) -> tuple[InChart, ...]:
    return tuple(
        InChart(chart, dynamics(pulled_back(target, chart, temperature), chart)) for chart in charts_of(target.manifold)
    )


def _energy(target: Target, chart: Chart, temperature: float) -> ScalarField:
    """(q, p) -> U / T + log |G| / 2 + p^T G^-1 p / (2 T)."""
    m, T = chart.dim, temperature

    def energy(z: Vector) -> Float[Array, ""]:
        q, p = z[:m], z[m:]
        G = chart.metric(q)
        return target.flat_potential(q) / T + 0.5 * _log_det(G) + 0.5 * (p @ _solve(G, p)) / T

    return energy


def _names(m: int, *scalars: str) -> tuple[str, ...]:
    names = coordinate_names(m, "p", scalars=scalars)
    return tuple(name.replace("theta", "q") for name in names)


def _log_det(G: Float[Array, "m m"]) -> Float[Array, ""]:
    """log |G|; closed forms for one and two coordinates, which a computer algebra system can read."""
    if G.shape[0] == 1:
        return jnp.log(G[0, 0])
    if G.shape[0] == 2:
        return jnp.log(G[0, 0] * G[1, 1] - G[0, 1] * G[1, 0])
    return jnp.linalg.slogdet(G)[1]


def _solve(G: Float[Array, "m m"], p: Float[Array, " m"]) -> Float[Array, " m"]:
    """G^-1 p."""
    if G.shape[0] == 1:
        return p / G[0, 0]
    if G.shape[0] == 2:
        determinant = G[0, 0] * G[1, 1] - G[0, 1] * G[1, 0]
        return _vector(G[1, 1] * p[0] - G[0, 1] * p[1], G[0, 0] * p[1] - G[1, 0] * p[0]) / determinant
    return jnp.linalg.solve(G, p)
