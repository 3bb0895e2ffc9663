"""Chains that change places: the exchange keeps the product of their laws, and is tried as often as is claimed.

Under the noise tape a step is a function of the normals and of one uniform. At its largest value no exchange takes
place, and what is left is a diffusion of both chains, which the other checks of the deterministic tiers decide. The
probability a(z) of an exchange is the largest uniform that still makes one, found by bisection; with noise in the
potential it is averaged over the normals that do nothing but that.
"""

from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, Inconclusive, NotApplicable, OutOfReach, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.obligations import of_target
from sgmcmc_verification.checks.core.selection import everywhere
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points
from sgmcmc_verification.checks.tracing.acceptance import accepted_share
from sgmcmc_verification.checks.tracing.noise_tape import Noise
from sgmcmc_verification.checks.tracing.step_map import JaxStep, require_traced, step_map
from sgmcmc_verification.samplers.interface.claims import Exchange
from sgmcmc_verification.targets.target import Target

EPS = np.finfo(float).eps
POINTS = 6
"""Pairs of positions, each of which is looked at both ways round."""
NODES, REACH = 801, 8.0
"""Of the trapezoidal rule over the noise of the potential, whose integrand has a kink."""
SHIFT = 0.25
"""Of a normal, to see whether and how it enters: less than what cuts every point off by min(1, .)."""
LINEAR = 1e-9
"""Bound of what 2^-60 leaves of the logarithm of a probability exp(-`LARGEST`), times the chance to try."""
LARGEST = 12.0
"""Largest |log S| that is looked at: bisection to 2^-60 leaves twelve digits of a probability exp(-12)."""


class Exchanges(NamedTuple):
    """Observations at the points z (m, 2 d) and at those with both halves exchanged.

    Attributes:
        log_ratio: log S_0 = (1 / T - 1 / T') (U(x) - U(y)), (m,).
        forward: a(z) (m,).
        backward: a with both halves exchanged (m,).
        gap: largest difference between a step with an exchange and one without it from the exchanged positions.
        noisy: True if noise of the potential enters.
        error: of forward and backward, numerical, in units of the chance that an exchange is tried.
    """

    log_ratio: np.ndarray
    forward: np.ndarray
    backward: np.ndarray
    gap: float
    noisy: bool
    error: float


def exchanged(z: np.ndarray) -> np.ndarray:
    """(.., 2 d) with both halves in the other order."""
    return np.concatenate(np.split(z, 2, axis=-1)[::-1], axis=-1)


def log_ratio(step: JaxStep, points: np.ndarray) -> np.ndarray:
    """log of pi(y, x) / pi(x, y) at points (m, 2 d) = (x, y), from the temperatures and the target alone."""
    claims = step.sampler.claims
    U = jax.vmap(step.target.flat_potential)
    x, y = np.split(points, 2, axis=1)
    return (1 / claims.temperature - 1 / claims[Exchange].temperature) * np.asarray(
        U(jnp.asarray(x)) - U(jnp.asarray(y))
    )


def mean_chance(log_ratio: np.ndarray, variance: float) -> np.ndarray:
    """E min(1, S) for log S ~ N(log_ratio - variance / 2, variance).

    Source: ceperley1999penalty, the acceptance of the penalty method for normal noise.
    """
    if not variance:
        return np.exp(np.minimum(log_ratio, 0.0))
    s = np.sqrt(variance)
    return scipy.stats.norm.cdf(log_ratio / s - s / 2) + np.exp(log_ratio) * scipy.stats.norm.cdf(
        -log_ratio / s - s / 2
    )


@lru_cache(maxsize=8)
def exchanges(step: JaxStep, h: float) -> Exchanges:
    """The exchanges of one step of size h. Raises NotApplicable or Inconclusive with the reason."""
    program = step.program
    if program.unintercepted:
        raise Inconclusive(f"random primitives that the tape cannot feed: {', '.join(program.unintercepted)}")
    if program.count("uniform") != 1 or any(number > 1 for number in program.ranges):
        raise OutOfReach("the step does not decide by a single uniform whether there is an exchange")
    count = program.count("normal")
    integers = jnp.zeros(program.count("integer"), int)
    points = generic_points(step, 4 * POINTS)
    points = points[np.abs(log_ratio(step, points)) < LARGEST][:POINTS]
    if len(points) < 3:
        raise Inconclusive(f"only {len(points)} points have a ratio of densities that can be resolved")

    @jax.jit
    def move(z, normals, u):
        return program(Noise(normals, jnp.reshape(u, (1,)), integers), z, jnp.asarray(h))[0]

    def chance(z, normals):
        stay = move(z, normals, jnp.ones(()))

        # two compilations of a move differ by round-off, exchanged positions by their distance
        least = 1e-9 * (1 + jnp.max(jnp.abs(stay)))
        return accepted_share(lambda u: jnp.max(jnp.abs(move(z, normals, u) - stay)) > least)

    chances = jax.jit(jax.vmap(chance, (None, 0)))
    noise = np.cos(2.3 * np.arange(count) + 0.7)
    silent = np.all(
        np.asarray(jax.jacfwd(lambda e: move(jnp.asarray(points[0]), e, 1.0))(jnp.zeros(count))) == 0, axis=0
    )
    probe = np.where(silent, 0.0, noise)
    shifts = np.concatenate([np.zeros((1, count)), *(s * np.eye(count)[silent] for s in (-SHIFT, SHIFT))])
    # of a pair and its exchange one at least is not cut off by min(1, .)
    pairs = np.concatenate([points, exchanged(points)])
    seen = np.stack([np.asarray(chances(jnp.asarray(z), jnp.asarray(probe + shifts))) for z in pairs])
    moves = np.any(np.abs(seen - seen[:, :1]) > 1e-12, axis=0)[1:].reshape(2, -1).any(axis=0)
    active = np.flatnonzero(silent)[moves]
    if len(active):
        # log S is linear in the noise: along its slopes that is N(0, 1), across them nothing happens
        slopes = noise_slopes(seen[:, 0], *(part[:, moves] for part in np.split(seen[:, 1:], 2, axis=1)))
        steepness = np.linalg.norm(slopes)
        along, across = np.zeros(count), np.zeros((len(active), count))
        along[active] = slopes / steepness
        across[:, active] = np.eye(len(active)) - np.outer(along[active], along[active])
        still = probe + np.concatenate([np.zeros((1, count)), across])
        if any(np.ptp(np.asarray(chances(jnp.asarray(z), jnp.asarray(still)))) > LINEAR for z in pairs):
            raise Inconclusive("the noise of the energies does not enter by one linear combination alone")
        nodes = np.linspace(-REACH, REACH, NODES)
        weights = scipy.stats.norm.pdf(nodes)
        weights /= weights.sum()
        tapes = probe + nodes[:, None] * along
        # a kink of slope s leaves s density dx^2 / 8; the slope is at most that of S in the noise
        error = steepness * scipy.stats.norm.pdf(0) * (nodes[1] - nodes[0]) ** 2 / 8
    else:
        tapes, weights, error = probe[None], np.ones(1), 0.0
    average = lambda z: float(weights @ np.asarray(chances(jnp.asarray(z), jnp.asarray(tapes))))
    gap = max(
        float(np.abs(np.asarray(move(z, noise, 0.0)) - np.asarray(move(exchanged(z), noise, 1.0))).max())
        for z in points
    )
    return Exchanges(
        log_ratio(step, points),
        np.array([average(z) for z in points]),
        np.array([average(z) for z in exchanged(points)]),
        gap,
        bool(len(active)),
        float(error),
    )


def noise_slopes(base: np.ndarray, below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """d log S / d normal (k,), from the chances (m,) at m points and those `SHIFT` below and above (m, k).

    log S is linear in the normals, so that both differences agree at a point where min(1, .) cuts nothing off; where
    it cuts off all, they vanish.

    Raises:
        Inconclusive: if there is no such point.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        left, right = np.log(base)[:, None] - np.log(below), np.log(above) - np.log(base)[:, None]
        straight = np.all((np.abs(left - right) <= LINEAR) & (np.abs(right) > LINEAR), axis=1)
    if not straight.any():
        raise Inconclusive("no point shows how the noise of the energies enters the decision")
    best = np.flatnonzero(straight)[np.argmax(base[straight])]  # the largest chance has the most digits
    return 0.5 * (left[best] + right[best]) / SHIFT


def energy_noise(step: JaxStep) -> float:
    """The claimed variance of log S: 2 (1 / T - 1 / T')^2 s^2."""
    claims = step.sampler.claims
    return 2 * (1 / claims.temperature - 1 / claims[Exchange].temperature) ** 2 * claims[Exchange].energy_variance


def _seen(subject: Subject, target: Target) -> tuple[JaxStep, float, Exchanges]:
    step, h = require_traced(step_map(subject, target)), subject.step_size(target)
    found = exchanges(step, h)
    if not found.noisy and step.sampler.claims[Exchange].energy_variance:
        raise Inconclusive("the noise of the potential, whose variance is claimed, does not enter")
    return step, h, found


@statement(
    tier="law",
    equation="pi(x, y) a(x, y) = pi(y, x) a(y, x) for the chance a of an exchange",
    targets=everywhere,
    cost=1.0,
    decides="law",
    meets=of_target,
)
def exchange_balance(case: Case, claim: Exchange) -> Finding:
    """log a(x, y) - log a(y, x) = log pi(y, x) - log pi(x, y), and an exchange exchanges all that there is.

    Source: deng2020nonconvex, Algorithm 1; ceperley1999penalty, detailed balance on the average over the noise.
    """
    _, h, found = _seen(case.subject, case.target)
    tried = min(1.0, claim.rate * h)
    with np.errstate(divide="ignore"):
        gaps = np.abs(np.log(found.forward) - np.log(found.backward) - found.log_ratio)
    k = int(np.argmax(np.where(np.isnan(gaps), np.inf, gaps)))
    least = max(min(found.forward.min(), found.backward.min()), EPS)
    # bisection leaves 2^-60, the estimate of the potential a few eps of its size
    allowance = 1e4 * EPS * (1 + np.abs(found.log_ratio).max()) + 2 * found.error * tried / least
    effect = float(gaps[k]) if np.isfinite(gaps[k]) else np.inf
    reason = (
        f"log a(x, y) - log a(y, x) is off by {gaps[k]:.3g} where log pi(y, x) / pi(x, y) = {found.log_ratio[k]:.4g}"
    )
    if found.gap > 1e4 * EPS:
        effect = max(effect, found.gap)
        reason = f"a step with an exchange differs by {found.gap:.3g} from one of the exchanged positions without"
    return Finding(
        effect=effect,
        tolerance=Tolerance(
            float(allowance), "bisection, and the kink of an integrand over the noise of the potential"
        ),
        reason=reason,
        statistic="largest gap of the logarithms",
        unit="natural logarithm",
        minimum_detectable_effect=2 * float(allowance),
        required_sensitivity=1e-2 if found.noisy else 1e-6,
        step_size=h,
    )


@statement(
    tier="law",
    equation="a(x, y) = min(1, r h) E min(1, S)",
    targets=everywhere,
    cost=0.1,
    decides="dynamics",
)
def exchange_rate(case: Case, claim: Exchange) -> Finding:
    """a(x, y) = min(1, r h) E min(1, S), with the expectation over the claimed noise of the potential in closed form.

    Source: deng2020nonconvex, Algorithm 1; ceperley1999penalty.
    """
    step, h, found = _seen(case.subject, case.target)
    tried = min(1.0, claim.rate * h)
    if not tried:
        raise NotApplicable("no exchange is ever tried")
    expected = tried * mean_chance(found.log_ratio, energy_noise(step))
    gaps = np.abs(found.forward - expected) / tried
    k = int(np.argmax(gaps))
    allowance = 1e4 * EPS * (1 + np.abs(found.log_ratio).max()) + found.error
    return Finding(
        effect=float(gaps[k]),
        tolerance=Tolerance(
            float(allowance), "bisection, and the kink of an integrand over the noise of the potential"
        ),
        reason=f"the probability of an exchange is {found.forward[k]:.8g}, claimed {expected[k]:.8g}",
        statistic="largest gap of the probabilities",
        unit="of the chance to try",
        minimum_detectable_effect=2 * float(allowance),
        required_sensitivity=1e-3,
        step_size=h,
    )
