"""Bounded functions of a position, or of the full variable z, with their expectations: what sampling looks at."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import at_temperature, position_rule
from sgmcmc_verification.checks.exact_laws.exact_draws import draw_positions
from sgmcmc_verification.targets.target import Target

SEVERAL = 4
"""Coordinates up to which all of them have functions of their own."""
FINE = 30
"""Nodes a dimension of a rule whose expectations are computed once."""
PILOT = 1 << 12
"""Draws that tell the scale of coordinates where no rule does."""
PER_VARIANCE = 0.3
"""Change of E cos(y) by a relative error of the variance of y, per unit of it, for a normal y."""


class Functions(NamedTuple):
    """Bounded functions of a vector, flat, with their expectations.

    They are cos(w . y) and sin(w . y) of the standardised vector y. A relative error e of a variance changes
    E cos(y) by 0.30 e at a standard deviation of cos(y) of 0.45; for y^2 these are e and 1.41, with heavy tails.

    Attributes:
        values: (.., d) -> (.., K), traceable, and for NumPy arrays: all cosines, then all sines.
        expected: (K,).
        names: of the functions.
        phases: (.., d) -> w . y (.., K / 2), likewise, if the functions are those.
        noisy: (K / 2,) number of a direction w in which noise moves y wherever it moves the state, for each direction.
    """

    values: Callable[[Any], Any]
    expected: np.ndarray
    names: tuple[str, ...]
    phases: Callable[[Any], Any] | None = None
    noisy: tuple[int, ...] = ()


class Auxiliary(NamedTuple):
    """The law N(mean, root root^T) of what z holds beside the position, independent of it.

    Attributes:
        mean: (m,).
        root: (m, m), lower triangular.
    """

    mean: np.ndarray
    root: np.ndarray


def directions(size: int, letter: str = "y") -> tuple[np.ndarray, tuple[str, ...]]:
    """Vectors w (J, d) and their names: multiples of coordinates, sums and differences of neighbours, generic ones."""
    axes = range(size) if size <= SEVERAL else sorted({0, 1, min(9, size - 1), size // 3, size // 2, size - 1})
    eye, found, names = np.eye(size), [], []
    for i in axes:
        found += [eye[i], 2 * eye[i]]
        names += [f"{letter}[{i}]", f"2 {letter}[{i}]"]
    for i, k in itertools.pairwise(axes):
        found += [eye[i] + eye[k], eye[i] - eye[k]]
        names += [f"{letter}[{i}] + {letter}[{k}]", f"{letter}[{i}] - {letter}[{k}]"]
    if size > SEVERAL:
        for n in range(6):
            wave = np.cos((1.3 + 0.7 * n) * np.arange(size) + n)
            found.append(wave / np.linalg.norm(wave))
            names.append(f"w{n}.{letter}")
    return np.stack(found), tuple(names)


def functions_of(target: Target, temperature: float) -> Functions:
    """Bounded functions of the standardised position. Raises NotApplicable if no expectations are known."""
    w, names = directions(target.size)
    phases, cos, sin = _of_position(target, temperature, w)
    return _functions(phases, cos, sin, names)


def functions_of_variable(target: Target, temperature: float, auxiliary: Auxiliary) -> Functions:
    """Bounded functions of z = (position, v), v standardised: of y and v alone, and of both together.

    The noise of a momentum moves the position by the next power of h. Raises as `functions_of`.
    """
    d = target.size
    w, names = directions(d)
    u, others = directions(len(auxiliary.mean), "v")
    pair = [j % len(u) for j in range(len(w))]
    both = np.concatenate([w, np.zeros((len(u), d)), w, w])
    rest = np.concatenate([np.zeros((len(w), len(auxiliary.mean))), u, u[pair], -u[pair]])
    names = (
        *names,
        *others,
        *(f"{a} + {others[k]}" for a, k in zip(names, pair, strict=True)),
        *(f"{a} - ({others[k]})" for a, k in zip(names, pair, strict=True)),
    )
    of_position, cos, sin = _of_position(target, temperature, both)
    matrix = np.linalg.solve(auxiliary.root.T, rest.T).T
    damped = np.exp(-np.sum(rest**2, axis=1) / 2)
    phases = lambda z: of_position(z[..., :d]) + (z[..., d:] - auxiliary.mean) @ matrix.T
    noisy = (*(len(w) + k for k in pair), *range(len(w), len(both)))
    return _functions(phases, damped * cos, damped * sin, names)._replace(noisy=noisy)


def _of_position(
    target: Target, temperature: float, w: np.ndarray
) -> tuple[Callable[[Any], Any], np.ndarray, np.ndarray]:
    """The phases w . y of the standardised position y, and the expectations of their cosines and sines."""
    if target.gaussian is not None:
        root = np.linalg.cholesky(target.gaussian.precision).T / np.sqrt(temperature)
        matrix, centre = w @ root, target.gaussian.mean
        cos, sin = np.exp(-np.sum(w**2, axis=1) / 2), np.zeros(len(w))
    elif target.characteristic is not None and target.size > SEVERAL:
        law = at_temperature(target, temperature)
        assert law.characteristic is not None  # of the same family
        points = draw_positions(law, 1.0, np.random.default_rng(0), PILOT)  # a scale need not be exact
        centre, spread = points.mean(axis=0), points.std(axis=0)
        matrix = w / spread
        turned = law.characteristic(matrix) * np.exp(-1j * (matrix @ centre))
        cos, sin = turned.real, turned.imag
    else:
        points, weights = _rule(target, temperature)
        centre = weights @ points
        spread = np.sqrt(weights @ (points - centre) ** 2)
        # a coordinate that a constraint keeps nearly still has no scale of its own
        matrix = w / np.maximum(spread, 1e-3 * spread.max())
        at = (points - centre) @ matrix.T
        cos, sin = weights @ np.cos(at), weights @ np.sin(at)
    return (lambda x: (x - centre) @ matrix.T), cos, sin


def _rule(target: Target, temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """Points (m, d) and weights (m,) for expectations; the target's own rule where there is none of moderate size."""
    try:
        return position_rule(target, temperature)
    except OutOfReach:
        law = at_temperature(target, temperature)
        if law.quadrature is None:
            raise
        return law.quadrature(FINE)


def _functions(phases: Callable[[Any], Any], cos: np.ndarray, sin: np.ndarray, names: tuple[str, ...]) -> Functions:
    def values(x: Any) -> Any:
        xp = np if isinstance(x, np.ndarray) else jnp
        phase = phases(x)
        return xp.concatenate([xp.cos(phase), xp.sin(phase)], axis=-1)

    both = tuple(f"{f}({name})" for f in ("cos", "sin") for name in names)
    return Functions(values, np.concatenate([cos, sin]), both, phases, tuple(range(len(names))))


def of_one(name: str, letter: str) -> bool:
    """True for the cosine of one number, which moves with its variance: of the position (`y`), or beside it (`v`)."""
    return name.startswith(f"cos({letter}[") and " " not in name
