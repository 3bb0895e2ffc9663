"""Bounded functions of a position, or of the full variable z, with their expectations: what sampling looks at."""

import itertools
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

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
        walkers: number of them over which the first half of the values are means; the others are of the first one.
    """

    values: Callable[[Any], Any]
    expected: np.ndarray
    names: tuple[str, ...]
    phases: Callable[[Any], Any] | None = None
    noisy: tuple[int, ...] = ()
    walkers: int = 1


class Rest(Protocol):
    """A law of what z holds beside the position, v (m,), independent of it, in directions of the standardised v."""

    @property
    def size(self) -> int:
        """m."""
        ...

    @property
    def kicks(self) -> bool:
        """True if noise enters v, and moves the position by the next power of h."""
        ...

    def draws(self, generator: np.random.Generator, count: int) -> np.ndarray:
        """Exact draws (count, m)."""
        ...

    def phases(self, u: np.ndarray) -> Callable[[Any], Any]:
        """v (.., m) -> u . (standardised v) (.., J), for u (J, m)."""
        ...

    def characteristic(self, u: np.ndarray) -> np.ndarray:
        """E exp(i u . (standardised v)) (J,)."""
        ...


class Auxiliary(NamedTuple):
    """The law N(mean, root root^T), of momenta and thermostats.

    Attributes:
        mean: (m,).
        root: (m, m), lower triangular.
    """

    mean: np.ndarray
    root: np.ndarray

    @property
    def size(self) -> int:
        """m."""
        return len(self.mean)

    @property
    def kicks(self) -> bool:
        """True: a momentum moves the position."""
        return True

    def draws(self, generator: np.random.Generator, count: int) -> np.ndarray:
        """Exact draws (count, m)."""
        return self.mean + generator.standard_normal((count, self.size)) @ self.root.T

    def phases(self, u: np.ndarray) -> Callable[[Any], Any]:
        """v (.., m) -> u . (standardised v) (.., J), for u (J, m)."""
        matrix = np.linalg.solve(self.root.T, u.T).T
        return lambda v: (v - self.mean) @ matrix.T

    def characteristic(self, u: np.ndarray) -> np.ndarray:
        """E exp(i u . (standardised v)) (J,)."""
        return np.exp(-np.sum(u**2, axis=1) / 2).astype(complex)


class Copies(NamedTuple):
    """The law of walkers beside the one that is the position: independent draws of the target, each at its temperature.

    Attributes:
        target: of each.
        temperatures: of each.
    """

    target: Target
    temperatures: tuple[float, ...]

    @property
    def size(self) -> int:
        """m, the numbers of all."""
        return len(self.temperatures) * self.target.size

    @property
    def kicks(self) -> bool:
        """False: each is moved as the position is."""
        return False

    def draws(self, generator: np.random.Generator, count: int) -> np.ndarray:
        """Exact draws (count, m)."""
        # walker by walker: each number of draws has a program of its own
        each = [draw_positions(self.target, t, generator, count) for t in self.temperatures]
        return np.concatenate(each, axis=1)

    def phases(self, u: np.ndarray) -> Callable[[Any], Any]:
        """v (.., m) -> u . (standardised v) (.., J), for u (J, m)."""
        d = self.target.size
        each = [standard.phases(part) for standard, part in self._parts(u)]
        return lambda v: sum(f(v[..., i * d : (i + 1) * d]) for i, f in enumerate(each))

    def characteristic(self, u: np.ndarray) -> np.ndarray:
        """E exp(i u . (standardised v)) (J,)."""
        return np.prod([standard.characteristic(part) for standard, part in self._parts(u)], axis=0)

    def _parts(self, u: np.ndarray) -> list[tuple["Standardised", np.ndarray]]:
        parts = np.split(u, len(self.temperatures), axis=1)
        return [(standardised(self.target, t), part) for t, part in zip(self.temperatures, parts, strict=True)]


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
    standard = standardised(target, temperature)
    return _functions(standard.phases(w), standard.characteristic(w), names)


def functions_of_variable(target: Target, temperature: float, law: Rest) -> Functions:
    """Bounded functions of z = (position, v), v standardised: of y and v alone, and of both together.

    The noise of a momentum moves the position by the next power of h. Raises as `functions_of`.
    """
    d = target.size
    w, names = directions(d)
    u, others = directions(law.size, "v")
    pair = [j % len(u) for j in range(len(w))]
    both = np.concatenate([w, np.zeros((len(u), d)), w, w])
    rest = np.concatenate([np.zeros((len(w), law.size)), u, u[pair], -u[pair]])
    names = (
        *names,
        *others,
        *(f"{a} + {others[k]}" for a, k in zip(names, pair, strict=True)),
        *(f"{a} - ({others[k]})" for a, k in zip(names, pair, strict=True)),
    )
    standard = standardised(target, temperature)
    of_position, of_rest = standard.phases(both), law.phases(rest)
    phases = lambda z: of_position(z[..., :d]) + of_rest(z[..., d:])
    found = _functions(phases, standard.characteristic(both) * law.characteristic(rest), names)
    noisy = (*(len(w) + k for k in pair), *range(len(w), len(both)))
    return found._replace(noisy=noisy) if law.kicks else found


class Standardised(NamedTuple):
    """The standardised position y = root (x - centre) of a target.

    Attributes:
        centre: (d,).
        root: (d, d).
        characteristic: w (J, d) -> E exp(i w . y) (J,).
    """

    centre: np.ndarray
    root: np.ndarray
    characteristic: Callable[[np.ndarray], np.ndarray]

    def phases(self, w: np.ndarray) -> Callable[[Any], Any]:
        """x (.., d) -> w . y (.., J), for w (J, d)."""
        matrix = w @ self.root
        return lambda x: (x - self.centre) @ matrix.T


@lru_cache(maxsize=16)
def standardised(target: Target, temperature: float) -> Standardised:
    """That of a target. Raises NotApplicable if no expectations are known."""
    if target.gaussian is not None:
        root = np.linalg.cholesky(target.gaussian.precision).T / np.sqrt(temperature)
        return Standardised(target.gaussian.mean, root, lambda w: np.exp(-np.sum(w**2, axis=1) / 2).astype(complex))
    if target.characteristic is not None and target.size > SEVERAL:
        known = at_temperature(target, temperature).characteristic
        assert known is not None  # of the same family
        points = draw_positions(at_temperature(target, temperature), 1.0, np.random.default_rng(0), PILOT)
        centre, root = points.mean(axis=0), np.diag(1 / points.std(axis=0))  # a scale need not be exact
        return Standardised(centre, root, lambda w: known(w @ root) * np.exp(-1j * (w @ root @ centre)))
    points, weights = _rule(target, temperature)
    centre = weights @ points
    spread = np.sqrt(weights @ (points - centre) ** 2)
    # a coordinate that a constraint keeps nearly still has no scale of its own
    root = np.diag(1 / np.maximum(spread, 1e-3 * spread.max()))
    y = (points - centre) @ root
    return Standardised(centre, root, lambda w: weights @ np.exp(1j * (y @ w.T)))


def _rule(target: Target, temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """Points (m, d) and weights (m,) for expectations; the target's own rule where there is none of moderate size."""
    try:
        return position_rule(target, temperature)
    except OutOfReach:
        law = at_temperature(target, temperature)
        if law.quadrature is None:
            raise
        return law.quadrature(FINE)


def _functions(phases: Callable[[Any], Any], expected: np.ndarray, names: tuple[str, ...]) -> Functions:
    def values(x: Any) -> Any:
        xp = np if isinstance(x, np.ndarray) else jnp
        phase = phases(x)
        return xp.concatenate([xp.cos(phase), xp.sin(phase)], axis=-1)

    both = tuple(f"{f}({name})" for f in ("cos", "sin") for name in names)
    return Functions(
        values, np.concatenate([np.real(expected), np.imag(expected)]), both, phases, tuple(range(len(names)))
    )


def of_one(name: str, letter: str) -> bool:
    """True for the cosine of one number, which moves with its variance: of the position (`y`), or beside it (`v`)."""
    return name.startswith(f"cos({letter}[") and " " not in name
