"""The matrix Langevin (matrix von Mises-Fisher) law on the Stiefel manifold."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.manifolds.stiefel import Stiefel
from sgmcmc_verification.targets.numerics.bessel import log_mean_exponential, mean_resultant
from sgmcmc_verification.targets.numerics.quadrature import coordinate, legendre_rule, until_accepted
from sgmcmc_verification.targets.numerics.spherical import HeightLaw, frame_rule, sample_heights
from sgmcmc_verification.targets.target import Cdf, Moment, Target


def matrix_langevin(matrix: Any, name: str) -> Target:
    """ML(F) on V_p(R^n), density proportional to etr(F^T X) with respect to Hausdorff measure.

        U(X) = -tr(F^T X)

    With F = A diag(d) B^T (singular values d) and Y = A^T X B, the law of Y is ML(diag(d)): E X = A diag(m) B^T.

    Draws: the columns y_j of X B one after the other from vMF laws on the unit sphere orthogonal to the earlier ones,
    of concentration k_j = |P_j f_j| (f_j column j of F B, P_j that projection), accepted with probability
    prod_j G_(n-j+1)(k_j) / G_(n-j+1)(|f_j|), j = 1 .. p, G_m(k) the mean of exp(k x_1) over S^(m-1), which increases.

    Moments and the law of one entry of Y for p = 2: given the first column a, the second is von Mises-Fisher on a
    sphere of dimension n - 2, with the factor G_(n-1)(d_2 sqrt(1 - a_2^2)); what is left is an integral over a_1 and
    a_2, by Gauss-Legendre panels in angles, with the change from fewer panels as the error bound.

    Source: hoff2009simulation, section 3.1 (draws); chikuse2003statistics, section 2.3.1 (the law); quadrature derived
    here.

    Args:
        matrix: F (n, p), 2 <= p < n, of full rank with distinct singular values.
        name: name of the target.

    Raises:
        ValueError: if F is out of range. For p = 1 see `targets.directional.von_mises_fisher`.
    """
    matrix = np.array(matrix, np.float64)
    if matrix.ndim != 2 or not 2 <= matrix.shape[1] < matrix.shape[0] or not np.all(np.isfinite(matrix)):
        raise ValueError(f"matrix: must be a finite (n, p) array with 2 <= p < n, got shape {matrix.shape}")
    n, p = matrix.shape
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    if values[-1] <= 0 or np.min(-np.diff(values)) <= 1e-8 * values[0]:
        raise ValueError(f"matrix: must have full rank and distinct singular values, got {values}")

    def potential(x):
        return -jnp.sum(jnp.asarray(matrix, x.dtype) * x)

    def inner(i, j):
        """Statistic: entry (i, j) of Y."""
        return lambda x: jnp.asarray(left[:, i], x.dtype) @ x @ jnp.asarray(right[j], x.dtype)

    def quadrature(m):
        points, weights = frame_rule(m)
        weights = weights * np.exp(points @ matrix.ravel() - values.sum())
        return points, weights / weights.sum()

    moments, cdfs = {}, {}
    if p == 2:
        moments = _moments(n, values, inner)
        means = np.array([moments["inner[0,0]"].value, moments["inner[1,1]"].value])
        error = moments["inner[0,0]"].error + moments["inner[1,1]"].error
        for i, j in ((0, 0), (n - 1, 1)):
            value = float(left[i] * means @ right[:, j])
            moments[f"theta[{i},{j}]"] = Moment(coordinate((i, j)), value, error)
        cdfs["inner[0,0]"] = Cdf(inner(0, 0), _entry_law(n, values[0], values[1]).cdf)
        cdfs["inner[1,1]"] = Cdf(inner(1, 1), _entry_law(n, values[1], values[0]).cdf)
    columns = matrix @ right.T
    return Target(
        name=name,
        manifold=Stiefel(n, p),
        example=_example(left, right),
        potential=potential,
        sample=lambda key, m: _sample(key, m, jnp.asarray(columns)) @ jnp.asarray(right),
        moments=moments,
        cdfs=cdfs,
        quadrature=quadrature if (n, p) == (3, 2) else None,
        # along a geodesic, X'' = -X V^T V with |V|^2 = 1
        curvature=float(values.max()),
        tempered=lambda temperature: matrix_langevin(matrix / temperature, f"{name} at temperature {temperature:g}"),
        source="hoff2009simulation (draws); quadrature in two angles",
    )


def langevin_3_2() -> Target:
    """V_2(R^3) with singular values 3 and 1.5 in generic frames."""
    return matrix_langevin(_generic(3, [3.0, 1.5]), "matrix-langevin-3-2")


@partial(jax.jit, static_argnums=1)
def _sample(key, count, columns):
    """Draws (count, n, p) of ML(columns) for orthogonal columns (n, p)."""
    n, p = columns.shape
    dtype = columns.dtype
    lengths = jnp.linalg.norm(columns, axis=0)

    def attempt(key):
        key, accept_key = jax.random.split(key)
        level = jnp.zeros(count, dtype)
        frames = jnp.zeros((count, n, 0), dtype)

        def orthogonal(vectors):
            for _ in range(2):  # twice: orthogonal to round-off
                vectors = vectors - jnp.einsum("cnk,cmk,cm->cn", frames, frames, vectors)
            return vectors

        for j in range(p):
            key, height_key, tangent_key = jax.random.split(key, 3)
            axis = orthogonal(jnp.broadcast_to(columns[:, j], (count, n)))
            concentration = jnp.linalg.norm(axis, axis=1)
            axis = axis / concentration[:, None]
            heights, radii = sample_heights(height_key, n - j, concentration)
            normals = orthogonal(jax.random.normal(tangent_key, (count, n), dtype))
            for _ in range(2):
                normals = normals - jnp.sum(normals * axis, axis=1, keepdims=True) * axis
                normals = normals / jnp.linalg.norm(normals, axis=1, keepdims=True)
            column = orthogonal(heights[:, None] * axis + radii[:, None] * normals)
            column = column / jnp.linalg.norm(column, axis=1, keepdims=True)
            frames = jnp.concatenate([frames, column[:, :, None]], axis=2)
            if j:  # the first column is not restricted
                level += log_mean_exponential(n - j, concentration) - log_mean_exponential(n - j, lengths[j])
        accepted = jnp.log(jax.random.uniform(accept_key, (count,), dtype)) < level
        return frames.reshape(count, n * p), accepted

    return until_accepted(key, attempt).reshape(count, n, p)


def _moments(n: int, values: np.ndarray, inner) -> dict[str, Moment]:
    """Moments of Y = A^T X B for p = 2."""
    first, second = values

    def host(panels):
        a1, a2, weights = _angles(n, first, panels)
        radius = np.sqrt(1 - a2**2)
        kappa = second * radius
        growth = log_mean_exponential(n - 1, kappa)
        weights = weights * np.exp(growth - growth.max())
        weights = weights / weights.sum()
        ratio = mean_resultant(n - 1, kappa)
        # y_22 = w radius, w the height of the second column along the projection of the second axis
        square = 1 - (n - 2) * np.where(kappa > 0, ratio / np.where(kappa > 0, kappa, 1), 1 / (n - 1))
        return {
            (0, 0): (weights @ a1, weights @ a1**2),
            (1, 0): (weights @ a2, weights @ a2**2),
            (1, 1): (weights @ (radius * ratio), weights @ (radius**2 * square)),
            "product": weights @ (a1 * radius * ratio),
        }

    fine, coarse = host(12), host(9)
    moments = {}
    for i, j in ((0, 0), (1, 1), (1, 0)):
        for power, (value, other) in enumerate(zip(fine[i, j], coarse[i, j], strict=True), 1):
            statistic = lambda x, i=i, j=j, power=power: inner(i, j)(x) ** power
            label = f"inner[{i},{j}]" + ("^2" if power == 2 else "")
            moments[label] = Moment(statistic, float(value), float(abs(value - other)) + 1e-14)
    both = lambda x: inner(0, 0)(x) * inner(1, 1)(x)
    error = float(abs(fine["product"] - coarse["product"])) + 1e-14
    moments["inner[0,0]*inner[1,1]"] = Moment(both, float(fine["product"]), error)
    return moments


def _angles(n: int, slope: float, panels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a_1 = cos t, a_2 = sin t cos s of a point of S^(n-1) and weights of exp(slope a_1) there, flat arrays."""
    t, t_weights = legendre_rule(0.0, math.pi, panels)
    s, s_weights = legendre_rule(0.0, math.pi, panels)
    t_weights = t_weights * np.exp(special.xlogy(n - 2, np.sin(t)) + slope * (np.cos(t) - 1))
    s_weights = s_weights * np.exp(special.xlogy(n - 3, np.sin(s)))
    a1 = np.repeat(np.cos(t), len(s))
    a2 = np.outer(np.sin(t), np.cos(s)).ravel()
    return a1, a2, np.outer(t_weights, s_weights).ravel()


def _entry_law(n: int, slope: float, other: float) -> HeightLaw:
    """The law of an entry a of the diagonal of Y; its column is a along its axis, the other column as in `_moments`."""
    s, weights = legendre_rule(0.0, math.pi, 12)
    weights = weights * np.exp(special.xlogy(n - 3, np.sin(s)))

    def log_mean(cosine, sine):
        across = np.outer(sine, np.cos(s))
        growth = log_mean_exponential(n - 1, other * np.sqrt(1 - across**2))
        return slope * cosine + np.log(np.exp(growth) @ weights)

    return HeightLaw(n, log_mean)


def _example(left: np.ndarray, right: np.ndarray) -> jax.Array:
    """The mode A B^T turned a little: a frame that is not a stationary point."""
    n = len(left)
    turn = np.cos(np.outer(np.arange(n), np.arange(n) + 1.0))
    q, r = np.linalg.qr((np.eye(n) + 0.2 * (turn - turn.T)) @ left)
    return jnp.asarray(q * np.sign(np.diagonal(r)) @ right)


def _generic(n: int, values: Any) -> np.ndarray:
    """A matrix (n, p) with these singular values and fixed generic frames."""
    p = len(values)
    left, _ = np.linalg.qr(np.cos(np.outer(np.arange(n) + 0.4, 1.3 * np.arange(p) + 0.7)))
    right, _ = np.linalg.qr(np.cos(np.outer(np.arange(p) + 0.9, 1.1 * np.arange(p) + 0.2)))
    return left * np.asarray(values) @ right.T


ENTRIES = (TargetRow("matrix-langevin-3-2", langevin_3_2),)
