"""The noise tape for torch: every random number that torch draws comes from a given NumPy generator.

A torch step then is a host step: with a `numpy.random.Generator` it runs as usual, and with a generator that walks the
nodes of a quadrature, or hands out chosen values, its expectations over the noise are exact.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from sgmcmc_verification.samplers.adapters.common import Foreign
from sgmcmc_verification.samplers.adapters.torch.crossing import to_array, to_tensor
from sgmcmc_verification.samplers.adapters.torch.streams import Streams
from sgmcmc_verification.samplers.estimators.host import Unintercepted
from sgmcmc_verification.samplers.interface.seeding import Seeding

_COMPARISONS = {"lt": (0, 1), "le": (0, 1), "gt": (1, 0), "ge": (1, 0)}
"""Comparison `first ? second` -> which argument has to be the smaller one for it to be true."""


_SAME_NUMBERS = {
    *("view", "_unsafe_view", "squeeze", "unsqueeze", "select", "expand"),
    *("detach", "alias", "clone", "_to_copy"),
}
"""Operations that show numbers in another shape or type."""


@dataclass(eq=False)
class _Draw:
    """A uniform draw; `fresh` until something is compared with it."""

    fresh: bool = True


class _Unknown(NamedTuple):
    """An increasing or decreasing function of a uniform draw, whose value nobody knows.

    Attributes:
        draw: it is made from.
        below: threshold -> the chance that the function is less.
    """

    draw: _Draw
    below: Callable[[np.ndarray], np.ndarray]


class Tape(TorchDispatchMode):
    """Answer torch's random operations with draws of `generator`.

    All operations that consume torch's own random numbers carry the tag `nondeterministic_seeded`, below autograd,
    `torch.func` and every Python name that they are imported under. Draws of a law are those of the generator's method
    for it. A uniform draw is a number of NumPy's own generator, and of one that says that it knows what becomes of it
    (`uniforms_are_numbers`). For any other it is not filled in: it, its logarithm, or either with another sign may only
    be compared with a threshold, which is a coin, `generator.binomial(1, p)`, so that no quadrature meets a jump. Draws
    under `torch.func.vmap` with `randomness="different"` arrive here with the batch in their shape.

    Args:
        generator: with the methods of `numpy.random.Generator`.
        streams: of the generators of torch that the step seeds by itself.

    Raises:
        Unintercepted: where torch draws from any other law, a uniform draw is used in another way, or a generator of
            torch has a seed that it may not have, or draws the same again in another way.
    """

    def __init__(self, generator: np.random.Generator, streams: Streams) -> None:
        super().__init__()
        self.generator, self.streams = generator, streams
        self.uniforms = WeakIdKeyDictionary()
        self.numbers = getattr(type(generator), "uniforms_are_numbers", type(generator) is np.random.Generator)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: nothing is compiled here, and torch's guard against that costs more than an operation."""
        return False

    def __torch_dispatch__(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, func: Foreign, types: tuple, args: Sequence[Foreign] = (), kwargs: dict[str, Foreign] | None = None
    ) -> Foreign:
        del types
        kwargs = dict(kwargs or {})
        drawn = torch.Tag.nondeterministic_seeded in func.tags
        if drawn:
            self.streams.draw_at(func, args, kwargs)
        kwargs.pop("generator", None)
        if drawn:
            return self._draw(func, args, kwargs)
        if len(self.uniforms) and any(isinstance(a, torch.Tensor) and a in self.uniforms for a in args):
            return self._of_unknown(func, args, kwargs)
        return func(*args, **kwargs)

    def _draw(self, func: Foreign, args: Sequence[Foreign], kwargs: dict[str, Foreign]) -> torch.Tensor:
        name, overload = func.overloadpacket.__name__, func._overloadname
        if name == "randn":
            return self._normal(torch.empty(args[0], **_like(kwargs)))
        if name == "randn_like":
            return self._normal(torch.empty_like(args[0], **_like(kwargs)))
        if name == "normal_":
            mean, std = _parameters(args, kwargs)
            return self._normal(args[0], mean, std)
        if name == "normal" and overload == "float_float":
            return self._normal(torch.empty(args[2], **_like(kwargs)), args[0], args[1])
        if name == "normal" and overload in ("Tensor_float", "float_Tensor", "Tensor_Tensor"):
            tensor = args[0] if isinstance(args[0], torch.Tensor) else args[1]
            mean, std = (args[0], args[1]) if len(args) > 1 else (args[0], kwargs.get("std", 1.0))
            shape = torch.broadcast_shapes(*(a.shape for a in (mean, std) if isinstance(a, torch.Tensor)))
            return self._normal(tensor.new_empty(shape), mean, std)
        if name == "rand":
            return self._uniform(torch.empty(args[0], **_like(kwargs)))
        if name == "rand_like":
            return self._uniform(torch.empty_like(args[0], **_like(kwargs)))
        return self._draw_of_another_law(func, args, kwargs)

    def _draw_of_another_law(self, func: Foreign, args: Sequence[Foreign], kwargs: dict[str, Foreign]) -> torch.Tensor:
        name = func.overloadpacket.__name__

        def draws(method: str, *parameters: Foreign) -> Callable[[Foreign], Foreign]:
            if not hasattr(self.generator, method):
                raise Unintercepted(f"torch {func}")
            return lambda size: getattr(self.generator, method)(*parameters, size)

        match name, args:
            case "uniform_", [out, *bounds] if self.numbers or not (bounds or kwargs):
                return self._uniform(out, *_bounds(torch.finfo(out.dtype).eps, *bounds, **kwargs))
            case "exponential_", [out, *rate]:
                (rate,) = rate or [kwargs.get("lambd", 1.0)]
                return self._filled(out, draws("standard_exponential"), law=name).div_(rate)
            case "_standard_gamma", [shapes] if len(set(shapes.reshape(-1).tolist())) == 1:
                return self._filled(torch.empty_like(shapes), draws("standard_gamma", shapes.reshape(-1).tolist()[0]))
            case "bernoulli" | "bernoulli_", [like, *chance]:
                (chance,) = chance or [kwargs.get("p", 0.5 if name == "bernoulli_" else like)]
                out = like if name == "bernoulli_" else torch.empty_like(like)
                return self._filled(out, draws("binomial", 1, to_array(torch.as_tensor(chance))))
            case "randint", [*bounds, shape]:
                low, high = (0, *bounds) if len(bounds) == 1 else bounds
                out = torch.empty(shape, **{"dtype": torch.int64, **_like(kwargs)})
                seeding: Seeding | None = self.generator if isinstance(self.generator, Seeding) else None
                seed = seeding.new_seed(low, high, None) if seeding is not None and out.numel() == 1 else None
                return self._filled(out, draws("integers", low, high) if seed is None else lambda _: seed)
            case "randperm", [count]:
                out = torch.empty(count, **{"dtype": torch.int64, **_like(kwargs)})
                permutation = draws("permutation")
                return self._filled(out, lambda size: permutation(size[0]))
        raise Unintercepted(f"torch {func}")

    def _filled(
        self, out: torch.Tensor, draw: Callable[[tuple[int, ...]], Foreign], law: object = None
    ) -> torch.Tensor:
        """Fill `out` with draws of its shape."""
        shape = tuple(out.shape)
        return out.copy_(to_tensor(np.asarray(self.streams.numbers(law, shape, draw)).reshape(shape)))

    def _normal(
        self, out: torch.Tensor, mean: torch.Tensor | float = 0.0, std: torch.Tensor | float = 1.0
    ) -> torch.Tensor:
        """Fill `out` with mean + std n, n from the generator."""
        draws = self._filled(torch.empty(out.shape, dtype=torch.float64), self.generator.standard_normal, law="normal")
        return out.copy_(mean + std * draws)

    def _uniform(self, out: torch.Tensor, low: float = 0.0, high: float = 1.0) -> torch.Tensor:
        """Uniform draws; where they are no numbers, values that nobody can compute with.

        They are remembered, so that a comparison with them can be drawn.
        """
        if self.numbers:
            return self._filled(out, lambda size: self.generator.uniform(low, high, size), law=("uniform", low, high))
        self.streams.numbers(None, tuple(out.shape), lambda _: None)
        out.fill_(float("nan"))
        self.uniforms[out] = _Unknown(_Draw(), lambda threshold: threshold.clip(0.0, 1.0))
        return out

    def _of_unknown(self, func: Foreign, args: Sequence[Foreign], kwargs: dict[str, Foreign]) -> torch.Tensor:
        """The result of an operation on a draw that is not filled in."""
        name, first = func.overloadpacket.__name__, args[0]
        if name in _COMPARISONS or not (isinstance(first, torch.Tensor) and first in self.uniforms):
            return self._compare(func, args)
        draw, below = unknown = self.uniforms[first]
        if name == "log":
            unknown = _Unknown(draw, lambda threshold: below(np.exp(np.minimum(threshold, 1.0))))
        elif name == "neg":
            unknown = _Unknown(draw, lambda threshold: 1.0 - below(-threshold))
        out = func(*args, **kwargs) if name in _SAME_NUMBERS | {"log", "neg"} else None
        if out is None or out.numel() != first.numel():
            raise _used_otherwise(func)
        self.uniforms[out] = unknown
        return out

    def _compare(self, func: Foreign, args: Sequence[Foreign]) -> torch.Tensor:
        name = func.overloadpacket.__name__
        if name in _COMPARISONS and len(args) == 2:
            smaller, larger = (args[i] for i in _COMPARISONS[name])
            uniform_is_smaller = isinstance(smaller, torch.Tensor) and smaller in self.uniforms
            uniform, threshold = (smaller, larger) if uniform_is_smaller else (larger, smaller)
            draw, below_threshold = self.uniforms[uniform]
            if draw.fresh and not (isinstance(threshold, torch.Tensor) and threshold in self.uniforms):
                draw.fresh = False  # a second comparison of the same draw would be no fresh coin
                below = below_threshold(np.broadcast_to(np.asarray(torch.as_tensor(threshold)), uniform.shape))
                heads = self.generator.binomial(1, below if uniform_is_smaller else 1.0 - below)
                return torch.from_numpy(np.asarray(heads, bool).reshape(tuple(uniform.shape)))
        raise _used_otherwise(func)


def _used_otherwise(func: Foreign) -> Unintercepted:
    return Unintercepted(f"a uniform draw of torch in {func}: it can only be compared, once, with a threshold")


def _like(kwargs: dict[str, Foreign]) -> dict[str, Foreign]:
    return {k: v for k, v in kwargs.items() if k in ("dtype", "device", "layout", "memory_format") and v is not None}


def _parameters(args: Sequence[Foreign], kwargs: dict[str, Foreign]) -> tuple[Foreign, Foreign]:
    """(mean, std) of `Tensor.normal_`."""
    mean = args[1] if len(args) > 1 else kwargs.get("mean", 0.0)
    std = args[2] if len(args) > 2 else kwargs.get("std", 1.0)
    return mean, std


def _bounds(rounding: float, low: float = 0.0, high: float = 1.0, **named: float) -> tuple[float, float]:
    """Bounds of `Tensor.uniform_`; those that `torch.distributions` has moved by one rounding are where they were."""
    low, high = named.get("from", low), named.get("to", high)
    return round(low) if abs(low - round(low)) <= rounding else low, high


@contextmanager
def draws_from(generator: np.random.Generator, seeds: Sequence[int] | None = None) -> Iterator[Tape]:
    """Run torch in float64 with all its draws from `generator`; the default dtype is restored afterwards.

    Args:
        generator: with the methods of `numpy.random.Generator`.
        seeds: those that a generator of torch may have; None if any may.

    Raises:
        Unintercepted: as `Tape`; if a seed was drawn and used for anything else.
    """
    before, streams = torch.get_default_dtype(), Streams(seeds)
    following = generator.following() if isinstance(generator, Seeding) else nullcontext(())
    torch.set_default_dtype(torch.float64)
    try:
        with following as handed_out:
            with Tape(generator, streams) as tape:
                yield tape
            streams.require_used(handed_out)
    finally:
        streams.end()
        torch.set_default_dtype(before)


class _Uniform:
    """A uniform draw of NumPy that may be compared with a threshold, once."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def _below(self, threshold: float) -> bool:
        if self._generator is None:
            self._refuse()
        generator, self._generator = self._generator, None
        return bool(np.all(generator.binomial(1, np.clip(float(threshold), 0.0, 1.0))))

    def __lt__(self, threshold: float) -> bool:
        return self._below(threshold)

    __le__ = __lt__

    def __ge__(self, threshold: float) -> bool:
        return not self._below(threshold)

    __gt__ = __ge__

    def _refuse(self, *_: object) -> NoReturn:
        raise Unintercepted("a uniform draw of numpy.random.rand: it can only be compared, once, with a threshold")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __neg__ = _refuse
    __float__ = __array__ = __getitem__ = _refuse


@contextmanager
def numpy_uniforms_from(generator: np.random.Generator) -> Iterator[None]:
    """Give `numpy.random.rand(1)`, which some torch libraries accept or reject with, a coin of `generator`."""

    def rand(*shape: int) -> _Uniform:
        if int(np.prod(shape, dtype=int)) != 1:
            raise Unintercepted(f"numpy.random.rand{shape}")
        return _Uniform(generator)

    before = np.random.rand
    np.random.rand = rand
    try:
        yield
    finally:
        np.random.rand = before
