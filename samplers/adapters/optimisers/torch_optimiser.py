"""A class of torch optimisers with its options: how one is made, takes a step, and is given another learning rate."""

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from sgmcmc_verification.samplers.adapters.common import Foreign
from sgmcmc_verification.samplers.adapters.optimisers.refusal import Refused
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
        scheduled: the learning rate is half of that which the constructor was given, set as by a scheduler.
    """

    kind: type[torch.optim.Optimizer]
    rate: str
    options: Options
    scheduled: bool = False

    def build(self, parameters: Leaves, rate: float) -> torch.optim.Optimizer:
        """A new optimiser of parameters."""
        if not self.scheduled:
            return self.kind(parameters, **{self.rate: rate}, **self.options)
        optimizer = self.kind(parameters, **{self.rate: 2 * rate}, **self.options)
        set_rate(optimizer, self.rate, rate)
        return optimizer

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


def set_rate(optimizer: torch.optim.Optimizer, name: str, rate: float) -> None:
    """Set the learning rate of all groups that have one, as schedulers do."""
    for group in optimizer.param_groups:
        if name in group:
            group[name] = rate


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


def check_class(reference: str, value: Foreign) -> type[torch.optim.Optimizer]:
    """The class itself. Raises Refused if it is none of optimisers."""
    if not (isinstance(value, type) and issubclass(value, torch.optim.Optimizer)):
        what = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
        raise Refused(f"{reference}: {what} is no subclass of torch.optim.Optimizer; name the class itself")
    return value
