"""Runs decide what no step can be followed for: right kernels pass, wrong ones fail, by averages along runs.

Oracles: closed forms of the characteristic functions of a Gaussian; SciPy's quadrature for a law that is none.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

from sgmcmc_verification.checks.core.check import Inconclusive, NotApplicable, OutOfReach
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.end_points.functions import functions_of
from sgmcmc_verification.checks.end_points.runs import FACTORS, Runs, pilot, step_size_of
from sgmcmc_verification.checks.tiers.invariance import law_of_runs
from sgmcmc_verification.checks.tracing.live_leaves import leaves_by_themselves
from sgmcmc_verification.samplers.interface.claims import AdaptiveLaw, Claims, ExactLaw, Source, StationaryLaw
from sgmcmc_verification.targets.registry import target
from tests.helpers.strangers import Euler, Kept, Langevin, decide, gradient, normal, potential, subject

SOURCE = Source("", "none")
EXACT, TENDS = Claims(SOURCE, ExactLaw()), Claims(SOURCE, StationaryLaw(order=1))
ANHARMONIC, PLANE = "anharmonic", "gaussian-correlated-2d"


class Slice:
    """Slice sampling along a random line: stepping out, then shrinking; its number of draws is not fixed."""

    claims = EXACT

    def step(self, key, x, step_size, estimator):
        a, b, c, d = jax.random.split(key, 4)
        line = normal(a, x)
        line = line / jnp.linalg.norm(line)
        width = 10 * jnp.sqrt(step_size)
        level = potential(estimator, x) - jnp.log(jax.random.uniform(b))
        inside = lambda t: potential(estimator, x + t * line) <= level
        low = -width * jax.random.uniform(c)
        low, high = (
            jax.lax.while_loop(inside, lambda t, s=sign: t + s * width, end)
            for sign, end in ((-1.0, low), (1.0, low + width))
        )

        def shrink(carry):
            key, low, high, t, _ = carry
            key, draw = jax.random.split(key)
            t = low + (high - low) * jax.random.uniform(draw)
            return key, jnp.where(t < 0, t, low), jnp.where(t < 0, high, t), t, inside(t)

        found = jax.lax.while_loop(lambda carry: ~carry[4], shrink, (d, low, high, 0.0 * low, jnp.array(False)))
        return x + found[3] * line


class Multinomial:
    """HMC that draws one of the states of a trajectory, which is placed around the start at random."""

    claims = EXACT
    steps = 4

    def __init__(self, kinetic=True):
        self.kinetic = kinetic

    def step(self, key, x, step_size, estimator):
        a, b, c = jax.random.split(key, 3)
        p, h = normal(a, x), step_size
        behind = jax.random.randint(b, (), 0, self.steps + 1)

        def leap(z, direction):
            y, q = z
            q = q - direction * h / 2 * gradient(estimator, y)
            y = y + direction * h * q
            return y, q - direction * h / 2 * gradient(estimator, y)

        start = jax.lax.fori_loop(0, behind, lambda i, z: leap(z, -1.0), (x, p))
        _, (ys, qs) = jax.lax.scan(lambda z, _: (leap(z, 1.0), z), start, None, length=self.steps + 1)
        energy = jax.vmap(lambda y: potential(estimator, y))(ys) + self.kinetic * jnp.sum(qs**2, axis=-1) / 2
        return ys[jax.random.categorical(c, -energy)]


class HMC:
    """HMC of three leapfrog steps, with or without the kinetic energy in its ratio."""

    claims = EXACT

    def __init__(self, kinetic=True):
        self.kinetic = kinetic

    def step(self, key, x, step_size, estimator):
        a, b = jax.random.split(key)
        y, p, h = x, normal(a, x), step_size
        q = p - h / 2 * gradient(estimator, x)
        for i in range(3):
            y = y + h * q
            q = q - (h if i < 2 else h / 2) * gradient(estimator, y)
        energy = lambda z, r: potential(estimator, z) + self.kinetic * jnp.sum(r**2) / 2
        return jnp.where(jnp.log(jax.random.uniform(b)) < energy(x, p) - energy(y, q), y, x)


def antithetic(key, x, last, g):
    """A draw, then its negative."""
    second = jnp.any(last != 0)
    noise = jnp.where(second, -last, normal(key, x))
    return noise, jnp.where(second, 0 * noise, noise)


zeros = lambda x: jnp.zeros_like(x)
RIGHT = {
    "slice sampling": (Slice(), ANHARMONIC),
    "multinomial HMC": (Multinomial(), PLANE),
    "HMC": (HMC(), ANHARMONIC),
    "Euler": (Euler(), ANHARMONIC),
}
WRONG = {
    "half of the variance of the noise": (Euler(noise=lambda e: e / np.sqrt(2)), ANHARMONIC),
    "HMC without the kinetic energy in its ratio": (HMC(kinetic=False), PLANE),
    "a force of 0.7": (Euler(lambda g, h: 0.7 * g), PLANE),
    "noise that takes itself back": (Langevin(antithetic, zeros), ANHARMONIC),
}


@pytest.mark.parametrize("name", ["slice sampling", "multinomial HMC"])
def test_a_right_kernel_passes(name):
    finding = decide(law_of_runs, *RIGHT[name])
    assert finding.verdict == "pass", finding.reason


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_fails(name):
    finding = decide(law_of_runs, *WRONG[name])
    assert finding.verdict == "fail", finding.reason
    assert finding.significance.p_value < finding.significance.alpha
    assert "by sampling" in finding.reason


def test_exact_kernels_are_run_where_they_reject_and_others_at_their_usual_step_size():
    rejecting, smooth = decide(law_of_runs, *RIGHT["HMC"]), decide(law_of_runs, *RIGHT["Euler"])
    assert (rejecting.verdict, smooth.verdict) == ("pass", "pass"), (rejecting.reason, smooth.reason)
    assert 0.01 < rejecting.measurements["rejected"] <= 0.5
    usual = 0.05 / target(ANHARMONIC).curvature
    assert rejecting.step_size > usual
    assert smooth.measurements["rejected"] == 0
    assert smooth.step_size == pytest.approx(usual)


def test_a_law_that_is_not_fixed_is_not_applicable_and_runs_that_explode_are_out_of_reach():
    class Learning(Euler):
        claims = Claims(SOURCE, AdaptiveLaw())

    with pytest.raises(NotApplicable, match="no law at a fixed step size"):
        decide(law_of_runs, Learning(), ANHARMONIC)
    with pytest.raises(OutOfReach, match="not finite"):
        decide(law_of_runs, Euler(end=lambda x: x / 0), ANHARMONIC)


# Runs and their functions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_expectations_of_a_gaussian_are_characteristic_functions(temperature):
    """y is standard normal in every direction: E cos(w.y) = exp(-|w|^2 / 2), by draws and 6 standard errors."""
    law = target(PLANE)
    functions = functions_of(law, temperature)
    covariance = temperature * np.linalg.inv(law.gaussian.precision)
    draws = np.random.default_rng(0).multivariate_normal(law.gaussian.mean, covariance, 200_000)
    values = np.asarray(jax.vmap(functions.values)(jnp.asarray(draws)))
    error = values.std(axis=0) / np.sqrt(len(draws))
    assert np.abs(values.mean(axis=0) - functions.expected).max() < (6 * error).max()
    assert len(functions.names) == len(functions.expected) == values.shape[1]


def test_expectations_on_a_line_are_those_of_quadrature():
    law = target(ANHARMONIC)
    functions = functions_of(law, 1.0)
    density = lambda x: np.exp(-float(law.flat_potential(jnp.array([x]))))
    ends = dict(zip(functions.names, functions.expected, strict=True))
    total, mean, square = (integrate.quad(lambda x, k=k: x**k * density(x), *law.interval)[0] for k in range(3))
    mean, square = mean / total, square / total
    standard = lambda x: (x - mean) / np.sqrt(square - mean**2)
    for name, f in (("cos(y[0])", np.cos), ("sin(2 y[0])", lambda y: np.sin(2 * y))):
        expected = integrate.quad(lambda x, f=f: f(standard(x)) * density(x), *law.interval)[0] / total
        assert ends[name] == pytest.approx(expected, abs=1e-7)


def test_averages_are_those_of_the_steps_after_the_discarded_ones():
    """x' = x + 1, by hand; the share of steps that stand still is that of x' = x in half of them."""

    class Counting:
        def init(self, key, position, estimator):
            return Kept(position, jnp.zeros(()))

        def step(self, key, state, step_size, estimator):
            return Kept(state.position + state.kept, 1 - state.kept)

    law = target(ANHARMONIC)
    functions = functions_of(law, 1.0)
    runs = Runs(subject(Counting(), ANHARMONIC), law, functions)
    start = np.array([[0.25], [-1.0]])
    means, still = runs.means(3, start, 0.1, 7, 4)
    for x, mean in zip(start, means, strict=True):
        walked = [x + 2, x + 3, x + 3]  # after steps 5, 6 and 7
        np.testing.assert_allclose(mean, np.mean([functions.values(np.asarray(w)) for w in walked], axis=0), rtol=1e-12)
    np.testing.assert_allclose(still, 4 / 7)


def test_a_host_sampler_is_run_in_the_same_way():
    class Host:
        backend = "host"

        def step(self, rng, x, step_size, estimator):
            return np.asarray(x) + 1

    law = target(ANHARMONIC)
    functions = functions_of(law, 1.0)
    runs = Runs(subject(Host(), ANHARMONIC), law, functions)
    (mean,), (still,) = runs.means(3, np.array([[0.25]]), 0.1, 4, 2)
    np.testing.assert_allclose(mean, (functions.values(np.array([3.25])) + functions.values(np.array([4.25]))) / 2)
    assert still == 0


def test_a_velocity_that_turns_back_in_the_middle_of_a_step_is_no_rejection():
    """The zig-zag: half a move, a flip, half a move; where it flips the position is what it was."""

    class ZigZag:
        def init(self, key, position, estimator):
            return Kept(position, jax.random.rademacher(key, position.shape, position.dtype))

        def step(self, key, state, step_size, estimator):
            a, b, noise = jax.random.split(key, 3)
            h = step_size * jax.random.uniform(a, minval=0.5, maxval=1.5)
            x, v = state.position + h / 2 * state.kept, state.kept
            rate = jnp.maximum(0.0, v * estimator.estimate(noise, (), x)[0].gradient)
            v = jnp.where(jax.random.uniform(b, v.shape) < 1 - jnp.exp(-h * rate), -v, v)
            return Kept(x + h / 2 * v, v)

    finding = decide(law_of_runs, ZigZag(), ANHARMONIC, step_size=0.1)
    assert finding.verdict == "pass", finding.reason
    assert finding.step_size == pytest.approx(0.1 / target(ANHARMONIC).curvature)


def test_the_step_size_is_the_largest_at_which_half_of_the_steps_move():
    """A kernel that stands still with probability min(1, h / 0.64): 0.4 at h = 0.256, 0.8 at twice that."""

    class Lazy:
        def step(self, key, x, step_size, estimator):
            return jnp.where(jax.random.uniform(key) < step_size / 0.64, x, x + 1e-6)

    law = target(ANHARMONIC)
    h, share = step_size_of(Runs(subject(Lazy(), ANHARMONIC), law, functions_of(law, 1.0)), 0.008, 5)
    assert h == pytest.approx(0.008 * 32)
    assert h in 0.008 * FACTORS
    # 256 runs of 16 steps: six standard errors
    assert share == pytest.approx(0.4, abs=6 * np.sqrt(0.24 / 4096))


def test_an_exact_kernel_with_a_scale_of_its_own_is_run_at_larger_step_sizes():
    """A walk of a hundredth of the step: at 64 times the usual one it rejects a few."""

    class Timid:
        claims = EXACT

        def step(self, key, x, step_size, estimator):
            noise, coin = jax.random.split(key)
            y = x + 1e-2 * jnp.sqrt(2 * step_size) * normal(noise, x)
            accept = jnp.log(jax.random.uniform(coin)) < potential(estimator, x) - potential(estimator, y)
            return jnp.where(accept, y, x)

    law = target(ANHARMONIC)
    h, share = step_size_of(Runs(subject(Timid(), ANHARMONIC), law, functions_of(law, 1.0)), 5.0, 5)
    assert h > 5.0 * FACTORS[-1]
    assert share > 0.1


def test_draws_of_the_starts_are_those_of_the_target_at_the_temperature_that_is_claimed():
    class Hot(Euler):
        claims = Claims(SOURCE, StationaryLaw(order=1, temperature=4.0))

    law = target(PLANE)
    starts = Runs(subject(Hot(), PLANE), law, functions_of(law, 4.0)).starts(1, 100_000)
    np.testing.assert_allclose(np.cov(starts.T), 4 * np.linalg.inv(law.gaussian.precision), atol=0.1)


class Unclaimed(HMC):
    """The same, and nothing is claimed."""

    claims = TENDS


def test_a_kernel_that_tests_its_proposals_is_seen_to_be_exact_at_one_step_size_though_it_claims_nothing(monkeypatch):
    monkeypatch.setattr(sys.modules[law_of_runs.function.__module__], "RUNS", 1 << 12)
    right, wrong = (decide(law_of_runs, Unclaimed(kinetic=kinetic), PLANE) for kinetic in (True, False))
    assert right.verdict == "pass", right.reason
    assert "the average of" in right.reason
    assert wrong.verdict == "fail", wrong.reason
    assert "the limit h -> 0 of" in wrong.reason


def test_what_a_start_tells_of_an_average_is_taken_off():
    """Ornstein-Uhlenbeck: the average of exp(i w x) over a short run is nearly its value at the start."""
    mine = subject(Euler(), PLANE)
    runs = Runs(mine, target(PLANE), functions_of(target(PLANE), 1.0))
    short, long = (pilot(runs, 1, h, steps, 0).share for h, steps in ((1e-5, 10), (0.01, 4000)))
    assert np.all(short > 0.95)
    assert np.all(np.abs(long) < 0.5)


class Bounded(Slice):
    """Slice sampling on a line that steps out four times at most: on each side, or in all, shared out at random."""

    def __init__(self, shared):
        self.shared = shared

    def step(self, key, x, step_size, estimator):
        a, b, c, d = jax.random.split(key, 4)
        width = jnp.sqrt(2 * step_size)
        level = potential(estimator, x) - jnp.log(jax.random.uniform(a))
        inside = lambda t: potential(estimator, x + t) <= level
        left = jax.random.randint(d, (), 0, 5) if self.shared else 4
        low = -width * jax.random.uniform(b)

        def out(end, sign, most):
            go_on = lambda c: (c[0] < most) & inside(c[1])
            return jax.lax.while_loop(go_on, lambda c: (c[0] + 1, c[1] + sign * width), (0, end))[1]

        bracket = out(low, -1.0, left), out(low + width, 1.0, 4 - left if self.shared else 4)

        def shrink(carry):
            key, low, high, t, _ = carry
            key, draw = jax.random.split(key)
            t = low + (high - low) * jax.random.uniform(draw)
            return key, jnp.where(t < 0, t, low), jnp.where(t < 0, high, t), t, inside(t)

        found = jax.lax.while_loop(lambda carry: ~carry[4], shrink, (c, *bracket, 0.0 * low, jnp.array(False)))
        return x + found[3]


@pytest.mark.parametrize("shared", [True, False])
def test_a_kernel_that_never_rejects_is_run_at_the_usual_step_size_too(shared):
    """R. M. Neal, "Slice sampling" (2003), figure 3: the steps to the left are drawn. A wide bracket needs none."""
    finding = decide(law_of_runs, Bounded(shared), ANHARMONIC, step_size=0.2)
    assert finding.verdict == ("pass" if shared else "fail"), finding.reason
    usual = 0.2 / target(ANHARMONIC).curvature
    assert finding.step_size == pytest.approx(usual if not shared else usual * FACTORS[-1])


class Clock:
    """The position is the time: what steps were as long as is seen in it."""

    def init(self, key, position, estimator):
        return {"position": position, "count": jnp.zeros(())}

    def step(self, key, state, step_size, estimator):
        return {"position": state["position"] + step_size, "count": state["count"] + 1}


@pytest.mark.parametrize(("shift", "most"), [(0.0, 4.5), (1.0, np.inf)])
def test_a_pilot_tells_how_far_averages_are_off(shift, most):
    """Of exact draws it is as large as the largest of a few normal numbers; of draws around another mean far larger."""
    exact = subject(HMC(), "gaussian-1d-scaled")
    law = target("gaussian-1d-scaled")
    runs = Runs(exact, law, functions_of(law, 1.0), long=False)
    expected = runs.functions.expected + shift
    runs.functions = runs.functions._replace(expected=expected)
    gap = pilot(runs, 1, exact.step_size(law), 20, 0).gap
    assert 4.5 * (shift > 0) < gap < most


class Counted:
    """SGLD of Gamma noise whose states hold the number of its last batch, as a number of Python, beside a key."""

    def init(self, key, position, estimator):
        return Kept(position, (key, 0))

    def step(self, key, state, step_size, estimator):
        noise = jax.random.gamma(key, 4.0, state.position.shape) / 2 - 2
        moved = state.position - step_size * gradient(estimator, state.position) + jnp.sqrt(2 * step_size) * noise
        return Kept(moved, (state.kept[0], 3))


def test_a_number_of_python_in_the_states_is_no_error():
    finding = decide(law_of_runs, Counted(), ANHARMONIC)
    assert finding.verdict == "pass", finding.reason


def test_steps_that_are_left_out_have_three_sizes_in_turn():
    """Six steps of h (1, 4, 16, 1, 4, 16) are left out; then one of h is looked at."""
    functions = functions_of(target(ANHARMONIC), 1.0)
    runs = Runs(subject(Clock()), target(ANHARMONIC), functions)
    ends = {wider: runs.means(1, np.zeros((1, 1)), 0.01, 7, 6, wider=wider)[0][0] for wider in (1.0, 4.0)}
    for wider, end in ((1.0, 0.07), (4.0, 0.01 + 2 * 0.21)):
        assert ends[wider] == pytest.approx(np.asarray(functions.values(np.array([end]))))


class Tempered:
    """Walks at three temperatures with exchanges of neighbours; all begin at the position of the first."""

    claims = EXACT

    def __init__(self, slip=False):
        self.slip = slip

    def init(self, key, position, estimator):
        return {"position": position, "hot": jnp.stack([position, position])}

    def step(self, key, state, step_size, estimator):
        a, b, c, d = jax.random.split(key, 4)
        beta = jnp.array([1.0, 0.5, 0.25])
        x = jnp.concatenate([state["position"][None], state["hot"]])
        energy = jax.vmap(lambda each: potential(estimator, each))
        y = x + jnp.sqrt(2 * step_size / beta)[:, None] * normal(a, x)
        taken = jnp.log(jax.random.uniform(b, (3,))) < beta * (energy(x) - energy(y))
        x = jnp.where(taken[:, None], y, x)
        e, i = energy(x), jax.random.randint(c, (), 0, 2)
        gap = (beta[i] - (0.0 if self.slip else beta[i + 1])) * (e[i] - e[i + 1])
        order = jnp.arange(3).at[i].set(i + 1).at[i + 1].set(i)
        x = jnp.where(jnp.log(jax.random.uniform(d)) < gap, x[order], x)
        return {"position": x[0], "hot": x[1:]}


@pytest.mark.parametrize("slip", [False, True])
def test_temperatures_that_begin_at_one_position_are_given_time(slip):
    """At the usual step size of a bent law the hot walks are far from theirs for hundreds of steps."""
    found = decide(law_of_runs, Tempered(slip), "banana")
    assert found.verdict == ("fail" if slip else "pass"), found.reason


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ((0.0,), "pass"),
        ((0.3, 0.0), "pass"),
        ((0.3, 0.2, 0.0), "pass"),
        ((0.3, 0.2, 0.19), "fail"),
        ((0.1, 0.2, 0.4), "fail"),
        ((0.3, 0.2, 0.1), "inconclusive"),
    ],
)
def test_a_gap_that_becomes_smaller_as_steps_are_left_out_is_no_violation(monkeypatch, gaps, verdict):
    module = sys.modules["sgmcmc_verification.checks.tiers.invariance.law_of_runs"]
    left = list(gaps)
    facts = {"reason": "", "statistic": "E f", "unit": "", "required_sensitivity": 0.1}
    made = lambda *args: Finding(effect=left.pop(0), tolerance=Tolerance(0.05, "noise"), **facts)
    monkeypatch.setattr(module, "_judge", made)
    monkeypatch.setattr(module, "position_is_all", lambda runs: False)
    judged = lambda: module._exactly(None, None, 0, 0.1, 0.0)
    if verdict == "inconclusive":
        with pytest.raises(Inconclusive, match="has not come to rest"):
            judged()
    else:
        assert judged().verdict == verdict
    assert not left


class Screened:
    """Delayed acceptance (Christen and Fox, 2005): a quadratic about the start of the run screens a random walk.

    `second(fall, cheap)` is the logarithm of the second ratio, fall of U and of the surrogate; `tether` the weight of
    the distance from the start in the law.
    """

    claims = EXACT

    def __init__(self, second=lambda fall, cheap: fall - cheap, tether=0.0):
        self.second, self.tether = second, tether

    def init(self, key, position, estimator):
        anchor = {"at": position, "slope": gradient(estimator, position)}
        return {"position": position, "energy": potential(estimator, position), "anchor": anchor}

    def step(self, key, state, step_size, estimator):
        move, screen, final = jax.random.split(key, 3)
        x, anchor = state["position"], state["anchor"]
        y = x + jnp.sqrt(2 * step_size) * normal(move, x)
        away = lambda q: jnp.sum((q - anchor["at"]) ** 2)
        surrogate = lambda q: jnp.sum(anchor["slope"] * (q - anchor["at"])) + away(q) / 8
        cheap, energy = surrogate(x) - surrogate(y), potential(estimator, y)
        fall = state["energy"] - energy + self.tether * (away(x) - away(y))
        taken = jnp.log(jax.random.uniform(screen)) < cheap
        taken &= jnp.log(jax.random.uniform(final)) < self.second(fall, cheap)
        return {**state, "position": jnp.where(taken, y, x), "energy": jnp.where(taken, energy, state["energy"])}


class ScreenedByOneProgram(Screened):
    """The same, its step compiled by itself."""

    def step(self, key, state, step_size, estimator):
        return jax.jit(super().step, static_argnums=3)(key, state, step_size, estimator)


@pytest.mark.parametrize("sampler", [Screened(), ScreenedByOneProgram()])
def test_a_kernel_that_its_start_makes_passes(sampler):
    """It keeps its law for each anchor, and not at once from the draw that the anchor was made from."""
    finding = decide(law_of_runs, sampler, "gaussian-50d")
    assert finding.verdict == "pass", finding.reason


STARTED_WRONGLY = {
    "the surrogate twice": (Screened(second=lambda fall, cheap: fall), "gaussian-50d"),
    "the surrogate alone": (Screened(second=lambda fall, cheap: 0 * fall), "gaussian-50d"),
    "a pull to the start": (Screened(tether=0.25), PLANE),
}


@pytest.mark.parametrize("name", STARTED_WRONGLY)
def test_a_kernel_that_its_start_makes_wrongly_fails(name):
    finding = decide(law_of_runs, *STARTED_WRONGLY[name])
    assert finding.verdict == "fail", finding.reason


def test_leaves_by_themselves_are_those_that_nothing_else_moves():
    inner = jax.jit(lambda a, b, c, d: (b, a, c, d + 1))

    def step(key, a, b, c, d, e):
        a, b, c, d = inner(a, b, c, d)
        return a, b, c, d, jnp.where(a > 0, e, e + key)

    jaxpr = jax.make_jaxpr(step)(0.0, 1.0, 2.0, 3.0, 4.0, 5.0).jaxpr
    assert leaves_by_themselves(jaxpr) == [False, False, True, True, False]
