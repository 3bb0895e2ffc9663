"""Steps from exact draws decide for draws of any law: right kernels pass, wrong ones fail, in one step or in several.

Oracles: characteristic functions of a Gaussian after one Euler step in closed form; independence of start and key.
"""

import dataclasses
import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.end_points.functions import Auxiliary, Copies, functions_of, functions_of_variable
from sgmcmc_verification.checks.end_points.runs import Runs
from sgmcmc_verification.checks.exact_laws.exact_draws import draw_positions
from sgmcmc_verification.checks.tiers.invariance import law_of_several_steps, law_of_steps
from sgmcmc_verification.checks.tiers.invariance.law_of_steps import PER_VARIANCE, Steps, with_phases
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.targets.registry import target
from tests.checks.tiers.test_law_of_runs import ANHARMONIC, EXACT, HMC, PLANE, Multinomial, Slice, Unclaimed
from tests.helpers.ensembles import Ensemble
from tests.helpers.strangers import Euler, Kept, Underdamped, decide, gradient, normal, potential, subject

pytestmark = pytest.mark.xdist_group(__name__)  # a fixture of the module is made once

MODULE = sys.modules[law_of_steps.function.__module__]


def drawn(law):
    """SGLD whose noise is law(key, shape), of mean 0 and variance 1."""

    class Drawn:
        def step(self, key, x, step_size, estimator):
            return x - step_size * gradient(estimator, x) + jnp.sqrt(2 * step_size) * law(key, x.shape)

    return Drawn()


def skewed(key, shape):
    """A Gamma(4) draw, whose rejection loop no tape reads."""
    return jax.random.gamma(key, 4.0, shape) / 2 - 2


class Repeating:
    """SGLD whose key of every second step is that of the step before, so that their noise is the same.

    The keys are those of the run, not of the step, and no state remembers: a global of the process does.
    """

    def __init__(self, repeats=True):
        self.repeats = repeats

    def init(self, key, position, estimator):
        return Kept(position, (key, jnp.zeros((), int)))

    def unpack(self, state):
        return state.position

    def step(self, key, state, step_size, estimator):
        x, (kept, count) = state
        used = jax.random.fold_in(kept, count // 2 if self.repeats else count)
        moved = x - step_size * gradient(estimator, x) + jnp.sqrt(2 * step_size) * normal(used, x)
        return Kept(moved, (kept, count + 1))


class Lazy:
    """Euler's step on half of the coordinates: each waits for its coin."""

    def step(self, key, x, step_size, estimator):
        a, b = jax.random.split(key)
        moved = x - step_size * gradient(estimator, x) + jnp.sqrt(2 * step_size) * normal(a, x)
        return jnp.where(jax.random.bernoulli(b, 0.5, x.shape), moved, x)


RIGHT = {
    "Gamma noise": (drawn(skewed), PLANE),
    "Gamma noise in the banana": (drawn(skewed), "banana"),
    "slice sampling": (Slice(), PLANE),
    "multinomial HMC": (Multinomial(), ANHARMONIC),
    "HMC that claims nothing": (Unclaimed(), PLANE),
    "coordinates that wait": (Lazy(), PLANE),
}
WRONG = {
    "Gamma noise of variance 0.7": (drawn(lambda k, s: 0.7**0.5 * skewed(k, s)), PLANE),
    "Gamma noise of mean 0.3": (drawn(lambda k, s: 0.3 + skewed(k, s)), ANHARMONIC),
    "one Gamma draw for all coordinates": (drawn(lambda k, s: skewed(k, (1,)) * jnp.ones(s)), PLANE),
    "a force of 0.7": (Euler(lambda g, h: 0.7 * g), "banana"),
    "HMC without the kinetic energy in its ratio": (HMC(kinetic=False), PLANE),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_passes(name):
    finding = decide(law_of_steps, *RIGHT[name])
    assert finding.verdict == "pass", finding.reason


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_fails(name):
    finding = decide(law_of_steps, *WRONG[name])
    assert finding.verdict == "fail", finding.reason
    assert "by sampling" in finding.reason


def test_noise_that_steps_have_in_common_is_seen_in_several_steps_alone():
    one, several = (decide(each, Repeating(), PLANE) for each in (law_of_steps, law_of_several_steps))
    assert one.verdict == "pass", one.reason
    assert several.verdict == "fail", several.reason
    assert "in 8 steps" in several.reason
    assert decide(law_of_several_steps, Repeating(repeats=False), PLANE).verdict == "pass"


@dataclasses.dataclass
class Momentum:
    """SGHMC of friction and mass one whose force, noise and move are given."""

    law: Any = skewed
    force: float = 1.0
    mass: float = 1.0
    drag: float = 1.0

    def init(self, key, position, estimator):
        return {"p": jnp.zeros_like(position), "x": position}

    def step(self, key, state, step_size, estimator):
        x, p = state["x"], state["p"]
        noise = jnp.sqrt(2 * step_size) * self.law(key, x.shape)
        p = p - self.force * step_size * gradient(estimator, x) - self.drag * step_size * p / self.mass + noise
        return {"p": p, "x": x + step_size * p / self.mass}

    def position(self, state):
        return state["x"]


class Refreshed:
    """Generalised HMC of one leapfrog step whose momentum is turned where it is rejected, or not."""

    claims = EXACT

    def __init__(self, turns=True, ratio=1.0):
        self.turns, self.ratio = turns, ratio

    def init(self, key, position, estimator):
        return Kept(position, normal(key, position))

    def step(self, key, state, step_size, estimator):
        a, b = jax.random.split(key)
        x, p = state
        p = jnp.sqrt(0.5) * p + jnp.sqrt(0.5) * normal(a, x)
        h = jnp.sqrt(step_size)
        half = p - h / 2 * gradient(estimator, x)
        y = x + h * half
        q = half - h / 2 * gradient(estimator, y)
        energy = lambda x, p: potential(estimator, x) + self.ratio * jnp.sum(p**2) / 2
        accept = jnp.log(jax.random.uniform(b)) < energy(x, p) - energy(y, q)
        return Kept(jnp.where(accept, y, x), jnp.where(accept, q, -p if self.turns else p))


RIGHT_BESIDE = {
    "a momentum driven by Gamma draws": (Momentum(), PLANE, 0.05),
    "a momentum driven by Gamma draws in the banana": (Momentum(), "banana", 0.05),
    "a momentum of mass one under normal noise": (Underdamped(), ANHARMONIC, 0.05),
    "a momentum of mass three": (Underdamped(mass=3.0), "banana", 0.05),
    "generalised HMC": (Refreshed(), PLANE, 0.05),
}
LEFT_TO_RUNS = {
    "a momentum of another mass, which Gamma draws hide": (Momentum(mass=2.0), PLANE),
    "noise of variance 0.6": (Momentum(lambda k, s: 0.6**0.5 * skewed(k, s)), PLANE),
    "a force of 0.6": (Momentum(force=0.6), "banana"),
    "one draw for all coordinates": (Momentum(lambda k, s: skewed(k, (1,)) * jnp.ones(s)), PLANE),
    "no drag": (Momentum(drag=0.0), ANHARMONIC),
    "a momentum that is not turned": (Refreshed(turns=False), ANHARMONIC),
    "half of the kinetic energy": (Refreshed(ratio=0.5), PLANE),
}


@pytest.mark.parametrize("name", RIGHT_BESIDE)
def test_a_momentum_whose_law_is_found_needs_no_runs(name):
    candidate, law, h = RIGHT_BESIDE[name]
    finding = decide(law_of_steps, candidate, law, step_size=h)
    assert finding.verdict == "pass", finding.reason


@pytest.mark.parametrize("name", LEFT_TO_RUNS)
def test_a_state_of_an_unknown_law_is_left_to_runs(name):
    """Wrong, or right with a momentum of another law than that which is tried: nothing is said of the position."""
    with pytest.raises(OutOfReach, match=r"of a law that is not known \(by sampling"):
        decide(law_of_steps, *LEFT_TO_RUNS[name])


def test_functions_of_the_full_variable_have_the_expectations_of_its_law():
    """Against averages over 200,000 draws: within 6 standard errors."""
    law, count = target("banana"), 200_000
    auxiliary = Auxiliary(np.array([0.3, -0.2]), np.array([[1.2, 0.0], [0.5, 0.8]]))
    functions = functions_of_variable(law, 1.0, auxiliary)
    runs = Runs(subject(Momentum(), "banana"), law, functions, long=False, auxiliary=auxiliary)
    values = functions.values(runs.starts(3, count))
    errors = (values.mean(axis=0) - functions.expected) / values.std(axis=0) * np.sqrt(count)
    assert np.abs(errors).max() < 6
    assert len(functions.names) == len(functions.expected) == 2 * len(functions.noisy)
    named = lambda name: functions.names.index(f"cos({name})")
    assert functions.noisy[named("2 y[1]")] == named("2 v[1]")


def test_a_sampler_that_stands_still_has_shown_nothing():
    class Still:
        def step(self, key, x, step_size, estimator):
            return x

    with pytest.raises(OutOfReach, match="no step moves"):
        decide(law_of_steps, Still(), PLANE)


@pytest.fixture(scope="module")
def steps():
    functions = functions_of(target(PLANE), 1.0)
    mine = subject(Euler(), PLANE)
    return Steps(Runs(mine, target(PLANE), with_phases(functions), long=False), functions, 1, 3), functions


def test_what_is_taken_off_has_mean_zero_and_most_of_the_variance(steps):
    some, functions = steps
    some_of = (0, some.starts(0, 1 << 15), [1e-3])
    (changes,), (controls,) = some.changes(*some_of), some.controls(*some_of)
    error = controls.std(axis=1) / np.sqrt(controls.shape[1])
    assert np.abs(controls.mean(axis=1) / error).max() < 6
    factors = MODULE.multiples(changes, controls)
    rest = changes - np.einsum("ck,cnk->nk", factors, controls)
    of_cosines = [i for i, name in enumerate(functions.names) if name.startswith("cos")]
    assert np.all(rest.var(axis=0)[of_cosines] < 0.1 * changes.var(axis=0)[of_cosines])


def test_the_rate_of_an_error_of_the_noise_is_the_closed_form():
    """x' = (1 - h P) x + sqrt(2 h (1 + e)) xi in one dimension of precision P, from N(0, 1 / P), by hand:

    E cos(y') = exp(-V / 2) with V = (1 - h P)^2 + 2 h P (1 + e), whose rate at h = 0 is -e P exp(-1/2). The Dirichlet
    form is P (1 + e) E sin(y)^2, and their ratio -e / (1 + e) PER_VARIANCE.
    """
    wrong = Euler(noise=lambda e: 1.5**0.5 * e)
    finding = decide(law_of_steps, wrong, "gaussian-1d-scaled")
    assert finding.verdict == "fail"
    name = "cos(y[0])"
    functions = functions_of(target("gaussian-1d-scaled"), 1.0)
    law = target("gaussian-1d-scaled")
    runs = Runs(subject(wrong, law.name), law, with_phases(functions), long=False)
    h = 1e-3 / law.curvature
    steps = Steps(runs, functions, 1, 3)
    (changes,) = steps.changes(0, steps.starts(0, 1 << 16), [h])
    k = functions.names.index(name)
    form = np.mean(changes[:, k] ** 2) / 2
    rate, error = changes[:, k].mean() / form, changes[:, k].std() / np.sqrt(1 << 16) / form
    # the standard error of a mean of 65,536 squares is 0.8% of it, and the change with h a tenth of a percent
    assert form / h == pytest.approx(law.curvature * 1.5 * (1 - np.exp(-2)) / 2, rel=0.05)
    assert abs(rate + 0.5 / 1.5 * PER_VARIANCE) < 5 * error


def test_an_exact_kernel_is_judged_at_one_step_size():
    finding = decide(law_of_steps, HMC(), ANHARMONIC)
    assert HMC.claims is EXACT
    assert finding.verdict == "pass", finding.reason
    assert "the change of" in finding.reason
    assert finding.measurements["rejected"] > 0.01


def independent(mass):
    """An independent draw of three widths at each step, in Python; a part of the wide mode goes to the mode beside."""

    def step(rng, position, step_size, estimator):
        mode = rng.choice(3, p=[0.4, 0.3, 0.3])
        if mode == 0 and rng.random() < mass:
            mode = 2
        x = (-20.0, 0.0, 5.0)[mode] + (8.0, 1e-3, 0.7)[mode] * rng.standard_normal()
        return np.full(np.shape(position), x)

    return simple_sampler(step, claims=EXACT, backend="host")


@pytest.mark.parametrize(("mass", "verdict"), [(0.0, "pass"), (0.2, "fail")])
def test_steps_from_the_fixed_place_are_made_where_they_are_worth_their_cost(mass, verdict):
    """An independent draw goes nowhere near where the noise of another place goes; a step of Euler's does."""
    finding = decide(law_of_steps, independent(mass), "three-widths")
    assert finding.verdict == verdict, finding.reason
    assert finding.gradients == finding.samples
    euler = decide(law_of_steps, Euler(), PLANE)
    assert euler.gradients == 2 * 3 * euler.samples


class Epochs(NamedTuple):
    x: Any
    order: Any
    turn: Any


def by_epochs(law, padded):
    """SGLD by batches of two of a permutation of five data; one datum is read again where an epoch is padded to six."""
    batches = 3 if padded else 5

    def init(key, x, estimator):
        return Epochs(x, jnp.arange(2 * batches) % 5, jnp.zeros((), int))

    def step(key, state, h, estimator):
        shuffle, noise = jax.random.split(key)
        fresh = jax.random.permutation(shuffle, 5)
        twice = jnp.concatenate([fresh, fresh[:1]]) if padded else jnp.concatenate([fresh, fresh])
        order = jnp.where(state.turn == 0, twice, state.order)
        data = jax.tree.map(lambda a: a[order[2 * state.turn + jnp.arange(2)]], law.terms.data)
        energy = lambda x: law.terms.prior(x) + 2.5 * jnp.sum(jax.vmap(law.terms.datum, (None, 0))(x, data))
        x = state.x - h * jax.grad(energy)(state.x) + jnp.sqrt(2 * h) * normal(noise, state.x)
        return Epochs(x, order, (state.turn + 1) % batches)

    return simple_sampler(step, init=init, position=lambda s: s.x)


@pytest.mark.parametrize("padded", [False, True])
def test_a_step_that_knows_its_place_among_the_data_is_left_to_runs(padded):
    """The first batch of an epoch is unbiased whatever is done to the last."""
    law = target("tiny-gaussian-data")
    with pytest.raises(OutOfReach, match="an order or a count of the data"):
        decide(law_of_steps, by_epochs(law, padded), law.name)


class Widths:
    """Random-walk Metropolis in NumPy whose state holds a width for each coordinate, which has to be positive."""

    backend = "host"

    def init(self, rng, position, estimator):
        return {"widths": 1 + np.abs(np.array(position)), "x": np.array(position)}

    def position(self, state):
        return state["x"]

    def step(self, rng, state, h, estimator):
        x, widths = state["x"], state["widths"]
        y = x + np.sqrt(h) * rng.laplace(0.0, widths)
        energy = lambda q: float(estimator.estimate(rng, (), q)[0].potential)
        widths = 0.9 * widths + 0.1 * rng.standard_exponential(x.shape)
        return {"widths": widths, "x": y if rng.standard_exponential() > energy(y) - energy(x) else x}


def test_a_step_that_raises_at_a_state_of_an_assumed_law_is_left_to_runs():
    """A width that is drawn from a normal law may be negative: no state of the sampler is."""
    with pytest.raises(OutOfReach, match="from a draw of its law a step raises ValueError: scale < 0"):
        decide(law_of_steps, Widths(), PLANE)


class Tuned:
    """Random walk Metropolis in NumPy; a start takes as long as many steps."""

    backend = "host"

    def __init__(self, pilot):
        self.pilot = pilot

    def init(self, rng, position, estimator):
        x = np.zeros_like(position)
        for _ in range(self.pilot):
            x = self.step(rng, x, 0.1, estimator)
        return np.array(position)

    def step(self, rng, x, h, estimator):
        y = x + np.sqrt(2 * h) * rng.standard_normal(x.shape)
        energy = lambda q: float(estimator.estimate(rng, (), q)[0].potential)
        return y if rng.standard_exponential() > energy(y) - energy(x) else x


class TunedEuler(Tuned):
    """SGLD with noise by coins in NumPy; a start takes as long as many steps."""

    def step(self, rng, x, h, estimator):
        gradient = estimator.estimate(rng, (), x)[0].gradient
        return x - h * gradient + np.sqrt(2 * h) * (2.0 * rng.integers(0, 2, x.shape) - 1)


@pytest.mark.parametrize("kind", [Tuned, TunedEuler])
def test_steps_in_python_whose_start_is_dear_are_left_to_runs(kind):
    assert decide(law_of_steps, kind(0), PLANE).verdict == "pass"
    with pytest.raises(OutOfReach, match="runs cost less"):
        decide(law_of_steps, kind(100), PLANE)


def test_walkers_are_drawn_from_the_target_as_the_position_is():
    assert decide(law_of_steps, Ensemble(), PLANE).verdict == "pass"


@pytest.mark.parametrize("wrong", [Ensemble(temperatures=(1.3,) * 4), Ensemble(shift=1.0)])
def test_walkers_that_do_not_keep_that_law_are_left_to_runs(wrong):
    with pytest.raises(OutOfReach, match="of a law that is not known"):
        decide(law_of_steps, wrong, PLANE)


def test_the_law_of_copies_is_that_of_independent_draws():
    """Oracle: means over draws of the target."""
    law = target("banana")
    copies, count = Copies(law, (1.0, 2.0, 1.0)), 20_000
    functions = functions_of_variable(law, 1.0, copies)
    rng = np.random.default_rng(1)
    z = np.concatenate([draw_positions(law, 1.0, rng, count), copies.draws(rng, count)], axis=1)
    values = functions.values(z)
    z_scores = (values.mean(axis=0) - functions.expected) / (values.std(axis=0) / np.sqrt(count))
    assert np.abs(z_scores).max() < 5.0
    assert copies.size == 6
