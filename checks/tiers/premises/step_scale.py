"""Scale of the step: noise and drift of a step go like one power of its size, over seven decades."""

import jax
import jax.numpy as jnp
import numpy as np

from checks.core.check import Case, NotApplicable, statement
from checks.core.finding import Finding, Tolerance
from checks.core.selection import informative
from checks.exact_laws.claimed_law_quadrature import generic_points
from checks.tracing.probe import ends_of, normals_of, quiet
from checks.tracing.step_map import HostStep, JaxStep, step_map

DECADES = np.arange(0, 8)
"""Step sizes h0 / 10^k."""
LEAST = 1e-11
"""Least size of a move that is looked at."""
SETTLED = 3
"""Decades after which a power of h has to be one: the next power is a thousandth."""
FINE = 10.0 ** (2 + np.arange(34) / 32)
"""h0 over step sizes of the decade before, the first below those that other statements look at. Two powers that differ
by 1 may still be of a size there: the norm of such sums changes its power by at most ln 10 / 64 = 0.036 from one of
these step sizes to the next (twice the largest variance of an exponent, 1/4, times ln 10 / 32), a switch by more."""


@statement(
    tier="contract",
    equation="dz'/dxi ~ h^a and E z' - z ~ h^b for one a and one b, as h -> 0",
    targets=lambda subject: informative(subject)[-1:],
    cost=0.3,
    decides="dynamics",
    once=True,
)
def step_scale(case: Case) -> Finding:
    """The response to the noise, and the move without it, follow a power law in h over seven decades.

    A floor in a variance, a smallest step size, or a switch at some h changes the power, or the factor of it, from
    there on: the limit h -> 0 of the laws is then that of larger steps alone.
    """
    step = step_map(case.subject, case.target)
    found, worst = [], 0.0
    for hs, settled in ((case.step_size / 10.0**DECADES, SETTLED), (case.step_size / FINE, 0)):
        sizes = _traced(step, hs) if isinstance(step, JaxStep) else _measured(step, hs)
        effect, where = _changes(hs, sizes, settled)
        worst = max(worst, effect)
        found = found or where
    return Finding(
        effect=worst,
        tolerance=Tolerance(0.05, "the next power of h at a thousandth of the usual step size"),
        required_sensitivity=0.2,
        reason="; ".join(found) or f"one power of h from {case.step_size:.3g} on, over seven decades",
        statistic="change of the power of h",
        unit="power of h",
        step_size=case.step_size,
    )


def _changes(hs: np.ndarray, sizes: dict[str, np.ndarray], settled: int) -> tuple[float, list[str]]:
    """Largest change of a power between neighbouring step sizes, without the first `settled`, and where it changes."""
    found, worst = [], 0.0
    for name, every in sizes.items():
        # a move is the difference of two positions, and known to their round-off
        values = every[: int(np.argmax(np.append(every, 0.0) <= LEAST))]
        if not values.any():
            continue
        if not np.all(np.isfinite(values)):
            k = int(np.flatnonzero(~np.isfinite(values))[0])
            found.append(f"{name} is {values[k]:.3g} at a step size of {hs[k]:.3g}")
            worst = np.inf
            continue
        powers = np.diff(np.log10(values)) / np.diff(np.log10(hs[: len(values)]))
        if len(powers) <= settled + 1:
            continue
        # between neighbouring decades the exponent of a power law changes by what the next power of h adds, or less
        change = np.abs(np.diff(powers))[settled:]
        k = int(np.argmax(change))
        worst = max(worst, float(change[k]))
        if change[k] > 0.05:
            at = hs[settled + k + 1]
            found.append(
                f"{name} goes like h^{powers[settled + k]:.3f} above a step size of {at:.3g}, like "
                f"h^{powers[settled + k + 1]:.3f} below"
            )
    return worst, found


def _traced(step: JaxStep, hs: np.ndarray) -> dict[str, np.ndarray]:
    """By differentiation with respect to the noise, which costs no digits."""
    step.require_known_draws()
    z = jnp.asarray(generic_points(step, 1)[0])
    normals, noise = jnp.cos(1.3 * jnp.arange(step.noise_size) + 0.2), quiet(step)

    @jax.jit
    def at(h: jax.Array) -> tuple[jax.Array, jax.Array]:
        move = lambda e: step.program(noise(e), z, h)[0]
        _, response = jax.jvp(move, (normals,), (normals,))
        return jnp.linalg.norm(response), jnp.linalg.norm(move(0 * normals) - z)

    response, drift = np.array([[float(v) for v in at(jnp.asarray(h))] for h in hs]).T
    return {"the noise": response, "the drift": drift}


def _measured(step: HostStep, hs: np.ndarray) -> dict[str, np.ndarray]:
    """By differences."""
    z, count = np.asarray(step.template.flat, float)[None], normals_of(step)
    shock = np.cos(1.3 * np.arange(count) + 0.2)[None]
    noise, drift = [], []
    for h in hs:
        ends = ends_of(step, float(h))
        still, moved = (ends(z, e)[0, : step.size] for e in (0 * shock, shock))
        noise.append(np.linalg.norm(moved - still))
        drift.append(np.linalg.norm(still - z[0]))
    if not np.any(noise) and not np.any(drift):
        raise NotApplicable("the step does not move")
    return {"the noise": np.array(noise), "the drift": np.array(drift)}
