"""What newcomers take for a sampler is refused in one line that says what to do; what is one is not refused."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks import check_sampler
from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.likely_mistakes import refuse
from sgmcmc_verification.checks.core.lookup import find_row
from sgmcmc_verification.samplers import simple_sampler
from sgmcmc_verification.samplers.registry import SAMPLERS
from sgmcmc_verification.targets.registry import target


def plain(key, position, step_size, estimator):
    gradient = estimator.estimate(key, (), position)[0].gradient
    return position - step_size * gradient + (2 * step_size) ** 0.5 * jax.random.normal(key, position.shape)


class Walk:
    def init(self, key, position, estimator):
        return position

    def step(self, key, state, step_size, estimator):
        return plain(key, state, step_size, estimator)


class Batch(Walk):
    def step(self, key, state, step_size, estimator, batch):
        return state


class BatchThird(Walk):
    def step(self, key, state, batch, step_size):
        return state


class NoKey(Walk):
    def step(self, state, step_size, estimator):
        return state


class Bare(Walk):
    def init(self, position):
        return position


class Integers(Walk):
    def init(self, key, position, estimator):
        return jnp.zeros(position.shape, jnp.int32)

    def step(self, key, state, step_size, estimator):
        return state + jax.random.randint(key, state.shape, -1, 2)


def own_gradient(x, h, grad):
    return x - h * grad(x)


MISTAKES = {
    "a plain step": (plain, ("plain is a step", "`simple_sampler(plain)`")),
    "a function of something else": (own_gradient, ("own_gradient(x, h, grad)", "`simple_sampler(step)`")),
    "a step that takes a batch": (Batch, ("takes `batch`", "gradient of a minibatch")),
    "a step that takes a batch for the step size": (BatchThird, ("takes `batch`",)),
    "a step without a key": (NoKey, ("step(state, step_size, estimator)", "step(key, state, step_size, estimator)")),
    "an instance of it": (NoKey(), ("step(state, step_size, estimator)",)),
    "an init of a position": (Bare, ("init(position)", "init(key, position, estimator)")),
    "a discrete space": (Integers, ("whole numbers", "continuous")),
    "draws": (np.zeros((100, 2)), ("ndarray is no sampler but its draws",)),
    "draws of JAX": (jnp.zeros(3), ("is no sampler but its draws",)),
    "a function that returns a mistake": (lambda target: NoKey(), ("step(state, step_size, estimator)",)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_likely_mistake_has_its_sentence(name):
    value, words = MISTAKES[name]
    with pytest.raises(BadInput) as error:
        check_sampler(value, targets=["gaussian-1d-scaled"], name="mine")
    text = str(error.value)
    assert "mine" in text
    assert "\n" not in text
    assert all(each in text for each in words)


@pytest.mark.parametrize("reference", ["draws.npy", "out/chain.csv:draws", "run.nc"])
def test_a_file_of_draws_is_named_as_such(reference):
    with pytest.raises(BadInput, match="no sampler but its draws"):
        find_row(reference)


def test_torch_optimisers_are_named():
    torch = pytest.importorskip("torch")

    class Own(torch.optim.Optimizer):
        pass

    for value in (torch.optim.SGD, torch.optim.Adam([torch.zeros(1)]), Own):
        with pytest.raises(BadInput, match="optimiser of torch"):
            refuse("mine", value)


def test_transformations_of_optax_are_named():
    optax = pytest.importorskip("optax")
    for value in (optax.adam, optax.adam(1e-3), optax.chain(optax.scale(1.0), optax.sgd(0.1))):
        with pytest.raises(BadInput, match="transformation of gradients"):
            refuse("mine", value)


def test_algorithms_of_blackjax_are_named():
    blackjax = pytest.importorskip("blackjax")
    for value in (blackjax.mala, blackjax.mala(lambda x: -jnp.sum(x**2) / 2, 0.1)):
        with pytest.raises(BadInput, match="algorithm of BlackJAX"):
            refuse("mine", value)


class Counted(Walk):
    """More arguments, all with defaults; a static method; a jitted step."""

    def step(self, key, state, step_size, estimator, thin=1, batch=None, *rest, **more):
        return plain(key, state, step_size, estimator)


class Static:
    @staticmethod
    def step(key, state, step_size, estimator):
        return plain(key, state, step_size, estimator)


class Jitted(Walk):
    step = functools.partialmethod(lambda self, *arguments: plain(*arguments))


class Renamed(Walk):
    def step(self, rng, x, eps, grad_fn):
        return plain(rng, x, eps, grad_fn)


RIGHT = (
    Walk,
    Walk(),
    Counted,
    Static,
    Static(),
    Jitted,
    Jitted(),
    Renamed,
    simple_sampler(plain),
    lambda target: Walk(),
    lambda: Walk(),
)


@pytest.mark.parametrize("value", RIGHT, ids=lambda value: getattr(value, "__name__", type(value).__name__))
def test_what_is_a_sampler_is_not_refused(value):
    assert refuse("mine", value) is None


def test_no_sampler_of_the_registry_is_refused():
    for row in SAMPLERS:
        assert refuse(row.name, row.build(target(row.targets[0]))) is None


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"needs": "gradient"}, "write {'gradient'}"),
        ({"needs": ("gradients",)}, "gradients is none of gradient"),
        ({"claims": ("exact",)}, "samplers.types.Claims"),
        ({"backend": "numpy"}, "'jax' or 'host'"),
    ],
)
def test_a_need_claim_or_backend_that_no_sampler_has_is_refused(attributes, text):
    whole = dataclasses.replace(simple_sampler(plain), **attributes)
    for mine in (type("Mine", (Walk,), attributes)(), whole):
        with pytest.raises(BadInput, match=text):
            check_sampler(mine, tiers=["contract"])
