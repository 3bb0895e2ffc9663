"""From autocorrelated chains to numbers that are nearly independent, so that the tests of independent ones apply."""

import math
from collections.abc import Sequence

import numpy as np

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.check import Inconclusive

LEAST_SIZE = 1_000
"""Effective draws of a run below which nothing is decided."""
LENGTH = 10
"""Effective draws of a batch. The variance of a mean of b draws of an autoregression x' = phi x + noise, whose
autocorrelation time is t = (1 + phi)/(1 - phi), is that of b/t independent draws times
1 - 2 phi (1 - phi^b)/((1 - phi^2) b) >= 1 - t/(2 b): at most 5% too small for b = 10 t."""
FEWEST_BATCHES, MOST_BATCHES = 100, 512
"""Fewest, so that the tail of Student's t reaches the levels that matter; more than the most add nothing."""
FEWEST_CHAINS = 4
LARGEST_RHAT = 1.05


def effective_size(values: np.ndarray) -> float:
    """Effective number of draws of the mean of values (chains, draws), by ArviZ.

    Source: vehtari2021rank (initial positive sequence over all chains, with their disagreement).

    Raises:
        BadInput: if ArviZ is not installed.
    """
    return float(np.asarray(_arviz().ess(values, method="mean")))


def rhat(values: np.ndarray) -> float:
    """Rank-normalised split R-hat of values (chains, draws), by ArviZ. Source: vehtari2021rank."""
    return float(np.asarray(_arviz().rhat(values, method="rank")))


def _arviz():
    try:
        from arviz_stats.base import array_stats
    except ImportError:
        raise BadInput("draws: needs arviz-stats: pip install 'sgmcmc-verification[draws]'") from None
    return array_stats


def batches(runs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Batch means (b,) of each run of values (chains, draws), all of one shape: nearly independent, b the same for all.

    There are as many batches as have `LENGTH` effective draws each, in the run that has the fewest; where there are
    many chains each is one batch, and independent of all others. Where the standard error by the effective number of
    draws is larger than that by the batches, the batch means are spread out to agree with it.

    Source: flegal2010batch.

    Raises:
        Inconclusive: if a run has too few effective draws.
    """
    sizes = [effective_size(values) for values in runs]
    size = min(sizes)
    if not size >= LEAST_SIZE:
        raise Inconclusive(f"{size:.0f} effective draws: at least {LEAST_SIZE} are needed")
    chains, draws = runs[0].shape
    each = max(1, int(min(size / LENGTH, MOST_BATCHES)) // chains)
    if each * chains < FEWEST_BATCHES:
        raise Inconclusive(f"{each * chains} batches of {LENGTH} effective draws: {FEWEST_BATCHES} are needed")
    length = draws // each
    found = []
    for values, effective in zip(runs, sizes, strict=True):
        means = values[:, draws - each * length :].reshape(chains * each, length).mean(axis=1)
        by_batches = means.std(ddof=1) / math.sqrt(means.size)
        by_size = values.std(ddof=1) / math.sqrt(effective)
        centre = means.mean()
        found.append(centre + (means - centre) * max(1.0, by_size / by_batches if by_batches > 0 else 1.0))
    return found


def changes(values: np.ndarray) -> np.ndarray:
    """Differences (m,) between the second and the first half of values (chains, draws): of mean zero if nothing drifts.

    Raises:
        Inconclusive: if there are too few effective draws.
    """
    chains, draws = values.shape
    means = batches([values])[0].reshape(chains, -1)
    half = means.shape[1] // 2
    if half:
        return (means[:, -half:] - means[:, :half]).ravel()
    return values[:, -(draws // 2) :].mean(axis=1) - values[:, : draws // 2].mean(axis=1)


def thinned(values: np.ndarray) -> np.ndarray:
    """Nearly independent draws (n,) of values (chains, draws): every k-th, k twice the autocorrelation time.

    An autoregression with the time t = (1 + phi)/(1 - phi) has the correlation phi^(2 t) < e^-4 = 0.02 then. The time
    is the longer one of those of the values and of their squared deviations.

    Raises:
        Inconclusive: if there are too few effective draws.
    """
    size = min(effective_size(values), effective_size((values - values.mean()) ** 2))
    if not size >= LEAST_SIZE:
        raise Inconclusive(f"{size:.0f} effective draws: at least {LEAST_SIZE} are needed")
    time = values.size / size
    return values[:, :: math.ceil(2 * time) if time > 1.05 else 1].ravel()
