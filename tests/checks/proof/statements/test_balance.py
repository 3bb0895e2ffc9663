"""Metropolis kernels at a finite step: branches that are none, the reverse move, and kernels that are wrong."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from sgmcmc_verification.checks.proof.draws import evaluator
from sgmcmc_verification.checks.proof.potential import Coordinate
from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.checks.proof.reader.paths import Path
from sgmcmc_verification.checks.proof.reader.primitives import new_reader
from sgmcmc_verification.checks.proof.ring import Ring
from sgmcmc_verification.checks.proof.series import Space
from sgmcmc_verification.checks.proof.statements.closure import finite_space
from sgmcmc_verification.checks.proof.traced import evaluated
from sgmcmc_verification.samplers.geodesic.chmc import CHMC
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source
from sgmcmc_verification.samplers.interface.metropolis import inner
from sgmcmc_verification.samplers.riemannian.metrics import DiagonalMetric, recipe_metric
from sgmcmc_verification.samplers.riemannian.mmala import MMALA
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.underdamped.amagold import AMAGOLD

EXACT = Claims(Source("", "own"), ExactLaw())
WITHOUT_BRANCH = {
    "abs": jnp.abs,
    "max": lambda x: jnp.maximum(x[0], x[1]),
    "min": lambda x: jnp.minimum(x[0] * x[1], x[0] - 1),
    "max of all": jnp.max,
    "clip": lambda x: jnp.clip(x, -0.5, 0.5),
    "sign": lambda x: x * jnp.sign(x - 0.1),
    "grad of abs": lambda x: jax.grad(lambda y: jnp.sum(jnp.abs(y * y - 1)))(x),
    "root of abs": lambda x: jnp.sqrt(jnp.abs(x[0] + x[1])) * x,
}


@pytest.mark.parametrize("name", WITHOUT_BRANCH)
def test_what_is_read_without_a_branch_has_the_values_of_the_program(name):
    function, path = WITHOUT_BRANCH[name], Path()
    reader = new_reader(finite_space(None), path, finite=True)
    x = [reader.ring.generator(Coordinate(f"x{i + 1}", i)) for i in range(2)]
    read = evaluated(reader, function, x)
    assert path.next_choices() is None
    for point in ([0.3, -1.7], [-0.2, 0.4], [1.6, 0.9], [-2.0, -0.1]):
        want = np.asarray(jax.jit(function)(jnp.array(point)))
        value = evaluator(reader.ring, dict(enumerate(map(mpmath.mpf, point))))
        got = np.array([float(value(p)) for p in read.ravel()]).reshape(want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


def test_a_choice_by_a_draw_stays_one():
    """+-x by a uniform draw is two outcomes, and no sign of the state."""

    def step(x):
        u = jax.random.uniform(jax.random.key(0))
        return jnp.where(u * x[0] < 0.5, x, -x)

    path = Path()
    reader = new_reader(Space(Ring(), 0), path, finite=True)
    evaluated(reader, step, [reader.ring.generator(Coordinate("x", 0))])
    assert path.next_choices() is not None
    assert path.acceptances


class WithoutVolume(MMALA):
    def log_proposal(self, start, gradient, end, step_size):
        residual = end - self.mean(start, gradient, step_size)
        return -residual @ jnp.linalg.solve(self.metric.inverse(start), residual) / (4 * step_size * self.temperature)


class OneMetricBothWays(MMALA):
    def log_proposal(self, start, gradient, end, step_size):
        frozen = dataclasses.replace(self, metric=Frozen(self.metric, end))
        return MMALA.log_proposal(frozen, start, gradient, end, step_size)


@dataclasses.dataclass(frozen=True, eq=False)
class Frozen:
    metric: object
    place: jax.Array

    def inverse(self, theta):
        return self.metric.inverse(self.place + 0 * theta)


wavy = DiagonalMetric(lambda x: 1 + 0.5 * jnp.sin(x))


@pytest.mark.parametrize("kind", [MMALA, WithoutVolume, OneMetricBothWays])
@pytest.mark.parametrize("metric", ["wavy", "of the potential"])
def test_a_metric_proposal_is_balanced_with_its_whole_density_only(kind, metric):
    build = lambda target: kind(wavy if metric == "wavy" else recipe_metric(target))
    proof = prove(build, 1)
    assert proof.verdict == ("pass" if kind is MMALA else "fail"), str(proof)


class LongLastKick(CHMC):
    def integrate(self, key, state, momentum, step_size, estimator):
        end, p, valid = super().integrate(key, state, momentum, step_size, estimator)
        return end, jax.tree.map(lambda a, g: a - 0.5 * step_size * g, p, end.gradient), valid


class WithoutKinetic(CHMC):
    def kinetic(self, position, momentum):
        return 0.5 * inner(momentum, momentum) ** 2


@pytest.mark.parametrize("kind", [CHMC, LongLastKick, WithoutKinetic])
def test_trajectories_whose_reverse_is_looked_for_are_read(kind):
    proof = prove(lambda target: kind(target.manifold, num_steps=2), 1)
    assert proof.verdict == ("pass" if kind is CHMC else "fail"), str(proof)


class OneSided(AMAGOLD):
    def work(self, step_size, gradient, before, after):
        return step_size * inner(gradient, after)


class ColdNoise(AMAGOLD):
    def trajectory(self, key, state, step_size, estimator):
        cold = AMAGOLD(self.num_steps, self.friction, self.temperature / 2)
        return AMAGOLD.trajectory(cold, key, state, step_size, estimator)


@pytest.mark.parametrize("kind", [AMAGOLD, OneSided, ColdNoise])
def test_two_draws_that_lead_back_in_the_opposite_order_are_found(kind):
    proof = prove(kind(), 2)
    assert proof.verdict == ("pass" if kind is AMAGOLD else "fail"), str(proof)


def hamiltonian(key, x, h, estimator, sign=1.0):
    """Three leapfrog steps; the logarithm of a uniform draw on one side of the comparison with all the energies."""
    of = lambda y: estimator.estimate(jax.random.key(0), (), y)[0]
    move, decide = jax.random.split(key)
    p = jax.random.normal(move, x.shape, x.dtype)
    y, q = x, p
    for _ in range(3):
        q = q - h / 2 * of(y).gradient
        y = y + h * q
        q = q - h / 2 * of(y).gradient
    excess = of(y).potential + q @ q / 2 - sign * p @ p / 2 - of(x).potential
    return jnp.where(jnp.log(jax.random.uniform(decide, (), x.dtype)) + excess < 0, y, x)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_draw_that_decides_is_found_in_a_long_comparison(sign):
    claims = Claims(Source("", "none"), ExactLaw())
    step = functools.partial(hamiltonian, sign=sign)
    proof = prove(simple_sampler(step, claims=claims, needs=("gradient", "potential")), 2)
    assert proof.verdict == ("pass" if sign == 1 else "fail"), str(proof)


def test_large_numbers_inside_of_a_proposal_are_no_violation():
    """y^16 of a proposal y of 1e4 has 64 digits before the point."""
    steep = DiagonalMetric(lambda x: 1 + x**16 / 4)
    assert prove(lambda target: MMALA(steep), 1).verdict == "pass"
    assert prove(lambda target: WithoutVolume(steep), 1).verdict == "fail"


def walk(rule=lambda u, r: jnp.log(u) < r, draw=lambda key, x: jax.random.normal(key, x.shape, x.dtype)):
    """A walk whose proposal is moved by `draw` and accepted where rule(u, U(x) - U(y)) is true."""

    def step(key, x, h, estimator):
        move, accept = jax.random.split(key)
        energy = lambda at: estimator.estimate(move, (), at)[0].potential
        y = x + jnp.sqrt(2 * h) * draw(move, x)
        return jnp.where(rule(jax.random.uniform(accept, (), x.dtype), energy(x) - energy(y)), y, x)

    return simple_sampler(step, needs=("potential",), claims=EXACT)


BALANCED = {
    "cut by min": lambda u, r: jnp.log(u) < jnp.minimum(r, 0),
    "cut by max": lambda u, r: u < jnp.exp(-jnp.maximum(-r, 0)),
    "cut by max, halved": lambda u, r: jnp.log(u) < -jnp.maximum(-2 * r, 0) / 2,
    "lazy": lambda u, r: u < 0.5 * jnp.minimum(1, jnp.exp(r)),
    "lazy by logarithms": lambda u, r: jnp.log(u) < jnp.log(0.5) + jnp.minimum(r, 0),
    "lazy by a constant": lambda u, r: jnp.log(u) + 0.3 < jnp.minimum(r, 0),
    "Barker": lambda u, r: u < 1 / (1 + jnp.exp(-r)),
    "Barker by tanh": lambda u, r: u < (1 + jnp.tanh(r / 2)) / 2,
    "Barker by log_sigmoid": lambda u, r: jnp.log(u) < jax.nn.log_sigmoid(r),
    "Barker by logaddexp": lambda u, r: jnp.log(u) < -jnp.logaddexp(0.0, -r),
}
UNBALANCED = {
    "half of the energy": lambda u, r: jnp.log(u) < jnp.minimum(r / 2, 0),
    "half of the energy, cut by max": lambda u, r: u < jnp.exp(-jnp.maximum(-r / 2, 0)),
    "a shift before the cut": lambda u, r: jnp.log(u) < jnp.minimum(r + 0.3, 0),
    "a factor before the cut": lambda u, r: u < jnp.minimum(1, 0.5 * jnp.exp(r)),
    "both ways downhill": lambda u, r: jnp.log(u) < -jnp.abs(r),
    "Barker of twice the energy": lambda u, r: jnp.log(u) < jax.nn.log_sigmoid(2 * r),
    "Barker with a shift": lambda u, r: u < 1 / (1 + 2 * jnp.exp(-r)),
}
BACK_AND_FORTH = {
    "uniform": lambda k, x: jax.random.uniform(k, x.shape, x.dtype, -1, 1),
    "uniform on (0, 1), shifted": lambda k, x: jax.random.uniform(k, x.shape, x.dtype) - 0.5,
    "Laplace": lambda k, x: jax.random.laplace(k, x.shape, x.dtype),
    "Student": lambda k, x: jax.random.t(k, 5.0, x.shape, x.dtype),
    "signs": lambda k, x: jax.random.rademacher(k, x.shape, x.dtype),
}
ONE_WAY = {
    "uniform, off the middle": lambda k, x: jax.random.uniform(k, x.shape, x.dtype) - 0.4,
    "exponential": lambda k, x: jax.random.exponential(k, x.shape, x.dtype) - 1,
    "Laplace, growing with x": lambda k, x: x * jax.random.laplace(k, x.shape, x.dtype),
    "Laplace with a drift": lambda k, x: -0.3 * x + jax.random.laplace(k, x.shape, x.dtype),
    "signs, growing with x": lambda k, x: (1 + x**2) * jax.random.rademacher(k, x.shape, x.dtype),
}


@pytest.mark.parametrize("name", BALANCED)
def test_a_rule_that_balances_passes_however_it_is_written(name):
    assert prove(walk(rule=BALANCED[name]), 1).verdict == "pass"


@pytest.mark.parametrize("name", UNBALANCED)
def test_a_rule_that_does_not_balance_fails(name):
    assert prove(walk(rule=UNBALANCED[name]), 1).verdict == "fail"


@pytest.mark.parametrize("name", BACK_AND_FORTH)
def test_a_proposal_by_a_symmetric_law_is_undone_by_its_mirror_image(name):
    assert prove(walk(draw=BACK_AND_FORTH[name]), 2).verdict == "pass"


@pytest.mark.parametrize("name", ONE_WAY)
def test_a_proposal_that_needs_a_ratio_of_densities_does_not_pass_without_it(name):
    assert prove(walk(draw=ONE_WAY[name]), 2).verdict != "pass"


def langevin(scale, weight=lambda e: 0.0, u=None):
    """MALA with steps of a size e = h scale(key, x), and an acceptance that is off by a function of e / h."""

    def step(key, x, h, estimator):
        size, noise, coin = jax.random.split(key, 3)
        at = lambda x: estimator.estimate(key, (), x)[0]
        e = h * scale(size, x)
        here = at(x)
        y = x - e * here.gradient + jnp.sqrt(2 * e) * jax.random.normal(noise, x.shape, x.dtype)
        there = at(y)
        log_q = lambda a, b, gradient: -jnp.sum((a - b + e * gradient) ** 2) / (4 * e)
        log_a = here.potential - there.potential + log_q(x, y, there.gradient) - log_q(y, x, here.gradient)
        level = jax.random.uniform(coin) if u is None else u(size)
        return jnp.where(jnp.log(level) < log_a + weight(e / h), y, x)

    return simple_sampler(step, claims=EXACT)


RANDOM_SIZES = {
    "gamma": langevin(lambda key, x: jax.random.gamma(key, 3.0) / 3),
    "beta": langevin(lambda key, x: jax.random.beta(key, 2.0, 3.0)),
    "exponential": langevin(lambda key, x: jax.random.exponential(key)),
    "uniform": langevin(lambda key, x: jax.random.uniform(key, minval=0.5, maxval=1.5)),
    "chi-square": langevin(lambda key, x: jax.random.chisquare(key, 5.0)),
    "log-normal": langevin(lambda key, x: jnp.exp(0.3 * jax.random.normal(key))),
    "the square of a normal number": langevin(lambda key, x: 0.1 + jax.random.normal(key) ** 2),
}
WRONG_SIZES = {
    "of the position": langevin(lambda key, x: jax.random.gamma(key, 3.0) * (1 + jnp.sum(x**2))),
    "half of its logarithm": langevin(lambda key, x: jax.random.exponential(key), lambda e: jnp.log(e) / 2),
    "its logarithm": langevin(lambda key, x: jax.random.uniform(key, minval=0.5), lambda e: -jnp.log(e)),
    "a reward": langevin(lambda key, x: jax.random.beta(key, 2.0, 2.0), lambda e: e),
    "log-normal, of the position": langevin(lambda key, x: jnp.exp(0.3 * jax.random.normal(key) + 0.1 * jnp.sum(x**2))),
    "log-normal, a reward": langevin(lambda key, x: jnp.exp(0.3 * jax.random.normal(key)), jnp.log),
    "its own coin": langevin(lambda key, x: 0.5 + jax.random.uniform(key), u=jax.random.uniform),
}


@pytest.mark.parametrize("name", RANDOM_SIZES)
def test_a_step_of_random_size_is_undone_by_one_of_the_same_size(name):
    assert prove(RANDOM_SIZES[name], 2).verdict == "pass"


@pytest.mark.parametrize("name", WRONG_SIZES)
def test_a_step_of_random_size_that_does_not_balance_does_not_pass(name):
    assert prove(WRONG_SIZES[name], 1).verdict != "pass"


def multiplied(jacobian, by_power=False, pull=0.0):
    """A walk of log x on positive numbers, pulled towards 1, whose acceptance has the Jacobian so many times."""

    def step(key, x, h, estimator):
        move, accept = jax.random.split(key)
        at = lambda x: estimator.estimate(move, (), x)[0].potential
        shift = jnp.sqrt(2 * h) * jax.random.normal(move, x.shape, x.dtype)
        y = x ** (1 - pull) * jnp.exp(shift) if by_power else jnp.exp((1 - pull) * jnp.log(x) + shift)
        back = jnp.log(x) - (1 - pull) * jnp.log(y)
        ratio = at(x) - at(y) + jacobian * jnp.sum(jnp.log(y / x)) + jnp.sum(shift**2 - back**2) / (4 * h)
        return jnp.where(jnp.log(jax.random.uniform(accept)) < ratio, y, x)

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw(), spaces=("positive",)))


@pytest.mark.parametrize(
    "walk", [multiplied(1), multiplied(1, pull=0.25), multiplied(1, True), multiplied(1, True, 0.5)]
)
def test_a_proposal_of_logarithms_is_undone_by_logarithms(walk):
    assert prove(walk, 2).verdict == "pass"


@pytest.mark.parametrize("walk", [multiplied(0), multiplied(-1), multiplied(2, pull=0.25), multiplied(0.5, True)])
def test_a_proposal_of_logarithms_needs_its_jacobian(walk):
    assert prove(walk, 2).verdict == "fail"


def proposed(key, x, h, estimator, width=1.0):
    """y = x + sqrt(2 h) width xi, and U(x) - U(y)."""
    at = lambda x: estimator.estimate(key, (), x)[0].potential
    y = x + jnp.sqrt(2 * h) * width * jax.random.normal(key, x.shape, x.dtype)
    return y, at(x) - at(y)


def mixture(choose, width=lambda i, x: jnp.array([0.3, 1.0, 3.0])[i], ratio=lambda i, r: r, stay=lambda i, x: x):
    """A walk whose width, rule and place after a rejection depend on a draw of few values."""

    def step(key, x, h, estimator):
        which, move, accept = jax.random.split(key, 3)
        i = choose(which)
        y, r = proposed(move, x, h, estimator, width(i, x))
        return jnp.where(jnp.log(jax.random.uniform(accept)) < ratio(i, r), y, stay(i, x))

    return simple_sampler(step, claims=EXACT)


def third(key):
    return jax.random.randint(key, (), 0, 3)


def side(key):
    return jax.random.bernoulli(key, 0.25).astype(int)


MIXTURES = {
    "an integer": mixture(third),
    "a coin": mixture(side),
    "a choice": mixture(lambda key: jax.random.choice(key, jnp.array([0, 2]))),
    "a switch": mixture(third, lambda i, x: jax.lax.switch(i, [lambda: 1.0, lambda: 0.1, lambda: 2.0])),
    "one coordinate": mixture(
        lambda key: jax.random.randint(key, (), 0, 2), lambda i, x: (jnp.arange(x.size) == i) * 1.0
    ),
}
WRONG_MIXTURES = {
    "half of the energy for one": mixture(third, ratio=lambda i, r: jnp.where(i == 2, r / 2, r)),
    "all moves for one": mixture(third, ratio=lambda i, r: jnp.where(i == 1, 0.0, r)),
    "a width of the position for one": mixture(third, lambda i, x: jnp.where(i == 0, 1 + x**2, 1.0)),
    "a rejection that moves for one": mixture(side, stay=lambda i, x: jnp.where(i == 1, x / 2, x)),
    "a rejection that moves": mixture(third, stay=lambda i, x: x + 0.1 * i),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_a_mixture_of_kernels_that_balance_passes(name):
    assert prove(MIXTURES[name], 2).verdict == "pass"


@pytest.mark.parametrize("name", WRONG_MIXTURES)
def test_a_mixture_with_a_kernel_that_does_not_balance_does_not_pass(name):
    assert prove(WRONG_MIXTURES[name], 1).verdict != "pass"


def in_stages(first, second, joined=jnp.logical_and, one_draw=False):
    """A walk accepted in two stages, by functions of x, y and r = U(x) - U(y)."""

    def step(key, x, h, estimator):
        move, one, two = jax.random.split(key, 3)
        y, r = proposed(move, x, h, estimator)
        u, v = jax.random.uniform(one), jax.random.uniform(one if one_draw else two)
        return jnp.where(joined(jnp.log(u) < first(x, y, r), jnp.log(v) < second(x, y, r)), y, x)

    return simple_sampler(step, claims=EXACT)


def surrogate(x, y, r):
    return 0.4 * (jnp.sum(x**2) - jnp.sum(y**2))


STAGES = {
    "the rest of the energy": in_stages(surrogate, lambda x, y, r: r - surrogate(x, y, r)),
    "the energy first": in_stages(lambda x, y, r: r, lambda x, y, r: 0 * r - 0.7),
    "halves": in_stages(lambda x, y, r: r / 2, lambda x, y, r: r / 2),
    "Barker first": in_stages(lambda x, y, r: jax.nn.log_sigmoid(r / 3), lambda x, y, r: 2 * r / 3),
}
WRONG_STAGES = {
    "all of the energy again": in_stages(surrogate, lambda x, y, r: r),
    "the energy twice": in_stages(lambda x, y, r: r, lambda x, y, r: r),
    "either": in_stages(lambda x, y, r: r, lambda x, y, r: 0 * r - 2, joined=jnp.logical_or),
    "the surrogate alone": in_stages(surrogate, lambda x, y, r: 0 * r - 0.1),
    "one draw for both": in_stages(surrogate, lambda x, y, r: r - surrogate(x, y, r), one_draw=True),
}


@pytest.mark.parametrize("name", STAGES)
def test_stages_that_balance_together_pass(name):
    assert prove(STAGES[name], 2).verdict == "pass"


@pytest.mark.parametrize("name", WRONG_STAGES)
def test_stages_that_do_not_balance_do_not_pass(name):
    assert prove(WRONG_STAGES[name], 1).verdict != "pass"


LOG_DENSITIES = {
    "normal": lambda x: -(x**2) / 2,
    "t": lambda x: -2 * jnp.log1p(x**2 / 3),
    "laplace": lambda x: -jnp.abs(x),
    "logistic": lambda x: -x - 2 * jnp.log1p(jnp.exp(-x)),
    "gumbel": lambda x: -x - jnp.exp(-x),
}


def independent(name, log_density=None):
    """A proposal that does not look at where it comes from, of one law."""
    log_q = log_density or LOG_DENSITIES[name]

    def step(key, x, h, estimator):
        a, b, c = jax.random.split(key, 3)
        energy = lambda q: estimator.estimate(a, (), q)[0].potential
        draw = jax.random.t(b, 3.0, x.shape, x.dtype) if name == "t" else getattr(jax.random, name)(b, x.shape, x.dtype)
        y = 0.5 + 2 * draw
        ratio = energy(x) - energy(y) + jnp.sum(log_q((x - 0.5) / 2) - log_q((y - 0.5) / 2))
        return jnp.where(jnp.log(jax.random.uniform(c, dtype=x.dtype)) < ratio, y, x)

    return simple_sampler(step, claims=EXACT)


@pytest.mark.parametrize("name", LOG_DENSITIES)
def test_a_proposal_that_does_not_look_back_passes(name):
    assert prove(independent(name)).verdict == "pass"


@pytest.mark.parametrize("name", LOG_DENSITIES)
def test_one_with_the_density_of_another_law_fails(name):
    assert prove(independent(name, lambda x: -(jnp.abs(x) ** 3))).verdict == "fail"


def nested(other=lambda r: r, choose=jax.lax.select):
    """Two kernels by a coin, each with a decision of its own by the same draw, both of which a program computes."""

    def step(key, x, h, estimator):
        a, b, c, d = jax.random.split(key, 4)
        energy = lambda q: estimator.estimate(a, (), q)[0].potential
        n, u, coin = jax.random.normal(b, x.shape), jnp.log(jax.random.uniform(c)), jax.random.uniform(d) < 0.3
        near, far = x + jnp.sqrt(2 * h) * n, 2 * n
        log_q = lambda q: -jnp.sum(q**2) / 8
        one = choose(u < other(energy(x) - energy(far) + log_q(x) - log_q(far)), far, x)
        two = choose(u < energy(x) - energy(near), near, x)
        return choose(coin, one, two)

    return simple_sampler(step, claims=EXACT)


@pytest.mark.parametrize("choose", [jax.lax.select, jnp.where])
def test_the_side_that_is_chosen_is_read_alone(choose):
    assert prove(nested(choose=choose)).verdict == "pass"


@pytest.mark.parametrize("wrong", [lambda r: r / 2, lambda r: r + 0.1])
def test_a_wrong_side_is_no_pass(wrong):
    assert prove(nested(wrong)).verdict != "pass"
