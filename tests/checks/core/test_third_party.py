"""What a stranger does not say is found out: needs, the power of the step size, z; and the estimator shows no more."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.lookup import DEFAULT_TARGETS
from sgmcmc_verification.checks.core.third_party import Sealed, builder, filled_in, needs_of, row, step_power
from sgmcmc_verification.samplers.estimators.basic import Exact, Minibatch
from sgmcmc_verification.samplers.interface.claims import Claims, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.from_step import complete
from sgmcmc_verification.samplers.interface.sampler import Estimator
from sgmcmc_verification.targets.registry import target
from tests.helpers.strangers import MALA, Euler, Langevin, Underdamped, gradient, normal, potential

PLANE, DATA = target("gaussian-correlated-2d"), target("tiny-gaussian-data")


class Walk:
    """Random-walk Metropolis: it reads the potential alone."""

    def step(self, key, x, step_size, estimator):
        a, b = jax.random.split(key)
        y = x + jnp.sqrt(2 * step_size) * normal(a, x)
        accept = jnp.log(jax.random.uniform(b)) < potential(estimator, x) - potential(estimator, y)
        return jnp.where(accept, y, x)


class Diffusing:
    """It reads nothing."""

    def step(self, key, x, step_size, estimator):
        return x + jnp.sqrt(2 * step_size) * normal(key, x)


class Corrected:
    """SGLD that takes the covariance of its gradient off its noise."""

    def step(self, key, x, step_size, estimator):
        estimate, _ = estimator.estimate(key, (), x)
        variance = 2 * step_size - step_size**2 * jnp.diag(estimate.covariance)
        return x - step_size * estimate.gradient + jnp.sqrt(variance) * normal(key, x)


@dataclass
class HMC:
    """Leapfrog steps from a fresh momentum."""

    steps: int = 3

    def step(self, key, x, step_size, estimator):
        a, b = jax.random.split(key)
        h, p = step_size, normal(a, x)
        y, q = x, p - h / 2 * gradient(estimator, x)
        for i in range(self.steps):
            y = y + h * q
            q = q - (h if i < self.steps - 1 else h / 2) * gradient(estimator, y)
        energy = lambda z, r: potential(estimator, z) + jnp.sum(r**2) / 2
        return jnp.where(jnp.log(jax.random.uniform(b)) < energy(x, p) - energy(y, q), y, x)


class HostWalk:
    """SGLD in NumPy."""

    backend = "host"

    def step(self, rng, x, step_size, estimator):
        g = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
        return x - step_size * g + np.sqrt(2 * step_size) * rng.standard_normal(np.shape(x))


@pytest.mark.parametrize(
    ("candidate", "needs"),
    [
        (Euler(), {"gradient"}),
        (Underdamped(), {"gradient"}),
        (Walk(), {"potential"}),
        (MALA(), {"gradient", "potential"}),
        (HMC(), {"gradient", "potential"}),
        (Diffusing(), set()),
        (HostWalk(), {"gradient"}),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, set) else None,
)
def test_needs_are_the_parts_of_an_estimate_that_a_step_reads(candidate, needs):
    assert needs_of(complete(candidate), PLANE) == needs
    assert builder("mine.py:it", candidate)(PLANE).needs == needs


def test_a_step_that_cannot_be_taken_at_all_is_said_to_need_the_gradient():
    """The preflight then says what is wrong with it."""
    assert needs_of(complete(Corrected()), PLANE) is None
    assert filled_in(complete(Corrected()), PLANE, {}).needs == {"gradient"}


def test_needs_are_found_once_for_targets_of_a_kind():
    """The space, the number of data and the pytree make a kind: what is read may differ between kinds."""
    asked = []

    def made(target):
        class ByData(Euler):
            def step(self, key, x, step_size, estimator):
                asked.append(target.name)
                of = estimator.estimate(key, (), x)[0]
                return x + (of.potential if target.terms is None else of.gradient)

        return ByData()

    build = builder("mine.py:it", made)
    assert build(PLANE).needs == {"potential"}
    assert build(DATA).needs == {"gradient"}
    before = len(asked)
    assert build(target("double-well")).needs == {"potential"}  # of the kind of the plane
    assert len(asked) - before < before / 2


def test_what_is_read_is_needed_although_the_author_says_otherwise_and_what_is_declared_beside_it_is_kept():
    @dataclass
    class Declared(Euler):
        needs: Any = ("potential", "covariance")

    assert filled_in(complete(Declared()), PLANE, {}).needs == {"gradient", "covariance"}


@pytest.mark.parametrize(
    ("candidate", "power"),
    [
        (Euler(), 1.0),
        (MALA(), 1.0),
        (Walk(), 1.0),
        (HostWalk(), 1.0),
        (Langevin(lambda key, x, count, g: (normal(key, x), count + 1)), 1.0),
        (Underdamped(), 0.5),
        (Underdamped(mass=25.0), 0.5),
        (HMC(), 0.5),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, float) else None,
)
@pytest.mark.parametrize("name", ["gaussian-correlated-2d", "double-well"])
def test_a_momentum_is_told_from_noise_by_how_far_a_small_step_moves(candidate, power, name):
    assert step_power(complete(candidate), target(name)) == power


def test_a_sampler_that_raises_has_the_power_of_one_without_momentum():
    class Broken:
        def step(self, key, x, step_size, estimator):
            raise RuntimeError("no")

    assert step_power(complete(Broken()), PLANE) == 1.0


def test_a_sealed_estimator_shows_what_an_estimator_has_and_no_target_or_data():
    sealed = Sealed(Minibatch(DATA.terms, 2))
    assert isinstance(sealed, Estimator)
    assert [name for name in dir(sealed) if not name.startswith("_")] == ["estimate", "init"]
    for name in ("terms", "target", "batch_size", "covariance"):
        with pytest.raises(AttributeError):
            getattr(sealed, name)


@pytest.mark.parametrize("needs", [set(), {"gradient"}, {"potential"}, {"gradient", "potential"}])
def test_a_sealed_estimate_has_the_parts_that_are_needed_as_they_are(needs):
    sealed, inner = Sealed(Exact(PLANE), frozenset(needs)), Exact(PLANE)
    ours, theirs = (e.estimate(jax.random.key(0), (), PLANE.example)[0] for e in (sealed, inner))
    for name in ("gradient", "potential", "covariance", "statistics"):
        if name in needs:
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
        else:
            assert getattr(ours, name) is None


def found(candidate, targets=()):
    return row("mine.py:it", candidate, targets, DEFAULT_TARGETS, find_target)


def test_the_row_of_a_stranger_has_a_sealed_estimator_and_what_was_found_out():
    mine = found(Underdamped())
    assert mine.step_power == 0.5
    assert mine.targets == DEFAULT_TARGETS["euclidean"]
    assert isinstance(mine.estimator(PLANE), Sealed)
    sampler = mine.build(PLANE)
    state = sampler.init(jax.random.key(0), PLANE.example, mine.estimator(PLANE))
    z = sampler.unpack(state)
    np.testing.assert_array_equal(z.position, PLANE.example)
    assert len(z.rest) == 1


def test_a_sampler_that_looks_into_its_estimator_meets_an_error_of_python():
    class Peeking:
        def step(self, key, x, step_size, estimator):
            return x - step_size * jax.grad(estimator.target.potential)(x)

    mine = found(Peeking())
    sampler = mine.build(PLANE)
    with pytest.raises(AttributeError, match="target"):
        sampler.step(jax.random.key(0), PLANE.example, 0.1, mine.estimator(PLANE))


def test_a_momentum_that_the_author_shows_is_left_as_shown():
    class Shown(Underdamped):
        def unpack(self, state):
            return {"p": state["momentum"], "x": state["position"]}

        def pack(self, key, z, estimator):
            return {"momentum": z["p"], "position": z["x"]}

    sampler = found(Shown()).build(PLANE)
    assert set(sampler.unpack({"momentum": 1.0, "position": 2.0})) == {"p", "x"}


def test_a_class_takes_options_and_so_does_a_dataclass_but_no_other_object():
    assert builder("m:HMC", HMC)(PLANE, steps=7).step.__self__.steps == 7
    assert builder("m:hmc", HMC())(PLANE, steps=7).step.__self__.steps == 7
    assert builder("m:make", lambda target, steps=2: HMC(steps))(PLANE, steps=7).step.__self__.steps == 7
    with pytest.raises(BadInput, match="without options"):
        builder("m:walk", Walk())(PLANE, steps=7)


def test_a_stranger_in_a_space_without_targets_is_asked_for_one():
    class Odd(Euler):
        claims = Claims(Source("", "none"), StationaryLaw(order=1), spaces=("torus",))

    with pytest.raises(BadInput, match=r"no default target for the spaces .'torus'"):
        found(Odd())


class WithInfo(MALA):
    """MALA that returns what it accepted beside the state."""

    def step(self, key, x, step_size, estimator):
        new = super().step(key, x, step_size, estimator)
        return new, {"accepted": jnp.any(new != x)}


def test_what_a_step_returns_beside_the_state_is_left_aside():
    plain, more = (builder("mine", each)(PLANE) for each in (MALA(), WithInfo()))
    x, exact = jnp.ones(2), Exact(PLANE)
    alone = more.step(jax.random.key(3), x, 0.1, exact)
    np.testing.assert_array_equal(alone, plain.step(jax.random.key(3), x, 0.1, exact))
    assert more.needs == plain.needs
    kept = builder("mine", Langevin(lambda key, x, kept, g: (normal(key, x), kept)))(PLANE)
    state = kept.init(jax.random.key(0), x, exact)
    assert jax.tree.structure(kept.step(jax.random.key(0), state, 0.1, exact)) == jax.tree.structure(state)


class OfSeveral:
    """Steps of a pair of coordinates; one coordinate is refused, or is a mistake."""

    def __init__(self, refusal: type[Exception] = ValueError):
        self.refusal = refusal

    def step(self, key, x, h, estimator):
        if x.size < 2:
            raise self.refusal("a pair is needed")
        noise = jax.random.normal(key, x.shape, x.dtype)
        return x - h * estimator.estimate(key, (), x)[0].gradient + (2 * h) ** 0.5 * noise


def test_a_sampler_that_refuses_one_coordinate_is_examined_in_several():
    mine = row("mine.py:it", OfSeveral(), (), DEFAULT_TARGETS, find_target)
    assert {find_target(name).size for name in mine.targets} == {2}
    assert any(find_target(name).gaussian is None and find_target(name).terms is None for name in mine.targets)
    assert mine.notes == ("positions of one coordinate, at which it raises ValueError: a pair is needed",)


def test_a_mistake_at_one_coordinate_is_none_that_it_refuses():
    assert (
        row("mine.py:it", OfSeveral(IndexError), (), DEFAULT_TARGETS, find_target).targets
        == DEFAULT_TARGETS["euclidean"]
    )
