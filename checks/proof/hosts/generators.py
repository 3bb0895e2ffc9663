"""Generators of NumPy that hand out the draws of the ring, or numbers that are known by what they are the draws of.

The n-th call for a law is the child (n, law) of the key of the step: draws of two calls are independent, as they are in
NumPy, and a proof that names a draw can be told its number in a real step.
"""

import math
from collections.abc import Callable
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.proof.hosts.decisions import refuse
from sgmcmc_verification.checks.proof.hosts.symbols import is_symbolic, symbolic, where, written
from sgmcmc_verification.samplers.interface.seeding import Seeding

LAWS: tuple[str, ...] = (
    *("normal", "uniform", "exponential", "laplace", "gumbel", "t", "integers", "order", "key"),
    *("logistic", "gamma", "beta", "chisquare"),
)
"""Laws that are read; the place of one is its number."""


_Generator: Any = np.random.Generator


class Draws(_Generator, Seeding):
    """A generator whose methods rest on one, `drawn`; a law that is not known raises Unreadable.

    Attributes:
        uniforms_are_numbers: what becomes of them is known, in comparisons and elsewhere.
    """

    uniforms_are_numbers = True
    spawn = Seeding.spawn  # and not that of NumPy

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))
        self.calls = 0

    def drawn(self, law: str, shape: tuple[int, ...], *parameters: Any) -> Any:
        """An array of draws of a law of `LAWS`."""
        raise NotImplementedError

    def _next(self, law: str, size: Any, *parameters: Any) -> Any:
        shape = () if size is None else (int(size),) if np.ndim(size) == 0 else tuple(map(int, size))
        self.calls += 1
        found = self.drawn(law, shape, *parameters)
        return found if shape else found[()]

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """N(0, 1)."""
        found = self._next("normal", np.shape(out) if out is not None and size is None else size)
        return _as_asked(found, dtype, out)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """N(loc, scale^2)."""
        return loc + scale * self._next("normal", _size(size, loc, scale))

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Uniform on [0, 1)."""
        found = self._next("uniform", np.shape(out) if out is not None and size is None else size)
        return _as_asked(found, dtype, out)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Uniform on [low, high)."""
        return low + (high - low) * self._next("uniform", _size(size, low, high))

    def standard_exponential(
        self, size: Any = None, dtype: Any = np.float64, method: str = "zig", out: Any = None
    ) -> Any:
        """Exponential of mean one."""
        del method
        found = self._next("exponential", np.shape(out) if out is not None and size is None else size)
        return _as_asked(found, dtype, out)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Exponential of a mean."""
        return scale * self._next("exponential", _size(size, scale))

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """The density exp(-|x - loc| / scale) / (2 scale)."""
        return loc + scale * self._next("laplace", _size(size, loc, scale))

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """The law of Gumbel."""
        return loc + scale * self._next("gumbel", _size(size, loc, scale))

    def standard_t(self, df: Any, size: Any = None) -> Any:
        """Student's t."""
        return self._of_numbers("t", size, df)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """The logistic law."""
        return loc + scale * self._next("logistic", _size(size, loc, scale))

    def standard_gamma(self, shape: Any, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """The gamma law of scale 1."""
        return _as_asked(self._of_numbers("gamma", np.shape(out) if out is not None else size, shape), dtype, out)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        """The gamma law of a shape and a scale."""
        return scale * self._of_numbers("gamma", _size(size, scale), shape)

    def beta(self, a: Any, b: Any, size: Any = None) -> Any:
        """The beta law."""
        return self._of_numbers("beta", size, a, b)

    def chisquare(self, df: Any, size: Any = None) -> Any:
        """The chi-square law."""
        return self._of_numbers("chisquare", size, df)

    def _of_numbers(self, law: str, size: Any, *parameters: Any) -> Any:
        if any(is_symbolic(value) or np.ndim(value) for value in parameters):
            raise refuse(f"the law {law} with parameters that are no numbers")
        return self._next(law, size, *map(float, parameters))

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        """Integers of a range, each as likely as the others."""
        if not is_symbolic(low) and not is_symbolic(high) and (seed := self.new_seed(low, high, size)) is not None:
            return seed
        low, high = (0, low) if high is None else (low, high)
        if is_symbolic(low) or is_symbolic(high) or np.ndim(low) or np.ndim(high):
            raise refuse("integers between bounds that are no numbers")
        return self._next("integers", size, int(low), int(high) + endpoint).astype(dtype)

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
    ) -> Any:
        """Entries of a list of numbers, each as likely as the others."""
        del axis, shuffle
        one = size is None or np.prod(size, dtype=int) == 1
        if np.ndim(a) > 1 or is_symbolic(p) or not (replace or one or p is None):
            raise refuse("a choice of rows, or with probabilities that are no numbers or without replacement")
        if not replace and size is not None and not one:
            return self.permutation(a)[: np.prod(size, dtype=int)].reshape(size)
        if np.ndim(a) == 0 and p is None:
            return self.integers(0, a, size)
        rows = range(int(a)) if np.ndim(a) == 0 else a
        if p is None:
            found = self.integers(0, len(rows), size)
            held = [found == k for k in range(len(rows) - 1)]
        else:
            found = self._next("uniform", size)
            held = [found < bound for bound in np.cumsum(p)[:-1]]
        if size is None and any(isinstance(row, str | tuple) or callable(row) for row in rows):
            return next((row for holds, row in zip(held, rows, strict=False) if holds), rows[-1])
        total = rows[-1] + 0 * found
        for holds, entry in zip(reversed(held), reversed(rows[:-1]), strict=True):
            total = _either(holds, entry, total)
        return total

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """The numbers below one, or those of a list, in any order."""
        if np.ndim(x) > 1 or axis or is_symbolic(x):
            raise refuse("an order of rows, or of numbers that are not known")
        order = self._next("order", x if np.ndim(x) == 0 else len(x))
        return order if np.ndim(x) == 0 else np.asarray(x)[order]

    def multivariate_normal(self, mean: Any, cov: Any, size: Any = None, **kwargs: Any) -> Any:
        """N(mean, cov), by a factor of Cholesky."""
        del kwargs  # how the covariance is looked at, and by which factor it is drawn
        shape = () if size is None else (int(size),) if np.ndim(size) == 0 else tuple(size)
        return mean + self._next("normal", (*shape, np.shape(mean)[-1])) @ np.swapaxes(np.linalg.cholesky(cov), -1, -2)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """A coin."""
        if is_symbolic(n) or np.any(np.asarray(n) != 1):
            raise refuse("a draw of Generator.binomial of more than one coin")
        return (self._next("uniform", _size(size, p)) < p).astype(np.int64)

    def __copy__(self) -> NoReturn:
        raise refuse("a copy of the generator, which draws the same again")

    def __deepcopy__(self, memo: Any) -> NoReturn:
        del memo
        raise refuse("a copy of the generator, which draws the same again")

    def __reduce__(self) -> NoReturn:
        raise refuse("a copy of the generator, which draws the same again")


def _either(holds: Any, one: Any, other: Any) -> Any:
    return where(holds, one, other) if is_symbolic(holds) else np.where(holds, one, other)


def _size(size: Any, *parameters: Any) -> Any:
    return np.broadcast_shapes(*(np.shape(p) for p in parameters)) or None if size is None else size


def _as_asked(found: Any, dtype: Any, out: Any) -> Any:
    found = found.astype(dtype)
    if out is None:
        return found
    if is_symbolic(found):
        return written(found, out)
    out[...] = found
    return out


def _triangular(self: Draws, left: Any, mode: Any, right: Any, size: Any = None) -> Any:
    """By the inverse of the distribution function."""
    u = self.uniform(0.0, 1.0, _size(size, left, mode, right))
    width, up, down = right - left, mode - left, right - mode
    return _either(u * width < up, left + np.sqrt(u * width * up), right - np.sqrt((1 - u) * width * down))


SPECIAL: dict[str, Callable[..., Any]] = {
    "standard_cauchy": lambda self, size=None: self.standard_t(1.0, size),
    "lognormal": lambda self, mean=0.0, sigma=1.0, size=None: np.exp(self.normal(mean, sigma, size)),
    "rayleigh": lambda self, scale=1.0, size=None: scale * np.sqrt(2.0 * self.exponential(1.0, _size(size, scale))),
    "weibull": lambda self, a, size=None: self.exponential(1.0, _size(size, a)) ** (1.0 / a),
    "pareto": lambda self, a, size=None: np.exp(self.exponential(1.0, _size(size, a)) / a) - 1.0,
    "triangular": _triangular,
    "power": lambda self, a, size=None: np.exp(-self.exponential(1.0, _size(size, a)) / a),
}
"""Laws that are functions of others, as the documentation of `numpy.random.Generator` has them."""
for _name, _method in SPECIAL.items():
    setattr(Draws, _name, _method)


def _unread(name: str) -> Callable[..., NoReturn]:
    def method(self: Draws, *args: Any, **kwargs: Any) -> NoReturn:
        del self, args, kwargs
        raise refuse(f"a draw of Generator.{name}")

    return method


for _name in dir(np.random.Generator):
    if not _name.startswith("_") and _name not in vars(Draws):
        _other = _unread(_name)
        setattr(Draws, _name, property(_other) if _name == "bit_generator" else _other)


class SymbolicGenerator(Draws):
    """The draws of a step as symbols.

    Args:
        key: of the step, which JAX records.
        made: draws of other ways through the step, which are those of this one; new ones are put there.
    """

    def __init__(self, key: Any, made: dict[Any, jax.Array] | None = None) -> None:
        super().__init__()
        self.key, self.keys, self.made = key, 0, {} if made is None else made

    def key_of_estimator(self) -> Any:
        """A key for an estimator of JAX, another one each time."""
        self.keys += 1
        return _child(self.key, self.keys, "key")

    def drawn(self, law: str, shape: tuple[int, ...], *parameters: Any) -> Any:
        """Draws of `jax.random`, whose laws the reader knows."""
        call = (self.calls, law, shape, *parameters)
        if call not in self.made:
            self.made[call] = of_key(self.key, *call)
        found = self.made[call]
        if law == "integers":
            return symbolic(found, values=range(*parameters))
        if law == "order":
            return symbolic(found, values=range(shape[0]))
        return symbolic(found, positive=law in ("exponential", "gamma", "beta", "chisquare"))


class KeyedGenerator(Draws):
    """The numbers that the draws of a `SymbolicGenerator` have for a key.

    Args:
        key: of the step.
    """

    def __init__(self, key: jax.Array) -> None:
        super().__init__()
        self.key = key

    def drawn(self, law: str, shape: tuple[int, ...], *parameters: Any) -> Any:
        """Numbers of `jax.random`."""
        return np.array(of_key(self.key, self.calls, law, shape, *parameters))


def of_key(key: Any, call: int, law: str, shape: tuple[int, ...], *parameters: Any) -> jax.Array:
    """The draws of the n-th call in the step of a key."""
    child = _child(key, call, law)
    match law:
        case "integers":
            low, high = parameters
            return jax.random.randint(child, shape, low, high, jnp.int64)
        case "order":
            return jax.random.permutation(child, jnp.arange(shape[0]))
        case "chisquare":
            return jax.random.chisquare(child, *parameters, shape=shape, dtype=jnp.float64)
        case _:
            return getattr(jax.random, law)(child, *parameters, shape, jnp.float64)


def _child(key: Any, call: int, law: str) -> Any:
    return jax.random.fold_in(jax.random.fold_in(key, call), LAWS.index(law))


class NumberedGenerator(Draws):
    """The draws of a step as numbers, which `numbers` gives again.

    Args:
        seed: of the step.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def drawn(self, law: str, shape: tuple[int, ...], *parameters: Any) -> Any:
        """Numbers of their law."""
        return numbers(self.seed, self.calls, law, math.prod(shape), *parameters).reshape(shape)


def numbers(seed: int, call: int, law: str, size: int, *parameters: Any) -> np.ndarray[Any, Any]:
    """The draws (size,) of the n-th call in a step of a seed."""
    generator = np.random.default_rng([seed, call, LAWS.index(law)])
    match law:
        case "integers":
            return generator.integers(*parameters, size=size)
        case "order":
            return generator.permutation(size)
        case "t":
            return generator.standard_t(*parameters, size=size)
        case "normal" | "exponential":
            return getattr(generator, f"standard_{law}")(size)
        case _:
            return getattr(generator, law)(*parameters, size=size)
