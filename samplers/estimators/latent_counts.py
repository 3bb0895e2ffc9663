"""Expected counts of latent categories from minibatches, with control variates."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.samplers.interface.sampler import Estimate
from sgmcmc_verification.samplers.validation import require


@dataclass(frozen=True, eq=False)
class LatentCounts:
    """Unbiased expected counts E[n | x, theta] of categories z_i that are not observed, from a random minibatch S.

        n^(theta) = (N/n) sum_{i in S} E[z_i | x_i, theta]
        n^(theta) = n(theta_0) + (N/n) sum_{i in S} (E[z_i | x_i, theta] - E[z_i | x_i, theta_0])   with a reference

    The second, with control variates, has no variance at theta_0 and one of size |theta - theta_0|^2 around it. For
    observed z_i it is the constant n, which `ExactCounts` returns at the price of one pass. By Fisher's identity
    E[n_k | x, theta] / theta_k is the data's part of the gradient of the log posterior in the expanded mean.

    Source: baker2019control (the estimator with a fixed reference).
    Differs from the source in:
        1. it is of counts, not of gradients; they may be negative far from the reference, where a sampler that needs
            positive shapes refuses them. Take a nearer reference or a larger minibatch.

    Args:
        expected: (theta (K,), indices (n,)) -> E[z_i | x_i, theta] (n, K), rows that sum to one.
        size: N, the number of data.
        batch_size: n.
        reference: theta_0 (K,); None for no control variates.
        replace: draw with replacement, else a uniform subset.

    Raises:
        ValueError: if `batch_size` does not lie between 1 and N.
    """

    expected: Callable[[np.ndarray, np.ndarray], np.ndarray]
    size: int
    batch_size: int
    reference: np.ndarray | None = None
    replace: bool = False

    backend = "host"

    def __post_init__(self) -> None:
        require(1 <= self.batch_size <= self.size, f"batch_size: must lie between 1 and {self.size}", self.batch_size)

    def total(self, theta: np.ndarray) -> np.ndarray:
        """n(theta) of all data, (K,)."""
        return np.sum(self.expected(np.asarray(theta), np.arange(self.size)), axis=0)

    def init(self, key: np.random.Generator, position: np.ndarray) -> np.ndarray | tuple[()]:
        """n(theta_0), the one pass over the data; () without a reference."""
        del key, position
        return () if self.reference is None else self.total(self.reference)

    def at(self, theta: np.ndarray, indices: np.ndarray, estate: np.ndarray | tuple[()]) -> Estimate:
        """The estimate for given indices (n,)."""
        scale, indices = self.size / self.batch_size, np.asarray(indices)
        here = np.sum(self.expected(np.asarray(theta), indices), axis=0)
        if self.reference is None:
            return Estimate(None, statistics=scale * here)
        there = np.sum(self.expected(np.asarray(self.reference), indices), axis=0)
        return Estimate(None, statistics=estate + scale * (here - there))

    def estimate(
        self, key: np.random.Generator, estate: np.ndarray | tuple[()], position: np.ndarray
    ) -> tuple[Estimate, np.ndarray | tuple[()]]:
        """Estimate at a position, and the next state of the estimator."""
        indices = key.choice(self.size, self.batch_size, replace=self.replace)
        return self.at(position, indices, estate), estate
