"""Factorisations of small matrices of series, by the elimination of textbooks.

Pivots are the first entries that are not zero: which one is taken changes the rounding of a program and none of its
values. Eigenvectors of a 2 x 2 matrix are those of the closed form; a larger one has to fall into such blocks. The
exponential of a matrix that vanishes with h is its series, sum_k a^k / k!; it is known by its name and file, as draws
are, since its program chooses an approximation by the size of the matrix.
"""

import inspect
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import jax.scipy.linalg
import numpy as np

from sgmcmc_verification.checks.proof.errors import PrecisionLost, Unreadable
from sgmcmc_verification.checks.proof.reader.arithmetic import inner_product
from sgmcmc_verification.checks.proof.reader.interpreter import Handler, Reader
from sgmcmc_verification.checks.proof.reader.values import Array, Equation, objects
from sgmcmc_verification.checks.proof.series import Series, raised
from sgmcmc_verification.checks.tracing.noise_tape import file_of

HALF = Fraction(1, 2)
JAX_LINEAR_ALGEBRA = str(Path(inspect.getsourcefile(inspect.unwrap(jax.scipy.linalg.expm)) or "").resolve())


def _matrices(reader: Reader, value: Any) -> tuple[list[Array], tuple[int, ...]]:
    """The matrices of a batch, and the shape of the batch."""
    array = reader.symbols(value)
    batch = array.shape[:-2]
    return list(array.reshape(-1, *array.shape[-2:])), batch


def _batched(parts: Sequence[Array], batch: tuple[int, ...]) -> Array:
    return np.stack(list(parts)).reshape(*batch, *parts[0].shape)


def _cholesky(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    del equation
    matrices, batch = _matrices(reader, inputs[0])
    return [_batched([_lower_root(reader, a) for a in matrices], batch)]


def _lower_root(reader: Reader, a: Array) -> Array:
    n = len(a)
    root = objects([reader.space.zero] * n**2, (n, n))
    for j in range(n):
        root[j, j] = raised(a[j, j] - inner_product(reader, root[j, :j], root[j, :j]), HALF)
        for i in range(j + 1, n):
            root[i, j] = (a[i, j] - inner_product(reader, root[i, :j], root[j, :j])) * raised(root[j, j], -1)
    return root


def _triangular_solve(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    parameters = equation.params
    factors, batch = _matrices(reader, inputs[0])
    sides, _ = _matrices(reader, inputs[1])
    solved = []
    for a, b in zip(factors, sides, strict=True):
        matrix = a.T if parameters["transpose_a"] else a
        lower = parameters["lower"] != parameters["transpose_a"]
        if not parameters["left_side"]:  # x a = b is a^T x^T = b^T
            matrix, lower = matrix.T, not lower
        x = _substituted(reader, matrix, b if parameters["left_side"] else b.T, lower, parameters["unit_diagonal"])
        solved.append(x if parameters["left_side"] else x.T)
    return [_batched(solved, batch)]


def _substituted(reader: Reader, a: Array, b: Array, lower: bool, unit: bool) -> Array:
    """x with a x = b, forwards or backwards."""
    n, x = len(a), b.copy()
    for i in range(n) if lower else reversed(range(n)):
        known = range(i) if lower else range(i + 1, n)
        scale = reader.space.one if unit else raised(a[i, i], -1)
        for k in range(b.shape[1]):
            left = b[i, k]
            for j in known:
                left = left - a[i, j] * x[j, k]
            x[i, k] = left * scale
    return x


def _lu(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    matrices, batch = _matrices(reader, inputs[0])
    parts = [_eliminated(a) for a in matrices]
    types = [v.aval.dtype for v in equation.outvars]
    rows = [np.array(row, types[2]) for _, _, row in parts]
    pivots = [np.array(pivot, types[1]) for _, pivot, _ in parts]
    return [_batched([a for a, _, _ in parts], batch), _batched(pivots, batch), _batched(rows, batch)]


def _eliminated(a: Array) -> tuple[Array, list[int], list[int]]:
    """L and U in one matrix, the rows that were exchanged, and the order of the rows."""
    n, a = len(a), a.copy()
    rows, pivots = list(range(n)), []
    for k in range(n):
        pivot = next((i for i in range(k, n) if a[i, k]), k)
        if not a[pivot, k].is_zero and not a[pivot, k]:
            raise PrecisionLost
        pivots.append(pivot)
        if pivot != k:
            a[[k, pivot]] = a[[pivot, k]]
            rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(k + 1, n):
            if not a[i, k].is_zero:
                a[i, k] = a[i, k] * raised(a[k, k], -1)
                for j in range(k + 1, n):
                    a[i, j] = a[i, j] - a[i, k] * a[k, j]
    return a, pivots, rows


def _eigh(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    matrices, batch = _matrices(reader, inputs[0])
    parts = [_eigen(reader, a) for a in matrices]
    values, vectors = _batched([w for w, _ in parts], batch), _batched([v for _, v in parts], batch)
    return [vectors, values] if equation.outvars[0].aval.ndim > equation.outvars[1].aval.ndim else [values, vectors]


def _eigen(reader: Reader, a: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors (in columns), in any order, of a matrix that falls into small blocks."""
    n, space = len(a), reader.space
    values, vectors = objects([space.zero] * n, (n,)), objects([space.zero] * n**2, (n, n))
    for block in _blocks(a):
        if len(block) == 1:
            values[block[0]], vectors[block[0], block[0]] = a[block[0], block[0]], space.one
        elif len(block) == 2:
            values[block], vectors[np.ix_(block, block)] = _eigen_of_two(reader, a[np.ix_(block, block)])
        else:
            raise Unreadable(f"eigh of a matrix with a block of {len(block)} rows")
    return values, vectors


def _blocks(a: Array) -> list[list[int]]:
    """Places that hang together through entries that are not zero; between blocks all entries are."""
    left, found = set(range(len(a))), []
    while left:
        block, new = set[int](), {min(left)}
        while new:
            block |= new
            new = {j for i in block for j in left - block if not a[i, j].is_zero or not a[j, i].is_zero}
        left -= block
        found.append(sorted(block))
    return found


def _eigen_of_two(reader: Reader, a: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of a matrix of two rows whose other diagonal is not zero."""
    space = reader.space
    b = (a[0, 1] + a[1, 0]).scaled(HALF)
    mean, half = (a[0, 0] + a[1, 1]).scaled(HALF), (a[0, 0] - a[1, 1]).scaled(HALF)
    # both are often of a high order, as in 2 h I - h^2 V: what they share is taken out before they are squared
    shared = min(b.valuation, half.valuation)
    if shared > space.order:
        raise PrecisionLost
    b, half = b.shifted(-shared), half.shifted(-shared)
    root = raised(half * half + b * b, HALF)
    # (b, root - half) and (half - root, b) are orthogonal, of the same length, and not zero as long as b is not
    other = root - half
    scale = raised(b * b + other * other, -HALF)
    spread = root.shifted(shared)
    values = objects([mean + spread, mean - spread], (2,))
    return values, objects([b * scale, -other * scale, other * scale, b * scale], (2, 2))


def is_exponential(equation: Equation) -> bool:
    """True for a call of `jax.scipy.linalg.expm`, and not of another author's function of this name."""
    return equation.params["name"] == "expm" and str(file_of(equation)) == JAX_LINEAR_ALGEBRA


def exponential(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    """exp of each matrix of a batch. Raises Unreadable if one does not vanish as h -> 0."""
    del equation
    matrices, batch = _matrices(reader, inputs[0])
    return [_batched([_exponential(reader, a) for a in matrices], batch)]


def _exponential(reader: Reader, a: Array) -> Array:
    n, space = len(a), reader.space
    if any(not entry.is_zero and entry.valuation < 1 for entry in a.ravel()):
        raise Unreadable("expm of a matrix that does not vanish as h -> 0")
    term = objects([space.one if i == j else space.zero for i in range(n) for j in range(n)], (n, n))
    total = term
    for k in range(1, space.order + 2):
        term = objects([inner_product(reader, row, column) for row in term for column in a.T], (n, n))
        term = objects([entry.scaled(Fraction(1, k)) for entry in term.ravel()], (n, n))
        total = objects([x + y for x, y in zip(total.ravel(), term.ravel(), strict=True)], (n, n))
    zero = all(entry.is_zero for entry in a.ravel())
    known = lambda entry: entry if zero else Series(space, entry.coefficients, min(entry.precision, space.order + 1))
    return objects([known(entry) for entry in total.ravel()], (n, n))


def _permutation(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    """`lu_pivots_to_permutation`."""
    del reader
    pivots, size = np.asarray(inputs[0]), equation.params["permutation_size"]
    rows = []
    for row in pivots.reshape(-1, pivots.shape[-1]):
        order = list(range(size))
        for i, j in enumerate(row):
            order[i], order[j] = order[j], order[i]
        rows.append(order)
    return [np.array(rows, equation.outvars[0].aval.dtype).reshape(*pivots.shape[:-1], size)]


LINEAR_ALGEBRA: dict[str, Handler] = {
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "lu": _lu,
    "lu_pivots_to_permutation": _permutation,
    "eigh": _eigh,
}
