"""Sums over data: estimators that are unbiased for every prior, every term and every batch, and those that are not."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.proof.memory import Estimation
from sgmcmc_verification.checks.proof.potential import DATA, any_target
from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.checks.proof.reader import randomness
from sgmcmc_verification.checks.proof.statements.data import data_statements
from sgmcmc_verification.samplers.estimators.basic import Minibatch, terms_of
from sgmcmc_verification.samplers.interface.sampler import Estimate, Stateless
from sgmcmc_verification.samplers.overdamped.control_variates import SGLDCV, ControlVariates
from sgmcmc_verification.samplers.overdamped.saga import SAGA
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.overdamped.svrg import SVRG
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.samplers.simple import simple_sampler

BATCHES = [(1, True), (2, True), (1, False), (2, False)]


def statements(build, dimension=2):
    with jax.enable_x64(True):
        target = any_target(dimension)
        return data_statements(build(target), target)


def outcomes(build, dimension=2):
    return {result.outcome for result in statements(build, dimension)[0]}


def gradients(terms, x, indices=None):
    data = jnp.asarray(terms.data)
    return jax.vmap(jax.grad(terms.datum), (None, 0))(x, data if indices is None else data[indices])


@pytest.mark.parametrize(("size", "replace"), BATCHES)
@pytest.mark.parametrize("kind", ["plain", "control variates", "saga", "svrg"])
def test_reference_estimators_are_unbiased_at_every_state(kind, size, replace):
    build = {
        "plain": lambda t: Minibatch(terms_of(t), size, replace),
        "control variates": lambda t: ControlVariates(terms_of(t), size, t.example, replace),
        "saga": lambda t: SAGA(terms_of(t), size, replace),
        "svrg": lambda t: SVRG(terms_of(t), size, 3, replace),
    }[kind]
    found, family, notes = statements(build)
    assert {result.outcome for result in found} == {"proved"}, found
    assert not notes
    assert (family is None) == (kind == "plain")


@pytest.mark.parametrize("replace", [True, False])
def test_the_covariance_of_a_batch_is_that_which_the_fisher_matrix_estimates(replace):
    found, *_ = statements(lambda t: Minibatch(terms_of(t), 2, replace, fisher=True))
    assert [(r.statement, r.outcome) for r in found] == [
        ("unbiased gradient", "proved"),
        ("covariance of the gradient", "proved"),
    ]


class Batch(Stateless):
    """A batch of two, with a rule for the gradient made of (terms, prior, rows of gradients)."""

    def __init__(self, target, rule, choose=None):
        self.terms, self.rule = target.terms, rule
        self.choose = choose or (lambda key: jax.random.choice(key, DATA, (2,), replace=False))

    def estimate(self, key, estate, position):
        rows = gradients(self.terms, position, self.choose(key))
        return Estimate(self.rule(self.terms, jax.grad(self.terms.prior)(position), rows)), estate


RIGHT_RULES = {
    "shuffled": (lambda terms, prior, rows: prior + terms.size / 2 * rows.sum(0), None),
    "mean": (lambda terms, prior, rows: prior + terms.size * rows.mean(0), None),
    "with replacement": (
        lambda terms, prior, rows: prior + terms.size * rows.mean(0),
        lambda key: jax.random.choice(key, DATA, (2,)),
    ),
    "permuted": (
        lambda terms, prior, rows: prior + terms.size * rows.mean(0),
        lambda key: jax.random.permutation(key, DATA)[:2],
    ),
    "prior shared out": (lambda terms, prior, rows: terms.size * (prior / terms.size + rows).mean(0), None),
}
WRONG_RULES = {
    "no factor": (lambda terms, prior, rows: prior + rows.sum(0), None),
    "a mean": (lambda terms, prior, rows: prior + rows.mean(0), None),
    "n / N": (lambda terms, prior, rows: prior + 2 / terms.size * rows.sum(0), None),
    "N - 1": (lambda terms, prior, rows: prior + (terms.size - 1) / 2 * rows.sum(0), None),
    "prior scaled": (lambda terms, prior, rows: terms.size / 2 * (prior + rows.sum(0)), None),
    "prior for each datum": (lambda terms, prior, rows: terms.size / 2 * (prior + rows).sum(0), None),
    "no prior": (lambda terms, prior, rows: terms.size / 2 * rows.sum(0), None),
    "half of the prior": (lambda terms, prior, rows: prior / 2 + terms.size / 2 * rows.sum(0), None),
    "last datum never": (
        lambda terms, prior, rows: prior + terms.size * rows.mean(0),
        lambda key: jax.random.randint(key, (2,), 0, DATA - 1),
    ),
    "always the same": (
        lambda terms, prior, rows: prior + terms.size * rows.mean(0),
        lambda key: jnp.array([0, 1]),
    ),
}


@pytest.mark.parametrize("name", RIGHT_RULES)
def test_batches_as_strangers_write_them(name):
    build = lambda t: Batch(t, *RIGHT_RULES[name])
    assert outcomes(build) == {"proved"}
    assert prove(SGLD(), 2, build).is_proved


@pytest.mark.parametrize("name", WRONG_RULES)
def test_wrong_batches_are_refuted(name):
    build = lambda t: Batch(t, *WRONG_RULES[name])
    assert outcomes(build) == {"violated"}
    assert prove(SGLD(), 2, build).verdict == "fail"


def test_a_key_for_the_batch_and_for_the_noise_does_not_pass():
    def step(key, x, h, estimator):
        gradient = estimator.estimate(key, (), x)[0].gradient
        return x - h * gradient + jnp.sqrt(2 * h) * jax.random.normal(key, x.shape, x.dtype)

    build = lambda t: Batch(t, *RIGHT_RULES["with replacement"])
    assert prove(simple_sampler(step), 2, build).verdict == "undecided"


def test_a_branch_that_hangs_on_the_batch_is_undecided():
    """Each side is met for some batches only; their average is not the expectation, and nothing is refuted by it."""
    rule = lambda terms, prior, rows: (
        prior + terms.size * jnp.where(rows[0, 0] > 0, 1.0, 1.0 + 0 * rows[0, 0]) * rows[0]
    )
    clipped = lambda terms, prior, rows: prior + terms.size * jnp.where(rows[0, 0] > 0, rows[0], 2 * rows[0])
    one = lambda key: jax.random.randint(key, (1,), 0, DATA)
    for made in (rule, clipped):
        build = lambda t, made=made: Batch(t, made, one)
        assert "violated" not in outcomes(build)
    build = lambda t: Batch(t, clipped, one)
    assert outcomes(build) == {"undecided"}
    assert prove(SGLD(), 2, build).verdict == "undecided"


def test_data_that_are_changed_are_no_data():
    class Scaled(Stateless):
        def __init__(self, target):
            self.terms = target.terms

        def estimate(self, key, estate, position):
            return Estimate(gradients(self.terms._replace(data=self.terms.data / 2), position).sum(0)), estate

    (result,) = statements(Scaled)[0]
    assert result.outcome == "undecided"
    assert "none of the data" in result.reason


# Memories -------------------------------------------------------------------------------------------------------------


class Table(NamedTuple):
    rows: jax.Array
    total: jax.Array


class Tabled:
    """SAGA as a stranger writes it, with batches of `size` and a planted error."""

    def __init__(self, target, error="", size=1):
        self.terms, self.error, self.size = target.terms, error, size

    def init(self, key, position):
        rows = gradients(self.terms, position)
        return Table(jnp.zeros_like(rows) if self.error == "no start" else rows, rows.sum(0))

    def estimate(self, key, estate, position):
        chosen = jax.random.randint(key, (self.size,), 0, DATA)
        fresh = gradients(self.terms, position, chosen)
        change = fresh - estate.rows[chosen]
        scale = 1.0 if self.error == "factor" else DATA / self.size
        mean = 0.0 if self.error == "no total" else estate.total
        gradient = jax.grad(self.terms.prior)(position) + scale * change.sum(0) + mean
        where = (chosen + 1) % DATA if self.error == "wrong index" else chosen
        rows = estate.rows.at[where].set(fresh)
        total = estate.total + change.sum(0)
        if self.error == "stale total":
            total = estate.total
        if self.error == "stale table":
            rows = estate.rows
        if self.error == "recomputed":
            total = rows.sum(0)
        return Estimate(gradient), Table(rows, total)


class Anchored:
    """SVRG as a stranger writes it: a snapshot that is renewed with probability 1/2, and a planted error."""

    def __init__(self, target, error=""):
        self.terms, self.error = target.terms, error

    def init(self, key, position):
        return Table(position, gradients(self.terms, position).sum(0))

    def estimate(self, key, estate, position):
        key, coin = jax.random.split(key)
        chosen = jax.random.randint(key, (1,), 0, DATA)
        new, old = gradients(self.terms, position, chosen), gradients(self.terms, estate.rows, chosen)
        old = jnp.zeros_like(old) if self.error == "no anchor" else old
        scale = {"factor": 1.0, "n / N": 1 / DATA}.get(self.error, float(DATA))
        total = 0.0 if self.error == "no total" else estate.total
        gradient = jax.grad(self.terms.prior)(position) + total + scale * (new - old).sum(0)
        fresh = self.init(key, position)
        if self.error == "stale total":
            fresh = fresh._replace(total=estate.total)
        if self.error == "stale snapshot":
            fresh = fresh._replace(rows=estate.rows)
        flip = jax.random.bernoulli(coin)
        return Estimate(gradient), jax.tree.map(lambda a, b: jnp.where(flip, a, b), fresh, estate)


@pytest.mark.parametrize(
    "build", [Tabled, lambda t: Tabled(t, "recomputed", 2), Anchored], ids=["table", "table of pairs", "snapshot"]
)
def test_memories_as_strangers_write_them(build):
    assert outcomes(build) == {"proved"}
    assert prove(SGLDCV(), 2, build).is_proved


TABLES = ["factor", "no total", "wrong index", "stale total", "stale table"]


@pytest.mark.parametrize("error", TABLES)
def test_wrong_tables_are_refuted(error):
    build = lambda t: Tabled(t, error)
    assert "violated" in outcomes(build)
    assert prove(SGLDCV(), 2, build).verdict == "fail"


def test_a_datum_that_was_drawn_twice_and_is_counted_twice_is_refuted():
    """With one datum in a batch it is right."""
    assert outcomes(lambda t: Tabled(t, "", 1)) == {"proved"}
    assert "violated" in outcomes(lambda t: Tabled(t, "", 2))


def test_a_table_that_does_not_start_with_its_total_is_refuted():
    assert "violated" in outcomes(lambda t: Tabled(t, "no start"))


@pytest.mark.parametrize("error", ["factor", "n / N", "no anchor", "no total", "stale total", "stale snapshot"])
def test_wrong_snapshots_are_refuted(error):
    build = lambda t: Anchored(t, error)
    assert "violated" in outcomes(build)
    assert prove(SGLDCV(), 2, build).verdict == "fail"


def noisy_langevin(scale):
    class Scaled(SGLD):
        def step(self, key, state, step_size, estimator):
            new = super().step(key, state, step_size, estimator)
            return new._replace(position=state.position + scale * (new.position - state.position))

    return Scaled()


def test_a_wrong_sampler_with_a_right_memory_is_refuted():
    build = lambda t: SAGA(terms_of(t), 1)
    assert prove(SGLD(), 2, build).is_proved
    assert prove(noisy_langevin(1.1), 2, build).verdict == "fail"


def test_an_order_beyond_what_gradient_noise_leaves_is_not_proved():
    """Order 2 needs A_2, which knows the variance of the batch, and this one the table."""
    from sgmcmc_verification.samplers.interface.claims import StationaryLaw

    class Two(SGLD):
        @property
        def claims(self):
            return super().claims.amended(StationaryLaw(order=2))

    proof = prove(Two(), 2, lambda t: SAGA(terms_of(t), 1))
    assert proof.verdict == "undecided", str(proof)
    assert any("depends on memory" in result.reason for result in proof.results)


def test_several_estimates_in_a_step_are_not_taken_for_one():
    row = sampler_row("bub")
    proof = prove(row.build, 1, lambda t: SAGA(terms_of(t), 1))
    assert proof.verdict == "undecided"
    row = sampler_row("resgld")
    assert prove(row.build, 1, lambda t: SAGA(terms_of(t), 1)).verdict == "undecided"


def test_a_state_that_no_family_describes_is_undecided():
    """The square of a gradient that is kept: neither an anchor nor an affine relation."""

    class Squared:
        def __init__(self, target):
            self.terms = target.terms

        def init(self, key, position):
            rows = gradients(self.terms, position)
            return rows, rows**2

        def estimate(self, key, estate, position):
            rows, squares = estate
            i = jax.random.randint(key, (1,), 0, DATA)
            fresh = gradients(self.terms, position, i)
            bias = rows**2 - squares  # zero in every run
            g = jax.grad(self.terms.prior)(position) + gradients(self.terms, position).sum(0) + bias.sum(0)
            return Estimate(g), (rows.at[i].set(fresh), squares.at[i].set(fresh**2))

    assert "undecided" in outcomes(Squared)
    assert "violated" not in outcomes(Squared)


# Errors planted in the reader -----------------------------------------------------------------------------------------


def test_batches_with_a_wrong_probability_are_seen(monkeypatch):
    monkeypatch.setattr(randomness, "Fraction", lambda a, b=1: 1 - a / b if b > 1 else a)
    assert outcomes(lambda t: Minibatch(terms_of(t), 1)) != {"proved"}


def test_data_that_are_not_told_apart_are_seen(monkeypatch):
    from sgmcmc_verification.checks.proof.reader import taylor

    monkeypatch.setattr(taylor, "_label", lambda number: "")
    assert outcomes(lambda t: Batch(t, *WRONG_RULES["always the same"])) == {"proved"}
    monkeypatch.undo()
    assert outcomes(lambda t: Batch(t, *WRONG_RULES["always the same"])) == {"violated"}


def test_states_that_are_not_followed_are_seen(monkeypatch):
    """A table whose total is stale is unbiased at its first state."""
    from sgmcmc_verification.checks.proof import memory

    monkeypatch.setattr(memory, "is_zero", lambda p: True)
    assert outcomes(lambda t: Tabled(t, "stale total")) == {"proved"}
    monkeypatch.undo()
    assert outcomes(lambda t: Tabled(t, "stale total")) != {"proved"}


def test_a_state_has_the_numbers_that_it_has():
    with jax.enable_x64(True):
        target = any_target(2)
        assert Estimation(SAGA(terms_of(target), 1), target).remembers
        assert not Estimation(Minibatch(terms_of(target), 1), target).remembers
