"""Keys as histories, and draws as the laws that `jax.random` gives them.

The functions of `jax.random` are known by the names of their inner calls and by the file of their code, as on the noise
tape; what they do with the bits of a key is not read.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sgmcmc_verification.checks.proof.draws import Draw, History
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.laws import (
    Beta,
    ChiSquare,
    Exponential,
    Gamma,
    GeneralizedNormal,
    Gumbel,
    Laplace,
    Law,
    LogGamma,
    Logistic,
    Maxwell,
    Normal,
    Rademacher,
    StudentT,
    TruncatedNormal,
    Uniform,
)
from sgmcmc_verification.checks.proof.reader.interpreter import Drawn, Handler, Reader
from sgmcmc_verification.checks.proof.reader.paths import Option
from sgmcmc_verification.checks.proof.reader.predicates import less
from sgmcmc_verification.checks.proof.reader.values import (
    Array,
    Equation,
    RawKey,
    Unknown,
    booleans,
    is_key_type,
    is_symbolic,
    objects,
    scalar,
)
from sgmcmc_verification.checks.proof.series import Series
from sgmcmc_verification.checks.tracing.noise_tape import JAX_RANDOM, file_of, is_complex

MOST_OUTCOMES = 16
"""Values of one integer draw that are followed."""
MOST_ORDERS = 24
"""Orders of a shuffled array that are followed."""
PLAIN: dict[str, Law] = {
    "_normal": Normal(),
    "_normal_real": Normal(),
    "_uniform": Uniform(),
    "_exponential": Exponential(),
    "_laplace": Laplace(),
    "_rademacher": Rademacher(),
    "_gumbel": Gumbel(),
    "_logistic": Logistic(),
    "_maxwell": Maxwell(),
}
"""Inner calls of `jax.random` whose law has no parameter but location and scale."""

OF_PARAMETERS: dict[str, tuple[Callable[..., Law], int]] = {
    "_truncated_normal": (TruncatedNormal, 2),
    "_t": (StudentT, 1),
    "_gamma": (Gamma, 1),
    "_beta": (Beta, 2),
    "_chisquare": (ChiSquare, 1),
    "_generalized_normal": (GeneralizedNormal, 1),
}
"""Inner calls whose law has so many parameters, which have to be numbers."""

SAME_KEY, ONE_KEY = "draws from a key that is the same in every step", "one key for two kinds of draws"
"""Notes on keys."""


def is_draw(equation: Equation) -> bool:
    """True for a call of `jax.random` that draws, and not of another author under such a name."""
    known = equation.params["name"] in (*PLAIN, *OF_PARAMETERS, "_bernoulli", "_randint", "_shuffle")
    return known and str(file_of(equation)) == JAX_RANDOM and not is_complex(equation)


def drawn(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    """The draws of one call, or of one for each key of an array of keys.

    Raises:
        Unreadable: if the key is not known, or the parameters are no numbers.
    """
    keys = np.asarray(inputs[0], object)
    shape = tuple(equation.outvars[0].aval.shape)
    if shape[: keys.ndim] != keys.shape:
        raise Unreadable("draws of several keys whose axes come last")
    inner = shape[keys.ndim :]
    parameters = [
        value for value, v in zip(inputs[1:], equation.invars[1:], strict=True) if not is_key_type(v.aval.dtype)
    ]
    if equation.params["name"] == "_shuffle" and keys.ndim:
        raise Unreadable("several keys that shuffle")
    if keys.ndim and any(np.ndim(value) for value in parameters):
        raise Unreadable("draws of several keys with parameters of their own")
    parts = [_of_one_key(reader, equation, key, inner, parameters) for key in keys.ravel()]
    if all(part.dtype != object for part in parts):
        return [np.concatenate([part.ravel() for part in parts]).reshape(shape)]
    return [objects([item for part in parts for item in part.ravel()], shape)]


def _of_one_key(reader: Reader, equation: Equation, key: Any, shape: tuple[int, ...], parameters: list[Any]) -> Array:
    name = equation.params["name"]
    if not isinstance(key, History):
        raise Unreadable("a draw from a key that is not known")
    if key.is_constant:
        reader.notes.add(f"{SAME_KEY} ({reader.place(equation)})")
    if name == "_randint":
        return _integers(reader, equation, key, shape, parameters)
    if name == "_shuffle":
        return _shuffled(reader, equation, key, parameters[0])
    numbers = [reader.symbols(value) for value in parameters]
    law = _law(equation, numbers)
    use = Drawn(law, shape)
    if reader.drawn.setdefault(key, use) != use:
        reader.notes.add(f"{ONE_KEY} ({reader.place(equation)})")
    size = math.prod(shape)
    plain = reader.given.get(key) or [reader.ring.generator(Draw(law, key, i)) for i in range(size)]
    draws = [reader.space.lift(p) for p in plain]
    if name == "_uniform":
        low, high = (np.broadcast_to(bound, shape).ravel() for bound in numbers[:2])
        draws = [a + u * (b - a) for u, a, b in zip(draws, low, high, strict=True)]
    if name == "_bernoulli":
        chance = np.broadcast_to(numbers[0] if numbers else reader.symbols(0.5), shape).ravel()
        return booleans(objects([less(reader, u, p) for u, p in zip(draws, chance, strict=True)], shape))
    return objects(draws, shape)


def _law(equation: Equation, parameters: list[Array]) -> Law:
    name = equation.params["name"]
    if name not in OF_PARAMETERS:
        return PLAIN.get(name, Uniform())
    law, count = OF_PARAMETERS[name]
    numbers = [_rational(value) for value in parameters[:count]]
    if name == "_gamma" and any(e.params.get("log_space") for e in equation.params["jaxpr"].eqns):
        return LogGamma(*numbers)
    return law(*numbers)


def _rational(value: Array) -> Fraction:
    """The one number that an array holds."""
    series = {entry.constant_term.rational if isinstance(entry, Series) else None for entry in value.ravel()}
    (number,) = series if len(series) == 1 else (None,)
    if number is None:
        raise Unreadable("a law with a parameter that is no number")
    return number


def _integers(reader: Reader, equation: Equation, key: History, shape: tuple[int, ...], bounds: list[Any]) -> Array:
    """Integers of a range, one path for each outcome."""
    if any(is_symbolic(bound) or len(set(np.ravel(bound))) != 1 for bound in bounds[:2]):
        raise Unreadable("integers between bounds that are no numbers")
    low, high = (int(np.ravel(bound)[0]) for bound in bounds[:2])
    count, size = high - low, math.prod(shape)
    if count**size > MOST_OUTCOMES**2 or count > MOST_OUTCOMES:
        raise Unreadable(f"{size} integers of {count} values each")
    use = Drawn(f"integers from {low} to {high - 1}", shape)
    if reader.drawn.setdefault(key, use) != use:
        reader.notes.add(f"{ONE_KEY} ({reader.place(equation)})")
    outcomes = reader.path.outcomes
    if key not in outcomes:
        options = [Option(value, Fraction(1, count)) for value in range(low, high)]
        outcomes[key] = [reader.path.choose(options) for _ in range(size)]
    return np.array(outcomes[key], equation.outvars[0].aval.dtype).reshape(shape)


def _shuffled(reader: Reader, equation: Equation, key: History, rows: Any) -> Array:
    """An array in any order of its first axis, one path for each order."""
    rows = np.asarray(rows)
    count = len(rows)
    if rows.ndim != 1 or math.factorial(count) > MOST_ORDERS:
        raise Unreadable(f"{count} numbers, or rows of numbers, in any order")
    use = Drawn(f"an order of {count}", rows.shape)
    if reader.drawn.setdefault(key, use) != use:
        reader.notes.add(f"{ONE_KEY} ({reader.place(equation)})")
    outcomes, name = reader.path.outcomes, (key, "order")
    if name not in outcomes:
        orders = list(itertools.permutations(range(count)))
        outcomes[name] = list(reader.path.choose([Option(order, Fraction(1, len(orders))) for order in orders]))
    return rows[outcomes[name]]


# Keys -----------------------------------------------------------------------------------------------------------------


def _split(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    del reader
    keys, shape = np.asarray(inputs[0], object), tuple(equation.params["shape"])
    children = [_history(key).child(i) for key in keys.ravel() for i in range(math.prod(shape))]
    return [objects(children, (*keys.shape, *shape))]


def _fold_in(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    del reader, equation
    keys, data = np.asarray(inputs[0], object), np.asarray(inputs[1], object)
    if any(isinstance(x, Series) for x in data.ravel()):
        raise Unreadable("a key that depends on the state or on draws")
    shape = np.broadcast_shapes(keys.shape, data.shape)
    pairs = zip(np.broadcast_to(keys, shape).ravel(), np.broadcast_to(data, shape).ravel(), strict=True)
    children = [_history(key).child("counter" if isinstance(x, Unknown) else int(x)) for key, x in pairs]
    return [objects(children, shape)]


def _unwrap(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    del reader
    keys, words = np.asarray(inputs[0], object), equation.outvars[0].aval.shape[-1]
    return [objects([RawKey(key, i) for key in keys.ravel() for i in range(words)], (*keys.shape, words))]


def _wrap(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    del reader, equation
    rows = np.asarray(inputs[0])
    flat = rows.reshape(-1, rows.shape[-1])
    if rows.dtype != object:
        return [objects([History(tuple(map(int, row))) for row in flat], rows.shape[:-1])]
    keys = []
    for row in flat:
        whole = all(isinstance(word, RawKey) and word.word == i for i, word in enumerate(row))
        if not whole or len({word.key for word in row}) != 1:
            raise Unreadable("a key made of the bits of another")
        keys.append(row[0].key)
    return [objects(keys, rows.shape[:-1])]


def _seed(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    del reader, equation
    if is_symbolic(inputs[0]):
        raise Unreadable("a key seeded by the state or by the bits of another key")
    return [scalar(History((int(inputs[0]),)))]


def _clone(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    del reader, equation
    return [inputs[0]]


def _history(key: Any) -> History:
    if not isinstance(key, History):
        raise Unreadable("a key that is not known")
    return key


KEYS: dict[str, Handler] = {
    "random_split": _split,
    "random_fold_in": _fold_in,
    "random_unwrap": _unwrap,
    "random_wrap": _wrap,
    "random_seed": _seed,
    "random_clone": _clone,
}
