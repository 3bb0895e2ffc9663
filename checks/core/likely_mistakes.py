"""Likely mistakes of somebody who verifies a first sampler: each has its sentence, with what to do instead.

They are told by the object itself, before anything is traced. A library is asked whether an object is of its kind only
if it has been imported already: without that no object can be.
"""

import inspect
import sys
import types
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from sgmcmc_verification.checks.core.bad_input import BadInput

STEP = ("key", "state", "step_size", "estimator")
INIT = ("key", "position", "estimator")
BATCH = frozenset({"batch", "minibatch", "data", "data_batch"})
"""Names of a parameter by which a step is given data."""
DRAWS = frozenset({".csv", ".h5", ".json", ".nc", ".npy", ".npz", ".parquet", ".pkl", ".pt", ".txt", ".zarr"})
"""Files in which draws are kept."""

OF_DRAWS = (
    "is no sampler but its draws; what is verified is the step that makes them, since draws can show a wrong law and "
    "never a right one: name the object with `step`. Draws of a problem of this suite: `--draws FOLDER`"
)
OF_TORCH = (
    "is an optimiser of torch, which changes parameters in place and draws numbers of its own; a sampler has "
    "`step(key, state, step_size, estimator)`; `--sampler torch:package.module.Class --option lr=1e-3` makes a sampler "
    "of the class"
)
OF_OPTAX = (
    "is a transformation of gradients, of optax; a sampler has `step(key, state, step_size, estimator)`; "
    "`--sampler optax:package.module.function` makes one of the function of a learning rate that returns it"
)
OF_BLACKJAX = (
    "is an algorithm of BlackJAX, whose `step(key, state)` returns (state, info) and knows one density; write a "
    "function of a Target that builds it with `lambda x: -target.potential(x)`, and a `step(key, state, step_size, "
    "estimator)` that calls it and returns the state alone: samplers/adapters/blackjax.py does it"
)
SIMPLE = "`from sgmcmc_verification.samplers import simple_sampler` makes one:"
SENTENCES = {"torch": OF_TORCH, "optax": OF_OPTAX, "blackjax": OF_BLACKJAX}
"""Package that defines an object -> what to say of it."""


def refuse_file(reference: str) -> None:
    """Raise BadInput if a text after `--sampler` names a file of draws."""
    path = reference.split(":")[0]
    if PurePath(path).suffix in DRAWS:
        raise BadInput(f"--sampler {reference}: {path} {OF_DRAWS}")


def refuse(reference: str, value: Any) -> None:
    """Raise BadInput, with what to do instead, if an object is one that newcomers take for a sampler.

    Args:
        reference: value of `--sampler`, or a name, for the message.
        value: the object.
    """
    sentence = _of_library(value) or _of_object(value)
    if sentence:
        raise BadInput(f"--sampler {reference}: {sentence}")


def _of_library(value: Any) -> str | None:
    """The sentence for an object that a library of optimisers or samplers defines."""
    kind = value if isinstance(value, type) else type(value)
    torch: Any = sys.modules.get("torch")
    if torch is not None and issubclass(kind, torch.optim.Optimizer):
        return f"{kind.__name__} {OF_TORCH}"
    fields = getattr(value, "_fields", ())
    if "update" in fields and "step" not in fields:
        return f"{kind.__name__} {OF_OPTAX}"
    if fields == ("init", "step") and not _takes(_signature(value.step), STEP):
        return f"{kind.__name__} {OF_BLACKJAX}"
    maker = value if isinstance(value, types.FunctionType | type) else kind
    sentence = SENTENCES.get(str(getattr(maker, "__module__", "")).partition(".")[0])
    return f"{getattr(value, '__name__', kind.__name__)} {sentence}" if sentence else None


def _of_object(value: Any) -> str | None:
    if hasattr(value, "__array__") and not callable(value):
        return f"a {type(value).__name__} {OF_DRAWS}"
    if hasattr(value, "step"):
        return _of_step(value)
    if callable(value) and not isinstance(value, type):
        return _of_function(value)
    return None


def _of_step(value: Any) -> str | None:
    """The arguments of `step` and `init` that are wrong."""
    step, init = (_method(value, name) for name in ("step", "init"))
    given = sorted(BATCH & _required(step))
    if given:
        return (
            f"its step takes `{given[0]}`; data are the estimator's: "
            "`estimator.estimate(key, (), position)[0].gradient` is the gradient of a minibatch, summed over all "
            f"data, and a step is step({', '.join(STEP)})"
        )
    if not _takes(step, STEP):
        return f"its step is step{step}; it has to be step({', '.join(STEP)})"
    if not _takes(init, INIT):
        return f"its init is init{init}; it has to be init({', '.join(INIT)})"
    return None


def _of_function(value: Callable[..., Any]) -> str | None:
    """A function that is none of a Target or of options alone, by its arguments."""
    signature = _signature(value)
    if _takes(signature, ("target",)) or _takes(signature, ()):
        return None
    name = getattr(value, "__name__", "it")
    if _takes(signature, STEP):
        return f"{name} is a step, of (key, position, step_size, estimator); {SIMPLE} `simple_sampler({name})`"
    return (
        f"{name}{signature} is a function with other arguments than a Target, which would return a sampler; of "
        f"a step(key, position, step_size, estimator) {SIMPLE} `simple_sampler(step)`"
    )


def _method(value: Any, name: str) -> inspect.Signature | None:
    """The signature of a method as an instance has it; None if there is none, or none that can be looked at."""
    if not isinstance(value, type):
        return _signature(getattr(value, name, None))
    found = inspect.getattr_static(value, name, None)
    if isinstance(found, staticmethod | classmethod):
        return _signature(getattr(value, name))
    signature = _signature(found)
    if signature is None:
        return None
    first, *rest = signature.parameters.values()  # a method of a class has its instance first
    return signature if first.kind is first.VAR_POSITIONAL else signature.replace(parameters=rest)


def _signature(function: Any) -> inspect.Signature | None:
    """The signature of a function without annotations; None if it has none."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    return inspect.Signature([p.replace(annotation=p.empty) for p in found.parameters.values()])


def _required(signature: inspect.Signature | None) -> set[str]:
    """Names of the parameters without a default."""
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = signature.parameters.values() if signature else ()
    return {p.name for p in parameters if p.default is p.empty and p.kind not in several}


def _takes(signature: inspect.Signature | None, names: tuple[str, ...]) -> bool:
    """True if so many arguments in a row can be given, or if nothing is known of it."""
    if signature is None:
        return True
    try:
        signature.bind(*names)
    except TypeError:
        return False
    return True
