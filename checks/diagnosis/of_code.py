"""Polynomials of a step whose author declared no dynamics, against the plainest family of its shape.

    position alone            f = -D grad U / T + Gamma,  Gamma_i = sum_j d_j D_ij,  for any D(x)
    position and momentum     dx = v p dt,  dp = (-F grad U - C p) dt + sqrt(2 N) dW

The second keeps exp(-U / T' - p^2 / (2 s)) with s = N / C and T' = s v / F. Source: ma2015complete, theorem 1.
"""

from collections.abc import Sequence
from fractions import Fraction

from sgmcmc_verification.checks.diagnosis.cause import Diagnosis
from sgmcmc_verification.checks.diagnosis.combinations import combination, multiple, vanishes
from sgmcmc_verification.checks.diagnosis.step import Step, flat, of_data, shared, times
from sgmcmc_verification.checks.proof.ring import Polynomial
from sgmcmc_verification.checks.proof.zero import is_zero

GAMMA = "Gamma = div D"


def from_the_code(step: Step) -> Diagnosis | None:
    """Factors of gradient, noise, friction and Gamma, where exactly one member of the family has them."""
    if step.recipe is not None:
        return None
    if len(step.names) == step.size:
        return _of_position(step)
    return _of_momentum(step) if len(step.names) == 2 * step.size else None


def _of_position(step: Step) -> Diagnosis | None:
    D, f, T = step.diffusion, step.drift, step.temperature
    if is_zero(_flux(step)):
        return None  # the law is right as h -> 0
    entries = flat(D)
    fixed = all(p.rational is not None for p in entries)
    gamma = step.divergence(D)
    needed = [-p for p in times(D, [p.scaled(1 / T) for p in step.slope])]
    likelihood = step.likelihood
    if likelihood is not None:
        return _data(step, likelihood)
    if not fixed:
        found = combination(f, [needed, gamma]) if any(gamma) else None
        if found is None:
            return None
        share, c = found
        gamma_is = "" if c == 1 else _gamma(c, step)
        slope_is = "" if share == 1 else f"the gradient has the factor {step.factor(share)} beside the noise"
        text = "; ".join(part for part in (gamma_is, slope_is) if part)
        return Diagnosis("drift", f"the noise depends on the position, {text}") if text else None
    scale = multiple(f, [-p for p in step.slope])
    heat = _scalar(D)
    if scale is not None and heat is not None:
        return _factors(step, float(scale), float(heat))
    if scale is not None:
        return _uneven(step, float(scale))
    if any(not vanishes([D[i][j]]) for i in range(step.size) for j in range(step.size) if i != j):
        return None
    shares = [multiple([p], [-g]) for p, g in zip(f, step.slope, strict=True)]
    if None in shares:
        return None
    ratios = [(step.names[i], D[i][i].rational, c * T) for i, c in enumerate(shares) if c is not None]
    wrong = [(name, a / b) for name, a, b in ratios if a is not None and b and a != b]
    if not wrong or any(not b for _, _, b in ratios):
        return None
    name, ratio = wrong[0]
    alike = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    if ratio < 0:
        return Diagnosis("drift", f"in {name}{alike} the drift goes uphill: the sign of the gradient is wrong")
    times_drift = step.factor(ratio)
    text = f"in {name}{alike} the noise has {times_drift} of the variance that its drift needs"
    return Diagnosis("noise", text)


def _flux(step: Step) -> Polynomial:
    """e^H A_1^* e^-H."""
    ring, density = step.ring, step.density
    n = range(len(step.names))
    first = ring.sum(density.conjugated(p, i) for i, p in enumerate(step.drift))
    second = ring.sum(density.conjugated(density.conjugated(step.diffusion[i][j], i), j) for i in n for j in n)
    return second - first


def _gamma(c: Fraction, step: Step) -> str:
    if c == 0:
        return f"and {GAMMA} is missing in the drift"
    if c == -1:
        return f"and {GAMMA} has the wrong sign in the drift"
    return f"and {GAMMA} has the factor {step.factor(c)} in the drift"


def _scalar(D: Sequence[Sequence[Polynomial]]) -> float | None:
    ring = D[0][0].ring
    n = range(len(D))
    unit = [ring.one if i == j else ring.zero for i in n for j in n]
    c = multiple(flat(D), unit)
    return None if c is None else float(c)


def _factors(step: Step, scale: float, heat: float) -> Diagnosis | None:
    T = float(step.temperature)
    if scale < 0:
        return Diagnosis("drift", f"the drift is {-scale:.4g} grad U, uphill: the sign of the gradient is wrong")
    if scale == 0 or heat == 0:
        return None
    found = f"a temperature of {heat / scale:.4g} for {T:.4g}"
    if scale == 1:
        ratio = step.factor(heat / T)
        text = f"the variance of the noise is {2 * heat:.4g} h for {2 * T:.4g} h, {ratio} times: {found}"
        return Diagnosis("noise", text)
    if heat == T:
        return Diagnosis("drift", f"the drift is -{step.factor(scale)} grad U: {found}")
    return Diagnosis("noise", f"the drift is -{scale:.4g} grad U, the noise has the variance {2 * heat:.4g} h: {found}")


def _uneven(step: Step, scale: float) -> Diagnosis | None:
    """A constant D that is no multiple of I beside the drift -c grad U."""
    D, names, n = step.diffusion, step.names, range(step.size)
    needed = scale * float(step.temperature)
    if needed <= 0:
        return None
    across = [(i, j) for i in n for j in n if i < j and not vanishes([D[i][j]])]
    if across:
        return shared(step, *across[0])
    found = [(names[i], float(D[i][i].rational or 0) / needed) for i in n]
    wrong = [(name, c) for name, c in found if abs(c - 1) > 1e-12]
    if not wrong:
        return None
    name, c = wrong[0]
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    if c == 0:
        return Diagnosis("noise", f"no noise is injected into {name}{more}")
    return Diagnosis("noise", f"the variance of the noise in {name}{more} has the factor {step.factor(c)}")


def _data(step: Step, likelihood: Sequence[Polynomial]) -> Diagnosis | None:
    """Factors of prior and likelihood in a drift beside D = T I."""
    heat = _scalar(step.diffusion)
    if heat != float(step.temperature):
        return None
    prior = [a - b for a, b in zip(step.slope, likelihood, strict=True)]
    found = combination(step.drift, [[-p for p in prior], [-p for p in likelihood]])
    return None if found is None else of_data(step, found)


def _of_momentum(step: Step) -> Diagnosis | None:
    d = step.size
    p = [step.ring.power(v, 1) for v in step.density.variables[d:]]
    velocity = multiple(step.drift[:d], p)
    push = combination(step.drift[d:], [[-g for g in step.slope], [-a for a in p]])
    D = step.diffusion
    if velocity is None or push is None:
        return None
    if any(not vanishes([D[i][j]]) for i in range(d) for j in range(2 * d)):
        return Diagnosis("noise", "noise enters the position itself at first order")
    within = [row[d:] for row in D[d:]]
    heat = _scalar(within)
    if heat is None:
        if any(entry.rational is None for entry in flat(within)):
            return None
        across = [(i, j) for i in range(d) for j in range(d) if i < j and not vanishes([within[i][j]])]
        if not across:
            return None
        return shared(step, d + across[0][0], d + across[0][1])
    return _of_numbers(step, float(heat), float(velocity), float(push[0]), float(push[1]))


def _of_numbers(step: Step, heat: float, speed: float, force: float, friction: float) -> Diagnosis | None:
    """The law exp(-U / T' - p^2 / (2 s)), s = heat / friction and T' = s speed / force, against exp(-U / T ..)."""
    T = float(step.temperature)
    if speed * force <= 0:
        text = f"the position moves by {speed:.4g} p, the force is {-force:.4g} grad U: signs differ"
        return Diagnosis("drift", text) if speed * force < 0 else None
    if friction < 0:
        return Diagnosis("drift", f"the friction has the wrong sign: the momentum grows by {-friction:.4g} p")
    if friction == 0:
        if heat == 0:
            return None
        text = f"noise of variance {2 * heat:.4g} h without friction: the energy grows without bound"
        return Diagnosis("drift", text)
    if heat == 0:
        return Diagnosis("noise", f"friction {friction:.4g} without noise: the chain falls into the mode")
    spread = heat / friction
    found = spread * speed / force
    if abs(found / T - 1) < 1e-12:
        return None
    if force != 1 and abs(spread * speed / T - 1) < 1e-12:
        text = f"the force is -{step.factor(force)} grad U: a temperature of {found:.4g} for {T:.4g}"
        return Diagnosis("drift", text)
    need = friction * T * force / speed
    return Diagnosis(
        "noise",
        f"the noise of the momentum has the variance {2 * heat:.4g} h, a friction of {friction:.4g} needs "
        f"{2 * need:.4g} h ({step.factor(heat / need)} times): a temperature of {found:.4g} for {T:.4g}",
    )
