"""Densities for people who have none of this suite's code: in words, in NumPy and in Stan.

All constants and data are in `data.json`, in Stan's own format for data; NumPy reads the same file.
"""

from typing import Any, NamedTuple

import numpy as np

from sgmcmc_verification.targets.euclidean import enumerable_data as data
from sgmcmc_verification.targets.target import Target


class Density(NamedTuple):
    """A density exp(-U(x) / T) on R^d, as others read it.

    Attributes:
        formula: of U, up to a constant.
        words: of the same, with the names of the constants.
        numpy: body of a function of x (d,) that returns U, where `c` has the constants as arrays.
        stan: declarations of the constants, and the expression of U for `vector[d] x`.
        constants: target -> name -> number or nested lists.
        rows: names of those constants that are data, one row a datum.
    """

    formula: str
    words: str
    numpy: str
    stan: tuple[str, str]
    constants: Any
    rows: tuple[str, ...] = ()


def _gaussian(target: Target) -> dict[str, Any]:
    assert target.gaussian is not None
    return {"mean": target.gaussian.mean.tolist(), "precision": target.gaussian.precision.tolist()}


def _quartic(a: float, b: float) -> Density:
    return Density(
        "U(x) = a x^4 + b x^2",
        "A particle on a line in the potential a x^4 + b x^2.",
        "return c['a'] * x[0] ** 4 + c['b'] * x[0] ** 2",
        ("  real a;\n  real b;\n", "a * x[1]^4 + b * x[1]^2"),
        lambda target: {"a": a, "b": b},
    )


GAUSSIAN = Density(
    "U(x) = (x - mean)^T precision (x - mean) / 2",
    "A normal law with this mean and this inverse of the covariance matrix (at T = 1).",
    "return 0.5 * (x - c['mean']) @ c['precision'] @ (x - c['mean'])",
    ("  vector[d] mean;\n  matrix[d, d] precision;\n", "0.5 * quad_form(precision, x - mean)"),
    _gaussian,
)

BANANA = Density(
    "U(x) = x_1^4 / 10 + (4 (x_2 + 1.2) - x_1^2)^2 / 2",
    "A bent ridge in the plane: given x_1, the second coordinate is normal around x_1^2 / 4 - 1.2.",
    "return x[0] ** 4 / 10 + (4 * (x[1] + 1.2) - x[0] ** 2) ** 2 / 2",
    ("", "x[1]^4 / 10 + square(4 * (x[2] + 1.2) - square(x[1])) / 2"),
    lambda target: {},
)

LOGISTIC = Density(
    "U(x) = |x|^2 / (2 prior_variance) + sum_i log(1 + exp(-label_i features_i . x))",
    "The posterior of a logistic regression: labels are -1 or 1, the prior is normal with mean 0.",
    "return x @ x / (2 * c['prior_variance']) + np.sum(np.logaddexp(0, -c['label'] * (c['features'] @ x)))",
    (
        "  int N;\n  matrix[N, d] features;\n  vector[N] label;\n  real prior_variance;\n",
        "dot_self(x) / (2 * prior_variance) + sum(log1p_exp(-label .* (features * x)))",
    ),
    lambda target: {
        "N": len(data.LOGISTIC_LABELS),
        "features": data.LOGISTIC_FEATURES.tolist(),
        "label": data.LOGISTIC_LABELS.tolist(),
        "prior_variance": data.LOGISTIC_PRIOR_VARIANCE,
    },
    ("features", "label"),
)

NORMAL_MEAN = Density(
    "U(x) = |x|^2 / (2 prior_variance) + sum_i (y_i - x)^T noise_precision (y_i - x) / 2",
    "The posterior of the mean of normal data y_i with a known covariance; the prior is normal with mean 0.",
    "r = c['y'] - x\nreturn x @ x / (2 * c['prior_variance']) + np.sum((r @ c['noise_precision']) * r) / 2",
    (
        "  int N;\n  matrix[N, d] y;\n  matrix[d, d] noise_precision;\n  real prior_variance;\n",
        "dot_self(x) / (2 * prior_variance) + 0.5 * trace(noise_precision * crossprod(y - rep_matrix(x', N)))",
    ),
    lambda target: {
        "N": len(data.GAUSSIAN_DATA),
        "y": data.GAUSSIAN_DATA.tolist(),
        "noise_precision": np.linalg.inv(data.NOISE_COVARIANCE).tolist(),
        "prior_variance": data.PRIOR_VARIANCE,
    },
    ("y",),
)

DENSITIES: dict[str, Density] = {
    "gaussian-1d-scaled": GAUSSIAN,
    "gaussian-correlated-2d": GAUSSIAN,
    "gaussian-correlated-3d": GAUSSIAN,
    "gaussian-anisotropic": GAUSSIAN,
    "anharmonic": _quartic(0.25, 0.5),
    "double-well": _quartic(1.0, -2.0),
    "banana": BANANA,
    "tiny-gaussian-data": NORMAL_MEAN,
    "tiny-logistic": LOGISTIC,
}
"""Name of a target -> its density in other languages; the targets whose draws can be judged."""
