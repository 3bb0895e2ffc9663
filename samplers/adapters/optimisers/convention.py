"""The convention of an optimiser, solved for: which learning rate, loss, number of data, temperature and prior make it
Langevin's equation, from readings at three learning rates and at twice the options that stand for data or temperature.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from sgmcmc_verification.samplers.adapters.common import Foreign
from sgmcmc_verification.samplers.adapters.optimisers.reading import (
    SAME,
    Idle,
    Probe,
    Reading,
    Schedule,
    decay_ratio,
    read,
    settling_rate,
    unsettled,
)
from sgmcmc_verification.samplers.interface.aliases import Options

RATES = ("lr", "learning_rate", "step_size", "stepsize", "epsilon")
DATA = (
    *("num_data", "n_data", "ndata", "N", "n", "nbeta", "data_size", "dataset_size", "train_size", "train_set_size"),
    *("num_examples", "num_train", "num_training_samples", "num_samples"),
)
TEMPERATURES = ("temperature", "temp", "T")
POWERS = ("drift", "decay", "variance")
"""Parts of a reading whose power of the learning rate is looked for."""
PRIORS = ("prior_precision",)
SPREADS = {PRIORS[0]: 1, "prior_std": -2, "prior_sigma": -2, "prior_variance": -1, "prior_var": -1}
"""Options that say what the prior is, and the power of their value that is its precision."""
BURN_INS = ("burn_in", "burnin", "burn_in_steps", "burnin_steps", "num_burn_in_steps", "num_burnin", "num_burn_in")
BURN_INS += ("warmup", "warm_up", "warmup_steps", "num_warmup", "num_warmup_steps")
"""Options that say in how many steps at first a step is another one; what is judged is the step after them."""
PAST = 2
"""Steps after a burn-in, by which one that ends a step late is over as well."""
USUAL_RATE, USUAL_DATA = 1e-3, 1000
"""Values of options without a default."""


@dataclass(frozen=True, eq=False)
class Convention:
    """Scales, powers and the law that were solved for.

    Attributes:
        rate: the learning rate.
        reading: there.
        powers: of the learning rate in drift, decay and variance; None where there is none.
        options: of the optimiser.
        data_name: option that stands for the number of data; empty if there is none.
        data: N, of the mean whose gradient the optimiser is given; 1 for the sum.
        data_powers: of N in drift and variance, for a given gradient; None without such an option.
        temperature_name: option that stands for the temperature; empty if there is none.
        claimed: the temperature of the law that it is held to.
        temperature_power: of the temperature that is read in that which is asked for; None without such an option.
        prior: the precision of the prior that its weight decay stands for, at the claimed temperature.
        matrix_prior: that for matrices, and leaves of more axes.
        claimed_prior: the precision that the user claims, or an option that is named after it; None for that which was
            read.
        returns: number of steps after which their draws come back; 0 if they do not.
        alike: all coordinates are treated alike.
        schedule: whether a learning rate that is changed later counts as one that is given to the constructor.
        apart: each of two groups of parameters moves as it does alone.
        idle: what a step does to a parameter without a gradient.
        burn_in: name of the option that was set to no steps of a burn-in; empty if there is none.
        steady: drift and variance have one ratio at the learning rates at which they were read.
        moved: names of options at whose other values the temperature or the prior is another one.
    """

    rate: float
    reading: Reading
    powers: Mapping[str, float | None]
    options: Options
    data_name: str
    data: float
    data_powers: tuple[float | None, float | None] | None
    temperature_name: str
    claimed: float
    temperature_power: float | None
    prior: float
    matrix_prior: float
    claimed_prior: float | None
    returns: int = 0
    alike: bool = True
    schedule: Schedule = "followed"
    apart: bool = True
    idle: Idle = "kept"
    burn_in: str = ""
    steady: bool = False
    moved: tuple[str, ...] = ()

    @property
    def temperature(self) -> float:
        """Temperature of the summed potential."""
        return self.data * self.reading.temperature

    @property
    def uphill(self) -> bool:
        """True if it ascends what it is given the gradient of."""
        return self.reading.drift < 0

    @property
    def scale(self) -> float:
        """Scale of the loss: the gradient handed over is that of `scale` times the summed potential."""
        return (-1.0 if self.uphill else 1.0) / self.data

    def second_derivative(self, axes: int) -> float:
        """Second derivative to add to the summed potential of a leaf of some axes, which makes up for the decay."""
        read = self.matrix_prior if axes > 1 else self.prior
        return -self.claimed * (read if self.claimed_prior is None else self.claimed_prior)

    @property
    def consistent(self) -> bool:
        """True if the temperature is the same at each learning rate."""
        drift, variance = self.powers["drift"], self.powers["variance"]
        return self.steady or (drift is not None and variance is not None and abs(drift - variance) < SAME)

    def rate_of(self, step_size: Foreign) -> Foreign:
        """The learning rate of a step of a size in time of the differential equation."""
        power = self.powers["drift"] or 1.0
        time = abs(self.reading.drift) / self.data
        if time and self.powers["drift"] is None:
            # no number of few digits, as of 1 - exp(-h): any scale of the time will do, and this one is exact
            return step_size * 2.0 ** round(math.log2(self.rate / time))
        if not time and self.reading.others:
            # a walk with a test, whose noise is taken for that of a mean: 2 lr / N
            return step_size * self.data
        return self.rate * (step_size / (time or self.rate)) ** (1 / power)


def solve(probe: Probe, rate: float, options: Options, asked: Options, given: Options) -> Convention:
    """The convention of an optimiser.

    Args:
        probe: of it.
        rate: a learning rate.
        options: all its options, with the values that count.
        asked: `num_data`, `temperature` and `prior_precision` of the user that are no options of the optimiser.
        given: those of the options that the optimiser is made with.
    """
    data_name = next((n for n in DATA if is_positive_number(options.get(n))), "")
    temperature_name = next((n for n in TEMPERATURES if is_positive_number(options.get(n))), "")
    own: Foreign = options.get(temperature_name, 1.0)
    claimed = float(asked.get("temperature", own))
    stated = next((options[n] ** power for n, power in SPREADS.items() if is_positive_number(options.get(n))), None)
    precision = asked.get(PRIORS[0], stated)
    convention = partial(
        Convention,
        options=options,
        data_name=data_name,
        temperature_name=temperature_name,
        claimed=claimed,
        claimed_prior=None if precision is None else float(precision),
    )
    data = float(asked.get("num_data", 1.0))
    settling = settling_rate(probe, rate, given)
    rates = [] if settling is None else [read(probe, settling / part, given) for part in (1, 2, 4)]
    # a thermostat may settle at some rates and diverge at others
    if settling is None or not all(each.settled or each.drift for each in rates):
        # of what is not read, the learning rate is a time, and a number of data that of a mean
        return convention(
            rate=rate,
            reading=unsettled(probe, rate, given),
            powers=dict.fromkeys(POWERS),
            data=float(options[data_name]) if data_name else data,
            data_powers=None,
            temperature_power=None,
            prior=0.0,
            matrix_prior=0.0,
        )
    rate, first = settling, rates[0]
    powers = {name: _power([getattr(r, name) for r in rates[::-1]]) for name in POWERS}
    data_powers: tuple[float | None, float | None] | None = None
    if data_name:
        twice = read(probe, rate, {**given, data_name: 2 * options[data_name]})
        data_powers = (_power([first.drift, twice.drift]), _power([first.variance, twice.variance]))
        # a temperature that does not depend on it leaves the number of data out of the gradient as well
        data = 1.0 if data_powers == (0.0, 0.0) else float(options[data_name])
    temperature_power: float | None = None
    if temperature_name:
        hot = read(probe, rate, {**given, temperature_name: 2 * options[temperature_name]})
        temperature_power = _power([first.temperature, hot.temperature])
    ratios = [first.decay / abs(first.drift) if first.drift else 0.0, decay_ratio(probe.of_matrices(), rate, given)]
    priors = [0.0 if abs(data / claimed * ratio) < SAME else data / claimed * ratio for ratio in ratios]
    return convention(
        rate=rate,
        reading=first,
        powers=powers,
        data=data,
        data_powers=data_powers,
        temperature_power=temperature_power,
        prior=priors[0],
        matrix_prior=priors[1],
        steady=all(abs(r.temperature / first.temperature - 1) < SAME for r in rates) if first.variance else False,
    )


def is_positive_number(value: Foreign) -> bool:
    """True for integers and floats above 0, and for no flag."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _power(values: list[float]) -> float | None:
    """p with values[i + 1] = 2^p values[i], a multiple of 1/4; None if there is none, or a value is zero."""
    if any(v == 0 or not math.isfinite(v) for v in values):
        return None
    ratios = [b / a for a, b in pairwise(values)]
    if min(ratios) <= 0:
        return None
    power = round(4 * math.log2(ratios[0])) / 4
    return power if all(abs(r / 2**power - 1) < SAME for r in ratios) else None
