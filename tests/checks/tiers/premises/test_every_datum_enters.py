"""Minibatches of a sampler's own: what leaves data out is found; what draws or orders them in any way passes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.tiers.premises.data import LEAST, every_datum_enters
from sgmcmc_verification.checks.tiers.premises.data_in_order import weighed_in_order
from sgmcmc_verification.samplers.simple import simple_sampler
from tests.helpers.strangers import Euler, Kept, decide, normal, subject

DATA = "tiny-gaussian-data"


def gradient(terms, x, index, weights):
    """Of the prior and of the weighted data of an index."""
    batch = jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data)
    total = lambda y: jnp.sum(weights * jax.vmap(terms.datum, (None, 0))(y, batch))
    return jax.grad(terms.prior)(x) + jax.grad(total)(x)


def drawing(draw):
    """A function of a Target: SGLD with the data `draw(key, N) -> (index, weights)`."""

    def build(target):
        def step(key, x, h, estimator):
            batch_key, noise_key = jax.random.split(key)
            g = gradient(target.terms, x, *draw(batch_key, target.terms.size))
            return x - h * g + jnp.sqrt(2 * h) * normal(noise_key, x)

        return simple_sampler(step)

    return build


def in_metric_of_data(draw, anchored=False):
    """A function of a Target: `drawing` in a metric that is made of the data at the start, or a run's own zero.

    With an anchor the data that are drawn move by the difference of their gradients here and there.
    """

    def build(target):
        terms = target.terms
        everything = jnp.arange(terms.size)

        def init(key, x, estimator):
            slopes = jax.vmap(jax.grad(terms.datum), (None, 0))(0 * x, jax.tree.map(jnp.asarray, terms.data))
            total = gradient(terms, 0 * x, everything, 1.0)
            return {"x": x, "metric": 1 / (1 + jnp.sum(slopes**2, axis=0)), "total": total}

        def step(key, state, h, estimator):
            batch_key, noise_key = jax.random.split(key)
            x, drawn = state["x"], draw(batch_key, terms.size)
            g = gradient(terms, x, *drawn)
            if anchored:
                g += state["total"] - gradient(terms, 0 * x, *drawn)
            h = h * state["metric"]
            return {**state, "x": x - h * g + jnp.sqrt(2 * h) * normal(noise_key, x)}

        return simple_sampler(step, init=init, position=lambda state: state["x"])

    return build


def round_and_round(start, size, n):
    """The next `n` data, after the last one the first ones, and where the next begin."""
    return (start + jnp.arange(n)) % size, size / n, (start + n) % size


def dropping(start, size, n):
    """The next `n` data; what is left over in the end is left out."""
    return start + jnp.arange(n), size / n, jnp.where(start + 2 * n > size, 0, start + n)


def clamped(start, size, n):
    """The next `n` data, of which the last ones are taken again where they do not suffice."""
    return jnp.minimum(start, size - n) + jnp.arange(n), size / n, jnp.where(start + n >= size, 0, start + n)


def padded(start, size, n):
    """The next `n` data; what is missing in the end counts as a datum without a term."""
    index = start + jnp.arange(n)
    weights = jnp.where(index < size, -(-size // n), 0.0)
    return jnp.minimum(index, size - 1), weights, jnp.where(start + n >= size, 0, start + n)


def in_order(following, most=32):
    """A function of a Target: SGLD with the data that follow after one another, all of them if they are few."""

    def build(target):
        terms = target.terms

        def step(key, state, h, estimator):
            index, weights, start = following(state.kept, terms.size, min(most, terms.size))
            g = gradient(terms, state.position, index, weights)
            after = state.position - h * g + jnp.sqrt(2 * h) * normal(key, state.position)
            return Kept(after, start)

        first = lambda key, position, estimator: Kept(position, jnp.zeros((), jnp.int32))
        return simple_sampler(step, init=first, position=lambda state: state.position)

    return build


def pairs(last):
    """Two of the first `last(N)` data."""
    return lambda key, size: (jax.random.randint(key, (2,), 0, last(size)), size / 2)


def weighted(key, size):
    """Data by unequal probabilities, the first one 1 in N^2 / 2."""
    logits = jnp.log(1.0 + jnp.arange(size))
    index = jax.random.categorical(key, logits, shape=(8,))
    return index, 1 / (8 * jax.nn.softmax(logits)[index])


LEFT_OUT = {
    "the first thousand": drawing(pairs(lambda size: min(size, 1000))),
    "an index of 16 bits": drawing(lambda k, n: (jax.random.randint(k, (2,), 0, n).astype(jnp.uint16), n / 2)),
    "a last tenth that is held out": drawing(pairs(lambda size: size - size // 10)),
    "all but the first tenth": drawing(lambda k, n: (jax.random.randint(k, (2,), n // 10, n), n / 2)),
}
ALL_OF_THEM = {
    "by randint": drawing(pairs(lambda size: size)),
    "unequal probabilities": drawing(weighted),
    "all at once": drawing(lambda k, n: (jnp.arange(n), 1.0)),
    "in their order": in_order(round_and_round),
}


def batch(weight, most=32):
    """At most `most` data, all if they are few, each with `weight(N, n)`."""

    def draw(key, size):
        n = min(most, size)
        index = jnp.arange(size) if n == size else jax.random.randint(key, (n,), 0, size)
        return index, weight(size, n)

    return draw


def heavy_prior(target):
    """SGLD whose prior has the factor N / n of a minibatch of 32, too."""

    def move(key, x, h, estimator):
        batch_key, noise_key = jax.random.split(key)
        index, weight = batch(lambda size, n: size / n)(batch_key, target.terms.size)
        g = gradient(target.terms, x, index, weight) + (weight - 1) * jax.grad(target.terms.prior)(x)
        return x - h * g + jnp.sqrt(2 * h) * normal(noise_key, x)

    return simple_sampler(move)


def heavy(terms):
    """Weights of data by their values."""
    first = np.asarray(jax.tree.leaves(terms.data)[0], float).reshape(terms.size, -1)
    weights = 1 + np.linalg.norm(first, axis=1)
    return weights / weights.sum()


def first_half(terms):
    """The same chance for each of the first half of the data."""
    return (np.arange(terms.size) < terms.size // 2) / (terms.size // 2)


def but_last(terms):
    """The same chance for each of the data but the last."""
    return (np.arange(terms.size) < terms.size - 1) / (terms.size - 1)


def all_if_few(of_many):
    """All data where they are at most 16, else 16 of them by `of_many(key, N)`."""

    def draw(key, size):
        return (jnp.arange(size), 1.0) if size <= 16 else (of_many(key, size), size / 16)

    return draw


def by_importance(correct):
    """SGLD with two data that are drawn by their values, and divided by their chances where it is right."""

    def build(target):
        chances = jnp.asarray(heavy(target.terms))

        def move(key, x, h, estimator):
            batch_key, noise_key = jax.random.split(key)
            index = jax.random.choice(batch_key, target.terms.size, (2,), p=chances)
            weights = 1 / (2 * chances[index]) if correct else target.terms.size / 2
            return x - h * gradient(target.terms, x, index, weights) + jnp.sqrt(2 * h) * normal(noise_key, x)

        return simple_sampler(move)

    return build


def by_gradients(replace):
    """A function of a Target: SGLD with all data if they are few, else 16 in proportion to their gradients at first."""

    def build(target):
        terms = target.terms
        size, data = terms.size, jax.tree.map(jnp.asarray, terms.data)
        slopes = jax.vmap(jax.grad(terms.datum), (None, 0))

        def init(key, x, estimator):
            norms = jnp.linalg.norm(slopes(x, data).reshape(size, -1), axis=1) + 1e-12
            return Kept(x, norms / norms.sum())

        def step(key, state, h, estimator):
            batch_key, noise_key = jax.random.split(key)
            x, p = state.position, state.kept
            if size <= 16:
                g = gradient(terms, x, jnp.arange(size), 1.0)
            else:
                index = jax.random.choice(batch_key, size, (16,), replace, p)
                g = gradient(terms, x, index, 1 / (16 * p[index]))
            return Kept(x - h * g + jnp.sqrt(2 * h) * normal(noise_key, x), p)

        return simple_sampler(step, init=init, position=lambda state: state.position)

    return build


def in_numpy(chances=lambda terms: None, weight=lambda size: size / 2, prior=1.0):
    """A function of a Target: SGLD in NumPy with two data, from the estimator where there are none."""

    def build(target):
        terms = target.terms

        def step(rng, x, h, estimator):
            if terms is None:
                g = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
            else:
                index = rng.choice(terms.size, 2, p=chances(terms))
                g = np.asarray(of_batch(terms, x, index, weight(terms.size), prior))
            return x - h * g + np.sqrt(2 * h) * rng.standard_normal(np.shape(x))

        return simple_sampler(step, backend="host")

    return build


def of_batch(terms, x, index, weight, prior):
    batch = jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data)
    return compiled_gradient(terms.prior, terms.datum)(x, batch, weight, prior)


@functools.lru_cache(maxsize=16)
def compiled_gradient(of_prior, of_datum):
    total = lambda y, batch, weight, prior: (
        prior * of_prior(y) + weight * jnp.sum(jax.vmap(of_datum, (None, 0))(y, batch))
    )
    return jax.jit(jax.grad(total))


def apart(rows):
    """A function of a Target: SGLD with two data, whose array i has the rows `rows(key, i, N)`."""

    def build(target):
        terms = target.terms

        def step(key, x, h, estimator):
            batch_key, noise_key = jax.random.split(key)
            arrays, form = jax.tree.flatten(terms.data)
            batch = form.unflatten([jnp.asarray(a)[rows(batch_key, i, terms.size)] for i, a in enumerate(arrays)])
            total = lambda y: terms.size / 2 * jnp.sum(jax.vmap(terms.datum, (None, 0))(y, batch))
            g = jax.grad(terms.prior)(x) + jax.grad(total)(x)
            return x - h * g + jnp.sqrt(2 * h) * normal(noise_key, x)

        return simple_sampler(step)

    return build


def by_epochs(weight, momentum=False, most=32):
    """A function of a Target: SGLD in NumPy, or SGHMC, with shuffled data in turn, weighed by N, n and a length."""

    def build(target):
        terms = target.terms
        size, n = terms.size, min(most, terms.size)

        def init(rng, position, estimator):
            x = np.array(position)
            return {"x": x, "v": np.zeros_like(x), "order": rng.permutation(size), "start": 0}

        def step(rng, state, h, estimator):
            if state["start"] >= size:
                rng.shuffle(state["order"])
                state["start"] = 0
            index = np.array(state["order"][state["start"] : state["start"] + n])
            # of one length, so that one program serves all; the rest has no weight
            weights = np.where(np.arange(n) < len(index), weight(size, n, len(index)), 0.0)
            g = np.asarray(of_rows(terms, state["x"], np.resize(index, n), weights))
            noise = rng.standard_normal(g.shape)
            if momentum:
                state["v"] += -h * g - h * state["v"] + np.sqrt(2 * h) * noise
                state["x"] = state["x"] + h * state["v"]
            else:
                state["x"] = state["x"] - h * g + np.sqrt(2 * h) * noise
            state["start"] += n
            return state

        return simple_sampler(step, init=init, position=lambda state: state["x"], backend="host")

    return build


def of_rows(terms, x, index, weights):
    batch = jax.tree.map(lambda a: np.asarray(a)[index], terms.data)
    return compiled_gradient_of_rows(terms.prior, terms.datum)(x, batch, weights)


@functools.lru_cache(maxsize=16)
def compiled_gradient_of_rows(of_prior, of_datum):
    total = lambda y, batch, weights: of_prior(y) + jnp.sum(weights * jax.vmap(of_datum, (None, 0))(y, batch))
    return jax.jit(jax.grad(total))


MISWEIGHED = {
    "by their gradients, without replacement": by_gradients(replace=False),
    "in their order, the last ones twice": in_order(clamped),
    "in their order, what is left over dropped": in_order(dropping),
    "in NumPy, shuffled, the last few as if a full batch": by_epochs(lambda size, n, length: size / n),
    "in NumPy, shuffled, momentum, the last few as if a full batch": by_epochs(lambda size, n, _: size / n, True),
    "each array by a key of its own": apart(lambda k, i, n: jax.random.randint(jax.random.fold_in(k, i), (2,), 0, n)),
    "labels of the next row": apart(lambda k, i, n: (jax.random.randint(k, (2,), 0, n) + (i == 3)) % n),
    "by importance": by_importance(correct=False),
    "all but the last": drawing(all_if_few(lambda k, n: jax.random.randint(k, (16,), 0, n - 1))),
    "the first and the last half as often": drawing(
        all_if_few(lambda k, n: jnp.round(jax.random.uniform(k, (16,)) * (n - 1)).astype(int))
    ),
    "in NumPy, all but the last": in_numpy(but_last),
    "in NumPy, no factor N / n": in_numpy(weight=lambda size: 1.0),
    "in NumPy, by importance": in_numpy(heavy),
    "in NumPy, a prior twice": in_numpy(prior=2.0),
    "in NumPy, the first half alone": in_numpy(first_half),
    "no factor N / n": drawing(batch(lambda size, n: 1.0)),
    "N // n": drawing(batch(lambda size, n: size // n)),
    "(N / n)^2": drawing(batch(lambda size, n: (size / n) ** 2)),
    "the first half twice as often": drawing(
        lambda k, n: ((jnp.sqrt(jax.random.uniform(k, (32,))) * n).astype(int), n / 32)
    ),
    "a prior with the factor of the batch": heavy_prior,
    "in a metric of the data, no factor N / n": in_metric_of_data(batch(lambda size, n: 1.0)),
    "in a metric of the data, N // n": in_metric_of_data(batch(lambda size, n: size // n)),
    "in a metric of the data, the first half twice as often": in_metric_of_data(
        lambda k, n: ((jnp.sqrt(jax.random.uniform(k, (32,))) * n).astype(int), n / 32)
    ),
}
WEIGHED = {
    "by their gradients, with replacement": by_gradients(replace=True),
    "in their order, round and round": in_order(round_and_round),
    "in their order, padded": in_order(padded),
    "N / n": drawing(batch(lambda size, n: size / n)),
    "each array by the same rows": apart(lambda k, i, n: jax.random.randint(k, (2,), 0, n)),
    "one datum": drawing(batch(lambda size, n: size, 1)),
    "without replacement": drawing(all_if_few(lambda k, n: jax.random.permutation(k, n)[:16])),
    "each by a coin": drawing(lambda k, n: (jnp.arange(n), 2.0 * jax.random.bernoulli(k, 0.5, (n,)))),
    "a block that moves round": drawing(
        all_if_few(lambda k, n: (jax.random.randint(k, (), 0, n) + jnp.arange(16)) % n)
    ),
    "by importance": by_importance(correct=True),
    "in a metric of the data": in_metric_of_data(batch(lambda size, n: size / n)),
    "in a metric of the data, all of them": in_metric_of_data(lambda k, n: (jnp.arange(n), 1.0)),
    "in a metric of the data, from an anchor": in_metric_of_data(batch(lambda size, n: size / n), anchored=True),
}


@pytest.mark.parametrize("name", MISWEIGHED)
def test_data_that_weigh_too_little_or_too_much_are_found(name):
    finding = decide(every_datum_enters, MISWEIGHED[name], DATA)
    assert finding.verdict == "fail", finding.reason
    assert "times what they should" in finding.reason


@pytest.mark.parametrize("name", WEIGHED)
def test_data_that_weigh_what_they_should_pass(name):
    finding = decide(every_datum_enters, WEIGHED[name], DATA)
    assert finding.verdict == "pass", finding.reason


@pytest.mark.parametrize("name", LEFT_OUT)
def test_data_that_never_enter_are_found(name):
    finding = decide(every_datum_enters, LEFT_OUT[name], DATA)
    assert finding.verdict == "fail", finding.reason
    assert "never enter" in finding.reason


@pytest.mark.parametrize("name", ALL_OF_THEM)
def test_data_that_are_drawn_in_any_way_pass(name):
    finding = decide(every_datum_enters, ALL_OF_THEM[name], DATA)
    assert finding.verdict == "pass", finding.reason
    assert "all blocks" in finding.reason


def test_the_data_that_are_left_out_are_named():
    reason = decide(every_datum_enters, LEFT_OUT["an index of 16 bits"], DATA).reason
    first, last = (int(word) for word in reason.split("from the data ")[1].split(" to "))
    assert np.iinfo(np.uint16).max < last + 1 == 70_001
    assert first < last


@pytest.mark.parametrize("momentum", [False, True])
def test_shuffled_data_in_numpy_are_weighed_with_a_short_last_batch(momentum):
    """Each batch by its own length; how the data of many go is not known then."""
    build = by_epochs(lambda size, n, length: size / length, momentum)
    with pytest.raises(OutOfReach):
        decide(every_datum_enters, build, DATA)
    weights, size = weighed_in_order(subject(build, DATA), 1279)
    assert size == 65
    assert weights.error == pytest.approx(0.0, abs=LEAST)


def test_what_moves_by_data_in_numpy_as_without_them_has_its_law_with_data():
    assert [each.name for each in decide(every_datum_enters, in_numpy(), DATA).meets] == ["data"]


def test_a_sampler_that_reads_no_data_leaves_none_out():
    assert "but through the estimator" in decide(every_datum_enters, Euler(), DATA).reason
