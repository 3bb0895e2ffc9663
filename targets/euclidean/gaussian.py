"""Gaussian laws in any dimension, on arrays and on pytrees."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax.flatten_util import ravel_pytree
from scipy import special

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.numerics.quadrature import tensor_rule
from sgmcmc_verification.targets.target import Cdf, GaussianLaw, Moment, Target

MAX_QUADRATURE_DIM = 3
"""Tensor rules are given up to this dimension."""
LISTED = 10
"""Coordinates with moments and marginals of their own."""


def gaussian(mean: Any, covariance: Any, name: str, structure: Any = None) -> Target:
    """N(mean, covariance).

        U(x) = (x - m)^T P (x - m) / 2,  P = covariance^-1

    Source: closed form.

    Args:
        mean: (d,).
        covariance: (d, d), symmetric positive definite.
        name: name of the target.
        structure: a pytree of floats with d numbers that positions look like; None for an array (d,).

    Raises:
        ValueError: if a shape does not fit, an entry is not finite, or the covariance is not symmetric positive
            definite.
    """
    mean, covariance = np.array(mean, np.float64), np.array(covariance, np.float64)
    require_gaussian(mean, covariance)
    dim = mean.size
    structure = np.zeros(dim) if structure is None else structure
    size = sum(np.size(leaf) for leaf in jax.tree.leaves(structure))
    if size != dim:
        raise ValueError(f"structure: needs as many numbers as the mean has ({dim}), got {size}")
    dtype = jnp.result_type(float)
    scales = np.sqrt(np.diag(covariance))
    # half a standard deviation off the mean: at the mean the gradient vanishes, which would hide mistakes
    example = jax.device_put(_like(structure, mean + 0.5 * scales * (-1.0) ** np.arange(dim), dtype))
    root = np.linalg.cholesky(covariance)
    precision = np.linalg.inv(covariance)
    precision = (precision + precision.T) / 2

    def centred(position):
        flat = ravel_pytree(position)[0]
        return flat - jnp.asarray(mean, flat.dtype)

    def potential(position):
        d = centred(position)
        return d @ jnp.asarray(precision, d.dtype) @ d / 2

    @functools.partial(jax.jit, static_argnums=1)
    def sample(key, n):
        normals = jax.random.normal(key, (n, dim), dtype)
        return _like(structure, jnp.asarray(mean, dtype) + normals @ jnp.asarray(root.T, dtype), dtype)

    def squared_distance(position):
        return 2 * potential(position)

    def quadrature(n):
        points, weights = tensor_rule(dim, n)
        return mean + points @ root.T, weights

    cdfs = {f"theta[{i}]": Cdf(_flat(i), _normal_cdf(mean[i], scales[i])) for i in range(min(dim, LISTED))}
    cdfs["squared distance"] = Cdf(squared_distance, lambda x: scipy.stats.chi2.cdf(np.asarray(x), dim))
    return Target(
        name=name,
        manifold=Euclidean(dim),
        example=example,
        potential=potential,
        sample=sample,
        moments=_moments(mean[:LISTED], covariance[:LISTED, :LISTED]),
        cdfs=cdfs,
        quadrature=quadrature if dim <= MAX_QUADRATURE_DIM else None,
        interval=(float(mean[0] - 8 * scales[0]), float(mean[0] + 8 * scales[0])) if dim == 1 else None,
        gaussian=GaussianLaw(mean, precision),
        curvature=float(np.linalg.eigvalsh(precision)[-1]),
        source="closed form; sampling by the Cholesky factor of the covariance",
    )


def _like(structure: Any, flat: Any, dtype: Any) -> Any:
    """Arrays (..., d) in ravel order as a pytree like `structure`, whose leaves have the same leading axes."""
    leaves, tree = jax.tree.flatten(structure)
    ends = np.cumsum([0, *map(np.size, leaves)])
    shape = lambda leaf: (*flat.shape[:-1], *np.shape(leaf))
    parts = [flat[..., a:b].reshape(shape(leaf)) for leaf, a, b in zip(leaves, ends, ends[1:], strict=False)]
    return jax.tree.unflatten(tree, [part.astype(dtype) for part in parts])


def standard() -> Target:
    """N(0, 1) in one dimension."""
    return gaussian([0.0], [[1.0]], "gaussian-standard")


def scaled() -> Target:
    """Mean 0.7, precision 2.5: a mean or a scale that is taken for 0 or 1 shows."""
    return gaussian([0.7], [[1 / 2.5]], "gaussian-1d-scaled")


def anisotropic() -> Target:
    """Ten independent coordinates with precisions 1 to 100, evenly spaced in the logarithm."""
    return gaussian(np.zeros(10), np.diag(np.logspace(0, -2, 10)), "gaussian-anisotropic")


def correlated_2d() -> Target:
    """Correlation 0.9, standard deviations 1 and 0.6, mean (0.5, -1)."""
    return gaussian([0.5, -1.0], _covariance([1.0, 0.6], {(0, 1): 0.9}), "gaussian-correlated-2d")


def correlated_3d() -> Target:
    """Three unequal correlations of both signs, standard deviations 1, 0.5 and 1.5, mean (-0.3, 0.8, 1.2)."""
    return _of_three("gaussian-correlated-3d")


def numbers() -> Target:
    """The law of `correlated_3d` in three leaves, each of which is a number."""
    structure = {"log_scale": np.zeros(()), "offset": np.zeros(()), "slope": np.zeros(())}
    return _of_three("gaussian-numbers", structure)


def _of_three(name: str, structure: Any = None) -> Target:
    covariance = _covariance([1.0, 0.5, 1.5], {(0, 1): 0.6, (0, 2): -0.4, (1, 2): 0.2})
    return gaussian([-0.3, 0.8, 1.2], covariance, name, structure)


def pytree() -> Target:
    """Five coordinates in three leaves, `bias` (), `left` (2,) and `right` (2,), all of them correlated.

    Two leaves have equal shapes, so that one key used for both of them gives a correlation that the law has not.
    """
    structure = {"left": np.zeros(2), "right": np.zeros(2), "bias": np.zeros(())}
    # ravel order is alphabetical: bias, left, right
    correlations = {(0, 1): 0.3, (0, 4): -0.4, (1, 2): -0.2, (1, 3): 0.5, (2, 3): 0.1, (2, 4): -0.6, (3, 4): 0.2}
    covariance = _covariance([0.8, 1.0, 0.5, 1.3, 0.7], correlations)
    return gaussian([0.4, -0.5, 1.0, 0.2, -0.9], covariance, "gaussian-pytree", structure)


def rotated(name: str, dim: int, largest: float, structure: Any = None) -> Target:
    """Precisions from 1 to `largest`, evenly spaced in the logarithm, along the vectors of a cosine transform.

    Every coordinate is correlated with every other, and no two coordinates have the same law.
    """
    vectors = np.asarray(scipy.fft.idct(np.eye(dim), norm="ortho"))
    covariance = vectors * np.logspace(0, -np.log10(largest), dim) @ vectors.T
    return gaussian(0.3 * np.cos(1.0 + np.arange(dim)), (covariance + covariance.T) / 2, name, structure)


def network() -> Target:
    """A small network of 41 coordinates in ten leaves, as libraries name and shape them.

    Two layers of equal shape, one with many inputs, a convolution (four axes), scales of a norm, an array of three axes
    and a number alone: samplers tell leaves apart by their names, by the number of their axes and by their size.
    """
    layer = {"w": np.zeros((2, 2)), "b": np.zeros(2)}
    structure = {
        "conv": {"kernel": np.zeros((2, 1, 2, 1)), "bias": np.zeros(1)},
        "hidden": layer,
        "log_sigma": np.zeros(()),
        "norm": {"scale": np.zeros(2)},
        "out": layer,
        "series": np.zeros((2, 1, 2)),
        "wide": np.zeros((17, 1)),
    }
    return rotated("gaussian-network", 41, 10.0, structure)


def matrix() -> Target:
    """One array of four rows and three columns."""
    return rotated("gaussian-matrix", 12, 6.0, np.zeros((4, 3)))


def _covariance(scales: list[float], correlations: dict[tuple[int, int], float]) -> np.ndarray:
    matrix = np.eye(len(scales))
    for (i, j), value in correlations.items():
        matrix[i, j] = matrix[j, i] = value
    return matrix * np.outer(scales, scales)


def require_gaussian(mean: np.ndarray, covariance: np.ndarray) -> None:
    """Raise ValueError unless they are a finite vector and a symmetric positive definite matrix of its size."""
    if mean.ndim != 1 or mean.size == 0 or not np.all(np.isfinite(mean)):
        raise ValueError(f"mean: must be a vector of finite numbers, got shape {mean.shape} and {mean}")
    if covariance.shape != (mean.size, mean.size) or not np.all(np.isfinite(covariance)):
        raise ValueError(f"covariance: must be a finite {mean.size} x {mean.size} matrix, got {covariance}")
    asymmetry = np.max(np.abs(covariance - covariance.T))
    if asymmetry > 8 * np.finfo(np.float64).eps * np.max(np.abs(covariance)):
        raise ValueError(f"covariance: must be symmetric, got {covariance}")
    smallest = np.linalg.eigvalsh(covariance)[0]
    if smallest <= 0:
        raise ValueError(f"covariance: must be positive definite, got smallest eigenvalue {smallest:.3g}")


def _flat(*indices: int, exponent: int = 1):
    """Statistic: the product of some coordinates (ravel order), to a power."""

    def statistic(position):
        flat = ravel_pytree(position)[0]
        value = flat[indices[0]]
        for i in indices[1:]:
            value = value * flat[i]
        return value**exponent

    return statistic


def _normal_cdf(mean: float, scale: float):
    return lambda x: special.ndtr((np.asarray(x) - mean) / scale)


def _moments(mean: np.ndarray, covariance: np.ndarray) -> dict[str, Moment]:
    """Raw first, second and fourth moments of every coordinate, and all cross products."""
    moments = {}
    for i, (m, s) in enumerate(zip(mean.tolist(), np.diag(covariance).tolist(), strict=True)):
        moments[f"theta[{i}]"] = Moment(_flat(i), m)
        moments[f"theta[{i}]^2"] = Moment(_flat(i, exponent=2), m**2 + s)
        moments[f"theta[{i}]^4"] = Moment(_flat(i, exponent=4), m**4 + 6 * m**2 * s + 3 * s**2)
        for j in range(i):
            value = float(mean[i] * mean[j] + covariance[i, j])
            moments[f"theta[{j}]*theta[{i}]"] = Moment(_flat(j, i), value)
    return moments


ENTRIES = (
    TargetRow("gaussian-standard", standard),
    TargetRow("gaussian-1d-scaled", scaled),
    TargetRow("gaussian-anisotropic", anisotropic),
    TargetRow("gaussian-correlated-2d", correlated_2d),
    TargetRow("gaussian-correlated-3d", correlated_3d),
    TargetRow("gaussian-numbers", numbers),
    TargetRow("gaussian-pytree", pytree),
    TargetRow("gaussian-50d", lambda: rotated("gaussian-50d", 50, 20.0)),
    TargetRow("gaussian-network", network),
    TargetRow("gaussian-matrix", matrix),
)
