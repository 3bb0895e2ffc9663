"""The arguments of an optimiser: its learning rate, its options, and what the user says of the law."""

import difflib
import inspect
from collections.abc import Callable
from typing import NamedTuple

from sgmcmc_verification.samplers.adapters.common import Foreign
from sgmcmc_verification.samplers.adapters.optimisers.convention import (
    BURN_INS,
    DATA,
    PRIORS,
    RATES,
    TEMPERATURES,
    USUAL_DATA,
    USUAL_RATE,
)
from sgmcmc_verification.samplers.adapters.optimisers.refusal import Refused
from sgmcmc_verification.samplers.interface.aliases import Options

OF_THE_LAW = (DATA[0], TEMPERATURES[0], PRIORS[0])
"""What a user may say of the law that is no option of the optimiser."""


class Arguments(NamedTuple):
    """Arguments that an optimiser is made with, and what is said of it.

    Attributes:
        name: of the learning rate.
        rate: the learning rate.
        given: the other arguments.
        values: all values that count, those of defaults among them.
        asked: what is said of the law.
        burn_in: name of an option for steps of a burn-in; empty if there is none.
    """

    name: str
    rate: float
    given: dict[str, Foreign]
    values: dict[str, Foreign]
    asked: dict[str, Foreign]
    burn_in: str

    def burning_in(self, steps: int) -> "Arguments":
        """Arguments with so many steps of a burn-in."""
        own = {self.burn_in: steps}
        return self._replace(given={**self.given, **own}, values={**self.values, **own})


def split(reference: str, function: Callable[..., Foreign], options: Options, skip: int) -> Arguments:
    """The arguments of a constructor or function.

    Args:
        reference: for messages.
        function: whose parameters they are.
        options: of the user.
        skip: number of leading parameters that are no options.

    Raises:
        Refused: for an unknown option, one that is missing, or if no parameter is a learning rate.
    """
    parameters = {p.name: p for p in list(inspect.signature(function).parameters.values())[skip:]}
    several = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    parameters = {n: p for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    name = next((n for n in RATES if n in parameters), "")
    if not name:
        raise Refused(f"{reference}: none of its arguments ({', '.join(parameters)}) is a learning rate: {RATES}")
    asked = {n: v for n, v in options.items() if n in OF_THE_LAW and n not in parameters}
    own = {n: v for n, v in options.items() if n not in asked}
    unknown = [] if several else [n for n in own if n not in parameters]
    if unknown:
        known = (*parameters, *(n for n in OF_THE_LAW if n not in parameters))
        near = difflib.get_close_matches(unknown[0], known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else "known: " + ", ".join(known)
        raise Refused(f"{reference}: has no option {unknown[0]!r}; {hint}")
    defaults = {n: p.default for n, p in parameters.items() if p.default is not p.empty}
    for each in DATA:  # of one datum, or none, the number says nothing
        if each in parameters and each not in own and defaults.get(each) in (None, 1):
            own[each] = USUAL_DATA
    burn_in = next((n for n in BURN_INS if type({**defaults, **own}.get(n)) is int), "")
    lacking = [n for n, p in parameters.items() if p.default is p.empty and n not in own and n != name]
    if lacking:
        raise Refused(f"{reference}: needs a value: --option {lacking[0]}=VALUE")
    rate = own.pop(name, defaults.get(name, USUAL_RATE))
    rate = USUAL_RATE if rate is None else rate
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not rate > 0:
        raise Refused(f"{reference}: --option {name}={rate!r}: a learning rate is a positive number")
    for each, value in asked.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or value < 0 or (value == 0 and each not in PRIORS):
            raise Refused(f"{reference}: --option {each}={value!r}: must be a positive number")
    defaults.pop(name, None)
    return Arguments(name, float(rate), own, {**defaults, **own}, asked, burn_in)
