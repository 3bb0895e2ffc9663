"""The Bingham law on a sphere of any dimension."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.numerics.quadrature import Rule, coordinate, legendre_rule, product, until_accepted
from sgmcmc_verification.targets.numerics.spherical import HeightLaw, circle_rule, sphere_rule, unit_rows
from sgmcmc_verification.targets.target import Cdf, Moment, Target

NODES = 160
"""Nodes of the contour integrals."""


def bingham(matrix: Any, name: str) -> Target:
    """Bingham(M) on S^(n-1), density proportional to exp(-x^T M x) with respect to Hausdorff (surface) measure.

        U(x) = x^T M x,  M symmetric; adding a multiple of the identity to M changes nothing

    The law is antipodally symmetric: odd moments are zero.

    Draws by rejection from an angular central Gaussian law: with lambda the eigenvalues of M less the smallest, b > 0
    the root of sum_i 1 / (b + 2 lambda_i) = 1 and y ~ N(0, (I + 2 (M - lambda_min) / b)^-1), x = y / |y| is accepted
    with probability exp(g(u) - g((n - b) / 2)), g(u) = -u + (n / 2) log(1 + 2 u / b), u = sum_i lambda_i x_i^2.

    Normaliser and moments are inverse Laplace transforms, from int exp(-s |y|^2 - y^T M y) dy over R^n: on a path from
    the left half plane around the eigenvalues -lambda_i and back,

        int_S exp(-x^T M x) dS = pi^(n/2) / (pi i) int exp(s) prod_i (s + lambda_i)^(-1/2) ds
        E x_i^2: a factor 1 / (2 (s + lambda_i)) in the integrand;  E x_i^4: 3 / (4 (s + lambda_i)^2)  (eigenbasis)

    by the trapezoidal rule on a parabola through the saddle b / 2, which converges geometrically; the error bound is
    the change from two thirds of the nodes. The law of an eigencoordinate t has the density
    (1 - t^2)^((n-3)/2) exp(-lambda t^2) times such an integral over S^(n-2).

    Source: kent2018new (rejection); mardia2000directional, section 9.4 (the law); contour integrals derived here.

    Args:
        matrix: M (n, n), symmetric, n >= 2.
        name: name of the target.

    Raises:
        ValueError: if the matrix is not square, symmetric and finite, or is a multiple of the identity.
    """
    matrix = np.array(matrix, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2 or not np.all(np.isfinite(matrix)):
        raise ValueError(f"matrix: must be a finite (n, n) array with n >= 2, got shape {matrix.shape}")
    if np.max(np.abs(matrix - matrix.T)) > 8 * np.finfo(np.float64).eps * np.max(np.abs(matrix)):
        raise ValueError(f"matrix: must be symmetric, got {matrix}")
    values, axes = np.linalg.eigh(matrix)
    rates = values - values[0]
    if not rates.any():
        raise ValueError(
            "matrix: a multiple of the identity is the uniform law; use sgmcmc_verification.targets.directional.uniform"
        )
    n = len(rates)
    root = _envelope_root(rates)

    def potential(x):
        return x @ jnp.asarray(matrix, x.dtype) @ x

    moments = {}
    square, square_error = eigen_squares(rates)
    fourth, fourth_error = eigen_fourths(rates)
    second = axes * square @ axes.T
    shown = range(n) if n <= 4 else (0, n - 1)
    for i in shown:
        for j in shown:
            if j <= i:
                moments[f"theta[{j}]*theta[{i}]"] = Moment(product(j, i), float(second[j, i]), square_error)
    for i in (0, n - 1):
        axis = _along(axes[:, i])
        moments[f"axis[{i}]^2"] = Moment(lambda x, axis=axis: axis(x) ** 2, float(square[i]), square_error)
        moments[f"axis[{i}]^4"] = Moment(lambda x, axis=axis: axis(x) ** 4, float(fourth[i]), fourth_error)
    moments["theta[0]"] = Moment(coordinate(0), 0.0)
    example = unit_rows(jnp.asarray((axes[:, :1] + 0.4 * axes[:, -1:]).T))[0]
    return Target(
        name=name,
        manifold=Sphere(n),
        example=example,
        potential=potential,
        sample=lambda key, m: _sample(key, m, jnp.asarray(rates), jnp.asarray(axes), root),
        moments=moments,
        cdfs={f"axis[{i}]": Cdf(_along(axes[:, i]), _axis_law(rates, i).cdf) for i in (0, n - 1)},
        quadrature=(lambda m: _rule(rates, axes, m)) if n <= 3 else None,
        # twice the largest eigenvalue of M is the Hessian in R^n; that on the sphere is at most the spread
        curvature=float(2 * max(values[-1], rates[-1])),
        tempered=lambda temperature: bingham(matrix / temperature, f"{name} at temperature {temperature:g}"),
        separated=True,
        source="kent2018new; normaliser and moments by contour integrals derived here",
    )


def bingham_s2() -> Target:
    """S^2 with eigenvalues 0, 2.5 and 6 in generic axes."""
    return bingham(_rotated([0.0, 2.5, 6.0]), "bingham-s2")


def bingham_s9() -> Target:
    """S^9 with eigenvalues from 0 to 18."""
    return bingham(_rotated(2.0 * np.arange(10)), "bingham-s9")


def eigen_squares(rates: np.ndarray) -> tuple[np.ndarray, float]:
    """E x_i^2 (n,) in the eigenbasis, and an error bound."""
    rates = np.asarray(rates, np.float64)

    def ratio(count):
        weights, resolvent = _contour(rates, count)
        return np.real(weights @ resolvent / 2) / np.real(weights.sum())

    return _refined(ratio)


def log_normaliser(rates: np.ndarray) -> float:
    """log of the integral of exp(-sum_i lambda_i x_i^2) over S^(n-1)."""
    rates = np.asarray(rates, np.float64)
    weights, _ = _contour(rates, NODES)
    return len(rates) / 2 * math.log(math.pi) + math.log(2 * float(np.real(weights.sum())))


def eigen_fourths(rates: np.ndarray) -> tuple[np.ndarray, float]:
    """E x_i^4 (n,) in the eigenbasis, and an error bound."""

    def ratio(count):
        weights, resolvent = _contour(rates, count)
        return np.real(weights @ (0.75 * resolvent**2)) / np.real(weights.sum())

    return _refined(ratio)


def _refined(ratio) -> tuple[np.ndarray, float]:
    fine, coarse = ratio(3 * NODES // 2), ratio(NODES)
    return fine, float(np.max(np.abs(fine - coarse))) + 1e-14


def _contour(rates: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights (..., count) of (1 / 2 pi i) int exp(s) prod (s + lambda)^(-1/2) ds and 1 / (s + lambda) (..., count, n).

    The path is the parabola s = c (1 + i u)^2, c the saddle, u from -reach to reach; batches of `rates` (..., n) share
    c, which may be any positive number.
    """
    n = rates.shape[-1]
    c = _envelope_root(rates.reshape(-1, n).min(axis=0)) / 2
    reach = math.sqrt(1 + 40 / c)  # exp(Re s) = exp(c (1 - u^2)) falls by exp(-40)
    u = reach * (2 * (np.arange(count) + 0.5) / count - 1)
    s = c * (1 + 1j * u) ** 2
    step = 2 * reach / count
    shifted = s[:, None] + rates[..., None, :]
    # (s + lambda)^(-1/2) with its cut on the negative axis, factor by factor: the product stays on one branch
    values = np.exp(s) * np.prod(1 / np.sqrt(shifted), axis=-1)
    return values * (2j * c * (1 + 1j * u)) * step / (2j * math.pi), 1 / shifted


def _envelope_root(rates: np.ndarray) -> float:
    """b > 0 with sum_i 1 / (b + 2 lambda_i) = 1; the smallest rate is 0, so b lies between 1 and n."""
    n = len(rates)
    if not rates.any():
        return float(n)
    excess = lambda b: np.sum(1 / (b + 2 * rates)) - 1
    return float(scipy.optimize.root_scalar(excess, bracket=(0.5, n), xtol=1e-15).root)


@partial(jax.jit, static_argnums=1)
def _sample(key, m, rates, axes, b):
    n = len(rates)
    scales = 1 / jnp.sqrt(1 + 2 * rates / b)
    g = lambda u: -u + n / 2 * jnp.log1p(2 * u / b)

    def attempt(key):
        draw_key, accept_key = jax.random.split(key)
        x = unit_rows(scales * jax.random.normal(draw_key, (m, n), rates.dtype))
        level = g(x**2 @ rates) - g((n - b) / 2)
        return x, jnp.log(jax.random.uniform(accept_key, (m,), rates.dtype)) < level

    return unit_rows(until_accepted(key, attempt) @ axes.T)


def _along(axis: np.ndarray):
    return lambda x: x @ jnp.asarray(axis, x.dtype)


def _axis_law(rates: np.ndarray, index: int) -> HeightLaw:
    """The law of one eigencoordinate."""
    others = np.delete(rates, index)
    least = others.min()
    others = others - least

    def log_mean(cosine, sine):
        weights, _ = _contour(sine[:, None] ** 2 * others, NODES)
        return -rates[index] * cosine**2 - least * sine**2 + np.log(np.real(weights.sum(axis=-1)))

    return HeightLaw(len(rates), log_mean)


def _rule(rates: np.ndarray, axes: np.ndarray, m: int) -> Rule:
    """Equidistant angles on S^1, Gauss-Legendre heights times equidistant angles on S^2: geometric convergence."""
    if len(rates) == 2:
        points, weights = circle_rule(m)[1], np.ones(m)
    else:
        points, weights = sphere_rule(*legendre_rule(-1.0, 1.0, 1, m), np.eye(3))
    weights = weights * np.exp(-(points**2) @ rates)
    return points @ axes.T, weights / weights.sum()


def _rotated(values: Any) -> np.ndarray:
    """A symmetric matrix with these eigenvalues and fixed generic axes."""
    n = len(values)
    axes, _ = np.linalg.qr(np.cos(np.outer(np.arange(n) + 0.4, 1.3 * np.arange(n) + 0.7)))
    matrix = axes * np.asarray(values) @ axes.T
    return (matrix + matrix.T) / 2


ENTRIES = (
    TargetRow("bingham-s2", bingham_s2),
    TargetRow("bingham-s9", bingham_s9),
)
