"""Noise that reaches every coordinate: Hoermander's condition at a generic point.

Every c_k of the identity map is zero. An order says something only if the law exp(-H) is the only one that the SDE
keeps, for which it is enough that the noise spreads: that the fields

    V_i = (D_i1, .., D_in), their brackets with each other and with the drift, and brackets of those

span the space at a generic point. For the drift it makes no difference whether it is that of Ito or Stratonovich. What
is drawn afresh now and then (`jumps`) is a direction of noise too.
"""

from collections.abc import Sequence

import mpmath
import numpy as np

from sgmcmc_verification.checks.proof.errors import NotReal
from sgmcmc_verification.checks.proof.expansion import Expansion, Region
from sgmcmc_verification.checks.proof.ring import Polynomial, Ring
from sgmcmc_verification.checks.proof.statements.orders import drift_and_covariance
from sgmcmc_verification.checks.proof.statements.result import Result
from sgmcmc_verification.checks.proof.zero import ATTEMPTS, at_random

REACHES = "noise reaches all"
LEVELS = 4
"""Brackets of brackets that are tried."""
FEW = 8
"""Coordinates beyond which only [f, v_i], which momenta need, and [v_i, [f, v_i]], for thermostats, are tried."""
SMALL = 1e-10
"""A singular value below this share of the largest is zero: entries are exact, singular values good to 1e-16."""

Field = Sequence[Polynomial]


def noise_reaches(expansion: Expansion, region: Region) -> Result:
    """Decide if the noise of a step spreads to all coordinates."""
    drift, covariance = drift_and_covariance(expansion, region)
    n, variables = len(drift), expansion.variables
    equation = f"rank of the brackets of noise and drift = {n}"
    ring = expansion.ring
    jumps = [[ring.one if i == place else ring.zero for i in range(n)] for place in region.jumps]
    noise = [*(row for row in covariance if any(row)), *jumps]
    fields, newest = list(noise), list(noise)
    try:
        rank, missing = _rank(fields, expansion)
        for level in range(LEVELS if n <= FEW else 2):
            if rank == n or not newest:
                break
            if n <= FEW:
                pairs = [(f, v) for v in newest for f in (drift, *noise) if f is not v]
            else:
                pairs = [(drift, v) for v in newest] if not level else list(zip(noise, newest, strict=False))
            newest = [field for f, v in pairs if any(field := bracket(f, v, variables))]
            fields += newest
            rank, missing = _rank(fields, expansion)
    except NotReal:
        return Result(REACHES, equation, "undecided", "no real point was found", region=region.conditions)
    if rank == n:
        return Result(REACHES, equation, "proved", region=region.conditions)
    names = ", ".join(str(expansion.ring.generators[variables[i]]) for i in missing) or "some direction"
    return Result(REACHES, equation, "undecided", f"no noise of order h reaches {names}", region=region.conditions)


def bracket(f: Field, g: Field, variables: Sequence[int]) -> list[Polynomial]:
    """[f, g]_i = sum_j f_j d_j g_i - g_j d_j f_i."""
    ring, n = f[0].ring, range(len(variables))
    along = lambda a, b, i: ring.sum(a[j] * b[i].derivative(variables[j]) for j in n if a[j])
    return [along(f, g, i) - along(g, f, i) for i in n]


def _rank(fields: Sequence[Field], expansion: Expansion) -> tuple[int, list[int]]:
    """The rank of fields at a random point, and the coordinates that are not in their span."""
    n = len(expansion.variables)
    if not fields:
        return 0, list(range(n))
    with mpmath.workdps(30):
        rows = np.array(_values(fields, expansion.ring))
    sizes = np.abs(rows).max(axis=1, keepdims=True)
    rows = rows / np.where(sizes == 0, 1, sizes)
    _, singular, directions = np.linalg.svd(rows)
    rank = int(np.sum(singular > SMALL * singular[0]))
    spanned = directions[:rank]
    missing = [i for i in range(n) if np.sum(spanned[:, i] ** 2) < 1 - 1e-6]
    return rank, missing


def _values(fields: Sequence[Field], ring: Ring) -> list[list[float]]:
    """The values of fields at a random point. Raises NotReal if none is found at which they are real."""
    for attempt in range(ATTEMPTS):
        value = at_random(ring, str(attempt))
        try:
            return [[float(value(p)) for p in field] for field in fields]
        except (NotReal, ZeroDivisionError):
            continue
    raise NotReal
