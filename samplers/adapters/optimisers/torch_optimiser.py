"""A class of torch optimisers with its options: how one is made, takes a step, and is given another learning rate."""

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from sgmcmc_verification.samplers.adapters.common import Foreign
from sgmcmc_verification.samplers.adapters.optimisers.convention import PAST
from sgmcmc_verification.samplers.adapters.optimisers.refusal import Refused
from sgmcmc_verification.samplers.adapters.torch.noise_tape import draws_from
from sgmcmc_verification.samplers.interface.aliases import Options

Leaves = list[torch.Tensor]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No warnings, and torch's own generator as it was: a constructor may draw."""
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        yield


@dataclass(frozen=True, eq=False)
class Optimiser:
    """A class of optimisers with its options.

    Attributes:
        kind: the class.
        rate: name of the learning rate among the arguments of its constructor.
        options: the other arguments.
        second: those of a second group of parameters which are not those of the first; its learning rate is half of
            that of the first.
        scheduled: the learning rate is half of that which the constructor was given, set as by a scheduler.
        burn_in: name of the option for the steps of a burn-in, which a new one has taken; empty if there is none.
    """

    kind: type[torch.optim.Optimizer]
    rate: str
    options: Options
    second: Options = field(default_factory=dict)
    scheduled: bool = False
    burn_in: str = ""

    def build(self, groups: Sequence[Leaves], rate: float) -> torch.optim.Optimizer:
        """A new optimiser of one or two groups of parameters."""
        given = 2 * rate if self.scheduled else rate
        parameters: Foreign = groups[0]
        if len(groups) > 1:
            parameters = [{"params": groups[0]}, {"params": groups[1], self.rate: given / 2, **self.second}]
        optimizer = self.kind(parameters, **{self.rate: given}, **self.options)
        if self.scheduled:
            scale_rate(optimizer, self.rate, 0.5)
        self._burn_in(optimizer)
        return optimizer

    def _burn_in(self, optimizer: Foreign) -> None:
        """Take the steps of a burn-in under gradients of one size, so that what is learnt treats all entries alike.

        Afterwards the parameters are where they were.
        """
        steps = self.options.get(self.burn_in, 0)
        if not steps:
            return
        parameters = parameters_of(optimizer)
        starts = [p.detach().clone() for p in parameters]
        with quiet(), draws_from(np.random.default_rng(0)):
            for number in range(steps + PAST):
                self.step(optimizer, lambda sign=(-1) ** number: sign * sum(p.sum() for p in parameters))  # pyright: ignore[reportArgumentType]
                for p, start in zip(parameters, starts, strict=True):
                    p.data.copy_(start)
        for p in parameters:
            p.grad = None

    def step(self, optimizer: Foreign, loss: Callable[[], torch.Tensor]) -> None:
        """Take a step; a closure, where one is needed, returns the loss with its gradient taken, or without."""
        if not needs_closure(self.kind):
            loss().backward()
            optimizer.step()
            return

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            value = loss()
            if not differentiates(self.kind):
                value.backward()
            return value

        optimizer.step(closure)


def scale_rate(optimizer: torch.optim.Optimizer, name: str, factor: float) -> None:
    """Multiply the learning rate of all groups that have one, as schedulers do."""
    for group in optimizer.param_groups:
        if name in group:
            group[name] = factor * group[name]


@functools.lru_cache(maxsize=64)
def needs_closure(kind: type[torch.optim.Optimizer]) -> bool:
    """True if `step` cannot be called without one."""
    parameters = list(inspect.signature(kind.step).parameters.values())[1:]
    return any(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)


@functools.lru_cache(maxsize=64)
def differentiates(kind: type[torch.optim.Optimizer]) -> bool:
    """True if `step` itself takes the gradient of what the closure returns."""
    try:
        return ".backward()" in inspect.getsource(kind.step)
    except (OSError, TypeError):
        return False


def parameters_of(optimizer: torch.optim.Optimizer) -> Leaves:
    """The parameters of all groups."""
    return [p for group in optimizer.param_groups for p in group["params"]]


@functools.lru_cache(maxsize=64)
def first_entries(
    optimiser: Optimiser, groups: tuple[tuple[tuple[int, ...], ...], ...], names: tuple[str, ...]
) -> list[dict[str, Foreign]]:
    """Some entries of the state of each parameter, of shapes by groups, as a first step makes them."""
    with quiet(), draws_from(np.random.default_rng(0)):
        each: list[Leaves] = [
            [torch.nn.Parameter(torch.zeros(s, dtype=torch.float64)) for s in shapes] for shapes in groups
        ]
        optimizer = optimiser.build(each, 1e-3)
        parameters = parameters_of(optimizer)
        optimiser.step(optimizer, lambda: sum((0.0 * p.sum() for p in parameters), torch.zeros(())))
    return [{name: optimizer.state[p][name] for name in names if name in optimizer.state[p]} for p in parameters]


def check_class(reference: str, value: Foreign) -> type[torch.optim.Optimizer]:
    """The class itself. Raises Refused if it is none of optimisers."""
    if not (isinstance(value, type) and issubclass(value, torch.optim.Optimizer)):
        what = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
        raise Refused(f"{reference}: {what} is no subclass of torch.optim.Optimizer; name the class itself")
    return value
