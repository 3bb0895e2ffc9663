"""Host samplers that draw their own minibatches: the law with all of them enumerated, on a Gaussian posterior."""

import jax
import numpy as np
import pytest

from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.tiers.law import minibatch_limit
from sgmcmc_verification.checks.tracing.outcomes.enumerated import EnumeratedHostStep
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.targets.registry import target
from tests.helpers.strangers import decide, subject

POSTERIOR = target("tiny-gaussian-data")


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


class OwnBatches:
    """SGLD in NumPy on two data that `draw(rng, N)` names, of which each counts `weight(N, n)` times."""

    backend = "host"

    def __init__(self, data, draw, weight=lambda size, count: size / count):
        self.terms, self.draw, self.weight = data.terms, draw, weight
        self.of_prior = jax.jit(jax.grad(data.terms.prior))
        self.of_each = jax.jit(jax.vmap(jax.grad(data.terms.datum), (None, 0)))

    def gradients(self, x, index):
        return np.asarray(self.of_each(x, jax.tree.map(lambda a: np.asarray(a)[index], self.terms.data)))

    def step(self, rng, x, step_size, estimator):
        index = self.draw(rng, self.terms.size)
        slope = self.of_prior(x) + self.weight(self.terms.size, len(index)) * self.gradients(x, index).sum(axis=0)
        return x - step_size * np.asarray(slope) + np.sqrt(2 * step_size) * rng.standard_normal(x.shape)


class OwnSAGA(OwnBatches):
    """SAGA with a table of gradients and their sum; `late` changes the table first, `repeats` counts a datum twice."""

    def __init__(self, data, draw, late=False, stale=False):
        super().__init__(data, draw)
        self.late, self.stale = late, stale

    def init(self, rng, position, estimator):
        table = self.gradients(position, np.arange(self.terms.size))
        return {"position": position, "table": table, "total": table.sum(axis=0)}

    def step(self, rng, state, step_size, estimator):
        x, table, total = state["position"], state["table"].copy(), state["total"]
        index = self.draw(rng, self.terms.size)
        fresh = self.gradients(x, index)
        if self.late:
            table[index] = fresh
        change = fresh - table[index]
        slope = np.asarray(self.of_prior(x)) + self.terms.size / len(index) * change.sum(axis=0) + total
        table[index] = fresh
        total = total if self.stale else total + change.sum(axis=0)
        x = x - step_size * slope + np.sqrt(2 * step_size) * rng.standard_normal(x.shape)
        return {"position": x, "table": table, "total": total}


class InTurn(OwnBatches):
    """The same data in turn, by a count in the state."""

    def init(self, rng, position, estimator):
        return {"position": position, "count": np.int64(0)}

    def step(self, rng, state, step_size, estimator):
        place, size = state["count"], self.terms.size
        self.draw = lambda rng, size: (place + np.arange(2)) % size
        position = super().step(rng, state["position"], step_size, estimator)
        return {"position": position, "count": (place + rng.integers(1, 3)) % size}


two = lambda rng, size: rng.integers(size, size=2)
four = lambda rng, size: rng.integers(size, size=4)
apart = lambda rng, size: rng.choice(size, 2, replace=False)
RIGHT = {
    "with replacement": lambda data: OwnBatches(data, two),
    "without replacement": lambda data: OwnBatches(data, apart),
    "choice with replacement": lambda data: OwnBatches(data, lambda rng, size: rng.choice(size, size=2)),
    "one by one": lambda data: OwnBatches(data, lambda rng, size: np.array([rng.integers(0, size) for _ in range(2)])),
    "SAGA without replacement": lambda data: OwnSAGA(data, apart),
    "four with replacement": lambda data: OwnBatches(data, four),
    "SAGA of one datum": lambda data: OwnSAGA(data, lambda rng, size: np.array([rng.integers(size)])),
}
WRONG = {
    "the mean for the sum": lambda data: OwnBatches(data, two, lambda size, count: 1 / count),
    "the last datum is left out": lambda data: OwnBatches(data, lambda rng, size: rng.integers(size - 1, size=2)),
    "the first datum is twice as likely": lambda data: OwnBatches(
        data, lambda rng, size: rng.choice(np.r_[0, np.arange(size)], 2, replace=False)
    ),
    "SAGA with a datum twice in a batch": lambda data: OwnSAGA(data, two),
    "SAGA with a datum twice in a batch of four": lambda data: OwnSAGA(data, four),
    "SAGA with the table changed first": lambda data: OwnSAGA(data, apart, late=True),
    "SAGA with a sum that is never changed": lambda data: OwnSAGA(data, apart, stale=True),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_minibatches_of_its_own_leave_the_limit(name):
    finding = decide(minibatch_limit, RIGHT[name], POSTERIOR.name)
    assert finding.verdict == "pass", finding.reason


@pytest.mark.parametrize("name", WRONG)
def test_wrong_minibatches_of_its_own_fail(name):
    finding = decide(minibatch_limit, WRONG[name], POSTERIOR.name)
    assert finding.verdict == "fail", finding.reason


def test_a_place_in_the_data_and_many_batches_are_out_of_reach():
    with pytest.raises(OutOfReach, match="the state counts"):
        decide(minibatch_limit, lambda data: InTurn(data, two), POSTERIOR.name)
    with pytest.raises(OutOfReach, match="more than 2000 values"):
        decide(minibatch_limit, lambda data: OwnBatches(data, lambda r, n: r.integers(n, size=7)), POSTERIOR.name)
    with pytest.raises(OutOfReach, match="statistical tier"):
        decide(minibatch_limit, lambda data: OwnBatches(data, lambda r, n: np.arange(n)), POSTERIOR.name)


def test_the_probabilities_of_all_values_add_to_one():
    step = step_map(subject(RIGHT["without replacement"], POSTERIOR.name), POSTERIOR)
    own = EnumeratedHostStep(step.target, step.sampler, step.estimator, step.template)
    maps = own.affine(0.1)
    size = POSTERIOR.terms.size
    assert len(maps) == size * (size - 1) / 2  # a batch in another order is the same step
    assert sum(each.weight for each in maps) == pytest.approx(1.0)
