"""Laws on finitely many states: exact matrices of steps, right and wrong samplers as their users write them."""

import re
from pathlib import Path
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.lookup import resolve_object
from sgmcmc_verification.checks.end_points.error_rates import fraction_of_chains
from sgmcmc_verification.checks.exact_laws.transition_matrix import period, stationary, transition
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.check_sampler import check_sampler
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.runner.fallback import by_sampling
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source, StationaryLaw
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.targets.registry import target
from tests.strangers.right.fresh.whole_numbers import coded

PAGE = Path(__file__).resolve().parents[3] / "docs" / "pages" / "finite-spaces.md"
ISING, POTTS, PRODUCT = "ising-3x3", "potts-3", "categoricals"
EXACT = Claims(Source("", "a test"), ExactLaw(), spaces=("finite",))
LANGEVIN = Claims(Source("", "a test"), StationaryLaw(order=1), spaces=("finite",))


def of_estimate(estimator, x):
    return estimator.estimate(jax.random.key(0), (), x)[0]


def heat_bath(key, s, h, estimator, factor=2.0, lowest=0):
    """A spin is +1 with the probability 1 / (1 + exp(2 dU / ds))."""
    pick, toss = jax.random.split(key)
    i = jax.random.randint(pick, (), lowest, s.size)
    up = jax.random.bernoulli(toss, jax.nn.sigmoid(-factor * of_estimate(estimator, s).gradient[i]))
    return s.at[i].set(jnp.where(up, 1, -1))


def flips(key, s, h, estimator, sign=1.0):
    """Metropolis with a flip of one spin."""
    pick, test = jax.random.split(key)
    i = jax.random.choice(pick, s.size)
    t = s.at[i].multiply(-1)
    change = of_estimate(estimator, t).potential - of_estimate(estimator, s).potential
    return jnp.where(jnp.log(jax.random.uniform(test)) < -sign * change, t, s)


def by_gradient(key, x, h, estimator):
    """Gibbs for Potts models from dU / de, the value by the inverse of the distribution function."""
    pick, draw = jax.random.split(key)
    i = jax.random.randint(pick, (), 0, x.size)
    p = jax.nn.softmax(-of_estimate(estimator, x).gradient[i])
    return x.at[i].set(jnp.argmax(jnp.cumsum(p) > jax.random.uniform(draw)))


def recolour(key, x, h, estimator, forward=False):
    """Metropolis with any other colour proposed; `forward` always proposes the next one."""
    pick, colour, test = jax.random.split(key, 3)
    i = jax.random.randint(pick, (), 0, x.size)
    by = 1 if forward else 1 + jax.random.randint(colour, (), 0, 2)
    y = x.at[i].set((x[i] + by) % 3)
    ratio = jnp.exp(of_estimate(estimator, x).potential - of_estimate(estimator, y).potential)
    return jnp.where(jax.random.uniform(test) < ratio, y, x)


def host_gibbs(rng, x, h, estimator, sign=-1.0):
    """Gibbs with NumPy: all values of one site, by their potentials."""
    i = rng.integers(x.size)
    energies = np.array([float(estimator.estimate(rng, (), with_value(x, i, k))[0].potential) for k in range(4)])
    p = np.exp(sign * (energies - energies.min()))
    return with_value(x, i, rng.choice(4, p=p / p.sum()))


def host_metropolis(rng, x, h, estimator, least=0):
    """Metropolis with NumPy; sites below `least` are never visited."""
    y = with_value(x, least + rng.integers(x.size - least), rng.integers(4))
    potential = lambda z: float(estimator.estimate(rng, (), z)[0].potential)
    return y if rng.random() < np.exp(potential(x) - potential(y)) else x


def host_metropolis_of_any(rng, x, h, estimator):
    """The same for spins or values."""
    values = (-1, 1) if np.min(x) < 0 or x.size == 9 else tuple(range(3 if x.size == 5 else 4))
    y = with_value(x, rng.integers(x.size), rng.choice(values))
    potential = lambda z: float(estimator.estimate(rng, (), z)[0].potential)
    return y if rng.random() < np.exp(potential(x) - potential(y)) else x


def with_value(x, i, k):
    y = np.array(x)
    y[i] = k
    return y


def langevin(key, s, h, estimator, share=0.5):
    """Discrete Langevin proposals without a test: exact in the limit h -> 0 for quadratic potentials."""
    flip = -2.0 * s
    logits = -share * of_estimate(estimator, s).gradient * flip - flip**2 / (2 * h)
    return jnp.where(jax.random.bernoulli(key, jax.nn.sigmoid(logits)), -s, s)


def slow_flips(key, s, h, estimator, share=0.5):
    """Each spin flips at the rate exp(-share dU) in continuous time, all of them at once for a time h: order 1."""
    rate = jnp.exp(2 * share * of_estimate(estimator, s).gradient * s)
    return jnp.where(jax.random.uniform(key, s.shape) < -jnp.expm1(-h * rate), -s, s)


def shuffled(key, s, h, estimator, factor=2.0):
    """Heat bath at the first site of a random order, whose draws cannot be listed."""
    pick, toss = jax.random.split(key)
    i = jax.random.permutation(pick, s.size)[0]
    up = jax.random.bernoulli(toss, jax.nn.sigmoid(-factor * of_estimate(estimator, s).gradient[i]))
    return s.at[i].set(jnp.where(up, 1, -1))


def simple(step, claims=EXACT, backend: Literal["jax", "host"] = "jax", **arguments):
    function = lambda key, x, h, estimator: step(key, x, h, estimator, **arguments)
    return simple_sampler(function, claims=claims, backend=backend)


RIGHT = {
    "heat-bath": (simple(heat_bath), ISING),
    "metropolis-flips": (simple(flips), ISING),
    "gibbs-by-gradient": (simple(by_gradient), POTTS),
    "metropolis-colours": (simple(recolour), POTTS),
    "host-gibbs": (simple(host_gibbs, backend="host"), PRODUCT),
    "host-metropolis": (simple(host_metropolis, backend="host"), PRODUCT),
}
WRONG = {
    "half-the-field": (simple(heat_bath, factor=1.0), ISING),
    "upside-down": (simple(flips, sign=-1.0), ISING),
    "never-the-first-site": (simple(heat_bath, lowest=1), ISING),
    "next-colour-only": (simple(recolour, forward=True), POTTS),
    "host-wrong-sign": (simple(host_gibbs, backend="host", sign=1.0), PRODUCT),
    "host-never-the-first-site": (simple(host_metropolis, backend="host", least=1), PRODUCT),
}


def of_law(sampler, name):
    return check_sampler(sampler, [name], ["law"], name="mine", law_only=True)


@pytest.mark.parametrize("case", RIGHT)
def test_right_samplers_keep_the_law_and_reach_every_state(case):
    report = of_law(*RIGHT[case])
    assert report.conclusion.word == "part", str(report)
    assert {o.result.verdict for o in report.outcomes} == {"pass"}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_samplers_violate_the_law(case):
    report = of_law(*WRONG[case])
    assert report.conclusion.word == "fail", str(report)


def test_the_code_of_the_page_runs_and_its_sampler_meets_every_obligation():
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    found = {}
    exec(code, found)
    conclusion = found["report"].conclusion
    assert {"finite", "reached", "branches", "closed-state", "known-draws"} <= set(conclusion.met)
    assert conclusion.faults == ()


def test_the_whole_verdict_of_a_sampler_of_the_host_holds():
    sampler = simple_sampler(host_metropolis_of_any, claims=EXACT, backend="host")
    conclusion = check_sampler(sampler, name="mine").conclusion
    assert (conclusion.word, conclusion.law, conclusion.open) == ("pass", "holds", ())


def subject_of(sampler, *names, step_size=None):
    return resolve_object("mine", sampler, step_size=step_size, targets=names)[0]


def decide(statement, sampler, name, step_size=None):
    return execute(find_statement(statement), subject_of(sampler, name, step_size=step_size), name, 0)


def test_an_order_is_claimed_of_the_limit_of_exact_stationary_laws():
    for step, h, share, verdict in (
        (slow_flips, 0.2, 0.5, "pass"),
        (langevin, 0.4, 0.5, "pass"),
        (langevin, 0.4, 0.3, "fail"),
    ):
        found = decide("stationary_on_states", simple(step, LANGEVIN, share=share), ISING, h)
        assert found.verdict == verdict, found.reason
        assert "its limit" in found.reason, "an unadjusted step has a bias"


def test_sampling_decides_where_draws_cannot_be_listed():
    with fraction_of_chains(0.5):
        listed = decide("stationary_on_states", simple(shuffled), ISING)
        right, wrong = (by_sampling(subject_of(simple(shuffled, factor=f), ISING), ISING, 0) for f in (2.0, 1.0))
    assert listed.verdict == "out-of-reach"
    assert right.verdict == "pass", right.reason
    assert {"finite", "reached"} <= set(right.meets)
    assert wrong.verdict == "fail", wrong.reason


def test_the_matrix_of_a_step_is_the_law_of_its_draws():
    """Against steps with NumPy's and JAX's own generators."""
    law = target(PRODUCT)
    assert law.finite is not None
    subject = Subject(sampler_row("gibbs-with-gradients"))
    matrix = transition(subject, law, 1.0).matrix
    sampler, estimator = subject.sampler(law), subject.estimator(law)
    x = jnp.asarray(law.finite.states[7])
    step = lambda key: sampler.position(sampler.step(key, sampler.init(key, x, estimator), 1.0, estimator))
    ends = law.finite.place(np.asarray(jax.jit(jax.vmap(step))(jax.random.split(jax.random.key(3), 20_000))))
    seen = np.bincount(ends, minlength=len(matrix)) / len(ends)
    # six standard errors of each share, and none where the matrix has none
    assert np.all(np.abs(seen - matrix[7]) <= 6 * np.sqrt(matrix[7] / len(ends)))
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=0, atol=1e-14)


def test_the_stationary_law_keeps_its_accuracy_where_steps_are_rare():
    """A birth-death chain has pi(i + 1) / pi(i) = up(i) / down(i + 1), whatever the size of the rates."""
    generator = np.random.default_rng(1)
    up, down = 1e-12 * generator.random(9), 1e-9 * generator.random(9)
    matrix = np.diag(up, 1) + np.diag(down, -1)
    matrix += np.diag(1 - matrix.sum(axis=1))
    exact = np.concatenate([[1.0], np.cumprod(up / down)])
    np.testing.assert_allclose(stationary(matrix), exact / exact.sum(), rtol=100 * np.finfo(float).eps)


def test_the_period_of_a_chain_is_that_of_its_loops():
    ring = np.roll(np.eye(6), 1, axis=1)
    assert period(ring) == 6
    assert period(ring / 2 + ring.T / 2) == 2
    assert period(ring / 2 + np.eye(6) / 2) == 1


def test_a_state_whose_digits_are_the_position_is_put_together_from_it():
    (subject, *_) = resolve_object("coded", coded)
    law = target("categoricals")
    sampler, estimator = subject.sampler(law), subject.estimator(law)
    for position in law.finite.states[::7]:
        state = sampler.pack(jax.random.key(0), law.unravel(position), estimator)
        assert np.array_equal(np.ravel(sampler.position(state)), position)
