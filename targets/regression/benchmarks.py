"""The regressions that samplers are compared on: Splice, Covertype, and data generated from the model."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from sgmcmc_verification.targets.datasets import covertype as covertype_data
from sgmcmc_verification.targets.datasets import splice as splice_data
from sgmcmc_verification.targets.datasets.files import DataFile
from sgmcmc_verification.targets.datasets.table import Split, Table, with_constant
from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.reference import reference_moments
from sgmcmc_verification.targets.regression.logistic import expectations, laplace, logistic_regression
from sgmcmc_verification.targets.target import Moment, Target

PRIOR_VARIANCE = 0.01
"""alpha of the prior N(0, alpha I) on Splice and Covertype [liu2018riemannian, section 5.1 and its published code]."""


@dataclass(frozen=True)
class Workload:
    """A logistic regression with training and test rows.

    Attributes:
        name: registry name of its target.
        load: () -> tables of features with the constant column; raises `targets.datasets.files.DataError`.
        prior_variance: alpha.
        files: the data files that `load` reads; empty for generated data.
    """

    name: str
    load: Callable[[], Split]
    prior_variance: float
    files: tuple[DataFile, ...]


def generate(n: int, d: int, seed: int, prior_variance: float = 1.0) -> Split:
    """Data drawn from the model, n training and 200 test rows of d - 1 features and a constant column.

    w ~ N(0, alpha I); x correlated normal, x_j = (z_j + z_{j-1}) / sqrt 2; y ~ Bernoulli(sigmoid(x.w)).

    Args:
        n: rows, at least 1.
        d: weights, at least 2.
        seed: of `numpy.random.RandomState`, whose stream is frozen.
        prior_variance: alpha.

    Raises:
        ValueError: if `n` or `d` is too small.
    """
    if n < 1 or d < 2:
        raise ValueError(f"n, d: need n >= 1 and d >= 2, got n = {n!r}, d = {d!r}")
    random = np.random.RandomState(seed)
    weights = np.sqrt(prior_variance) * random.standard_normal(d)
    normals = random.standard_normal((n + 200, d))
    features = with_constant((normals[:, 1:] + normals[:, :-1]) / np.sqrt(2))
    labels = (random.uniform(size=n + 200) < special.expit(features @ weights)).astype(np.float64)
    return Split(Table(features[:n], labels[:n]), Table(features[n:], labels[n:]))


def _with_constant(split: Split) -> Split:
    return Split(*(Table(with_constant(part.features), part.labels) for part in split))


SPLICE = Workload(
    "logistic-splice", lambda: _with_constant(splice_data.load_splice()), PRIOR_VARIANCE, splice_data.FILES
)
COVERTYPE = Workload(
    "logistic-covertype", lambda: _with_constant(covertype_data.load_covertype()), PRIOR_VARIANCE, covertype_data.FILES
)
SYNTHETIC = Workload("logistic-synthetic", lambda: generate(100, 3, 0), 1.0, ())
WORKLOADS = {"splice": SPLICE, "covertype": COVERTYPE, "synthetic": SYNTHETIC}


def labels_digest(split: Split) -> str:
    """sha256 of the training and test labels, in order: it changes with the split and the order of the rows."""
    return hashlib.sha256(np.concatenate([part.labels for part in split]).astype(np.uint8).tobytes()).hexdigest()


def logistic_splice() -> Target:
    """The posterior on Splice: 61 weights, 1,000 rows, features in [-1, 1], prior N(0, 0.01 I).

    Moments are those of a long run of Hamiltonian Monte Carlo, with its Monte Carlo standard errors as errors.

    Raises:
        DataError: if the data cannot be had.
    """
    return _with_reference(SPLICE)


def logistic_covertype() -> Target:
    """The posterior on Covertype: 55 weights, 87,829 rows, standardised quantities, prior N(0, 0.01 I).

    Moments are those of a long run of Hamiltonian Monte Carlo, with its Monte Carlo standard errors as errors.

    Raises:
        DataError: if the data cannot be had.
    """
    return _with_reference(COVERTYPE)


def logistic_synthetic(n: int = 100, d: int = 3, seed: int = 0, prior_variance: float = 1.0) -> Target:
    """The posterior of data generated from the model; the stand-in where no real data are at hand.

    For d <= 3 the moments come from quadrature. The error is the change from 24 to 32 nodes a coordinate, which
    bounds that of the finer rule since the convergence is geometric, and round-off.
    """
    split = generate(n, d, seed, prior_variance)
    target = logistic_regression(*split.train, prior_variance, "logistic-synthetic")
    if target.quadrature is None:
        return target
    centre = laplace(*split.train, prior_variance).mean
    functions = expectations(split.train, split.test, centre)
    coarse, fine = (_by_rule(target.quadrature(nodes), split, centre) for nodes in (24, 32))
    # k eps |value| with k the number of terms of the inner products and sums
    round_off = 4 * (n + 200) * np.finfo(np.float64).eps
    moments = {
        name: Moment(functions[name], value, abs(value - coarse[name]) + round_off * abs(value))
        for name, value in fine.items()
    }
    return replace(target, moments=moments)


def _by_rule(rule: tuple[np.ndarray, np.ndarray], split: Split, centre: np.ndarray) -> dict[str, float]:
    """The expectations of `expectations` by a quadrature rule, in NumPy."""
    points, weights = rule

    def log_likelihood(table):
        return special.log_expit(points @ table.features.T * (2 * table.labels - 1))

    values = {f"weight[{j}]": points[:, j] for j in range(len(centre))}
    values |= {f"square[{j}]": (points[:, j] - centre[j]) ** 2 for j in range(len(centre))}
    values["log likelihood"] = log_likelihood(split.train).sum(axis=1)
    values["test log likelihood"] = log_likelihood(split.test).mean(axis=1)
    values |= {f"probability[{k}]": special.expit(points @ split.test.features[k]) for k in range(5)}
    return {name: float(weights @ value) for name, value in values.items()}


def _with_reference(workload: Workload) -> Target:
    split = workload.load()
    target = logistic_regression(*split.train, workload.prior_variance, workload.name)
    functions = expectations(split.train, split.test, laplace(*split.train, workload.prior_variance).mean)
    stored = reference_moments(workload.name)
    return replace(target, moments={k: Moment(functions[k], v.value, v.mcse) for k, v in stored.items()})


ENTRIES = (
    TargetRow("logistic-synthetic", logistic_synthetic),
    TargetRow("logistic-splice", logistic_splice),
    TargetRow("logistic-covertype", logistic_covertype),
)
