"""Polynomials of a step whose dynamics are declared, term by term against f = -(D + Q) grad H + Gamma and D."""

from collections.abc import Sequence
from fractions import Fraction

from sgmcmc_verification.checks.diagnosis.cause import Cause, Diagnosis
from sgmcmc_verification.checks.diagnosis.combinations import by_form, combination, multiple, vanishes
from sgmcmc_verification.checks.diagnosis.step import LONG, Step, flat, of_data, product, shared, times
from sgmcmc_verification.checks.proof.operators import drift_of
from sgmcmc_verification.checks.proof.ring import Polynomial

GAMMA = "Gamma = div (D + Q)"
SHORT = 20
"""Letters of a form of monomials that is a name."""

Vector = Sequence[Polynomial]
Terms = Sequence[tuple[str, Vector]]


def against_recipe(step: Step) -> Diagnosis | None:
    """The term, the coordinate or the factor in which drift and diffusion differ from the declared ones, exactly."""
    if step.recipe is None:
        return None
    D = [[step.recipe.D[i, j] for j in range(len(step.names))] for i in range(len(step.names))]
    f = drift_of(step.density, step.recipe.D, step.recipe.Q)
    off = not vanishes(_difference(step.drift, f))
    loud = not vanishes(_difference(flat(step.diffusion), flat(D)))
    if not off and not loud:
        return None
    speed, heat = multiple(step.drift, f), multiple(flat(step.diffusion), flat(D))
    if off and loud and speed is not None and speed == heat and speed > 0:
        c = step.factor(speed)
        return Diagnosis("time", f"the law is right, the time is not: a step moves {c} h of it")
    if off and not loud and speed is not None and speed > 0 and len(step.names) == step.size:
        T = float(step.temperature)
        text = f"the drift has the factor {step.factor(speed)}: a temperature of {T / speed:.4g} for {T:.4g}"
        return Diagnosis("drift", text)
    noise = _noise(step, D, heat, off) if loud else None
    drift = _drift(step, f, D) if off else None
    if (loud and noise is None) or (off and drift is None):
        return None  # one half of an explanation is none
    found = [part for part in (noise, drift) if part is not None]
    return Diagnosis(found[0].cause, "; ".join(part.text for part in found))


def _difference(a: Vector, b: Vector) -> list[Polynomial]:
    return [x - y for x, y in zip(a, b, strict=True)]


def _noise(step: Step, D: list[list[Polynomial]], heat: Fraction | None, off: bool) -> Diagnosis | None:
    found, names, n = step.diffusion, step.names, range(len(step.names))
    T, adapts = float(step.temperature), len(names) > 2 * step.size  # a thermostat makes up for it
    if heat is not None and heat > 0:
        text = f"the variance of the noise has the factor {step.factor(heat)}"
        return Diagnosis("noise", text if off or adapts else f"{text}: a temperature of {heat * T:.4g} for {T:.4g}")
    free = [i for i in n if vanishes(D[i])]
    entered = [i for i in free if not vanishes(found[i])]
    if entered:
        return Diagnosis("noise", f"noise enters {names[entered[0]]}, which should have none")
    ratios = {i: multiple([found[i][i]], [D[i][i]]) for i in n if i not in free}
    wrong = {i: c for i, c in ratios.items() if c != 1}
    across = [(i, j) for i in n for j in n if i < j and not vanishes([found[i][j] - D[i][j]])]
    if across and not wrong:
        if all(vanishes([D[i][j]]) for i, j in across):
            return shared(step, *across[0])
        if all(vanishes([found[i][j]]) for i, j in across):
            return Diagnosis(
                "noise", "the noise has the variance 2 h diag(D), without its correlations, it should be 2 h D"
            )
    if not across and len(wrong) < len(ratios) and wrong and None not in wrong.values():
        shares = {c for c in wrong.values() if c is not None}
        if len(shares) == 1:
            where, c = " and ".join(names[i] for i in wrong), float(shares.pop())
            return Diagnosis("noise", f"the variance of the noise in {where} has the factor {step.factor(c)}")
    for text, form in _forms(step, D, free):
        c = multiple(flat(found), flat(form))
        if c is not None and c > 0:
            times_c = "" if c == 1 else f", times {step.factor(c)}"
            return Diagnosis("noise", f"the noise has the variance {text}{times_c}, it should be 2 h D")
    c = multiple(flat(product(found, found)), flat(D))
    if c == 1:
        return Diagnosis(
            "noise", "the noise has the variance 2 h D^(1/2) (as where a root is taken twice), it should be 2 h D"
        )
    return None


def _forms(step: Step, D: list[list[Polynomial]], free: Sequence[int]) -> list[tuple[str, list[list[Polynomial]]]]:
    """Forms that a diffusion takes by mistake, with their names."""
    ring, n = step.ring, range(len(D))
    one = lambda i, j: ring.one if i == j and i not in free else ring.zero
    return [
        ("2 h I, without the metric", [[one(i, j) for j in n] for i in n]),
        ("2 h D^2 (as where a factor stands for its square root)", product(D, D)),
    ]


def _drift(step: Step, f: Vector, D: list[list[Polynomial]]) -> Diagnosis | None:
    """The terms of the drift that are off, block by block."""
    speed = multiple(step.drift, f)
    if speed == -1:
        return Diagnosis("drift", "the drift has the wrong sign: it goes uphill")
    if speed is not None:
        return Diagnosis("drift", f"the whole drift has the factor {step.factor(speed)}")
    texts: list[str] = []
    cause: Cause = "drift"
    for name, places in _blocks(step.names).items():
        given, due = [step.drift[i] for i in places], [f[i] for i in places]
        if vanishes(_difference(given, due)):
            continue
        found = _of_block(step, name, places, D, given, due)
        if found is None:
            return None
        cause = found.cause if len(texts) == 0 else cause
        texts.append(found.text)
    return Diagnosis(cause, "; ".join(texts)) if texts else None


def _of_block(
    step: Step, name: str, places: Sequence[int], D: list[list[Polynomial]], given: Vector, due: Vector
) -> Diagnosis | None:
    data = _data(step, places, given, due)
    if data is not None:
        return data
    if len(places) == 1 and places[0] >= step.size and (single := _by_forms(step, name, given, due)) is not None:
        return single
    terms = _terms(step, places)
    found = combination(given, [term for _, term in terms])
    if found is not None:
        return Diagnosis("drift", _words(step, name, [t for t, _ in terms], found))
    shift = _difference(given, due)
    constants = [p.rational for p in shift]
    if None not in constants:
        moved = [(step.names[i], c) for i, c in zip(places, constants, strict=True) if c]
        numbers = ", ".join(f"{float(c):.4g}" for _, c in moved)
        where = " and ".join(name for name, _ in moved)
        return Diagnosis("drift", f"a constant is added to the drift of {where}: {numbers}")
    for text, change in _replacements(step, places, D):
        if vanishes(_difference(shift, change)):
            return Diagnosis("drift", text)
    slopes = _slopes(step, places)
    found = combination(given, [term for _, term in slopes])
    if found is not None:
        return Diagnosis("drift", _words(step, name, [t for t, _ in slopes], found))
    return _by_forms(step, name, given, due)


def _slopes(step: Step, places: Sequence[int]) -> Terms:
    """The shares of the drift that the derivatives of H by each block of coordinates have, and Gamma."""
    assert step.recipe is not None
    S, n = step.recipe.D + step.recipe.Q, range(len(step.names))
    of = lambda block: [-step.ring.sum(S[i, j] * step.density.slope[j] for j in block) for i in places]
    found = [(f"dH/d{name}", of(block)) for name, block in _blocks(step.names).items()]
    gamma = step.divergence([[S[i, j] for j in n] for i in n])
    found.append((GAMMA, [gamma[i] for i in places]))
    return [(text, term) for text, term in found if any(term)]


def _terms(step: Step, places: Sequence[int]) -> Terms:
    """-D grad H, -Q grad H and Gamma on some coordinates, as far as they are there."""
    assert step.recipe is not None
    rows, H = range(len(step.names)), step.density.slope
    matrix = lambda M: [[M[i, j] for j in rows] for i in rows]
    D, Q = matrix(step.recipe.D), matrix(step.recipe.Q)
    minus = lambda v: [-p for p in v]
    named = [
        ("-D grad H", minus(times(D, H))),
        ("-Q grad H", minus(times(Q, H))),
        (GAMMA, [a + b for a, b in zip(step.divergence(D), step.divergence(Q), strict=True)]),
    ]
    kept = [(text, [term[i] for i in places]) for text, term in named]
    return [(_meaning(text, term, step), term) for text, term in kept if any(term)]


def _meaning(text: str, term: Vector, step: Step) -> str:
    if text == GAMMA:
        return text
    forms = set(by_form(term))
    if len(step.names) == step.size:
        return f"the term {text}"
    if forms == {"p"}:
        return f"the friction term {text}" if text.startswith("-D") else f"the velocity {text}"
    if all("grad U" in form for form in forms):
        return f"the force {text}"
    return f"the term {text}"


def _words(step: Step, name: str, terms: Sequence[str], found: Sequence[Fraction]) -> str:
    wrong = [(term, c) for term, c in zip(terms, found, strict=True) if c != 1]
    return f"drift of {name}: " + ", ".join(_said(step, term, c) for term, c in wrong)


def _said(step: Step, term: str, c: Fraction) -> str:
    words = {Fraction(0): "is missing", Fraction(-1): "has the wrong sign", Fraction(2): "is counted twice"}
    words[Fraction(1, 2)] = "is halved"
    return f"{term} {words[c]}" if c in words else f"{term} has the factor {step.factor(c)}"


def _replacements(step: Step, places: Sequence[int], D: list[list[Polynomial]]) -> Terms:
    """Changes of the drift that are made by mistake, with their sentences."""
    H, ring = step.density.slope, step.ring
    once, own = times(D, H), step.divergence(D)
    twice = times(D, once)
    diagonal = [D[i][i].derivative(v) for i, v in enumerate(step.density.variables)]
    within = lambda v: [v[i] for i in places]
    less = lambda a, b: within(_difference(a, b))
    plain = [p if any(D[i]) else ring.zero for i, p in enumerate(H)]
    return [
        ("the gradient is multiplied by D twice: -D^2 grad H for -D grad H", less(once, twice)),
        ("the gradient is not multiplied by D: -grad H for -D grad H", less(once, plain)),
        (f"{GAMMA} has d_i D_ii alone, without the derivatives off the diagonal", less(diagonal, own)),
        (f"{GAMMA} is multiplied by D", less(times(D, own), own)),
    ]


def _data(step: Step, places: Sequence[int], given: Vector, due: Vector) -> Diagnosis | None:
    """Factors of prior and likelihood, where the difference is one of grad U and the gradients of the data."""
    likelihood = step.likelihood
    if likelihood is None or len(places) != step.size:
        return None
    prior = _difference(step.slope, likelihood)
    scale = multiple(by_form(due).get("grad U", [step.ring.zero] * len(due)), [-p for p in step.slope])
    if scale is None or not scale:
        return None
    found = combination(_difference(given, due), [[-p for p in prior], [-p for p in likelihood]])
    if found is None:
        return None
    return of_data(step, [1 + c / scale for c in found])


def _by_forms(step: Step, name: str, given: Vector, due: Vector) -> Diagnosis | None:
    """Factors of the monomials of one form, where the code has no other than the dynamics."""
    has, needs = by_form(given), by_form(due)
    if not has.keys() <= needs.keys() or not all(len(form) < SHORT for form in needs):
        return None
    zero = [step.ring.zero] * len(due)
    found = {form: multiple(has.get(form, zero), vector) for form, vector in needs.items()}
    shares = {c for c in found.values() if c is not None}
    if None in found.values():
        return None
    label = lambda form: "its constant" if form == "1" else f"term in {form}"
    if len(shares) == 1:
        text = _said(step, "all of it", shares.pop())
    else:
        wrong = [_said(step, label(form), c) for form, c in found.items() if c is not None and c != 1]
        text = ", ".join(wrong)
    code = f": the code has {given[0].text(LONG)}, the dynamics {due[0].text(LONG)}" if len(given) == 1 else ""
    return Diagnosis("drift", f"drift of {name}: {text}{code}")


def _blocks(names: Sequence[str]) -> dict[str, list[int]]:
    """Coordinates by the name before their index: `theta`, `r`, `xi`."""
    blocks: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        blocks.setdefault(name.partition("[")[0], []).append(i)
    return blocks
