"""Minibatches without replacement: each datum once an epoch, in a uniform order, and the exact law that they have."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sgmcmc_verification.checks.core.lookup import resolve
from sgmcmc_verification.checks.exact_laws.epochs import batches, mean_of, word
from sgmcmc_verification.checks.exact_laws.lyapunov import law_of_moments, moment_map
from sgmcmc_verification.checks.tracing.step_map import Affine
from sgmcmc_verification.samplers.estimators.epochs import Epochs
from sgmcmc_verification.samplers.underdamped.splitting import BAOAB
from sgmcmc_verification.samplers.underdamped.ubu import UBU
from sgmcmc_verification.targets.registry import target

DATA = target("tiny-regression")
N = DATA.terms.size
SEVERAL = 4


def used(estimator: Epochs, seed: int, length: int) -> np.ndarray:
    """The datum of each estimate, found among the gradients of all of them at a point where they differ."""
    x = jnp.asarray([0.3, -1.1])
    prior = jax.grad(estimator.terms.prior)(x)
    each = jax.vmap(jax.grad(estimator.terms.datum), (None, 0))(x, estimator.terms.data)

    def one(estate, key):
        estimate, estate = estimator.estimate(key, estate, x)
        return estate, estimate.gradient

    start = estimator.init(jax.random.key(seed), x)
    gradients = jax.lax.scan(one, start, jax.random.split(jax.random.key(seed + 1), length))[1]
    gaps = np.abs(np.asarray((gradients - prior) / estimator.num_batches)[:, None] - np.asarray(each)).max(axis=-1)
    assert np.all(gaps.min(axis=1) < 1e-12)
    return gaps.argmin(axis=1)


@pytest.mark.parametrize("order", ["reshuffled", "once", "symmetric"])
def test_each_datum_enters_once_in_every_epoch(order):
    found = used(Epochs(DATA.terms, N, order), 0, 2 * N * SEVERAL).reshape(-1, N)
    assert np.array_equal(np.sort(found, axis=1), np.tile(np.arange(N), (2 * SEVERAL, 1)))
    if order == "once":
        assert np.all(found == found[0])
    elif order == "symmetric":
        assert np.array_equal(found[1::2], found[::2, ::-1])
        assert len(np.unique(found[::2], axis=0)) > 1
    else:
        assert len(np.unique(found, axis=0)) > SEVERAL


@pytest.mark.parametrize("num_batches", [1, 2, 3, 6])
def test_the_estimates_of_an_epoch_at_one_point_have_the_gradient_as_their_mean(num_batches):
    data = target("tiny-logistic")
    x = jnp.asarray([0.4, -0.2])
    estimator = Epochs(data.terms, num_batches)
    estate, total = estimator.init(jax.random.key(3), x), jnp.zeros(2)
    for key in jax.random.split(jax.random.key(4), num_batches):
        estimate, estate = estimator.estimate(key, estate, x)
        total = total + estimate.gradient
    np.testing.assert_allclose(total / num_batches, jax.grad(data.potential)(x), rtol=1e-12)
    assert estate.used == 0


def test_all_orders_have_the_same_chance():
    """Of the first epoch and of the one after it, over 120 orders."""
    draws, estimator = 6000, Epochs(DATA.terms, N)

    def two(key):
        first, *keys = jax.random.split(key, N + 1)
        begun = estate = estimator.init(first, jnp.zeros(2))
        for each in keys:
            _, estate = estimator.estimate(each, estate, jnp.zeros(2))
        return begun.order[:, 0], estate.order[:, 0]

    places = {order: i for i, order in enumerate(itertools.permutations(range(N)))}
    for orders in jax.jit(jax.vmap(two))(jax.random.split(jax.random.key(7), draws)):
        counts = np.bincount([places[tuple(order)] for order in np.asarray(orders).tolist()], minlength=len(places))
        assert stats.chisquare(counts).pvalue > 1e-6


def test_bad_numbers_of_batches_are_refused():
    for number in (0, 2, N + 1):
        with pytest.raises(ValueError, match="num_batches"):
            Epochs(DATA.terms, number)
    with pytest.raises(ValueError, match="order"):
        Epochs(DATA.terms, N, "sorted")


def test_the_law_of_an_epoch_of_two_batches_is_that_of_a_calculation_by_hand():
    """x' = a x - h xi + N(0, 2 h), a = 1 - h lambda, xi = +-s in either order: the end is shifted by +-h^2 lambda s.

    From a x - h xi_1 and then - h xi_2 with xi_2 = -xi_1 the shift is -h xi_1 (a - 1) = h^2 lambda xi_1, so that
    Var x = (h^4 lambda^2 s^2 + 2 h (1 + a^2)) / (1 - a^4) over both orders.
    """
    h, k, s = 0.2, 1.7, 0.9
    a = 1 - h * k
    steps = [[Affine(np.array([[a]]), np.array([[np.sqrt(2 * h)]]), np.array([-h * xi]), 1.0)] for xi in (s, -s)]
    maps = [moment_map(step) for step in steps]
    law = law_of_moments(mean_of([word(maps, (0, 1)), word(maps, (1, 0))]), 1)
    assert law.mean[0] == pytest.approx(0.0, abs=1e-14)
    exact = (h**4 * k**2 * s**2 + 2 * h * (1 + a**2)) / (1 - a**4)
    assert law.covariance[0, 0] == pytest.approx(exact, rel=1e-12)
    one = law_of_moments(word(maps, (0, 1)), 1)
    assert one.mean[0] == pytest.approx(h**2 * k * s / (1 - a**2), rel=1e-12)


@pytest.mark.parametrize(("name", "sampler"), [("ubu", UBU()), ("baoab", BAOAB())])
def test_chains_with_the_estimator_have_the_enumerated_law(name, sampler):
    """Mean and covariance at the end of an epoch, over chains that start at the mode: within 5 standard errors."""
    drawn = batches(resolve(name)[0], DATA)
    h = 0.5 * resolve(name)[0].step_size(DATA)
    maps = drawn.moments(h)
    mean, covariance, _ = drawn.position(mean_of([word(maps, order) for order in drawn.orders]), h)
    estimator, chains, epochs = Epochs(DATA.terms, N), 4000, 300

    def chain(key):
        first, rest = jax.random.split(key)
        step = lambda state, k: (sampler.step(k, state, h, estimator), None)
        start = sampler.init(first, jnp.asarray(DATA.gaussian.mean), estimator)
        return sampler.position(jax.lax.scan(step, start, jax.random.split(rest, N * epochs))[0])

    ends = np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(11), chains)))
    root = np.linalg.inv(np.linalg.cholesky(covariance))
    white = (ends - mean) @ root.T
    assert np.all(np.abs(white.mean(axis=0)) < 5 / np.sqrt(chains))
    spread = np.cov(white.T) - np.eye(2)
    assert np.all(np.abs(spread) < 5 * np.sqrt(np.array([[2, 1], [1, 2]]) / chains))
    # what independent batches have is out of this range: the test can tell
    independent, _, _ = drawn.position(mean_of(maps), h)
    other = root @ drawn.position(mean_of(maps), h)[1] @ root.T - np.eye(2)
    assert np.abs(other - spread).max() > 5 * np.sqrt(2 / chains)
    assert np.all(np.isfinite(independent))
