"""Determinants and linear equations over the ring, for the small matrices of a few draws."""

from collections.abc import Sequence

from sgmcmc_verification.checks.proof.functions import power
from sgmcmc_verification.checks.proof.ring import Polynomial


def determinant(rows: Sequence[Sequence[Polynomial]]) -> Polynomial:
    """The determinant, by expansion along the first row."""
    if len(rows) == 1:
        return rows[0][0]
    ring = rows[0][0].ring
    minor = lambda j: determinant([[*row[:j], *row[j + 1 :]] for row in rows[1:]])
    return ring.sum((a * minor(j)).scaled((-1) ** j) for j, a in enumerate(rows[0]) if a)


def solution(matrix: Sequence[Sequence[Polynomial]], side: Sequence[Polynomial]) -> list[Polynomial]:
    """x with matrix x = side, by Cramer's rule. Raises Unreadable if the determinant is zero."""
    inverse = power(determinant(matrix), -1)
    n = range(len(side))
    replaced = lambda j: [[side[i] if k == j else matrix[i][k] for k in n] for i in n]
    return [inverse * determinant(replaced(j)) for j in n]
