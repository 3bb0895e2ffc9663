"""Options of an optimiser at other values: those under which its law is another one are judged, and the rest is named.

A reading at another value tells at once whether the temperature and the prior are what they were, or what the option
says that they are. Only where they are not, or where none is read, is the law judged there: most options of most
optimisers need no run.
"""

import dataclasses
import math
from typing import NamedTuple

from sgmcmc_verification.samplers.adapters.common import Foreign
from sgmcmc_verification.samplers.adapters.optimisers.arguments import Arguments
from sgmcmc_verification.samplers.adapters.optimisers.convention import (
    BURN_INS,
    SPREADS,
    Convention,
    is_positive_number,
    solve,
)
from sgmcmc_verification.samplers.adapters.optimisers.reading import (
    Probe,
    Reading,
    decay_ratio,
    is_close,
    moments,
    takes,
)
from sgmcmc_verification.samplers.interface.aliases import Options

OF_DECAY = ("decay", "l2", "reg", "wd", "penalty")
"""Parts of names of options that say how strong a prior is."""
OF_NOISE = ("noise", "sigma", "std", "scale", "temp", "beta", "seed", "local", "elastic", "box", "bound", "clip")
"""Parts of names of options that may say what the law is: nobody but their author knows what another value means."""
ON = 0.5
"""Value of an option that is 0.0 by default."""


class Varied(NamedTuple):
    """Options besides the learning rate, by what is to be done about their other values.

    Attributes:
        judged: name -> the default and other values of those at which the law is judged.
        moved: names of those among them at which another temperature or prior was read.
        notes: what is not examined.
    """

    judged: dict[str, tuple[Foreign, ...]]
    moved: tuple[str, ...]
    notes: tuple[str, ...]


def varied(probe: Probe, found: Convention, arguments: Arguments) -> Varied:
    """The options that were not given.

    Args:
        probe: of the optimiser.
        found: its convention.
        arguments: that it is made with.
    """
    judged: dict[str, tuple[Foreign, ...]] = {}
    moved, notes = [], []
    right = is_close(found.temperature, found.claimed)
    if _is_readable(found.reading) and found.consistent and not right:
        return Varied({}, (), ())  # no sampler of its law at the values that it has
    readable = _is_readable(found.reading) and right
    free = {n: v for n, v in arguments.values.items() if n not in (*arguments.given, *BURN_INS) and v is not None}
    for name, default in free.items():
        values = [v for v in other_values(default) if takes(probe, found.rate, {**arguments.given, name: v})]
        if not values:
            notes.append(name)
        elif readable and all(_keeps_its_law(probe, found, arguments.given, name, value) for value in values):
            continue
        elif name not in (*SPREADS, found.temperature_name) and _may_say_what_the_law_is(name, readable):
            notes.append(name)
        else:
            judged[name] = (default, *values)
            moved += [name] if readable else []
    return Varied(
        judged, tuple(moved), tuple(f"the option {name} at other values than {free[name]!r:.40}" for name in notes)
    )


def other_values(default: Foreign) -> tuple[Foreign, ...]:
    """Other values of an option, at most two; () if none is known to be one."""
    if isinstance(default, bool):
        return (not default,)
    if isinstance(default, int):
        return (2 * default, default + 1) if default else (1, 2)
    if not isinstance(default, float) or not math.isfinite(default):
        return ()
    if not default:
        return (ON,)
    # a share has to stay one
    return (default / 2, (1 + default) / 2) if 0.5 <= default < 1 else (2 * default, default / 2)


def convention_at(probe: Probe, found: Convention, arguments: Arguments, own: Options) -> Convention:
    """The convention at other values of some options with the prior that it had, unless they say what the prior is.

    A decay that is no part of the gradient stays what it was whatever else changes, and so does the prior that it is.
    """
    if not own:
        return found
    values, given = {**arguments.values, **own}, {**arguments.given, **own}
    other = solve(probe, arguments.rate, values, arguments.asked, given)
    decoupled = is_close(other.reading.decay / other.rate, found.reading.decay / found.rate)
    if other.claimed_prior is not None or decoupled or any(_is_of_decay(name) for name in own):
        return other
    return dataclasses.replace(other, prior=found.prior, matrix_prior=found.matrix_prior)


def _keeps_its_law(probe: Probe, found: Convention, given: Options, name: str, value: Foreign) -> bool:
    """True if temperature and prior at another value of an option are those of before, or those that it says."""
    options = {**given, name: value}
    there = moments(probe, found.rate, options)
    if there is None:
        return False
    drift, decay, variance = there
    data = value if name == found.data_name and found.data != 1 else found.data
    claimed = value if name == found.temperature_name else found.claimed
    if not is_close(variance / (2 * abs(drift)) * data / claimed, found.temperature / found.claimed):
        return False
    pairs = [(data / claimed * decay / abs(drift), found.prior)]
    if found.matrix_prior:
        pairs.append((data / claimed * decay_ratio(probe.of_matrices(), found.rate, options), found.matrix_prior))
    if name in SPREADS and is_positive_number(value):
        factor = float(value) ** SPREADS[name] / (found.claimed_prior or math.inf)
        return all(is_close(prior, factor * before) for prior, before in pairs)
    if _is_of_decay(name) or is_close(decay, found.reading.decay):
        return True
    return all(is_close(prior, before) for prior, before in pairs)


def _may_say_what_the_law_is(name: str, readable: bool) -> bool:
    """True for an option of the noise, and for one of a decay whose prior is not read."""
    return any(part in name for part in OF_NOISE) or (not readable and _is_of_decay(name))


def _is_readable(reading: Reading) -> bool:
    """True if a temperature is read of it."""
    noise = bool(reading.drift and reading.variance) and is_close(reading.fades, 1.0)
    one_gradient = reading.gradients == 1 and not reading.others
    return reading.settled and noise and reading.linear and reading.even_noise and one_gradient


def _is_of_decay(name: str) -> bool:
    return any(part in name for part in OF_DECAY)
