"""Log-perplexity of held-out documents under samples of the topics, with its Monte Carlo standard error."""

import functools
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from sgmcmc_verification.targets.numerics.ragged import SparseRows
from sgmcmc_verification.targets.topic_models.sam.documents import matrix
from sgmcmc_verification.targets.topic_models.sam.model import SAM


class Perplexity(NamedTuple):
    """A log-perplexity.

    Attributes:
        value: the mean over documents of minus the log of the estimated density.
        standard_error: of `value`, from the weights that were drawn; the topics are taken as given.
        draws: effective number of draws of the weights, the mean over documents of 1 / sum (share of a draw)^2. Near 1
            the estimate is that of the one best draw: an upper bound on average, and the error is not to be trusted.
    """

    value: float
    standard_error: float
    draws: float


class LogPerplexity:
    """Accumulates samples of the topics.

        -(1 / T) sum_d log((1 / (M N)) sum_mn c_V(kappa) exp(kappa v_d . vbar(beta_m, theta_n)))
        theta_n ~ Dirichlet(alpha)

    The N weights are the same for all documents and samples; so the standard error is that of a mean over n of

        1 - (1 / T) sum_d (density of d at n) / (its mean over n)

    (the delta method). By Jensen's inequality the expectation of the estimate is above the log-perplexity.

    Source: liu2016stochastic, section 5.3; N = 200 shared draws are those of its released program.

    Args:
        model: the model.
        rows: test documents.
        generator: of the weights.
        draws: N.
        window: the last `window` chunks count; None for all samples.
        chunk: samples of a chunk, which are dropped together.

    Raises:
        ValueError: if the documents have not V words or N < 2.
    """

    def __init__(
        self,
        model: SAM,
        rows: SparseRows,
        generator: np.random.Generator,
        draws: int = 200,
        window: int | None = None,
        chunk: int = 1,
    ):
        if rows.width != model.words:
            raise ValueError(f"rows: have {rows.width} words, the model {model.words}; give the same")
        if draws < 2 or chunk < 1 or (window is not None and window < 1):
            raise ValueError("draws, window, chunk: need at least 2 draws, and whole numbers of at least 1")
        self._matrix: Any = matrix(rows)
        self.model, self.chunk = model, np.inf if window is None else chunk
        self.weights = generator.dirichlet(model.alpha, size=draws)
        self._parts: deque[np.ndarray] = deque(maxlen=window)
        self._counts: deque[int] = deque(maxlen=window)

    def log_densities(self, beta: np.ndarray) -> np.ndarray:
        """log density (T, N) of each document at topics (K, V) with each of the weights."""
        beta = np.asarray(beta, np.float64)
        gram, products = beta @ beta.T, self._matrix @ beta.T
        lengths = np.sqrt(np.einsum("nk,kl,nl->n", self.weights, gram, self.weights))
        cosines = (products @ self.weights.T) / lengths
        return self.model.log_constant + self.model.concentration * cosines

    def add(self, beta: np.ndarray) -> None:
        """Take in one sample of the topics (K, V)."""
        levels = self.log_densities(beta)
        if not self._counts or self._counts[-1] == self.chunk:
            self._parts.append(levels)
            self._counts.append(1)
        else:
            np.logaddexp(self._parts[-1], levels, out=self._parts[-1])
            self._counts[-1] += 1

    @property
    def samples(self) -> int:
        """M."""
        return sum(self._counts)

    def alone(self, beta: np.ndarray) -> Perplexity:
        """The estimate for topics (K, V), or for C sets of them (C, K, V), alone."""
        sets = np.asarray(beta).reshape(-1, *np.shape(beta)[-2:])
        return self._summary(functools.reduce(np.logaddexp, map(self.log_densities, sets)), len(sets))

    def value(self) -> Perplexity:
        """The estimate so far. Raises ValueError where no sample was added."""
        if not self._parts:
            raise ValueError("value: no sample was added")
        total = np.logaddexp.reduce(np.stack(self._parts), axis=0) if len(self._parts) > 1 else self._parts[0]
        return self._summary(total, self.samples)

    @staticmethod
    def _summary(total: np.ndarray, samples: int) -> Perplexity:
        N = total.shape[1]
        sums = special.logsumexp(total, axis=1)
        share = np.exp(total - np.asarray(sums)[:, None])
        influence = N * share.mean(axis=0)
        value = -float(np.mean(sums - np.log(samples * N)))
        error = float(influence.std(ddof=1) / np.sqrt(N))
        return Perplexity(value, error, float(np.mean(1 / np.sum(share * share, axis=1))))

    def dump(self) -> list[np.ndarray]:
        """The state as arrays; the weights are those of the generator."""
        shape = (0, self._matrix.shape[0], len(self.weights))
        return [np.array(self._counts, np.int64), np.stack(self._parts) if self._parts else np.zeros(shape)]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Inverse of `dump`."""
        self._counts.clear()
        self._parts.clear()
        self._counts.extend(int(count) for count in arrays[0])
        self._parts.extend(part.copy() for part in arrays[1])
