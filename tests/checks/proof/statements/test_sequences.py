"""Steps that are several Metropolis kernels in turn: sweeps over coordinates, a local and a global move."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.checks.proof.statements import balance
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source
from sgmcmc_verification.samplers.simple import simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())


def moved(key, x, h, i=None):
    """A proposal of the walk, of one coordinate or of all."""
    if i is None:
        return x + jnp.sqrt(2 * h) * jax.random.normal(key, x.shape, x.dtype)
    return x.at[i].add(jnp.sqrt(2 * h) * jax.random.normal(key, (), x.dtype))


def accepts(key, r):
    return jnp.log(jax.random.uniform(key, (), r.dtype)) < r


def exact(step):
    return simple_sampler(step, claims=EXACT)


def sweep(against="the state", draws="their own"):
    """A walk in each coordinate, one after the other; the ratio may be taken against the state before the sweep."""

    def step(key, x, h, estimator):
        energy = lambda y: estimator.estimate(key, (), y)[0].potential
        first, key_of = x, jax.random.fold_in
        for i in range(x.size):
            move, coin = jax.random.split(key_of(key, i))
            if draws == "one coin":
                coin = key_of(key, 10)
            if draws == "one proposal":
                move = key_of(key, 10)
            y = moved(move, x, h, i)
            base = first if against == "the start" else x
            x = jnp.where(accepts(coin, energy(base) - energy(y)), y, x)
        return x

    return exact(step)


def looped(key, x, h, estimator):
    """The same sweep as a loop of JAX."""
    energy = lambda y: estimator.estimate(key, (), y)[0].potential

    def body(i, x):
        move, coin = jax.random.split(jax.random.fold_in(key, i))
        y = moved(move, x, h, i)
        return jnp.where(accepts(coin, energy(x) - energy(y)), y, x)

    return jax.lax.fori_loop(0, x.size, body, x)


def log_density(y, x, slope, h):
    return -jnp.sum((y - x + h * slope) ** 2) / (4 * h)


def local_and_global(
    jump=lambda key, x: x + 3 * jax.random.t(key, 5.0, x.shape, x.dtype), rule=lambda u, r: jnp.log(u) < r
):
    """MALA, and then a walk of long steps."""

    def step(key, x, h, estimator):
        look = lambda y: estimator.estimate(key, (), y)[0]
        a, b, c, d = jax.random.split(key, 4)
        here = look(x)
        y = moved(a, x - h * here.gradient, h)
        there = look(y)
        r = here.potential - there.potential
        r += log_density(x, y, there.gradient, h) - log_density(y, x, here.gradient, h)
        x = jnp.where(accepts(b, r), y, x)
        y = jump(c, x)
        return jnp.where(rule(jax.random.uniform(d, (), x.dtype), look(x).potential - look(y).potential), y, x)

    return exact(step)


def two_walks(second):
    """A walk, and another one whose proposal is a function of where the step began and of whether the first moved."""

    def step(key, x, h, estimator):
        energy = lambda y: estimator.estimate(key, (), y)[0].potential
        a, b, c, d = jax.random.split(key, 4)
        y = moved(a, x, h)
        took = accepts(b, energy(x) - energy(y))
        now = jnp.where(took, y, x)
        y = second(c, x, now, took, h)
        return jnp.where(accepts(d, energy(now) - energy(y)), y, now)

    return exact(step)


def in_python(rng, x, h, estimator):
    """A sweep of NumPy, of Cauchy moves and with an exponential draw for the decision."""
    energy = lambda y: float(estimator.estimate(rng, (), y)[0].potential)
    x = np.array(x)
    u = energy(x)
    for i in range(x.size):
        y = x.copy()
        y[i] += np.sqrt(h) * rng.standard_cauchy()
        v = energy(y)
        if rng.exponential() > v - u:
            x, u = y, v
    return x


RIGHT = {
    "a sweep": sweep(),
    "a loop over coordinates": exact(looped),
    "a local and a global move": local_and_global(),
    "the second by Barker's rule": local_and_global(rule=lambda u, r: u < jax.nn.sigmoid(r)),
    "two walks of other scales": two_walks(lambda key, x, now, took, h: moved(key, now, 4 * h)),
    "a sweep in Python": simple_sampler(in_python, backend="host"),
}
WRONG = {
    "ratios against the start": sweep(against="the start"),
    "one coin for all": sweep(draws="one coin"),
    "one proposal for all": sweep(draws="one proposal"),
    "a global move that looks at the state": local_and_global(
        lambda key, x: 0.5 * x + jax.random.normal(key, x.shape, x.dtype)
    ),
    "a scale by whether the first moved": two_walks(
        lambda key, x, now, took, h: moved(key, now, jnp.where(took, 4.0, 0.5) * h)
    ),
    "back towards the start": two_walks(lambda key, x, now, took, h: moved(key, (x + now) / 2, h)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_kernels_in_turn_that_balance_pass(name):
    assert [prove(RIGHT[name], d).verdict for d in (1, 2)] == ["pass", "pass"]


@pytest.mark.parametrize("name", WRONG)
def test_kernels_in_turn_of_which_one_does_not_balance_do_not_pass(name):
    assert prove(WRONG[name], 2).verdict != "pass"


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_one_kernel_of_a_mixture_that_does_not_balance_is_a_violation(share):
    def step(key, x, h, estimator):
        energy = lambda y: estimator.estimate(key, (), y)[0].potential
        kind, move, coin = jax.random.split(key, 3)
        wide = lambda: 3 * jax.random.normal(move, x.shape, x.dtype)
        y = jax.lax.cond(jax.random.bernoulli(kind, share), wide, lambda: moved(move, x, h))
        return jnp.where(accepts(coin, energy(x) - energy(y)), y, x)

    found = prove(exact(step), 2)
    assert found.verdict == "fail", found.reason


def test_one_kernel_in_turn_that_does_not_balance_is_a_violation():
    assert prove(WRONG["a global move that looks at the state"], 2).verdict == "fail"


def test_two_kernels_that_lead_back_to_each_other_are_no_violation():
    """Doubling by one side of a fair coin and halving by the other: neither balances, both together do."""

    def step(key, x, h, estimator):
        energy = lambda y: estimator.estimate(key, (), y)[0].potential
        kind, coin = jax.random.split(key)
        up = jax.random.bernoulli(kind, 0.5)
        y = jnp.where(up, 2 * x, x / 2)
        jacobian = x.size * jnp.where(up, jnp.log(2.0), -jnp.log(2.0))
        return jnp.where(accepts(coin, energy(x) - energy(y) + jacobian), y, x)

    assert prove(exact(step), 2).verdict != "fail"


@pytest.mark.parametrize("name", ["ratios against the start", "back towards the start"])
def test_they_would_pass_if_all_polynomials_were_taken_for_equal(name, monkeypatch):
    monkeypatch.setattr(balance, "is_zero", lambda p: True)
    assert prove(WRONG[name], 2).verdict == "pass"
