"""Dirichlet-process mixture of categorical laws, and its posterior over partitions by enumeration."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from sgmcmc_verification.targets.numerics.ragged import SparseRows, sparse_rows
from sgmcmc_verification.targets.numerics.validation import require_positive

LARGEST = 8
"""Users of a model whose partitions are enumerated: Bell(8) = 4140."""


@dataclass(frozen=True, eq=False)
class DPMixture:
    """Users i with counts x_i over d categories, in components of a Dirichlet process.

        alpha ~ Gamma(1, 1) or fixed;   v_j ~ Beta(1, alpha),   w_j = v_j prod_{l<j} (1 - v_l)
        theta_j ~ Dirichlet(a, .., a);  z_i ~ w;   p(x_i | z_i = j) = prod_k theta_jk^x_ik

    The multinomial coefficient of x_i depends on no parameter and is left out.

    Source: baker2018large, equation (4.1); the sticks are those of sethuraman1994constructive.

    Args:
        width: d, at least 2.
        base: a > 0.
        concentration: alpha > 0, or None for the prior Gamma(1, 1).

    Raises:
        ValueError: for values outside of these.
    """

    width: int
    base: float = 0.5
    concentration: float | None = None

    def __post_init__(self):
        if self.width < 2:
            raise ValueError(f"width: must be at least 2 categories, got {self.width!r}")
        require_positive(base=self.base)
        if self.concentration is not None and not 0 < self.concentration < np.inf:
            raise ValueError(f"concentration: must be positive and finite, or None, got {self.concentration!r}")

    def log_evidence(self, counts: np.ndarray) -> np.ndarray:
        """log of the Dirichlet-multinomial likelihood of blocks with total counts (..., d), without coefficients."""
        a = self.base
        return (
            special.gammaln(self.width * a)
            - special.gammaln(self.width * a + counts.sum(axis=-1))
            + np.sum(special.gammaln(a + counts) - special.gammaln(a), axis=-1)
        )

    def prior_concentration(self, generator: np.random.Generator) -> float:
        """A draw of alpha."""
        return float(generator.standard_exponential()) if self.concentration is None else self.concentration

    def simulate(self, generator: np.random.Generator, lengths: np.ndarray) -> tuple[float, np.ndarray, SparseRows]:
        """alpha, z and x of users with `lengths` (n,) visits, drawn from the model."""
        alpha = self.prior_concentration(generator)
        z = labels_of_sticks(generator, len(lengths), alpha)
        return alpha, z, self.simulate_rows(generator, z, lengths)

    def simulate_rows(self, generator: np.random.Generator, z: np.ndarray, lengths: np.ndarray) -> SparseRows:
        """x given z (n,), with theta drawn afresh from its prior."""
        theta = generator.dirichlet(np.full(self.width, self.base), int(z.max()) + 1)
        return sparse_rows(generator.multinomial(lengths, theta[z]))


def labels_of_sticks(generator: np.random.Generator, n: int, alpha: float) -> np.ndarray:
    """z (n,) of n users given alpha: the sticks are broken as far as the labels need."""
    at, z, j, left = generator.random(n), np.full(n, -1), 0, 1.0
    while np.any(z < 0):
        left *= 1 - generator.beta(1, alpha)
        z[(z < 0) & (at < 1 - left)] = j
        j += 1
    return z


def set_partitions(n: int) -> np.ndarray:
    """All partitions of n users as restricted growth strings (Bell(n), n): s_0 = 0, s_i <= 1 + max(s_0..s_{i-1}).

    Raises:
        ValueError: if n is not in 1..`LARGEST`.
    """
    if not 1 <= n <= LARGEST:
        raise ValueError(f"n: partitions of 1 to {LARGEST} users are enumerated, got {n!r}")
    strings = [[0]]
    for _ in range(n - 1):
        strings = [[*s, k] for s in strings for k in range(max(s) + 2)]
    return np.array(strings)


def canonical(z: np.ndarray) -> np.ndarray:
    """The partitions of labels (..., n) as restricted growth strings."""
    z = np.asarray(z)
    same = z[..., :, None] == z[..., None, :]
    first = np.argmax(same, axis=-1)  # the first user with the same label
    opens = first == np.arange(z.shape[-1])
    return np.take_along_axis(np.cumsum(opens, axis=-1) - 1, first, axis=-1)


@dataclass(frozen=True, eq=False)
class PartitionPosterior:
    """p(partition | x) of a `DPMixture` with at most `LARGEST` users, and exact draws.

        p(partition | alpha, x) ~ Gamma(alpha) / Gamma(alpha + n) prod_b alpha Gamma(n_b) m(x_b)

    m is the Dirichlet-multinomial evidence of a block. A random alpha is integrated by the trapezoidal rule in
    log alpha, where the integrand is analytic and decays exponentially on both sides.

    Source: antoniak1974mixtures (the weights of the blocks); baker2018large, equation (4.1).

    Args:
        model: the mixture.
        rows: the users.

    Raises:
        ValueError: for more users, or rows of another width.
    """

    model: DPMixture
    rows: SparseRows

    def __post_init__(self):
        if self.rows.width != self.model.width:
            raise ValueError(f"rows: {self.rows.width} categories, the model has {self.model.width}")

    @cached_property
    def strings(self) -> np.ndarray:
        """(Bell(n), n)."""
        return set_partitions(self.rows.size)

    @cached_property
    def probabilities(self) -> np.ndarray:
        """(Bell(n),)."""
        n, x = self.rows.size, self.rows.dense()
        subsets = np.arange(1, 2**n)
        evidence = np.full(2**n, 0.0)
        members = (subsets[:, None] >> np.arange(n)) & 1
        evidence[1:] = self.model.log_evidence(members @ x) + special.gammaln(members.sum(axis=1))
        masks = ((self.strings[:, :, None] == np.arange(n)) * (1 << np.arange(n))[None, :, None]).sum(axis=1)
        log_p = evidence[masks].sum(axis=1) + self.log_blocks(np.arange(1, n + 1))[self.strings.max(axis=1)]
        return np.exp(log_p - np.logaddexp.reduce(log_p))

    def concentration_moments(self) -> tuple[float, float]:
        """Mean and standard deviation of alpha given x."""
        blocks = np.arange(1, self.rows.size + 1)
        log_p = [np.log(np.sum(self.probabilities[self.strings.max(axis=1) + 1 == k])) for k in blocks]
        base = self.log_blocks(blocks)
        first, second = (np.exp(np.logaddexp.reduce(log_p + self.log_blocks(blocks + k) - base)) for k in (1, 2))
        return float(first), float(np.sqrt(max(0.0, second - first**2)))

    def log_blocks(self, powers: np.ndarray, step: float = 0.05) -> np.ndarray:
        """log E alpha^K Gamma(alpha) / Gamma(alpha + n) for powers K (k,), all at least 1."""
        n = self.rows.size
        if self.model.concentration is not None:
            t, weight = np.log([self.model.concentration]), np.zeros(1)
        else:
            t = np.arange(-40, 6, step)  # alpha e^-alpha is below 1e-17 beyond
            weight = t - np.exp(t) + np.log(step)
        alpha = np.exp(t)
        terms = weight + np.asarray(powers)[:, None] * t + special.gammaln(alpha) - special.gammaln(alpha + n)
        return np.logaddexp.reduce(terms, axis=1)

    def draw(self, generator: np.random.Generator, size: int) -> list[tuple[float, np.ndarray]]:
        """Independent exact draws of (alpha, z) from the posterior."""
        which = generator.choice(len(self.strings), size, p=self.probabilities)
        found = []
        for string in self.strings[which]:
            alpha = self._concentration(generator, int(string.max()) + 1)
            found.append((alpha, sticks_of_partition(generator, string, alpha)))
        return found

    def _concentration(self, generator: np.random.Generator, blocks: int) -> float:
        """alpha given K blocks: density e^-alpha alpha^(K-1) / prod_{0<i<n} (alpha + i), by rejection from Gamma(K)."""
        if self.model.concentration is not None:
            return self.model.concentration
        steps = np.arange(1, self.rows.size)
        while True:
            alpha = generator.standard_gamma(blocks, 64)
            log_ratio = np.log(steps / (alpha[:, None] + steps)).sum(axis=1)
            accepted = np.flatnonzero(-generator.standard_exponential(64) < log_ratio)
            if len(accepted):
                return float(alpha[accepted[0]])


def sticks_of_partition(generator: np.random.Generator, string: np.ndarray, alpha: float) -> np.ndarray:
    """The labels z (n,) of the sticks given the partition and alpha, drawn exactly.

    Given a partition with blocks of n_b users the weights of the blocks and of everything else are
    Dirichlet(n_1, .., n_K, alpha), and what is left over is broken as before. The order of the sticks is a random
    permutation of the atoms biased by size, and independent of the data given the weights; the sticks of the rest are
    in such an order already. So atoms are drawn without replacement with probabilities in proportion to their weights,
    until all blocks have had their turn.

    Source: pitman1996developments, section 4 (the posterior of the process; GEM as the size-biased permutation).
    """
    blocks = np.bincount(string)
    weights = generator.dirichlet([*blocks, alpha])
    label, rest, waiting = np.zeros(len(blocks), int), weights[-1], weights[:-1].copy()
    j = 0
    while np.any(waiting > 0):
        total = waiting.sum() + rest
        at = generator.random() * total
        b = int(np.searchsorted(np.cumsum(waiting), at, side="right"))
        if b < len(blocks):
            label[b], waiting[b] = j, 0.0
        else:
            rest *= 1 - generator.beta(1, alpha)
        j += 1
    return label[string]
