"""Riemannian particle methods do not know which coordinates are in use: their velocity, computed in two charts."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import everywhere
from sgmcmc_verification.checks.tiers.particles.velocity import EPS, WEIGHTS, field, gradients_of, kernel_of
from sgmcmc_verification.samplers.dynamics.charts import charts_of, stereographic
from sgmcmc_verification.samplers.interface.claims import KernelWidth, RiemannianVelocity
from sgmcmc_verification.samplers.riemannian.metrics import dense
from sgmcmc_verification.targets.manifolds.base import Manifold
from sgmcmc_verification.targets.manifolds.spheres import ProductOfSpheres
from sgmcmc_verification.targets.manifolds.stiefel import Stiefel

Embedding = Callable[[jax.Array], jax.Array]
"""q (m,) -> x (n,)."""
LOOKS = 64
"""Places at which a declared metric is looked at."""


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A chart by the inverse of its map, and the middle of where it is used."""

    name: str
    embed: Embedding
    centre: np.ndarray
    spread: float


def bent(q: jax.Array) -> jax.Array:
    """Coordinates of R^d that are neither linear nor a change of each coordinate alone; its Jacobian is unimodular
    for none but one dimension.
    """
    return q + 0.3 * jnp.sin(q + 0.5 * jnp.roll(q, 1)) + 0.1


def _cayley(base: np.ndarray, q: jax.Array) -> jax.Array:
    """(I - A)^-1 (I + A) X for the skew matrix A of q (3,) and a frame X (3, 2)."""
    zero = jnp.zeros((), q.dtype)
    A = jnp.stack([zero, -q[2], q[1], q[2], zero, -q[0], -q[1], q[0], zero]).reshape(3, 3)
    one = jnp.eye(3, dtype=q.dtype)
    return (jnp.linalg.solve(one - A, one + A) @ jnp.asarray(base, q.dtype)).ravel()


def _rows(turn: int, count: int, dim: int, q: jax.Array) -> jax.Array:
    """Stereographic coordinates of each of several spheres, the pole at the axis n - 1 - turn."""
    embed = stereographic(dim).embed
    return jnp.roll(jax.vmap(embed)(q.reshape(count, dim)), -turn, axis=1).ravel()


def coordinates_of(manifold: Manifold, size: int) -> tuple[Coordinates, Coordinates]:
    """Two charts of a manifold whose points have `size` ambient coordinates. Raises NotApplicable."""
    if manifold.is_linear:
        plain = Coordinates("cartesian", lambda q: q, np.zeros(size), 1.0)
        return plain, Coordinates("bent", bent, np.zeros(size), 1.0)
    if isinstance(manifold, ProductOfSpheres):
        count, dim = manifold.count, manifold.n - 1
        found = [
            Coordinates(f"stereographic, pole {turn}", partial(_rows, turn, count, dim), np.zeros(count * dim), 0.6)
            for turn in (0, 1)
        ]
        return found[0], found[1]
    if isinstance(manifold, Stiefel) and (manifold.n, manifold.p) == (3, 2):
        bases = np.eye(3)[:, :2], np.array([[0.6, 0.0], [0.8, 0.0], [0.0, 1.0]])
        found = [Coordinates(f"Cayley {i}", partial(_cayley, base), np.zeros(3), 0.2) for i, base in enumerate(bases)]
        return found[0], found[1]
    charts = [Coordinates(c.name, c.embed, np.asarray(c.centre), c.spread) for c in charts_of(manifold)]
    if len(charts) < 2:
        raise OutOfReach(f"two charts of {manifold.name} are not at hand")
    return charts[0], charts[1]


def invert(chart: Coordinates, points: np.ndarray) -> np.ndarray:
    """Coordinates (M, m) of points (M, n), by Newton's method from the centre of the chart."""
    value = jax.jit(jax.vmap(lambda q: (chart.embed(q), jax.jacfwd(chart.embed)(q))))
    q = np.broadcast_to(chart.centre, (len(points), len(chart.centre))).astype(float)
    for _ in range(60):
        x, M = map(np.asarray, value(jnp.asarray(q)))
        change = np.stack([np.linalg.lstsq(m, d, rcond=None)[0] for m, d in zip(M, points - x, strict=True)])
        # damped where the points are far
        q = q + change * np.minimum(1.0, 0.5 / np.maximum(np.abs(change).max(axis=1, keepdims=True), 1e-300))
    x = np.asarray(value(jnp.asarray(q))[0])
    if not np.abs(x - points).max() < 1e-12 * (1 + np.abs(points).max()):
        raise NotApplicable(f"the points are not in the chart {chart.name}")
    return q


def chart_velocity(
    chart: Coordinates,
    inverse: Callable[[jax.Array], jax.Array],
    potential: Callable[[jax.Array], jax.Array],
    kernel: Callable[[jax.Array, jax.Array], jax.Array],
    q: jax.Array,
    weights: jax.Array,
) -> jax.Array:
    """The velocity in ambient coordinates (M, n), from nothing but the definition in a chart.

        f(y) = sum_i w_i (1 / p) div(p G^-1 grad_x k)(q_i, y),   X = G^-1 grad f,   dx/dq X

    Args:
        chart: the coordinates.
        inverse: q -> G^-1.
        potential: q -> -log p, p the density of the coordinates with respect to Lebesgue measure.
        kernel: of two points in ambient coordinates.
        q: (M, m).
        weights: (M,).
    """

    def operator(x, y):
        flux = lambda at: inverse(at) @ jax.grad(lambda z: kernel(chart.embed(z), chart.embed(y)))(at)
        return jnp.trace(jax.jacfwd(flux)(x)) - jax.grad(potential)(x) @ flux(x)

    f = lambda y: weights @ jax.vmap(operator, (0, None))(q, y)
    return jax.vmap(lambda y: jax.jacfwd(chart.embed)(y) @ (inverse(y) @ jax.grad(f)(y)))(q)


def metric_defect(inverse: Callable[[jax.Array], jax.Array], q: np.ndarray) -> float:
    """Distance of G^-1 from a symmetric positive semidefinite matrix at places q (k, m), relative to its size."""
    A = np.asarray(jax.jit(jax.vmap(inverse))(jnp.asarray(q)))
    turned, size = A.swapaxes(1, 2), np.abs(A).max(axis=(1, 2))
    if not (np.isfinite(A).all() and size.all()):
        return np.inf
    skew = np.abs(A - turned).max(axis=(1, 2)) / size
    negative = -np.linalg.eigvalsh((A + turned) / 2)[:, 0] / size
    return float(np.maximum(skew, negative).max(initial=0.0))


@statement(
    tier="law",
    equation="X = G^-1 grad f, f = sum_i w_i (1 / p) div(p G^-1 grad k), the same in every chart",
    targets=everywhere,
    cost=2.5,
    decides="law",
)
def coordinate_invariance(case: Case, claim: RiemannianVelocity, width: KernelWidth | None) -> Finding:
    """The velocity of the code is that of its definition in two charts, pushed forward; particles of unequal weights.

    In each chart the metric, the density and the kernel are those of the chart, and the formula for the velocity is the
    divergence form, by automatic differentiation: no closed form of the code enters.

    The declared metric has to be one, at places around the particles: the formula, its fixed point and the fall of the
    divergence hold for every symmetric G^-1, and only a positive one is that of a manifold, where df(X) = |grad f|^2
    is positive (liu2018riemannian, section 4: X is a gradient on a Riemannian manifold).
    """
    metric = claim.inverse_metric
    charts = coordinates_of(case.target.manifold, case.target.size)
    generator = np.random.default_rng(case.target.size)
    first = charts[0]
    q = first.centre + first.spread * generator.uniform(-1, 1, (len(WEIGHTS), len(first.centre)))
    points = np.asarray(jax.vmap(first.embed)(jnp.asarray(q)))
    kernel, weights = kernel_of(claim, width, points), jnp.asarray(WEIGHTS)
    slopes = gradients_of(case.subject.row, case.target)(points)
    found = field(case.subject, case.target)(points, slopes, WEIGHTS)
    gaps, defect = {}, 0.0
    if metric is not None:
        places = first.centre + 2 * first.spread * generator.uniform(-1, 1, (LOOKS, len(first.centre)))
        defect = metric_defect(lambda at: dense(metric(first.embed(at))), places)
    for chart in charts:
        jacobian = jax.jacfwd(chart.embed)

        def inverse(at, chart=chart, jacobian=jacobian):
            M = jacobian(at)
            if metric is None:
                return jnp.linalg.inv(M.T @ M)
            back = jnp.linalg.inv(M)
            return back @ dense(metric(chart.embed(at))) @ back.T

        def potential(at, chart=chart, jacobian=jacobian):
            M = jacobian(at)
            return case.target.flat_potential(chart.embed(at)) - 0.5 * jnp.linalg.slogdet(M.T @ M)[1]

        at = jnp.asarray(invert(chart, points))
        expected = np.asarray(jax.jit(partial(chart_velocity, chart, inverse, potential, kernel))(at, weights))
        gaps[chart.name] = float(np.abs(found - expected).max() / np.abs(expected).max())
    worst = max(gaps, key=lambda name: gaps[name])
    allowance = 1e5 * EPS
    reason = f"largest difference from the velocity in the chart {worst}: {gaps[worst]:.3g} of its size"
    if defect > allowance:
        reason = f"G^-1 is no metric: symmetry or positive eigenvalues are missed by {defect:.3g} of its size"
    return Finding(
        effect=max(gaps[worst], defect),
        tolerance=Tolerance(allowance, "round-off of third derivatives"),
        reason=reason,
        statistic="velocity less that in a chart",
        unit="relative",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-8,
        measurements={"gaps": gaps, "defect of the metric": defect},
    )
