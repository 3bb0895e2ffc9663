"""Thousands of coordinates: what is left out, tiled or treated otherwise is found; what is alike for all passes."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach
from sgmcmc_verification.checks.tiers.premises.coordinates import equal_coordinates
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.samplers.types import Claims, ExactLaw, ParticleLaw, Source, StationaryLaw
from tests.helpers.strangers import MALA, Euler, Underdamped, decide, gradient, normal

LINE = "gaussian-1d-scaled"


@dataclass
class Drawn:
    """SGLD whose noise is `draw(key, number of coordinates)`."""

    draw: Any

    def step(self, key, x, step_size, estimator):
        return x - step_size * gradient(estimator, x) + jnp.sqrt(2 * step_size) * self.draw(key, x.size)


@dataclass
class Directed:
    """SGLD along `move(g)`."""

    move: Any

    def step(self, key, x, step_size, estimator):
        return x - step_size * self.move(gradient(estimator, x)) + jnp.sqrt(2 * step_size) * normal(key, x)


def tiled(key, size, tile=64):
    return jnp.resize(jax.random.normal(key, (tile,)), (size,))


def by_keys(number):
    """One key a coordinate, folded with what `number` makes of its index."""
    return lambda key, size: jax.vmap(lambda i: jax.random.normal(jax.random.fold_in(key, number(i))))(jnp.arange(size))


@dataclass
class HostNoise:
    """SGLD in NumPy whose noise is `draw(rng, number of coordinates)`."""

    draw: Any
    backend = "host"

    def step(self, rng, x, step_size, estimator):
        g = np.asarray(estimator.estimate(jax.random.key(0), (), x)[0].gradient)
        return x - step_size * g + np.sqrt(2 * step_size) * self.draw(rng, x.size).reshape(x.shape)


class HostMobility:
    """SGLD in NumPy with the mobility M = 0.2 + 1 / (1 + mean x^2) of all, whose divergence goes like 1/n."""

    backend = "host"

    def step(self, rng, x, step_size, estimator):
        g = np.asarray(estimator.estimate(jax.random.key(0), (), x)[0].gradient)
        inner = 1 / (1 + np.mean(x**2))
        mobility, slope = 0.2 + inner, -2 * x * inner**2 / x.size
        noise = np.sqrt(2 * step_size * mobility) * rng.standard_normal(x.shape)
        return x + step_size * (slope - mobility * g) + noise


@dataclass
class Repelling:
    """SVGD with the kernel exp(-r^2) that repels in the first coordinates alone."""

    first: int
    claims = Claims(Source("liu2016stein", "Algorithm 1"), ParticleLaw())

    def init(self, key, position, estimator):
        return position

    def step(self, key, x, step_size, estimator):
        g = jax.vmap(lambda y: gradient(estimator, y))(x)
        apart = x[:, None] - x[None]
        kernel = jnp.exp(-jnp.sum(apart**2, -1))
        force = 2 * jnp.sum(kernel[..., None] * apart, 1) * (jnp.arange(x.shape[1]) < self.first)
        return x + step_size * (force - kernel @ g) / len(x)


@dataclass
class FourBeside:
    """SGLD with so many numbers beside the position that move by themselves."""

    number: int = 4

    def init(self, key, position, estimator):
        return {"beside": jax.random.normal(key, (self.number,)), "position": position}

    def step(self, key, state, step_size, estimator):
        a, b = jax.random.split(key)
        x, u = state["position"], state["beside"]
        x = x - step_size * gradient(estimator, x) + jnp.sqrt(2 * step_size) * normal(a, x)
        return {"beside": 0.8 * u + 0.6 * normal(b, u), "position": x}


class Scaled:
    """SGLD with the step size h / sqrt(d)."""

    def step(self, key, x, step_size, estimator):
        h = step_size / np.sqrt(x.size)
        return x - h * gradient(estimator, x) + jnp.sqrt(2 * h) * normal(key, x)


class Dense:
    """SGLD with the preconditioner (I + 1 1^T / d)^-1, as a matrix, and its square root for the noise."""

    def step(self, key, x, step_size, estimator):
        matrix = jnp.linalg.inv(jnp.eye(x.size) + jnp.ones((x.size, x.size)) / x.size)
        root = jnp.linalg.cholesky(matrix)
        return x - step_size * matrix @ gradient(estimator, x) + jnp.sqrt(2 * step_size) * root @ normal(key, x)


class Thermostat:
    """SGNHT whose thermostat counts at most so many degrees of freedom."""

    def __init__(self, most):
        self.most = most

    def init(self, key, position, estimator):
        return {"momentum": jnp.zeros_like(position), "position": position, "xi": jnp.ones(())}

    def step(self, key, state, step_size, estimator):
        x, p, xi, h = state["position"], state["momentum"], state["xi"], step_size
        p = p - h * gradient(estimator, x) - h * xi * p + jnp.sqrt(2 * h) * normal(key, x)
        xi = xi + h * (jnp.sum(p**2) / min(x.size, self.most) - 1)
        return {"momentum": p, "position": x + h * p, "xi": xi}


@dataclass
class KeptUniform:
    """Generalised HMC with a uniform that the state keeps; more than so many coordinates have other noise."""

    most: int = 10**9
    factor: float = 0.9

    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, key, position, estimator):
        uniform = jax.random.uniform(key, minval=-1.0, maxval=1.0)
        return {"momentum": normal(key, position), "position": position, "uniform": uniform}

    def step(self, key, state, step_size, estimator):
        a, b = jax.random.split(key)
        at = lambda x: estimator.estimate(key, (), x)[0]
        x, t = state["position"], jnp.sqrt(2 * step_size)
        noise = normal(a, x) * (self.factor if x.size > self.most else 1.0)
        p = 0.9 * state["momentum"] + (1 - 0.81) ** 0.5 * noise
        start = at(x)
        half = p - t / 2 * start.gradient
        end = at(x + t * half)
        turned = half - t / 2 * end.gradient
        log_r = start.potential - end.potential + (jnp.sum(p**2) - jnp.sum(turned**2)) / 2
        accepted = jnp.log(jnp.abs(state["uniform"])) < log_r
        u = jnp.where(accepted, state["uniform"] * jnp.exp(-log_r), state["uniform"])
        u = (u + 0.3 + 0.1 * jax.random.normal(b) + 1) % 2 - 1
        return {
            "momentum": jnp.where(accepted, turned, -p),
            "position": jnp.where(accepted, x + t * half, x),
            "uniform": u,
        }


UNEQUAL = {
    "noise for the first 10 coordinates only": Drawn(lambda k, d: jax.random.normal(k, (d,)) * (jnp.arange(d) < 10)),
    "noise in tiles of 64": Drawn(tiled),
    "keys folded with a byte": Drawn(by_keys(lambda i: i % 256)),
    "keys folded with 16 bits": Drawn(by_keys(lambda i: i.astype(jnp.uint16))),
    "noise in full blocks of 10000 alone": Drawn(
        lambda k, d: jax.random.normal(k, (d,)) * (jnp.arange(d) < max(d // 10_000 * 10_000, 17))
    ),
    "a host sampler with noise for 64": HostNoise(lambda rng, d: rng.standard_normal(d) * (np.arange(d) < 64)),
    "a host sampler with tiles of 256": HostNoise(lambda rng, d: np.resize(rng.standard_normal(min(256, d)), d)),
    "particles that repel in two coordinates": Repelling(2),
    "no drift in coordinate 1000": Directed(lambda g: jnp.where(jnp.arange(g.size) == 1000, 0.0, g)),
    "the drift of blocks of 128, the rest forgotten": Directed(
        lambda g: jnp.where(jnp.arange(g.size) < max(g.size // 128 * 128, 17), g, 0.0)
    ),
    "a drift that is summed in half precision for many": Directed(
        lambda g: g.astype(jnp.float16).astype(g.dtype) if g.size > 1000 else g
    ),
    "noise in tiles of 64, for 65 to 4096 coordinates": Drawn(
        lambda k, d: tiled(k, d) if 64 < d <= 4096 else jax.random.normal(k, (d,))
    ),
    "gradients clipped at 3 beyond 60": Directed(lambda g: jnp.clip(g, -3, 3) if g.size > 60 else g),
    "a thermostat with at most 100 degrees of freedom": Thermostat(100),
    "a kept uniform, and less noise beyond 100": KeptUniform(100),
    "a kept uniform, and less noise beyond 10000": KeptUniform(10_000, 0.999),
    "half of the variance in three and four dimensions": Drawn(
        lambda k, d: jax.random.normal(k, (d,)) * (np.sqrt(0.5) if d in (3, 4) else 1)
    ),
    "noise divided by the square root of the dimension beyond 100": Drawn(
        lambda k, d: jax.random.normal(k, (d,)) / np.sqrt(d if d > 100 else 1)
    ),
}
ALIKE = {
    "Euler": Euler(),
    "a step size that shrinks with the dimension": Scaled(),
    "a momentum": Underdamped(),
    "four numbers beside the position": FourBeside(),
    "five numbers beside the position": FourBeside(5),
    "a thermostat": Thermostat(10**9),
    "a kept uniform, which the energy of many decides against": KeptUniform(),
    "a sum in two ways": Drawn(lambda k, d: jax.random.normal(k, (d,)) * (1 if d < 100 else jnp.cos(0.0))),
    "MALA": MALA(),
    "a host sampler": HostNoise(lambda rng, d: rng.standard_normal(d)),
    "a host sampler with one mobility": HostMobility(),
    "particles": Repelling(10**6),
    "keys folded with the index": Drawn(by_keys(lambda i: i)),
    "the norm of the gradient": Directed(lambda g: g * jnp.minimum(1, 1e3 / jnp.linalg.norm(g))),
    "noise whose mean is taken out, and put back": Drawn(
        lambda k, d: (e := jax.random.normal(k, (d,))) - e.mean() + e.mean()
    ),
}


@pytest.mark.parametrize("name", UNEQUAL)
def test_coordinates_that_are_treated_otherwise_fail(name):
    finding = decide(equal_coordinates, UNEQUAL[name], LINE)
    assert finding.verdict == "fail", finding.reason


@pytest.mark.parametrize("name", ALIKE)
def test_coordinates_that_are_treated_alike_pass(name):
    finding = decide(equal_coordinates, ALIKE[name], LINE)
    assert finding.verdict == "pass", finding.reason
    few = {
        "a host sampler": "1031",
        "a host sampler with one mobility": "1031",
        "particles": "23",
    }  # those are not differentiated
    assert few.get(name, "70001") in finding.reason


def test_particles_of_a_method_for_two_coordinates_alone_are_out_of_reach():
    subject = Subject(sampler_row("rsvgd"))
    with pytest.raises(OutOfReach, match="does not run in 3 dimensions"):
        equal_coordinates(Case(subject, find_target(subject.row.targets[0])))


def test_the_coordinates_are_named():
    one = decide(equal_coordinates, UNEQUAL["no drift in coordinate 1000"], LINE)
    assert "1 of 70001 coordinates (1000)" in one.reason
    assert "(10 to " in decide(equal_coordinates, UNEQUAL["noise for the first 10 coordinates only"], LINE).reason


def test_a_method_with_dense_matrices_is_looked_at_in_fewer_dimensions():
    """Its covariance commutes with permutations, although the Cholesky factor of it does not."""
    finding = decide(equal_coordinates, Dense(), LINE)
    assert finding.verdict == "pass", finding.reason
    assert "257" in finding.reason
    assert "70001" not in finding.reason


def test_a_method_that_breaks_the_symmetry_by_design_is_out_of_reach():
    with pytest.raises(OutOfReach, match="does not treat coordinates alike"):
        decide(equal_coordinates, Directed(lambda g: (1 + jnp.arange(g.size) / g.size) * g), LINE)


@dataclass
class PositiveEuler:
    """Langevin dynamics of positive numbers, brought back to them by `back`."""

    back: Any
    claims = Claims(Source("patterson2013stochastic", "section 4"), StationaryLaw(order=1), spaces=("positive",))

    def step(self, key, x, step_size, estimator):
        return self.back(x - step_size * gradient(estimator, x) + jnp.sqrt(2 * step_size) * normal(key, x))


class LogWalk:
    """Metropolis with a walk of the logarithms."""

    claims = Claims(Source("", "walk of logarithms"), ExactLaw(), spaces=("positive",))

    def step(self, key, x, step_size, estimator):
        walk_key, coin_key = jax.random.split(key)
        y = x * jnp.exp(jnp.sqrt(2 * step_size) * normal(walk_key, x))
        energy = lambda a: estimator.estimate(key, (), a)[0].potential - jnp.sum(jnp.log(a))
        return jnp.where(jnp.log(jax.random.uniform(coin_key)) < energy(x) - energy(y), y, x)


@dataclass
class OnMatrices:
    """SGLD whose noise on matrices is `draw(key, shape)`."""

    draw: Any

    def step(self, key, x, step_size, estimator):
        noise = self.draw(key, x.shape) if x.ndim == 2 else normal(key, x)
        return x - step_size * gradient(estimator, x) + jnp.sqrt(2 * step_size) * noise


def by_rows(key, shape):
    """Noise of a covariance between rows, which is another one for large matrices."""
    across = jnp.eye(shape[0]) + jnp.ones((shape[0], shape[0])) / (1 if shape[0] < 64 else 2)
    return across @ jax.random.normal(key, shape)


OTHERWISE_ON_MATRICES = {
    "columns from the 64th on repeat": lambda k, s: jnp.resize(jax.random.normal(k, (min(64, s[1]), s[0])), s[::-1]).T,
    "one draw for each of more than 70 rows": lambda k, s: (
        jax.random.normal(k, s) if s[0] <= 70 else jax.random.normal(k, (s[0], 1)) * jnp.ones(s)
    ),
    "the last row has none where there are more than two": lambda k, s: (
        jax.random.normal(k, s) if s[0] < 3 else jax.random.normal(k, s).at[-1].set(0.0)
    ),
}


@pytest.mark.parametrize("name", OTHERWISE_ON_MATRICES)
def test_entries_of_large_matrices_that_are_treated_otherwise_fail(name):
    finding = decide(equal_coordinates, OnMatrices(OTHERWISE_ON_MATRICES[name]), LINE)
    assert finding.verdict == "fail", finding.reason
    assert "entries of a matrix" in finding.reason


@pytest.mark.parametrize("draw", [jax.random.normal, by_rows], ids=["all alike", "rows that move together"])
def test_a_method_for_matrices_passes(draw):
    finding = decide(equal_coordinates, OnMatrices(draw), LINE)
    assert finding.verdict == "pass", finding.reason


NEAR_ZERO_OTHERWISE = {
    "a mirror for the first": lambda y: jnp.abs(y).at[1:].set(y[1:]),
    "a wall instead of a mirror for the last": lambda y: jnp.abs(y).at[-1:].set(jnp.maximum(y[-1:], 1e-6)),
}


@pytest.mark.parametrize("name", NEAR_ZERO_OTHERWISE)
def test_positive_coordinates_that_are_treated_otherwise_near_0_fail(name):
    finding = decide(equal_coordinates, PositiveEuler(NEAR_ZERO_OTHERWISE[name]), "gamma")
    assert finding.verdict == "fail", finding.reason
    assert "near 0" in finding.reason


def test_a_wall_for_many_positive_coordinates_in_place_of_a_mirror_fails():
    back = lambda y: jnp.abs(y) if y.size <= 30 else jnp.maximum(y, 0.01)
    finding = decide(equal_coordinates, PositiveEuler(back), "gamma")
    assert finding.verdict == "fail", finding.reason
    assert "do not move as few do" in finding.reason


@pytest.mark.parametrize(
    "sampler", [PositiveEuler(jnp.abs), LogWalk()], ids=["a mirror for all", "a walk of logarithms"]
)
def test_positive_coordinates_that_are_treated_alike_near_0_pass(sampler):
    finding = decide(equal_coordinates, sampler, "gamma")
    assert finding.verdict == "pass", finding.reason


def test_a_method_for_a_fixed_dimension_is_out_of_reach():
    with pytest.raises(OutOfReach, match="does not run in 5 dimensions"):
        decide(equal_coordinates, Directed(lambda g: jnp.eye(1) @ g), LINE)


def test_a_state_without_a_number_per_coordinate_is_not_applicable():
    class Sum:
        """Its position is computed from one number, whatever the dimension."""

        def init(self, key, position, estimator):
            return jnp.sum(position)

        def position(self, state):
            return jnp.full((1,), state)

        def step(self, key, state, step_size, estimator):
            return state + step_size * jax.random.normal(key)

    with pytest.raises(NotApplicable, match="no part with a number per coordinate"):
        decide(equal_coordinates, Sum(), LINE)


@dataclass
class Sweep:
    """A move of each coordinate in turn, by a gradient of all; the scale of its noise is `scale(i, coordinates)`."""

    scale: Any

    def step(self, key, x, step_size, estimator):
        def one(x, i):
            g = gradient(estimator, x)[i]
            e = self.scale(i, x.size) * jax.random.normal(jax.random.fold_in(key, i))
            return x.at[i].add(-step_size * g + jnp.sqrt(2 * step_size) * e), None

        return jax.lax.scan(one, x, jnp.arange(x.size))[0]


@dataclass
class Summed:
    """MALA whose log ratio of the proposals is `add` of the coordinates."""

    add: Any
    claims = Claims(Source("", "MALA"), ExactLaw())

    def step(self, key, x, step_size, estimator):
        walk_key, coin_key = jax.random.split(key)
        forth = x - step_size * gradient(estimator, x)
        y = forth + jnp.sqrt(2 * step_size) * normal(walk_key, x)
        back = y - step_size * gradient(estimator, y)
        energy = lambda a: estimator.estimate(key, (), a)[0].potential
        ratio = self.add((y - forth) ** 2 - (x - back) ** 2) / (4 * step_size) + energy(x) - energy(y)
        return jnp.where(jnp.log(jax.random.uniform(coin_key)) < ratio, y, x)


def in_chunks(terms):
    return sum(jnp.sum(terms[i : i + 400]) for i in range(0, terms.size, 400)) if terms.size < 1000 else jnp.sum(terms)


@pytest.mark.parametrize(
    ("add", "verdict"),
    [
        (lambda terms: jnp.mean(terms) if 100 < terms.size < 10_000 else jnp.sum(terms), "fail"),
        (lambda terms: jnp.clip(jnp.sum(terms), -3, 3) if terms.size > 200 else jnp.sum(terms), "fail"),
        (in_chunks, "pass"),
    ],
    ids=["a mean for the sum in between", "a bound for more than 200", "a sum in chunks"],
)
def test_an_acceptance_that_is_another_one_for_some_numbers_of_coordinates_fails(add, verdict):
    finding = decide(equal_coordinates, Summed(add), LINE)
    assert finding.verdict == verdict, finding.reason
    assert ("not accepted as few are" in finding.reason) == (verdict == "fail")


def test_coordinates_that_are_moved_in_turn_are_fewer():
    """With 70,001 of them each would be taken as often, in a program that is written out."""
    finding = decide(equal_coordinates, Sweep(lambda i, n: 1.0), LINE)
    assert finding.verdict == "pass", finding.reason
    assert "37 coordinates" in finding.reason


def test_a_block_of_a_sweep_that_is_treated_otherwise_fails():
    finding = decide(equal_coordinates, Sweep(lambda i, n: jnp.where(i < 20, 1.0, 0.9)), LINE)
    assert finding.verdict == "fail", finding.reason


def test_a_loop_of_a_fixed_number_of_turns_is_taken_with_as_many_coordinates_as_none():
    class SubSteps:
        """Twenty steps of Euler in one."""

        def step(self, key, x, step_size, estimator):
            h = step_size / 20
            one = lambda x, k: (x - h * gradient(estimator, x) + jnp.sqrt(2 * h) * normal(k, x), None)
            return jax.lax.scan(one, x, jax.random.split(key, 20))[0]

    finding = decide(equal_coordinates, SubSteps(), LINE)
    assert finding.verdict == "pass", finding.reason
    assert "70001 coordinates" in finding.reason


class Weighed:
    """A walk of which a coin that its energy throws shows one of two places: of many coordinates always the same."""

    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, key, position, estimator):
        return {"shown": position, "walker": position, "other": position}

    def step(self, key, state, step_size, estimator):
        a, b, c, d = jax.random.split(key, 4)
        energy = lambda x: estimator.estimate(d, (), x)[0].potential
        here, there = state["walker"], state["walker"] + jnp.sqrt(2 * step_size) * normal(a, state["walker"])
        x = jnp.where(jnp.log(jax.random.uniform(b)) < energy(here) - energy(there), there, here)
        y = state["other"] + 0.0 * x
        first = jax.random.uniform(c) < jax.nn.sigmoid(energy(x) - energy(y + 1.0))
        return {"shown": jnp.where(first, x, y + 1.0), "walker": x, "other": y}

    def position(self, state):
        return state["shown"]


def test_a_coin_that_an_energy_throws_is_compared_in_fifty_coordinates():
    assert decide(equal_coordinates, Weighed(), LINE).verdict == "pass"
