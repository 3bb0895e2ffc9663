"""A step that bends far from the bulk is found, with the distance; one that is the same everywhere passes."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.accept_step import level_that_matters
from sgmcmc_verification.checks.core.check import NotApplicable, OutOfReach
from sgmcmc_verification.checks.tiers.premises.far_field import far_field
from sgmcmc_verification.samplers.types import AdaptiveLaw, Claims, Source, StationaryLaw
from sgmcmc_verification.targets.registry import target
from tests.helpers.strangers import MALA, Euler, Underdamped, decide, gradient, normal, potential, subject
from tests.strangers.right.eleventh_users.dual_averaged_ghmc import DualAveragedGHMC

PLANE = "gaussian-correlated-2d"


class HostWalk:
    """SGLD in NumPy, its gradients bounded."""

    backend = "host"

    def __init__(self, bound):
        self.bound = bound

    def step(self, rng, x, step_size, estimator):
        g = np.clip(np.asarray(estimator.estimate(rng, (), x)[0].gradient), -self.bound, self.bound)
        return x - step_size * g + np.sqrt(2 * step_size) * rng.standard_normal(np.shape(x))


@dataclass
class Walk:
    """Random walk Metropolis by `read(U)`."""

    read: Any

    def step(self, key, x, step_size, estimator):
        a, b = jax.random.split(key)
        y = x + jnp.sqrt(2 * step_size) * normal(a, x)
        fall = self.read(potential(estimator, x)) - self.read(potential(estimator, y))
        return jnp.where(jnp.log(jax.random.uniform(b)) < fall, y, x)


class HostEnergies:
    """The same in NumPy."""

    backend = "host"

    def __init__(self, most):
        self.most = most

    def step(self, rng, x, step_size, estimator):
        y = x + np.sqrt(2 * step_size) * rng.standard_normal(np.shape(x))
        u = lambda q: min(float(estimator.estimate(rng, (), q)[0].potential), self.most)
        return y if np.log(rng.random()) < u(x) - u(y) else np.array(x)


LEVELS = {
    "energies of at most 1000": Walk(lambda u: jnp.minimum(u, 1e3)),
    "energies between -10,000 and 10,000": Walk(lambda u: jnp.clip(u, -1e4, 1e4)),
    "energies in half precision": Walk(lambda u: u.astype(jnp.float16).astype(u.dtype)),
    "a host sampler with energies of at most 1000": HostEnergies(1e3),
}
BENT = {
    "gradients clipped at 20": Euler(lambda g, h: jnp.clip(g, -20, 20)),
    "gradients scaled to a norm of 50": Euler(lambda g, h: g * jnp.minimum(1, 50 / jnp.linalg.norm(g))),
    "positions kept in a box of 30": Euler(end=lambda x: jnp.clip(x, -30, 30)),
    "no gradient beyond 60": Euler(lambda g, h: jnp.where(jnp.linalg.norm(g) > 60, 0.0, g)),
    "noise clipped at 4 sigma": Euler(noise=lambda e: jnp.clip(e, -4, 4)),
    "a momentum clipped at 10": Underdamped(change=lambda p: jnp.clip(p, -10, 10)),
    "proposals beyond 12 rejected": MALA(lambda y: jnp.all(jnp.abs(y) < 12)),
    "a host sampler that clips at 40": HostWalk(40.0),
    "a quadratic term that is cut off": Euler(noise=lambda e: e + 0.1 * jnp.minimum(e**2, 9.0) - 0.1),
}
STRAIGHT = {
    "Euler": Euler(),
    "a walk": Walk(lambda u: u),
    "a momentum": Underdamped(),
    "MALA": MALA(),
    "a host sampler": HostWalk(np.inf),
    "a term quadratic in the noise": Euler(noise=lambda e: e + 0.1 * e**2 - 0.1),
    "a clip that gives way as h -> 0": Euler(lambda g, h: g * jnp.minimum(1, 0.1 / (h * jnp.linalg.norm(g)))),
    "a tamed drift": Euler(lambda g, h: g / (1 + h * jnp.linalg.norm(g))),
    "a guard against what is not finite": Euler(end=lambda x: jnp.where(jnp.isfinite(x), x, 0.0)),
}


@pytest.mark.parametrize("name", LEVELS)
def test_an_energy_that_is_read_by_its_level_fails(name):
    finding = decide(far_field, LEVELS[name], PLANE)
    assert finding.verdict == "fail", finding.reason
    assert "added to the potential" in finding.reason


def test_a_start_that_round_off_makes_another_one_is_not_read_by_its_level():
    """Its pilot chain turns the round-off of energies around a thousand into another step size of its leapfrogs."""
    assert level_that_matters(subject(DualAveragedGHMC(), PLANE), target(PLANE)) is None


def test_what_has_the_level_of_the_energy_for_a_purpose_is_left_alone():
    class Hotter:
        """SGLD whose noise grows with the energy."""

        def step(self, key, x, step_size, estimator):
            scale = jnp.sqrt(2 * step_size * (1 + 0.1 * potential(estimator, x) ** 2))
            return x - step_size * gradient(estimator, x) + scale * normal(key, x)

    assert level_that_matters(subject(Hotter(), PLANE), target(PLANE)) is None


@pytest.mark.parametrize("name", BENT)
def test_a_step_that_is_another_one_far_away_fails(name):
    finding = decide(far_field, BENT[name], PLANE)
    assert finding.verdict == "fail", finding.reason
    assert "is not what it is in the bulk" in finding.reason


@pytest.mark.parametrize("name", STRAIGHT)
def test_a_step_that_is_the_same_everywhere_passes(name):
    finding = decide(far_field, STRAIGHT[name], PLANE)
    assert finding.verdict == "pass", finding.reason
    assert "not examined" not in finding.measurements


def test_the_distance_of_the_bend_is_named():
    """Noise that is clipped at 4 sigma differs at the next size that is tried."""
    assert "from 4.5 sigma on" in decide(far_field, BENT["noise clipped at 4 sigma"], PLANE).reason


def test_a_bend_farther_than_gradients_of_data_reach_is_named_and_does_not_fail():
    finding = decide(far_field, Euler(lambda g, h: jnp.clip(g, -1e6, 1e6)), PLANE)
    assert finding.verdict == "pass", finding.reason
    assert "a clip" in finding.measurements["not examined"]


def test_a_step_that_is_no_polynomial_is_out_of_reach():
    def step(key, x, h, estimator):
        return jnp.sinh(jnp.arcsinh(x) - h * gradient(estimator, x) + jnp.sqrt(2 * h) * jax.nn.softplus(normal(key, x)))

    class Warped:
        def step(self, key, x, step_size, estimator):
            return step(key, x, step_size, estimator)

    with pytest.raises(OutOfReach, match="no polynomial"):
        decide(far_field, Warped(), PLANE)


@dataclass
class OnSpace:
    """Langevin dynamics of the coordinates, or of their logarithms, brought back by `back(moved, where it was)`."""

    space: str
    back: Any
    logarithms: bool = False

    @property
    def claims(self):
        return Claims(Source("", "own"), StationaryLaw(order=1), spaces=(self.space,))

    def step(self, key, x, step_size, estimator):
        noise = jnp.sqrt(2 * step_size) * normal(key, x)
        if self.logarithms:
            return self.back(x * jnp.exp(noise - step_size * (x * gradient(estimator, x) - 1)), x)
        return self.back(x - step_size * gradient(estimator, x) + noise, x)


def on_the_simplex(least):
    return lambda y, x: jnp.maximum(y / jnp.sum(y), least)


STOPPED = {
    "a floor": (OnSpace("positive", lambda y, x: jnp.maximum(jnp.abs(y), 1e-4)), "gamma"),
    "a number added": (OnSpace("positive", lambda y, x: jnp.abs(y) + 1e-5), "half-gaussian"),
    "a ceiling": (OnSpace("positive", lambda y, x: jnp.minimum(jnp.abs(y), 40.0)), "gamma"),
    "a start anew when small": (
        OnSpace("positive", lambda y, x: jnp.where(x < 1e-3, 0.5, jnp.abs(y))),
        "truncated-gaussian",
    ),
    "a floor under logarithms": (OnSpace("positive", lambda y, x: jnp.maximum(y, 1e-3), logarithms=True), "gamma"),
    "a floor under probabilities": (OnSpace("simplex", on_the_simplex(1e-4), logarithms=True), "dirichlet-four"),
    "a box within the box": (OnSpace("box", lambda y, x: jnp.clip(y, 0.01, 0.99)), "truncated-box"),
}
RESTING = {
    "a mirror": (OnSpace("positive", lambda y, x: jnp.abs(y)), "gamma"),
    "what would leave stays": (OnSpace("positive", lambda y, x: jnp.where(y > 0, y, x)), "truncated-gaussian"),
    "logarithms": (OnSpace("positive", lambda y, x: y, logarithms=True), "half-gaussian"),
    "a floor at round-off": (OnSpace("positive", lambda y, x: jnp.maximum(jnp.abs(y), 1e-12)), "gamma"),
    "logarithms of ratios": (OnSpace("simplex", on_the_simplex(0.0), logarithms=True), "dirichlet-four"),
    "folded into the box": (OnSpace("box", lambda y, x: 1 - jnp.abs(1 - y % 2)), "truncated-box"),
}


@pytest.mark.parametrize("name", STOPPED)
def test_a_small_step_that_does_not_rest_near_a_face_or_far_off_fails(name):
    sampler, where = STOPPED[name]
    finding = decide(far_field, sampler, where)
    assert finding.verdict == "fail", finding.reason
    assert "however small h is" in finding.reason


@pytest.mark.parametrize("name", RESTING)
def test_a_small_step_that_rests_near_faces_passes(name):
    finding = decide(far_field, *RESTING[name])
    assert finding.verdict == "pass", finding.reason


def test_a_step_that_no_step_size_makes_small_is_out_of_reach():
    with pytest.raises(OutOfReach, match="does not rest in the bulk"):
        decide(far_field, OnSpace("positive", lambda y, x: jnp.abs(y) + 0.1), "gamma")


def test_a_target_that_is_not_gaussian_has_no_lines():
    with pytest.raises(NotApplicable, match="Gaussian target"):
        decide(far_field, Euler(), "double-well")


@dataclass
class Replicas:
    """Two Langevin chains at the temperatures 1 and 3 that exchange their positions, within `bound` alone."""

    bound: float = np.inf

    def init(self, key, position, estimator):
        return {"cold": position, "hot": position}

    def position(self, state):
        return state["cold"]

    def step(self, key, state, step_size, estimator):
        a, b, c = jax.random.split(key, 3)
        move = lambda k, x, t: x - step_size * gradient(estimator, x) + jnp.sqrt(2 * t * step_size) * normal(k, x)
        cold, hot = move(a, state["cold"], 1.0), move(b, state["hot"], 3.0)
        fall = (1 - 1 / 3) * (potential(estimator, cold) - potential(estimator, hot))
        swap = jnp.log(jax.random.uniform(c)) < jnp.where(jnp.abs(hot).max() < self.bound, fall, -jnp.inf)
        return {"cold": jnp.where(swap, hot, cold), "hot": jnp.where(swap, cold, hot)}


@pytest.mark.parametrize(("bound", "verdict"), [(np.inf, "pass"), (5.0, "fail")])
def test_an_exchange_of_energies_that_are_far_apart_is_no_bend_and_a_bound_of_it_is(bound, verdict):
    """Differences of energies beyond 37 are accepted by no number that is drawn."""
    finding = decide(far_field, Replicas(bound), "gaussian-anisotropic")
    assert finding.verdict == verdict, finding.reason


class Histogram:
    """SGLD whose drift is scaled by the slope of a learnt histogram of the energy: another bin, another slope."""

    claims = Claims(Source("", "none"), AdaptiveLaw())
    needs = frozenset({"gradient", "potential"})

    def init(self, key, position, estimator):
        return {"position": position, "weights": jnp.full(16, 1 / 16)}

    def step(self, key, state, step_size, estimator):
        x, w = state["position"], state["weights"]
        at = jnp.clip(potential(estimator, x), 1, 15).astype(int)
        scale = 1 + jnp.log(w[at] / w[at - 1])
        x = x - step_size * scale * gradient(estimator, x) + jnp.sqrt(2 * step_size) * normal(key, x)
        at = jnp.clip(potential(estimator, x), 1, 15).astype(int)
        return {"position": x, "weights": w + 1e-3 * w[at] * (jnp.eye(16)[at] - w)}


def test_a_histogram_of_energies_is_no_bend():
    with pytest.raises(OutOfReach, match="weights of energies are adapted"):
        decide(far_field, Histogram(), PLANE)
