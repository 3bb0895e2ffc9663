"""Maximum mean discrepancy of a joint law, through finitely many random Fourier features of Gaussian kernels."""

import math

import numpy as np
import scipy
from jaxtyping import Float

from sgmcmc_verification.checks.statistics.outcome import Outcome, checked_sample
from sgmcmc_verification.checks.statistics.weighted_chi_square import moments_of, norm_test
from sgmcmc_verification.targets.numerics.arrays import ArrayLike

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Bandwidths of the mixture of kernels, as multiples of the median distance."""


def median_distance(reference: ArrayLike) -> float:
    """Median distance of the pairs of the first thousand points of `reference` (m, d), which is not the tested sample.

    Raises:
        ValueError: as `checked_sample`, or points that coincide.
    """
    found = float(np.median(scipy.spatial.distance.pdist(checked_sample("reference", reference, 2)[:1000])))
    if found <= 0:
        raise ValueError("reference: its points coincide, so they set no bandwidth; give samples of the law")
    return found


def fourier_frequencies(
    seed: int, dimension: int, bandwidth: float, *, count: int = 16, factors: tuple[float, ...] = FACTORS
) -> Float[np.ndarray, "J d"]:
    """Frequencies (len(factors) count, d) of the kernel that is the mean of the Gaussian ones of all bandwidths.

        k(x, y) = mean_b exp(-|x - y|^2/(2 l_b^2)) = E cos(w.(x - y)),    w ~ N(0, I/l_b^2),    l_b = factor_b bandwidth

    Source: rahimi2007random, section 3.

    Args:
        seed: independent of the data, or the level is lost.
        dimension: d.
        bandwidth: of the kernel with factor 1; usually `median_distance` of samples of the claimed law.
        count: frequencies of each bandwidth.
        factors: bandwidths of the mixture.

    Raises:
        ValueError: a bandwidth or a factor that is not positive.
    """
    scales = bandwidth * np.asarray(factors, dtype=np.float64)
    if not np.all(scales > 0) or not np.all(np.isfinite(scales)):
        raise ValueError(f"bandwidth is {bandwidth} with factors {factors}: give positive numbers")
    drawn = np.random.default_rng(seed).normal(size=(scales.size, count, dimension))
    return (drawn / scales[:, None, None]).reshape(-1, dimension)


def fourier_features(
    samples: Float[np.ndarray, "n d"], frequencies: Float[np.ndarray, "J d"]
) -> Float[np.ndarray, "n 2*J"]:
    """phi(x) = (cos w_j.x, sin w_j.x)_j/sqrt(J), (n, 2J); |phi| = 1 and phi(x).phi(y) = mean_j cos(w_j.(x - y))."""
    phase = samples @ frequencies.T
    return np.concatenate([np.cos(phase), np.sin(phase)], axis=1) / math.sqrt(frequencies.shape[0])


def gaussian_moments(
    frequencies: Float[np.ndarray, "J d"], mean: ArrayLike, covariance: ArrayLike
) -> tuple[Float[np.ndarray, " 2*J"], Float[np.ndarray, "2*J 2*J"]]:
    """Exact mean (2J,) and covariance (2J, 2J) of `fourier_features` under N(mean, covariance).

    All follow from the characteristic function, E exp(i w.x) = exp(i w.m - w.C w/2), at w_j, w_j + w_k and w_j - w_k.

    Args:
        frequencies: (J, d).
        mean: (d,).
        covariance: (d, d).
    """
    m, c = np.asarray(mean, dtype=np.float64), np.asarray(covariance, dtype=np.float64)

    def characteristic(w: Float[np.ndarray, "*pairs d"]):
        return np.exp(1j * (w @ m) - 0.5 * np.einsum("...i,ij,...j->...", w, c, w))

    count = frequencies.shape[0]
    one = characteristic(frequencies)
    plus = characteristic(frequencies[:, None] + frequencies[None, :])
    minus = characteristic(frequencies[:, None] - frequencies[None, :])
    mu = np.concatenate([one.real, one.imag])
    cross = 0.5 * (plus.imag - minus.imag)  # E cos(w_j.x) sin(w_k.x)
    second = np.block([[0.5 * (minus.real + plus.real), cross], [cross.T, 0.5 * (minus.real - plus.real)]])
    return mu / math.sqrt(count), (second - np.outer(mu, mu)) / count


def mmd_test(
    samples: ArrayLike,
    frequencies: Float[np.ndarray, "J d"],
    expected_mean: ArrayLike,
    expected_covariance: ArrayLike | None = None,
    *,
    name: str = "MMD",
    allowance: float = 0.0,
    bound: bool = False,
) -> Outcome:
    """Test of MMD <= a against a law whose mean features are known.

        MMD = |E phi(x) - mu|,    n |mean phi - mu|^2 -> sum_j lambda_j chi2_1

    lambda_j the eigenvalues of the features' covariance; see `quadratic.norm_test` for the tail, the effect (the square
    root of the unbiased MMD^2) and what is detected. For finite n the features' skewness gamma along the leading
    eigenvector multiplies p by cosh(gamma z^3/(6 sqrt(n))) (1 + O(z^4/n)), z = 6.5 at 1e-10 (twice the argument if the
    covariance is that of the samples): both signs count, so that the terms of order n^(-1/2) cancel, and a few per
    cent are left at n = 1e5.

    J frequencies see every difference of the characteristic functions at these J points and none elsewhere: what is
    tested is the joint law, but one that agrees at all of them passes.

    Source: gretton2012kernel, lemma 6 (the unbiased statistic) and theorems 7 and 8, whose bounded differences are
    the fallback; rahimi2007random (the features).

    Args:
        samples: (n, d), i.i.d.
        frequencies: (J, d), drawn without looking at the samples.
        expected_mean: (2J,), mu: `gaussian_moments`, or by quadrature.
        expected_covariance: (2J, 2J) under the claimed law; by default that of the samples.
        name: what was tested.
        allowance: a, the largest MMD that is no error.
        bound: True for the rigorous bound, P(|mean phi - E phi| >= n^(-1/2) + r) <= exp(-n r^2/2), for every n;
            it is blunter by the factor lambda_1 in the exponent.

    Raises:
        ValueError: wrong shapes, values that are not finite, a negative allowance.
    """
    samples = _checked("samples", samples, frequencies)
    mu = np.asarray(expected_mean, dtype=np.float64)
    if mu.shape != (2 * frequencies.shape[0],):
        raise ValueError(f"expected_mean has shape {mu.shape}: give {(2 * frequencies.shape[0],)}, cosines then sines")
    mean, covariance = moments_of(lambda x: fourier_features(x, frequencies), samples)
    if expected_covariance is not None:
        covariance = np.asarray(expected_covariance, dtype=np.float64)
    return _outcome(name, mean - mu, covariance, samples.shape[0], 1 / samples.shape[0], allowance, bound)


def mmd_two_sample_test(
    samples: ArrayLike,
    reference: ArrayLike,
    frequencies: Float[np.ndarray, "J d"],
    *,
    name: str = "two-sample MMD",
    allowance: float = 0.0,
    bound: bool = False,
) -> Outcome:
    """`mmd_test` against exact samples `reference` (m, d) of the claimed law, independent of `samples` (n, d).

    The covariance is that of both together, each around its own mean.

    Raises:
        ValueError: wrong shapes, values that are not finite, a negative allowance.
    """
    samples, reference = _checked("samples", samples, frequencies), _checked("reference", reference, frequencies)
    n, m = samples.shape[0], reference.shape[0]
    mean, covariance = moments_of(lambda x: fourier_features(x, frequencies), samples)
    mu, other = moments_of(lambda x: fourier_features(x, frequencies), reference)
    pooled = ((n - 1) * covariance + (m - 1) * other) / (n + m - 2)
    return _outcome(name, mean - mu, pooled, n, 1 / n + 1 / m, allowance, bound)


def _outcome(
    name: str,
    difference: Float[np.ndarray, " k"],
    covariance: Float[np.ndarray, "k k"],
    n: int,
    variance: float,
    allowance: float,
    bound: bool,
) -> Outcome:
    if bound:  # |phi| = 1: tr C <= 1, and two features differ by at most 2
        covariance = np.eye(1)
    return norm_test(name, "MMD", difference, covariance, variance, n, allowance, 2.0 if bound else None)


def _checked(name: str, samples: ArrayLike, frequencies: Float[np.ndarray, "J d"]) -> Float[np.ndarray, "n d"]:
    array = checked_sample(name, samples, 2)
    if array.shape[1] != frequencies.shape[1]:
        raise ValueError(f"{name} has {array.shape[1]} columns, frequencies {frequencies.shape[1]}: give the same")
    return array
