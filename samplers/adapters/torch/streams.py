"""Generators of torch that a step seeds by itself, on the noise tape: one place of a stream, one number."""

from collections.abc import Callable, Iterable, Sequence

import torch

from sgmcmc_verification.samplers.adapters.common import Foreign
from sgmcmc_verification.samplers.estimators.host import Unintercepted
from sgmcmc_verification.samplers.interface.seeding import APART


class Streams:
    """Generators of torch that a step seeds by itself: from the same place of the same stream come the same numbers.

    Torch's own generator is one of them once it has been seeded since the tape began. They are drawn from, so that they
    go on; those that were given are put back at the end.

    Args:
        seeds: those that a generator may have; None if any may.

    Attributes:
        place: the seed of the stream that is drawn from, and a hash of its state; None for a stream that nobody seeded.
        used: seeds of all streams that were drawn from.
    """

    def __init__(self, seeds: Sequence[int] | None) -> None:
        self.seeds = seeds
        self.place: tuple[int, int] | None = None
        self.used = {torch.default_generator.initial_seed()}
        self._own = self._state(torch.default_generator)
        self._drawn: dict[tuple[int, int], tuple[object, tuple[int, ...], Foreign]] = {}
        self._before: list[tuple[torch.Generator, torch.Tensor]] = []

    @staticmethod
    def _state(generator: torch.Generator) -> bytes:
        return generator.get_state().numpy().tobytes()

    def draw_at(self, func: Foreign, args: Sequence[Foreign], kwargs: dict[str, Foreign]) -> None:
        """Note the place of the next draw in its stream; None for a stream that nobody seeded.

        Raises:
            Unintercepted: if its seed is none of those that a generator may have.
        """
        generator = kwargs.get("generator") or torch.default_generator
        now = self._state(generator)
        if self.seeds is None and generator is torch.default_generator and now == self._own:
            self.place = None
            return
        seed = generator.initial_seed()
        if self.seeds is not None and seed not in self.seeds:
            raise Unintercepted("a generator of torch that was not seeded by the generator of the step")
        self.used.add(seed)
        self.place = seed, hash(now)
        if generator is not torch.default_generator and not any(g is generator for g, _ in self._before):
            self._before.append((generator, generator.get_state()))
        with torch.no_grad():
            copies = [a.detach().clone() if isinstance(a, torch.Tensor) else a for a in args]
            func(*copies, **kwargs)  # the generator goes on

    def numbers(self, law: object, shape: tuple[int, ...], draw: Callable[[tuple[int, ...]], Foreign]) -> Foreign:
        """Numbers from `draw`, or those that came from this place before.

        Args:
            law: of the draw, with its parameters; None if it cannot be told from others.
            shape: of the numbers.
            draw: shape -> new numbers.
        """
        if self.place is None:
            return draw(shape)
        if self.place not in self._drawn:
            self._drawn[self.place] = law, shape, draw(shape)
            return self._drawn[self.place][2]
        before, of_shape, found = self._drawn[self.place]
        if law is None or (before, of_shape) != (law, shape):
            raise Unintercepted("a generator of torch that draws the same again, in another way")
        return found

    def require_used(self, seeds: Iterable[int]) -> None:
        """Raise Unintercepted if a seed that was handed out is that of no generator.

        Where any seed will do, one may be counted on from it: then the seed itself need not be that of a generator.
        """
        apart = APART if self.seeds is None else 1
        if not all(any(first <= seed < first + apart for seed in self.used) for first in seeds):
            raise Unintercepted("integers of a wide range, for no generator of torch")

    def end(self) -> None:
        """Put back the generators that were given."""
        for generator, state in self._before:
            generator.set_state(state)
