"""A partition of a line or a plane into cells, on which laws and samples are compared by their KL divergence."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

RARE = 1e-7
"""Cells of smaller probability under the target are merged into one, so that no cell is empty by underflow."""

LogDensity = Callable[[jax.Array], jax.Array]
"""Flat position (d,) -> log of a density, up to a constant."""


@dataclass(frozen=True, eq=False)
class Partition:
    """Square cells of one width over a box of one or two dimensions; the outermost ones reach to infinity.

    Cells that are rare under the target are one class; every other cell is a class of its own.

    Attributes:
        low: lower corner of the box (d,).
        counts: cells along each axis (d,).
        width: of a cell.
        label: class of every cell, flattened (cells,).
        target: probabilities of the classes under the target (classes,).
        points: Gauss-Legendre points a cell and axis with which masses are integrated.
    """

    low: np.ndarray
    counts: tuple[int, ...]
    width: float
    label: np.ndarray
    target: np.ndarray
    points: int

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.target)

    def classify(self, position: jax.Array) -> jax.Array:
        """The class of a position (d,), or `classes` where it is not finite; traceable."""
        last = jnp.asarray(self.counts) - 1
        index = jnp.clip(jnp.floor((position - self.low) / self.width), 0, last)
        finite = jnp.all(jnp.isfinite(position))
        flat = jnp.ravel_multi_index(tuple(jnp.where(finite, index, 0).astype(int)), self.counts, mode="clip")
        return jnp.where(finite, jnp.asarray(self.label)[flat], self.classes).astype(jnp.int32)

    def probabilities(self, log_density: LogDensity) -> np.ndarray:
        """Probabilities of the classes (classes,) under a law that the box holds."""
        masses = cell_masses(log_density, self.low, self.counts, self.width, self.points)
        return np.bincount(self.label, masses, self.classes)


def cell_masses(
    log_density: LogDensity, low: np.ndarray, counts: tuple[int, ...], width: float, points: int
) -> np.ndarray:
    """Masses of the cells (cells,), which sum to one, by Gauss-Legendre in every cell."""
    x, w = np.polynomial.legendre.leggauss(points)
    inside, weights = width * (1 + x) / 2, w / 2
    axes = [(a + width * np.arange(n)[:, None] + inside).ravel() for a, n in zip(low, counts, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(counts))
    values = np.asarray(jax.lax.map(log_density, jnp.asarray(grid), batch_size=4096))
    values = np.exp(values - values.max()).reshape(*itertools.chain(*((n, points) for n in counts)))
    for axis in range(len(counts)):  # each contraction removes the axis after the cells of this dimension
        values = np.tensordot(values, weights, axes=(axis + 1, 0))
    return (values / values.sum()).ravel()


def partition(log_density: LogDensity, low, high, width: float, points: int) -> Partition:
    """The partition of a box for a target.

    Args:
        log_density: of the target.
        low: lower corner (d,).
        high: upper corner (d,), a whole number of cells away; what the target has beyond the box is left out.
        width: of a cell.
        points: Gauss-Legendre points a cell and axis.

    Raises:
        ValueError: if the box is no whole number of cells, or has other than one or two dimensions.
    """
    low, high = np.atleast_1d(np.asarray(low, float)), np.atleast_1d(np.asarray(high, float))
    counts = tuple(int(n) for n in np.round((high - low) / width))
    if len(counts) not in (1, 2) or not np.allclose(low + width * np.array(counts), high, rtol=1e-9):
        raise ValueError(f"width: the box must be a whole number of cells in one or two dimensions, got {width!r}")
    masses = cell_masses(log_density, low, counts, width, points)
    common = masses >= RARE
    label = np.where(common, np.cumsum(common) - 1, common.sum())
    return Partition(low, counts, width, label, np.bincount(label, masses), points)


def divergence(observed: np.ndarray, law: np.ndarray) -> float:
    """KL(q || p) of observed counts or probabilities q (classes,) from probabilities p (classes,).

    For n independent draws from p over K classes its mean is (K - 1) / (2 n) to leading order, not 0.
    """
    q = np.asarray(observed, float) / np.sum(observed)
    seen = q > 0
    return float(np.sum(q[seen] * np.log(q[seen] / law[seen])))
