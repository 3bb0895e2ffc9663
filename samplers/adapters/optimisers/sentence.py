"""A convention in a user's terms: what drift and noise are, which law that is, and what would make it the claim."""

import math

from sgmcmc_verification.samplers.adapters.optimisers.convention import Convention
from sgmcmc_verification.samplers.adapters.optimisers.reading import LATER, SAME, is_close

KNOWN = {
    math.sqrt(2): "sqrt(2)",
    math.sqrt(0.5): "1/sqrt(2)",
    2.0: "2",
    0.5: "1/2",
    4.0: "4",
    0.25: "1/4",
}


def sentence(found: Convention) -> str:
    """All that was read, as one text."""
    if not found.reading.settled:
        unread = (
            "no convention is read: under one gradient its moves do not settle, as of a thermostat or of a schedule by "
            f"the number of the step; lr is taken for a time, the loss for {_loss(found)}, and the checks judge the law"
        )
        return "; ".join((unread, *_remarks(found)))
    return "; ".join(part for part in (_terms(found), _verdict(found), _prior(found), *_remarks(found)) if part)


def _terms(found: Convention) -> str:
    reading, loss = found.reading, _loss(found)
    noise = "" if reading.others else f"noise variance {_noise(found)}"
    if not reading.drift:
        return "no drift: the gradient of the loss moves nothing" + (f" ({noise})" if noise else "")
    memory = f" (with all that momentum {_number(reading.ratio)} adds later)" if abs(reading.ratio) > SAME else ""
    drift = _times(abs(reading.drift), found.rate, found.powers["drift"])
    side = "uphill, for a log density: " if found.uphill else ""
    return f"{side}drift = {drift} x the gradient of {loss}" + (f", {noise} a step{memory}" if noise else "")


def _loss(found: Convention) -> str:
    return "the summed potential" if found.data == 1 else f"the mean of N = {_number(found.data)} potentials"


def _noise(found: Convention) -> str:
    """`2 lr`, `lr/N`, `0`."""
    variance = found.reading.variance
    if not variance:
        return "0"
    power = found.data_powers[1] if found.data_powers else None
    if power and found.data != 1:
        with_data = f"/{_raised('N', -power)}" if power < 0 else f" {_raised('N', power)}"
        return _times(variance * found.data**-power, found.rate, found.powers["variance"]) + with_data
    return _times(variance, found.rate, found.powers["variance"])


def _verdict(found: Convention) -> str:
    reading = found.reading
    if found.returns:
        every = (
            "every step draws the same numbers"
            if found.returns == 1
            else f"draws come back: {found.returns:,} steps later they are the same"
        )
        return f"no law: {every}, from a generator that is seeded anew or a key that is not renewed"
    if reading.draws_first and not reading.draws:
        return "no law: numbers are drawn in the first step only, and used again in every later one"
    if not is_close(reading.fades, 1.0):
        return (
            f"no law: the variance of the noise anneals, to {_number(reading.fades)} of itself after {LATER} more steps"
        )
    if reading.others:
        return (
            "it draws from other laws than the normal one, as for a coin or a test, so that no temperature is read; "
            "the checks judge the law"
        )
    if not reading.variance:
        return "no noise that lasts: an optimiser, which stops at a minimum" if reading.drift else ""
    if not reading.drift:
        return "no law"
    if reading.gradients > 1:
        return (
            f"{reading.gradients} gradients in a step, and perhaps a test: no single step of Langevin, so that no "
            "temperature is read; the checks judge the law"
        )
    if not found.alike:
        return (
            "coordinates have factors of their own, as of a fixed preconditioner: no convention is read; the checks "
            "judge the law"
        )
    if not reading.linear or not reading.even_noise:
        return _preconditioned(found)
    if not found.consistent:
        return _no_temperature(found)
    if not is_close(found.temperature, found.claimed):
        return _other_temperature(found)
    with_data = "" if found.data == 1 else f" with N = {_number(found.data)}"
    return f"Langevin at temperature {_number(found.temperature)} of the summed potential{with_data}"


def _preconditioned(found: Convention) -> str:
    """Verdict on a move that is not proportional to the gradient."""
    reading = found.reading
    if reading.even_noise:
        return (
            f"the drift is not proportional to the gradient (at a thousand times the gradient it is "
            f"{_number(1000 * reading.large)} times as large) and the noise does not follow it: clipped or scaled "
            "gradients have another law than the loss, at every step size"
        )
    if not reading.mobility:
        return (
            "what a gradient and a draw move depends on the gradients before, and not alike: a thermostat or a scaled "
            "gradient, for which no convention is read; the checks judge the law"
        )
    return (
        "drift and noise are scaled by what the gradients were: a preconditioner G, which depends on the position "
        "through them. Without the drift Gamma_i = tau sum_j dG_ij/dw_j, which no function of gradients alone holds, "
        "the law is not exp(-L / tau) at any step size; only as the average gets longer than the run it goes"
    )


def _no_temperature(found: Convention) -> str:
    drift, variance = found.powers["drift"], found.powers["variance"]
    if drift is None or variance is None:
        return (
            "drift and noise follow no power of the learning rate: at "
            f"lr = {_number(found.rate)} the temperature of the summed potential is {_number(found.temperature)}, at "
            "others another"
        )
    power = variance - drift
    temperature = _times(found.temperature, found.rate, power)
    ends = "falls to 0" if power > 0 else "grows without bound"
    why = _cause(drift, variance)
    wanted = 2 * found.claimed * abs(found.reading.drift) / found.data
    return (
        f"no N and temperature make this a sampler at every step size: its stationary temperature is {temperature} "
        f"of the summed potential ({_number(found.temperature)} here) and {ends} as lr -> 0; {why}; at this lr a "
        f"noise of variance {_number(wanted)} would give temperature {_number(found.claimed)}"
    )


def _cause(drift: float, variance: float) -> str:
    if variance == 2 * drift:
        return (
            "the standard deviation of the noise is proportional to lr, not to sqrt(lr): it is added to the gradient "
            "before the learning rate multiplies"
        )
    if variance == 0:
        return "the noise does not depend on lr: it is added after the learning rate has multiplied, without sqrt(lr)"
    return f"the drift goes as {_raised('lr', drift)} and the variance of the noise as {_raised('lr', variance)}"


def _other_temperature(found: Convention) -> str:
    T, claimed = found.temperature, found.claimed
    missing = math.sqrt(claimed / T)
    text = (
        f"Langevin at temperature {_number(T)} of the summed potential, not {_number(claimed)}: the noise lacks the "
        f"factor {_factor(missing)}, or the drift has the factor {_factor(missing**2)} too much"
    )
    powers = found.data_powers
    if powers is not None and powers != (0.0, 0.0) and powers[0] is not None and powers[1] is not None:
        power = 1 + powers[1] - powers[0]
        if abs(power) > SAME:
            text += (
                f"; with N in it as here the temperature goes as {_raised('N', power)}: the variance of the noise "
                f"should go as {_raised('N', powers[0] - 1)} beside a drift that "
                + (f"goes as {_raised('N', powers[0])}" if powers[0] else "does not depend on N")
            )
    if found.temperature_power not in (None, 1.0):
        text += f"; the temperature goes as {_raised(found.temperature_name, found.temperature_power or 0.0)}"
    data = claimed / T
    if powers is None and found.data == 1 and data > 4:
        text += f"; temperature {_number(claimed)} for the mean of N = {_number(data)} potentials"
    return text


def _prior(found: Convention) -> str:
    reading = found.reading
    if not (found.prior or found.matrix_prior) or not reading.variance:
        return "" if found.claimed_prior is None or is_close(found.claimed_prior, 0.0) else _claimed_prior(found)
    if not found.prior:
        return (
            "the weights of matrices alone decay: their prior N(0, 1/p) of precision p = "
            f"{_number(found.matrix_prior)}, a flat one for vectors"
        )
    if found.powers["decay"] != found.powers["drift"]:
        power = found.powers["decay"]
        how = "as no power of lr" if power is None else f"as {_raised('lr', power)}" if power else "whatever lr is"
        drift = found.powers["drift"] or 0.0
        ends = "vanishes" if power is not None and power > drift else "grows without bound"
        return (
            f"the weights decay by {_number(reading.decay)} a step {how}, beside a drift that goes as "
            f"{_raised('lr', drift)}: no prior, for its precision ({_number(found.prior)} here) {ends} as lr -> 0"
        )
    if found.prior < 0:
        return "the weight decay pushes away from zero: a prior that is none"
    decay = found.options.get("weight_decay")
    how = "a term of the decay of the weights"
    if isinstance(decay, int | float) and decay:
        inside = is_close(reading.decay, decay * abs(reading.drift))
        how = f"weight decay {_number(decay)}, " + (
            "added to the gradient" if inside else f"decoupled ({_times(reading.decay / decay, found.rate, 1.0)} x it)"
        )
    text = f"{how}: the prior N(0, 1/p) of precision p = {_number(found.prior)}"
    text += "" if found.data == 1 else f" ({_number(found.prior / found.data)} N)"
    if not is_close(found.prior, found.matrix_prior):
        text += f" for vectors, {_number(found.matrix_prior)} for matrices"
    return text + (_claimed_prior(found) if found.claimed_prior is not None else "")


def _claimed_prior(found: Convention) -> str:
    claimed = found.claimed_prior or 0.0
    return "" if is_close(claimed, found.prior) else f", where {_number(claimed)} is claimed"


def _remarks(found: Convention) -> list[str]:
    reading = found.reading
    remarks = (
        [f"{found.burn_in} = {found.options[found.burn_in]}: what is judged is the step after a burn-in"]
        if found.burn_in
        else []
    )
    if reading.turn > 1:
        how = (
            "each is the first one at another learning rate"
            if reading.uniform
            else "drift and noise are those of a step in the mean"
        )
        remarks.append(f"its moves go round in turns of {reading.turn} steps: {how}")
    if found.schedule == "ignored":
        remarks.append("a learning rate that a scheduler changes has no effect")
    if found.schedule == "in part":
        remarks.append(
            "a learning rate that a scheduler changes does not reach all of a step: part of it keeps the one of the "
            "constructor"
        )
    if found.idle == "moved":
        remarks.append("a parameter without a gradient, frozen or not used by a loss, is moved, too")
    if found.idle == "refused":
        remarks.append("a parameter without a gradient, frozen or not used by a loss, is an error")
    if found.moved:
        names = ", ".join(found.moved)
        remarks.append(
            f"at another value of {names} the temperature or the prior is not that: the law is judged there, too"
        )
    if not found.apart:
        remarks.append("of two groups of parameters with options of their own one does not move as it would alone")
    if reading.settled and not reading.independent:
        remarks.append("one draw moves several coordinates: their noise is correlated")
    return remarks


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 and abs(value - round(value)) < SAME * abs(value) else f"{value:.4g}"


def _factor(value: float) -> str:
    return next((text for number, text in KNOWN.items() if is_close(value, number)), _number(value))


def _raised(name: str, power: float) -> str:
    if power == 0.5:
        return f"sqrt({name})"
    return "1" if power == 0 else name if power == 1 else f"{name}^{power:g}"


def _times(value: float, rate: float, power: float | None) -> str:
    """A number in terms of the learning rate: `2 lr`, `lr/2`, `0.3 lr^2`; the number itself without a power."""
    if power is None or power == 0:
        return _number(value)
    share, lr = value / rate**power, _raised("lr", power)
    if is_close(share, 1.0):
        return lr
    inverse = 1 / share
    if inverse > 1 and abs(inverse - round(inverse)) < SAME * inverse:
        return f"{lr}/{_number(inverse)}"
    return f"{_number(share)} {lr}"
