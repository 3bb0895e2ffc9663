"""The law of single steps: decided by sampling where no other statement reaches.

From an exact draw x of the target one step is taken to x'. An exact kernel keeps every expectation at every step size.
Of any other sampler the rates E (f(x') - f(x)) / h, at three step sizes with the same draws, are extrapolated to h = 0,
where they are E L f = 0 for its generator L. All are measured in the sampler's own Dirichlet form at their step size,
E (f(x') - f(x))^2 / (2 h): a relative error of the noise's variance then has the same size in every direction.

Most of f(x') - f(x) is f'(x) times the noise. What the same key moves from one fixed place, n, is as good as the noise,
and independent of x: so (f'(x) - E f') n and (f''(x) - E f'') n^2 / 2 have mean zero whatever the sampler does. Less
multiples of both, a rate has a standard deviation of order 1 for h^(-1/2).

A state that holds more than the position, v, has a law that is declared, or that it has on Gaussians, or N(0, T) as a
momentum of mass one: from draws of both the same is asked of functions of both. If they keep their expectations, that
law is the one; if not, nothing is said of the position, and runs decide. The noise of a momentum moves the position by
the next power of h, so that a function of the position is measured in the form of the same function of v.

Runs see the law at which a sampler comes to rest, at a hundred times the cost. Only they see what steps that are far
apart have in common, and only they forget a state beside the position whose law is another.

Source: ethier1986markov, proposition 4.9.2 (a law is stationary if E L f = 0 for all f of a core).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.accept_step import tests_proposals
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import (
    Case,
    Inconclusive,
    NotApplicable,
    OutOfReach,
    require_stationary_law,
    statement,
)
from sgmcmc_verification.checks.core.error_origin import RAISED, one_line
from sgmcmc_verification.checks.core.finding import Finding
from sgmcmc_verification.checks.core.obligations import BRANCHES, KNOWN_DRAWS, MANY, of_target
from sgmcmc_verification.checks.core.selection import nowhere
from sgmcmc_verification.checks.end_points.budget import joined, pieces
from sgmcmc_verification.checks.end_points.error_rates import (
    Sensitivity,
    decide_statistically,
    enough,
    not_finite,
    stage_seed,
)
from sgmcmc_verification.checks.end_points.functions import (
    Auxiliary,
    Copies,
    Functions,
    Rest,
    functions_of,
    functions_of_variable,
    of_one,
)
from sgmcmc_verification.checks.end_points.runs import (
    FEW,
    HOST_PILOTS,
    Runs,
    example_state,
    step_sizes_of,
)
from sgmcmc_verification.checks.end_points.step_size_limit import order_of, outcomes_of
from sgmcmc_verification.checks.end_points.walkers import laws_of_walkers
from sgmcmc_verification.checks.exact_laws.assumed_law import assumed_auxiliary
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import auxiliary_law
from sgmcmc_verification.checks.exact_laws.exact_draws import draw_positions
from sgmcmc_verification.checks.statistics.outcome import Outcome
from sgmcmc_verification.checks.tiers.invariance.law_of_runs import (
    DOUBT,
    HOST_LEAST,
    HOST_RUNS,
    HOST_STEPS,
    steps_of_host,
)
from sgmcmc_verification.samplers.interface.claims import Diffusion, ExactLaw, Exchange
from sgmcmc_verification.samplers.interface.whole_state import is_key
from sgmcmc_verification.targets.target import Target

EXACT, OF_WALKERS, RATES, OF_MANY, OF_HOSTS = 1 << 15, 1 << 17, 1 << 14, 1 << 13, 1 << 11
"""Steps of the first stage: of exact kernels, of those that move several walkers, at each of three step sizes, in fifty
dimensions, of those in Python."""
BETWEEN = 3
"""Factor of those in Python on a law of separate modes: few steps cross, and a hundredth of the mass a step shows."""
WORTH = 0.5
"""Part of a variance that is left by what moves with the noise, if steps from the fixed place are worth their cost."""
MORE, SPARE = 8, 1.5
"""Factor by which they may grow to see what is promised; of what the pilots say is needed, for they are few."""
SEVERAL = 8
"""Steps of the second statement."""
SIZES, LENGTH = 3, 4
"""Step sizes of a kernel that is not exact, and how much longer a run of it is at the smaller one of two."""
PIECES = 16
"""Pieces of runs, which are much longer, between two looks at the budget."""
PILOTS = 1 << 11
"""Steps that tell the Dirichlet form and the multiples; they are used for nothing else."""
PILOT, PLACES = 999, 64
"""Stage of their seeds; draws of which the fixed place is the one in the middle."""
PER_VARIANCE = 2 * np.exp(-1 / 2) / (1 - np.exp(-2))
"""Rate of E cos(y) over its Dirichlet form by a relative error of the noise's variance, for a standard normal y."""
PROMISED = 0.5
"""Relative error of the variance of the noise that is seen."""
UNIT = "of the Dirichlet form"
DEAR = "runs cost less than so many steps"
UNKNOWN = "the state holds more than the position, of a law that is not known"
REMEMBERS = "the state holds more than z: an order or a count of the data makes steps differ"


@statement(
    tier="invariance",
    equation="(E f(x') - f(x)) / h -> 0 for x ~ pi and a step from x to x', as h -> 0",
    targets=nowhere,
    cost=2.0,
    decides="law",
    meets=of_target,
    samples=True,
)
def law_of_steps(case: Case, seed: int) -> Finding:
    """Single steps from exact draws keep the expectations of the target, at the rate 0 as h -> 0.

    It runs by itself where an obligation is left that no other statement could meet, and no run is needed.
    """
    return _law(case, seed, 1)


@statement(
    tier="invariance",
    equation="(E f(x') - f(x)) / (m h) -> 0 for x ~ pi and m steps from x to x', as h -> 0",
    targets=nowhere,
    cost=4.0,
    decides="law",
    meets=lambda target: (*of_target(target), KNOWN_DRAWS, BRANCHES),
    samples=True,
)
def law_of_several_steps(case: Case, seed: int) -> Finding:
    """Several steps from exact draws keep the expectations of the target, at the rate 0 as h -> 0.

    It runs in place of `law_of_steps` where draws or branches are not known: what the draws of neighbouring steps have
    in common moves the rate of several steps by as much as their own variance does.
    """
    return _law(case, seed, SEVERAL)


def _law(case: Case, seed: int, several: int) -> Finding:
    claims = case.subject.sampler(case.target).claims
    require_stationary_law(claims)
    auxiliary = law_of_rest(case.subject, case.target)
    if auxiliary is None:
        functions = functions_of(case.target, claims.temperature)
    else:
        functions = functions_of_variable(case.target, claims.temperature, auxiliary)
    runs = Runs(case.subject, case.target, with_phases(functions), long=case.target.size > FEW, auxiliary=auxiliary)
    if auxiliary is None:
        return _judged(case, seed, several, runs, functions)
    try:
        return _judged(case, seed, several, runs, functions)
    except (NotApplicable, Inconclusive):
        raise
    except RAISED as error:  # states of a law that is a hypothesis may be none of the sampler's
        raise OutOfReach(f"{UNKNOWN} (from a draw of its law a step raises {one_line(error)})") from None


def _judged(case: Case, seed: int, several: int, runs: Runs, functions: Functions) -> Finding:
    claims = runs.sampler.claims
    if case.target.terms is not None and _remembers(runs):
        raise OutOfReach(REMEMBERS)
    tests = tests_proposals(case.subject, claims)
    if not _cheaper(runs, case.step_size, several, 2 * OF_HOSTS, exact=tests):
        raise OutOfReach(DEAR)
    (h, rejected), *others = step_sizes_of(runs, case.step_size, stage_seed(seed, 0, 30), tests)
    steps = Steps(runs, functions, several, seed)
    # What tests its proposals is likely to be exact, claimed or not: seen at one step size, with less noise.
    found = _judge(steps, h, rejected, exact=tests)
    if tests and ExactLaw not in claims and _rejected(found):
        found = _judge(steps, h, rejected, exact=False)
    for other, share in others:
        if not _rejected(found) and _rejected(again := _judge(steps, other, share, exact=tests)):
            found = again
    if runs.auxiliary is not None and _rejected(found):
        raise OutOfReach(f"{UNKNOWN} ({found.reason})")
    return found


def _rejected(found: Finding) -> bool:
    return found.significance is not None and found.significance.rejected


def law_of_rest(subject: Subject, target: Target) -> Rest | None:
    """The law of what z holds beside the position, a hypothesis where it is not declared; None if there is nothing.

    Raises:
        OutOfReach: if there is no natural one.
    """
    sampler, estimator = subject.sampler(target), subject.estimator(target)
    z = sampler.unpack(example_state(sampler, target, estimator))
    extra, claims = sum(np.size(leaf) for leaf in jax.tree.leaves(z)) - target.size, sampler.claims
    if not extra:
        return None
    if not target.manifold.is_linear or extra < 0 or Exchange in claims:
        raise OutOfReach(UNKNOWN)
    try:
        if Diffusion in claims:
            points = draw_positions(target, claims.temperature, np.random.default_rng(0), 2)
            mean, covariance = auxiliary_law(claims[Diffusion].dynamics(target).H, points, extra)
        else:
            mean, covariance = assumed_auxiliary(subject, target.size)
    except (NotApplicable, Inconclusive) as reason:
        if extra != target.size:
            if laws := laws_of_walkers(subject, target):
                return laws[0]
            raise OutOfReach(f"the state holds more than the position, and {reason}") from None
        mean, covariance = np.zeros(extra), claims.temperature * np.eye(extra)
    return Auxiliary(mean, np.linalg.cholesky(covariance))


def _remembers(runs: Runs) -> bool:
    """True if a state holds numbers beside z.

    Without data they are known not to matter, by `closed_state`. With data the first step of an epoch is no step like
    another.
    """
    state = example_state(runs.sampler, runs.target, runs.estimator)
    size = lambda tree: sum(np.size(leaf) for leaf in jax.tree.leaves(tree) if not is_key(leaf))
    return size(state) > size(runs.sampler.unpack(state))


class Steps:
    """Steps from exact draws of the target.

    Attributes:
        runs: that make them.
        names: of the functions f.
        noisy: number of the function in whose Dirichlet form each is measured.
        number: of steps from x to x'.
    """

    def __init__(self, runs: Runs, functions: Functions, number: int, seed: int) -> None:
        self.runs, self.names, self.number, self._seed = runs, functions.names, number, seed
        self._half = len(self.names) // 2
        self.noisy = np.concatenate([np.array(functions.noisy), self._half + np.array(functions.noisy)])
        draws = runs.starts(stage_seed(seed, PILOT, 11), PLACES)
        far = np.sum(runs.functions.values(draws)[:, -self._half :] ** 2, axis=1)
        self._place = draws[np.argmin(far)]

    @property
    def what(self) -> str:
        """The steps in words."""
        return "a step" if self.number == 1 else f"{self.number} steps"

    def starts(self, stage: int, count: int) -> np.ndarray:
        """Exact draws (count, n) of z."""
        return self.runs.starts(stage_seed(self._seed, stage, 10), count)

    def changes(self, stage: int, starts: np.ndarray, hs: Sequence[float], made: int = 0) -> Iterator[np.ndarray]:
        """f(x') - f(x) (N, K) of steps of each size. `made` steps of this stage were before these.

        Keys are the same at each size: what they have in common cancels in an extrapolation.
        """
        before = self.runs.functions.values(starts)
        for h in hs:
            yield (self._ends(stage, starts, h, made) - before)[:, : 2 * self._half]

    def controls(self, stage: int, starts: np.ndarray, hs: Sequence[float], made: int = 0) -> Iterator[np.ndarray]:
        """Two variables (2, N, K) of mean zero that move with the changes of such steps, by the noise of each."""
        runs, half = self.runs, self._half
        places = np.broadcast_to(self._place, starts.shape)
        before, rest = runs.functions.values(starts), runs.functions.values(places)
        cos, sin = before[:, :half], before[:, half : 2 * half]
        mean_cos, mean_sin = np.split(runs.functions.expected[: 2 * half], 2)
        slopes = np.concatenate([mean_sin - sin, cos - mean_cos], axis=1)
        bends = np.concatenate([mean_cos - cos, mean_sin - sin], axis=1)
        for h in hs:
            n = (self._ends(stage, places, h, made) - rest)[:, 2 * half :]
            yield np.stack([slopes * np.tile(n, 2), bends * np.tile(n**2 / 2, 2)])

    def _ends(self, stage: int, starts: np.ndarray, h: float, made: int) -> np.ndarray:
        return self.runs.means(stage_seed(self._seed, stage, 20), starts, h, self.number, self.number - 1, made)[0]


def with_phases(functions: Functions) -> Functions:
    """The same functions cos(w . y) and sin(w . y), followed by their phases w . y."""
    phases = functions.phases
    assert phases is not None

    def values(x: Any) -> Any:
        xp = np if isinstance(x, np.ndarray) else jnp
        return xp.concatenate([functions.values(x), phases(x)], axis=-1)

    names = tuple(f"phase {i}" for i in range(len(functions.names) // 2))
    expected = np.concatenate([functions.expected, np.zeros(len(names))])
    return functions._replace(values=values, expected=expected, names=functions.names + names)


def multiples(changes: np.ndarray, controls: np.ndarray) -> np.ndarray:
    """Least-squares coefficients (2, K) of changes (N, K) on controls (2, N, K)."""
    columns = zip(changes.T, controls.transpose(2, 1, 0), strict=True)
    return np.stack([np.linalg.lstsq(c, y, rcond=None)[0] for y, c in columns], axis=1)


def _cheaper(runs: Runs, h: float, number: int, count: int, exact: bool) -> bool:
    """True if `count` steps, those from one place included, cost less than runs: always, unless Python takes them.

    There they call fewer functions. A kernel that is not `exact` takes them at several step sizes, the smaller the more
    steps of a run.
    """
    if not runs.host:
        return True
    start, step = runs.calls(h)
    # where z is more than the position, the fixed place is begun once, and runs leave out steps before they count any
    of_steps = count * ((1 if runs.auxiliary is None else 0.5) * start + number * step)
    left_out = 0 if runs.auxiliary is None or isinstance(runs.auxiliary, Copies) else HOST_STEPS
    of_runs = start + (steps_of_host(step) + left_out) * step
    if not exact:
        of_steps, of_runs = SIZES * of_steps, 2 * start + (1 + LENGTH) * (HOST_STEPS + left_out) * step
    number_of_runs = (HOST_LEAST if runs.target.size > FEW else HOST_RUNS) + HOST_PILOTS
    return of_steps <= number_of_runs * of_runs


def _usual(runs: Runs, exact: bool) -> int:
    """Number of steps of the first stage, unless more are needed."""
    if runs.host:
        return BETWEEN * OF_HOSTS if exact and runs.target.separated else OF_HOSTS
    if runs.target.size >= MANY:
        return OF_MANY
    if not exact:
        return RATES
    return OF_WALKERS if isinstance(runs.auxiliary, Copies) else EXACT


def _affordable(steps: Steps, h: float, count: int, least: int, controlled: bool) -> int:
    """`count` steps of an exact kernel, or the `least` if runs cost less. Raises OutOfReach if they still do."""
    for number in (count, least):
        if _cheaper(steps.runs, h, steps.number, (1 + controlled) * number, exact=True):
            return number
    raise OutOfReach(DEAR)


def _judge(steps: Steps, h: float, rejected: float, exact: bool) -> Finding:
    runs, names, claims = steps.runs, steps.names, steps.runs.sampler.claims
    letter = "y" if runs.auxiliary is None or not runs.auxiliary.kicks else "v"
    count = _usual(runs, exact)
    hs = [h] if exact else [h, h / 2, h / 4]
    places = steps.starts(PILOT, min(PILOTS, count // 4))
    pilots = list(steps.changes(PILOT, places, hs))
    # its own at each size: a momentum that is drawn afresh in every step makes it go like h^2
    forms = np.array([np.mean(changes**2, axis=0)[steps.noisy] / 2 for changes in pilots])
    moved = forms.min(axis=0) > 0
    used = [name for name, moves in zip(names, moved, strict=True) if moves]
    primary = lambda name: of_one(name, letter)
    if not np.isfinite(forms).all() or not any(map(primary, used)):
        raise OutOfReach("no step moves the state by a finite amount, in the directions that are looked at")
    beside = list(steps.controls(PILOT, places, hs))
    factors = [multiples(*pilot) for pilot in zip(pilots, beside, strict=True)]

    def rates_of(changes: Iterable[np.ndarray], controls: Iterable[np.ndarray] | None) -> np.ndarray:
        if controls is not None:
            moving = zip(changes, factors, controls, strict=True)
            changes = [rates - np.einsum("ck,cnk->nk", factor, control) for rates, factor, control in moving]
        return np.stack([rates[:, moved] / form[moved] for form, rates in zip(forms, changes, strict=True)])

    def judged(values: np.ndarray) -> Sequence[Outcome]:
        if not np.isfinite(values).all():
            return [not_finite("a step that is not finite", values.shape[1], UNIT)]
        # an order of the position alone says less of z
        order = order_of(claims) if runs.auxiliary is None else 1
        return outcomes_of(values, order, np.zeros(len(used)), used, UNIT)

    def rates(stage: int, starts: np.ndarray, made: int) -> np.ndarray:
        several = (stage, starts, hs, made)
        return rates_of(steps.changes(*several), steps.controls(*several) if controlled else None)

    def run(stage: int, n: int) -> Sequence[Outcome]:
        starts = steps.starts(stage, n)
        return judged(
            joined([rates(stage, starts[piece], piece.start) for piece in pieces(n, PIECES * runs.piece, "steps")])
        )

    largest = lambda outcomes: max(o.standard_error or 0.0 for o in outcomes if primary(o.name))
    seen, alone = judged(rates_of(pilots, beside)), judged(rates_of(pilots, None))
    if not (controlled := largest(seen) ** 2 < WORTH * largest(alone) ** 2):
        seen, count = alone, 2 * count if runs.host else count  # as many steps as were to be taken
    worst = min(seen, key=lambda o: o.log_p)
    if runs.auxiliary is not None and math.log(len(seen)) + worst.log_p < math.log(DOUBT):
        raise OutOfReach(f"{UNKNOWN} (by sampling, {worst.name} changes in {steps.what})")
    promised = PER_VARIANCE * PROMISED
    needed = int(SPARE * enough(largest(seen) * seen[0].n ** 0.5, promised, len(used)))
    if needed > MORE * count:
        raise OutOfReach(f"{needed} steps would be needed to see what is promised")
    count = max(count, needed)
    if exact:
        count = _affordable(steps, h, count, max(OF_HOSTS, needed), controlled)

    what = f"{rejected:.0%} of the steps rejected, " if rejected else ""
    what += "the change of" if exact else "the limit h -> 0 of the rate of"
    return decide_statistically(
        run,
        first_n=count,
        promised=Sensitivity(promised, chains=count, primary=lambda o: primary(o.name)),
        allowance_source="nothing" if exact else "the correction of order h^(q+1), extrapolated away last",
        reason=lambda o: (
            f"by sampling, {what} {o.name} in {steps.what} is "
            + (f"{o.measured:.5g} of its Dirichlet form, exact 0" if o.measured is not None else "not finite")
        ),
        steps=(1 + controlled) * len(hs) * steps.number,
        step_size=h,
        detail={"rejected": rejected},
    )
