"""Scale of the step: noise and drift of a step go like one power of its size, over seven decades."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import informative
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points
from sgmcmc_verification.checks.programs.trees import placed
from sgmcmc_verification.checks.tracing.probe import ends_of, normals_of, quiet
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, step_map
from sgmcmc_verification.samplers.interface.claims import CyclicalSchedule, ExactLaw

DECADES = np.arange(0, 8)
"""Step sizes h0 / 10^k."""
LEAST = 1e-11
"""Least size of a move that is looked at."""
SETTLED = 3
"""Decades after which a power of h has to be one: the next power is a thousandth."""
FINE = 10.0 ** (2 + np.arange(34) / 32)
"""h0 over step sizes of the decade before, the first below those that other statements look at. Two powers that differ
by 1 may still be of a size there: the norm of such sums changes its power by at most ln 10 / 64 = 0.036 from one of
these step sizes to the next (twice the largest variance of an exponent, 1/4, times ln 10 / 32), a switch by more. A
difference of powers changes it by any amount near its root, but by nearly as much `ASIDE` step sizes on."""
ASIDE = 3

SWITCH = 1.5
"""Power of h by which a jump stands out between its neighbours, `GRID` of them a decade: a factor of 1.06 or more."""
GRID = 64
POINTS = 3
GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, without their whole parts, are spread over the unit interval."""
NEXT = np.array([0.0, 1.37e-6, -2.71e-6])
"""Relative differences of starts whose moves are one to a few millionths, and whose round-off is not."""
ROUGH = 1e-3
"""Share of a size that round-off may be: two decades below what changes a power by the tolerance."""
MOST_SWITCHES = 2
"""More jumps than these are those of a whole number of inner steps, floor(T / h)."""


@statement(
    tier="contract",
    equation="dz'/dxi ~ h^a and E z' - z ~ h^b for one a and one b, as h -> 0",
    targets=lambda subject: informative(subject)[-1:],
    cost=0.3,
    decides="dynamics",
    once=True,
)
def step_scale(case: Case, exact: ExactLaw | None, stages: CyclicalSchedule | None) -> Finding:
    """The response to the noise, and the move without it, follow a power law in h over seven decades.

    A floor in a variance, a smallest step size, or a switch at some h changes the power, or the factor of it, from
    there on: the limit h -> 0 of the laws is then that of larger steps alone. Up to the usual step size on a target of
    unit curvature no power of h need stand out, but a jump by more than 6% at one h from all positions is a switch too:
    the laws in the limit are then those of smaller steps alone. Not so for an exact kernel, whose law is decided at
    finite step sizes, nor for a schedule with stages of large steps without noise.
    """
    step = step_map(case.subject, case.target)
    found, worst = [], 0.0
    ladders = [case.step_size / 10.0**DECADES, case.step_size / FINE]
    if isinstance(step, JaxStep):
        larger = np.array([]) if exact or stages else _larger(case)
        *sizes, beyond = _traced(step, [*ladders, larger])
        worst, found = _switches(larger, beyond)
    else:
        sizes = [_measured(step, hs) for hs in ladders]
    if step.size > case.target.size and not any(np.isfinite(v).any() for each in sizes for v in each.values()):
        raise OutOfReach("no step size gives a number at the states that were tried, which the sampler may never reach")
    for hs, values, settled in zip(ladders, sizes, (SETTLED, 0), strict=True):
        points = [{name: rows[i] for name, rows in values.items()} for i in range(len(next(iter(values.values()))))]
        # what crosses zero at some step size does so from one point; a floor and a switch are there from all
        effect, where = min((_changes(hs, sizes, settled) for sizes in points), key=lambda change: change[0])
        worst = max(worst, effect)
        found = where or found
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
        change = change if settled else _stands_out(change)
        k = int(np.argmax(change))
        worst = max(worst, float(change[k]))
        if change[k] > 0.05:
            at = hs[settled + k + 1]
            found.append(
                f"{name} goes like h^{powers[settled + k]:.3f} above a step size of {at:.3g}, like "
                f"h^{powers[settled + k + 1]:.3f} below"
            )
    return worst, found


def _stands_out(change: np.ndarray) -> np.ndarray:
    """Changes of a power less those `ASIDE` places away, on the side where they are less; the same where none are."""
    beside = np.pad(change, ASIDE, constant_values=np.inf)
    less = np.minimum(beside[: len(change)], beside[2 * ASIDE :])
    return change - np.where(np.isfinite(less), less, 0.0)


def _larger(case: Case) -> np.ndarray:
    """Step sizes from the usual one on a target of unit curvature down to those of the ladders, `GRID` a decade.

    None before faces, where a larger step is reflected once more.
    """
    least, most = case.step_size / FINE[0], case.subject.row.step_size
    if case.target.manifold.has_boundary or most <= least:
        return np.array([])
    return np.geomspace(most, least, 2 + int(GRID * np.log10(most / least)))


def _switches(hs: np.ndarray, sizes: dict[str, np.ndarray]) -> tuple[float, list[str]]:
    """The largest jump of noise or drift at one step size from all points, and where it is.

    An accepted or rejected move jumps as well, but at another step size from each point.
    """
    found, worst = [], 0.0
    if not len(hs):
        return worst, found
    for name, every in sizes.items():
        values = np.maximum(every, LEAST)  # no move at all is a jump as well; what is not finite stays so
        with np.errstate(invalid="ignore"):
            powers = np.diff(np.log(values), axis=1) / np.diff(np.log(hs))
        stands_out = np.minimum(np.abs(powers[:, 1:-1] - powers[:, :-2]), np.abs(powers[:, 1:-1] - powers[:, 2:]))
        jumps = np.nan_to_num(stands_out, nan=0.0, posinf=0.0).min(axis=0)
        if not 0 < np.sum(jumps > SWITCH) <= MOST_SWITCHES:
            continue
        k = int(np.argmax(jumps))
        worst = max(worst, float(jumps[k]))
        ratio = values[0, k + 1] / values[0, k + 2] * (hs[k + 2] / hs[k + 1]) ** powers[0, k]
        found.append(f"{name} jumps by a factor of {ratio:.3g} where the step size passes {hs[k + 2]:.3g}")
    return worst, found


def _traced(step: JaxStep, ladders: list[np.ndarray]) -> list[dict[str, np.ndarray]]:
    """Norms (points, step sizes) of the response to the noise, and of the move without it, for ladders of step sizes.

    Of each leaf of z, which may have a rate of its own: a running mean keeps its share of each step, however small h.
    By differentiation with respect to the noise, which costs no digits. One program serves all ladders.
    """
    step.require_known_draws()
    leaves = jax.tree_util.tree_flatten_with_path(step.template.unravel(step.template.flat))[0]
    parts = np.cumsum([np.size(leaf) for _, leaf in leaves])[:-1]
    names = [f" of {jax.tree_util.keystr(path)}" if len(leaves) > 1 else "" for path, _ in leaves]
    norms = lambda v: jnp.stack([jnp.linalg.norm(part) for part in jnp.split(v, parts)])
    points = placed(generic_points(step, POINTS))
    places, noise = np.arange(step.noise_size), quiet(step)
    # the response is one to another direction: what depends on the direction of all draws alone has none along them
    normals, pushes = placed(np.cos(1.3 * places + 0.2)), placed(np.sin(2.1 * places + 1.0))

    def at(z: jax.Array, h: jax.Array, uniforms: jax.Array, shock: jax.Array) -> tuple[jax.Array, jax.Array]:
        move = lambda e: step.program(noise(e)._replace(uniform=uniforms), z, h)[0]
        _, response = jax.jvp(move, (normals,), (pushes,))
        return norms(response), norms((move(shock) + move(-shock)) / 2 - z)

    over = jax.jit(jax.vmap(jax.vmap(at, (None, 0, None, None)), (0, None, None, None)))
    hs, accept, none = placed(np.concatenate(ladders)), noise(normals).uniform, placed(np.zeros(len(places)))
    every = over(points, hs, accept, none)
    if len(accept) > 1 and not np.all(np.isfinite(every)):
        # noise is made of the uniforms, by a function that is infinite at the end of their range
        every = over(points, hs, (jnp.arange(1, len(accept) + 1) * GOLDEN) % 1, none)
    if np.all(np.isfinite(every[0])) and not np.all(np.isfinite(every[1])):
        # noise of which only the direction counts has none at 0: two opposite ones make up for each other
        every = over(points, hs, accept, normals)
    ends = np.cumsum([len(hs) for hs in ladders])[:-1]
    response, drift = (np.split(np.asarray(values), ends, axis=1) for values in every)
    of_leaves = lambda kind, values: {f"{kind}{name}": values[..., i] for i, name in enumerate(names)}
    return [of_leaves("the noise", r) | of_leaves("the drift", d) for r, d in zip(response, drift, strict=True)]


def _measured(step: HostStep, hs: np.ndarray) -> dict[str, np.ndarray]:
    """By differences, 0 from the step size on at which round-off is seen in them.

    A scheme that takes its velocity from two positions divides round-off by h: three starts next to each other
    show by how much.
    """
    z, count = np.asarray(step.template.flat, float) * (1 + NEXT[:, None]), normals_of(step)
    shock = np.tile(np.cos(1.3 * np.arange(count) + 0.2), (len(z), 1))
    noise, drift = [], []
    for h in hs:
        ends = ends_of(step, float(h))
        still, moved = (ends(z, e)[:, : step.size] for e in (0 * shock, shock))
        if not np.all(np.isfinite(still)):
            still = (moved + ends(z, -shock)[:, : step.size]) / 2
        noise.append(np.linalg.norm(moved - still, axis=1))
        drift.append(np.linalg.norm(still - z[:, : step.size], axis=1))
    if not np.any(noise) and not np.any(drift):
        raise NotApplicable("the step does not move")
    return {"the noise": _known(np.array(noise)), "the drift": _known(np.array(drift))}


def _known(sizes: np.ndarray) -> np.ndarray:
    """The first of the columns of sizes (step sizes, starts) as (1, step sizes), 0 from where the columns differ on."""
    rough = np.ptp(sizes, axis=1) > ROUGH * sizes[:, 0]
    return np.where(np.logical_or.accumulate(rough), 0.0, sizes[:, 0])[None]
