"""Distances of sampled histograms from an exact law, with what chance alone explains of them.

The draws of a chain depend on each other, so that the usual quantiles of Kolmogorov's statistic do not apply; the
chains are independent, so they are what is resampled.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse import linalg as sparse_linalg

REPEATS = 2000
FLOOR = 1e-12
RATE = 1e-3
"""A perfect sampler exceeds `Distance.limit` with this probability."""


class Distance(NamedTuple):
    """A distance, its mean under chance alone, and the quantile 1 - `RATE` of it under chance alone."""

    value: float
    noise: float
    limit: float

    @property
    def explained(self) -> bool:
        """True if chance explains it."""
        return self.value <= self.limit


def counts_of(cells: np.ndarray, bins: int) -> np.ndarray:
    """Histogram (chains, bins) of cell numbers (chains, draws)."""
    chains = len(cells)
    flat = (np.arange(chains)[:, None] * bins + cells).ravel()
    return np.bincount(flat, minlength=chains * bins).reshape(chains, bins)


def total_variation(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Half of sum |p - q| over the last axis."""
    return 0.5 * np.abs(p - q).sum(axis=-1)


def kolmogorov(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """max |P - Q| of the distribution functions at the edges of the bins, over the last axis."""
    return np.abs(np.cumsum(p - q, axis=-1)).max(axis=-1)


def distance(measure, counts: np.ndarray, law: np.ndarray, seed: int = 0) -> Distance:
    """The distance of the pooled histogram from a law.

    Chance is the bootstrap over chains: measure(resampled, pooled) has to first order the law that measure(pooled,
    law) has for a sampler without bias.

    Args:
        measure: `total_variation` or `kolmogorov`.
        counts: (chains, bins), independent rows.
        law: probabilities (bins,).
        seed: of the bootstrap.
    """
    chains = len(counts)
    pooled = counts.sum(axis=0) / counts.sum()
    weights = np.random.default_rng(seed).multinomial(chains, np.full(chains, 1 / chains), REPEATS)
    resampled = weights @ counts
    chance = measure(resampled / resampled.sum(axis=1, keepdims=True), pooled)
    return Distance(float(measure(pooled, law)), float(chance.mean()), float(np.quantile(chance, 1 - RATE)))


def relaxation_rate(density: np.ndarray, widths: tuple[float, ...], periodic: bool) -> float:
    """Smallest rate of dx = -grad U dt + sqrt(2) dW with the law `density` on a grid: how fast modes are exchanged.

    The reversible jump process with rate sqrt(p_j / p_i) / width^2 from a cell i to its neighbour j has the law p and
    tends to the diffusion as the square of the widths.

    Args:
        density: (m,) or (m, n); cells below `FLOOR` of its maximum are left out.
        widths: of a cell along each axis.
        periodic: True on a circle, False for a box that nothing leaves.
    """
    p, inside = density.ravel(), (density > FLOOR * density.max()).ravel()
    number = np.arange(p.size).reshape(density.shape)
    rows, columns, values = [], [], []
    diagonal = np.zeros(p.size)
    for axis, width in enumerate(widths):
        i = (number if periodic else np.delete(number, -1, axis)).ravel()
        j = (np.roll(number, -1, axis) if periodic else np.delete(number, 0, axis)).ravel()
        i, j = i[inside[i] & inside[j]], j[inside[i] & inside[j]]
        ratio = np.sqrt(p[j] / p[i])
        np.add.at(diagonal, i, -ratio / width**2)
        np.add.at(diagonal, j, -1 / ratio / width**2)
        rows += [i, j]
        columns += [j, i]
        values += [np.full(2 * i.size, 1 / width**2)]
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    symmetric = sparse.csc_matrix(entries, (p.size, p.size)) + sparse.diags(diagonal, format="csc")
    # islands of negligible mass, and the cells that are cut off, are no part of the law
    _, labels = csgraph.connected_components(symmetric)
    kept = np.flatnonzero(labels == np.argmax(np.bincount(labels, weights=p)))
    symmetric = symmetric[kept][:, kept]
    # the two eigenvalues nearest to a small positive number: 0 of the law itself, and the one that is asked for
    start = np.random.default_rng(0).standard_normal(kept.size)
    found = sparse_linalg.eigsh(symmetric, k=2, sigma=1e-3, v0=start, return_eigenvectors=False)
    return float(-np.min(found))
