"""Samplers that somebody has written in torch, run on chosen draws: a step that seeds generators of torch by its own.

Such a step draws a seed, `rng.integers(2**63)`, and all its noise from a generator of torch with that seed. With a
generator whose draws are chosen (`Seeding`) a seed is a number that is known again, and the draws of a generator of
torch that has it are those of the generator of the step. Many never seed torch: with a generator of NumPy its own
generator gets a seed from it, so that a step is a function of the generator of the step, and has the law that it had.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from sgmcmc_verification.samplers.adapters.common import Foreign
from sgmcmc_verification.samplers.interface.seeding import Seeding


class OnTape:
    """`init` or `step` of a sampler of torch, whose first argument is its generator; it is copied with its object.

    Args:
        function: as it was written.
    """

    def __init__(self, function: Callable[..., Foreign]) -> None:
        self.__wrapped__ = function

    def __call__(self, rng: Foreign, *args: Foreign) -> Foreign:
        """Call the function, with its draws from the generator if those are chosen."""
        if not isinstance(rng, Seeding):
            if type(rng) is np.random.Generator:
                sys.modules["torch"].default_generator.manual_seed(int(rng.integers(2**63)))
            return self.__wrapped__(rng, *args)
        with _followed(rng):
            return self.__wrapped__(rng, *args)


def is_written_in_torch(function: Foreign) -> bool:
    """True for a function, or method, in whose module torch is a global."""
    function = inspect.unwrap(function)
    names = getattr(getattr(function, "__func__", function), "__globals__", {})
    return sys.modules.get("torch") is not None and any(v is sys.modules["torch"] for v in names.values())


@contextmanager
def _followed(rng: Foreign) -> "Iterator[None]":
    """A context in which the generators of torch that a generator seeds have its draws, torch's own among them.

    The latter is left as it was found. Raises Unintercepted if a seed was used for anything else.
    """
    import torch

    from sgmcmc_verification.samplers.adapters.torch.noise_tape import draws_from

    before = torch.random.get_rng_state()
    try:
        with rng.following() as seeds:
            torch.default_generator.manual_seed(rng.new_seed(0, 1 << 63, None))
            with draws_from(rng, seeds):
                yield
    finally:
        torch.random.set_rng_state(before)
