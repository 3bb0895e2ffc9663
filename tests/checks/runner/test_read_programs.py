"""Samplers in Python that are sampled as the programs that were read of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.core.lookup import resolve_object
from sgmcmc_verification.checks.runner.fallback import by_sampling
from sgmcmc_verification.checks.runner.read_programs import AS_READ, as_program
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source
from sgmcmc_verification.samplers.simple import simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())


class DelayedRejection:
    """A second, smaller move where the first is rejected, with or without the density of that one in its ratio."""

    backend = "host"
    claims = EXACT

    def __init__(self, whole=True):
        self.whole = whole

    def step(self, rng, x, h, estimator):
        energy = lambda q: float(estimator.estimate(rng, (), q)[0].potential)
        taken = lambda a, b: np.exp(min(0.0, a - b))
        scale = np.sqrt(2 * h)
        bold = x + scale * rng.standard_normal(x.shape)
        u0, u1 = energy(x), energy(bold)
        if rng.random() < taken(u0, u1):
            return bold
        timid = x + 0.5 * scale * rng.standard_normal(x.shape)
        u2 = energy(timid)
        ratio = np.exp(u0 - u2) * (1 - taken(u2, u1)) / (1 - taken(u0, u1))
        if self.whole:
            ratio *= np.exp(np.sum((bold - x) ** 2 - (bold - timid) ** 2) / (2 * scale**2))
        return timid if rng.random() < ratio else x


def of_an_average(rng, state, h, estimator):
    """Langevin steps beside an average over all of them, which nothing reads."""
    x, mean, n = state["position"], state["mean"], state["n"] + 1
    gradient = estimator.estimate(rng, (), x)[0].gradient
    y = x - h * gradient + np.sqrt(2 * h) * rng.standard_normal(x.shape)
    return {"position": y, "mean": mean + (y - mean) / n, "n": n}


def first(rng, position, estimator):
    return {"position": position, "mean": np.zeros_like(position), "n": 0}


def of_one_number(rng, x, h, estimator):
    """A Langevin step that is written for one coordinate."""
    if x.shape != (1,):
        raise ValueError("one coordinate alone")
    return x - h * estimator.estimate(rng, (), x)[0].gradient + np.sqrt(2 * h) * rng.standard_normal(1)


AVERAGED = simple_sampler(of_an_average, init=first, backend="host")


def subject_of(candidate):
    return resolve_object("mine", candidate)[0]


@pytest.mark.parametrize("whole", [True, False])
def test_what_was_read_is_sampled_and_sees_more(whole):
    found = by_sampling(subject_of(DelayedRejection(whole)), "gaussian-1d-scaled", 3)
    assert found.verdict == ("pass" if whole else "fail"), found.reason
    assert AS_READ in found.reason
    assert found.backend == "host"


@pytest.mark.parametrize("target", ["double-well", "tiny-gaussian-data", "gaussian-matrix"])
def test_a_program_that_was_read_is_one_of_jax(target):
    subject = subject_of(AVERAGED)
    program = as_program(subject, target)
    assert program is not None
    assert not on_host(program.sampler(find_target(target)))


@pytest.mark.parametrize("other", ["gaussian-correlated-2d", "gaussian-matrix"])
def test_on_another_target_a_step_is_read_anew(other):
    """The law of auxiliary variables is found on Gaussians, whose positions have another shape."""
    program = as_program(subject_of(AVERAGED), "double-well")
    assert program is not None
    law = find_target(other)
    sampler = program.sampler(law)
    state = sampler.init(jax.random.key(0), jnp.asarray(law.example), program.estimator(law))
    assert sampler.position(state).shape == np.shape(law.example)


def test_what_is_not_read_on_another_target_is_out_of_reach():
    program = as_program(subject_of(simple_sampler(of_one_number, backend="host")), "double-well")
    assert program is not None
    with pytest.raises(OutOfReach, match="not read on gaussian-correlated-2d"):
        program.sampler(find_target("gaussian-correlated-2d"))


def until_small(rng, x, h, estimator):
    """A draw that is made again until it is small."""
    noise = rng.standard_normal(x.shape)
    while np.max(np.abs(noise)) > 3:
        noise = rng.standard_normal(x.shape)
    return x - h * estimator.estimate(rng, (), x)[0].gradient + np.sqrt(2 * h) * noise


def squared_in_a_list(rng, x, h, estimator):
    """A step that no symbol goes through."""
    return np.array([float(f"{value:.17g}") for value in x - h * estimator.estimate(rng, (), x)[0].gradient])


@pytest.mark.parametrize(
    ("candidate", "target"),
    [
        (simple_sampler(lambda key, x, h, estimator: x + h * jnp.ones_like(x)), "double-well"),
        (simple_sampler(until_small, backend="host"), "double-well"),
        (simple_sampler(squared_in_a_list, backend="host"), "double-well"),
    ],
    ids=["of JAX", "a loop without an end", "not read"],
)
def test_there_is_no_program_of(candidate, target):
    assert as_program(subject_of(candidate), target) is None
