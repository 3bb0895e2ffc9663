"""Expectations from draws of Markov chains, with standard errors that respect the autocorrelation.

Thinned draws are nearly independent, but that is found here, not assumed.
"""

import numpy as np
import scipy
from scipy import special


def effective_sample_size(values: np.ndarray) -> float:
    """The number of independent draws whose mean has the variance of the mean of these.

        n_eff = m n / tau,  tau = -1 + 2 sum_{t < T} (rho_2t + rho_2t+1) + max(rho_2T, 0),
        rho_t = 1 - (W - c_t) / V,  V = (1 - 1/n) W + B / n

    c_t is the autocovariance at lag t averaged over the m chains of length n, W the variance within and B / n that
    between chains; the pair at T is the first whose sum is not positive, and pairs before it are made non-increasing.

    Source: vehtari2021rank, section 3.2, on halves of the chains, which turns a drift within
    chains into a difference between them. Differs from the source in:
        1. at most m n is returned: chains that are better than independent draws count as these.

    Args:
        values: (chains, draws), at least 8 draws.

    Returns:
        n_eff in (0, m n]; m n for constant values.
    """
    halves = _split(np.asarray(values, np.float64))
    m, n = halves.shape
    centred = halves - halves.mean(axis=1, keepdims=True)
    if not np.any(centred) and np.ptp(halves) == 0:
        return float(m * n)
    spectrum = np.abs(np.fft.rfft(centred, 2 * n, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, 2 * n, axis=1)[:, :n].mean(axis=0) / n
    within = covariance[0] * n / (n - 1)
    correlation = 1 - (within - covariance) / (covariance[0] + halves.mean(axis=1).var(ddof=1))
    correlation[0] = 1
    pairs = correlation[: n // 2 * 2].reshape(-1, 2)
    cut = int(np.argmax(np.append(pairs.sum(axis=1) <= 0, True)))
    after = max(pairs[cut, 0], 0.0) if cut < len(pairs) else 0.0
    tau = 2 * np.minimum.accumulate(pairs[:cut].sum(axis=1)).sum() - 1 + after
    return m * n / max(tau, 1.0)


def standard_error(values: np.ndarray) -> float:
    """Monte Carlo standard error of the mean of (chains, draws): sd / sqrt(n_eff)."""
    return float(np.std(values, ddof=1) / np.sqrt(effective_sample_size(values)))


def rank_rhat(values: np.ndarray) -> float:
    """Rank-normalised split R-hat, the larger one of the draws and of their distances from the median.

        R-hat = sqrt(V / W) of z = Phi^-1((rank - 3/8) / (m n + 1/4))

    Source: vehtari2021rank, sections 2 and 4.1.

    Args:
        values: (chains, draws).

    Returns:
        1 for chains of one law, larger if they differ in location or in spread; infinite for chains that are all
        constant and differ.
    """
    halves = _split(np.asarray(values, np.float64))
    return max(_rhat(_normal_scores(part)) for part in (halves, np.abs(halves - np.median(halves))))


def _split(values: np.ndarray) -> np.ndarray:
    """The halves of the chains; the middle draw of an odd number is left out."""
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def _normal_scores(values: np.ndarray) -> np.ndarray:
    return special.ndtri((scipy.stats.rankdata(values, axis=None).reshape(values.shape) - 0.375) / (values.size + 0.25))


def _rhat(values: np.ndarray) -> float:
    n = values.shape[1]
    within, between = values.var(axis=1, ddof=1).mean(), values.mean(axis=1).var(ddof=1)
    if within == 0:
        return np.inf if between > 0 else 1.0
    return float(np.sqrt((n - 1) / n + between / within))
