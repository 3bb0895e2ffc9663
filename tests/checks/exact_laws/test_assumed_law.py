"""The law of a momentum of which nothing is declared: its mass times its temperature, or a reason why not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.exact_laws.assumed_law import SAME, assumed_auxiliary
from tests.helpers.strangers import Kept, Langevin, Underdamped, gradient, normal, subject


class Hot(Underdamped):
    """The same at temperature T: noise of T times its variance."""

    def __init__(self, mass, temperature):
        super().__init__(mass, change=lambda p: p)
        self.temperature = temperature

    def step(self, key, state, step_size, estimator):
        x, p = state["position"], state["momentum"] - step_size * gradient(estimator, state["position"])
        decay = jnp.exp(-step_size)
        p = decay * p + jnp.sqrt(self.mass * self.temperature * (1 - decay**2)) * normal(key, x)
        return {"momentum": p, "position": x + step_size * p / self.mass}


def assumed(candidate, size=2):
    return assumed_auxiliary(subject(candidate, "gaussian-correlated-2d"), size)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize(("mass", "temperature"), [(1.0, 1.0), (25.0, 1.0), (0.04, 1.0), (25.0, 0.5), (0.04, 2.0)])
def test_the_covariance_of_a_momentum_is_its_mass_times_the_temperature(mass, temperature, size):
    mean, covariance = assumed(Hot(mass, temperature), size)
    np.testing.assert_allclose(covariance, mass * temperature * np.eye(size), rtol=10 * SAME, atol=10 * SAME * mass)
    np.testing.assert_allclose(mean, 0.0, atol=10 * SAME * np.sqrt(mass))


def test_a_mass_of_each_coordinate_is_found():
    _, covariance = assumed(Hot(jnp.array([25.0, 0.04]), 1.0))
    np.testing.assert_allclose(np.diag(covariance), [25.0, 0.04], rtol=1e-3)


def test_a_mean_of_its_own_is_found():
    """p is shifted by a constant, which the position takes off again."""

    class Shifted(Underdamped):
        def init(self, key, position, estimator):
            return {"momentum": 3.0 + jnp.zeros_like(position), "position": position}

        def step(self, key, state, step_size, estimator):
            plain = super().step(key, state | {"momentum": state["momentum"] - 3.0}, step_size, estimator)
            return plain | {"momentum": plain["momentum"] + 3.0}

    mean, covariance = assumed(Shifted())
    np.testing.assert_allclose(mean, 3.0, rtol=1e-4)
    np.testing.assert_allclose(covariance, np.eye(2), atol=1e-4)


class Scaled:
    """SGLD beside which a second variable is drawn that knows the target: its variance is the force squared, or so."""

    def __init__(self, update):
        self.update = update

    def init(self, key, position, estimator):
        return Kept(position, jnp.zeros_like(position))

    def step(self, key, state, step_size, estimator):
        a, b = jax.random.split(key)
        x, h, g = state.position, step_size, gradient(estimator, state.position)
        noise = jnp.sqrt(2 * h) * normal(a, x)
        return Kept(x - h * g + noise + 0 * state.kept, self.update(state.kept, x, g, h, normal(b, x)))


def test_a_variable_whose_law_depends_on_the_target_has_no_assumed_law():
    cold = Scaled(lambda v, x, g, h, e: v - h * v + jnp.sqrt(2 * h) * e + h * g)
    with pytest.raises(OutOfReach, match=r"depends? on the (target|position)"):
        assumed(cold)


def test_a_variable_that_follows_the_position_has_no_assumed_law():
    with pytest.raises(OutOfReach, match="depend on the position"):
        assumed(Scaled(lambda v, x, g, h, e: v - h * (v - x) + jnp.sqrt(2 * h) * e))


def test_a_variable_that_does_not_move_has_no_assumed_law():
    class Shown(Scaled):
        """Its author shows a second variable, which dies out."""

        def unpack(self, state):
            return state

        def pack(self, key, z, estimator):
            return z

    with pytest.raises(OutOfReach, match="do not move"):
        assumed(Shown(lambda v, x, g, h, e: 0.5 * v))


def test_a_step_that_is_not_affine_on_gaussians_has_no_assumed_law():
    bent = Underdamped(change=jnp.tanh)
    with pytest.raises(OutOfReach, match="not declared, and the step is not affine"):
        assumed(bent)
    with pytest.raises(OutOfReach, match="not affine"):
        assumed(
            Langevin(lambda k, x, v, g: (normal(k, x) / jnp.sqrt(1 + v), 0.9 * v + g**2), lambda x: jnp.ones_like(x))
        )
