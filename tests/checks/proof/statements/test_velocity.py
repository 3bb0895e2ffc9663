"""Particles as strangers write them: what is proved of their velocity, and that no wrong one is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from sgmcmc_verification.checks.proof.draws import evaluator
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.potential import Jet, any_target
from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.checks.proof.reader.calls import Call
from sgmcmc_verification.checks.proof.reader.paths import Path
from sgmcmc_verification.checks.proof.reader.primitives import new_reader
from sgmcmc_verification.checks.proof.statements import velocity
from sgmcmc_verification.checks.proof.statements.closure import finite_space, finite_step
from sgmcmc_verification.checks.proof.statements.cloud import DIRECTION, cloud_of
from sgmcmc_verification.checks.proof.statements.result import of_polynomials
from sgmcmc_verification.checks.proof.statements.velocity import ALIKE, ALONG, METHOD, STEIN
from sgmcmc_verification.checks.proof.traced import Traced, evaluated
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    ParticleLaw,
    ParticleVelocity,
    RiemannianVelocity,
    Source,
    SteinVelocity,
)
from sgmcmc_verification.samplers.particles.common import ParticleMixin, Particles
from sgmcmc_verification.samplers.particles.svgd import SVGD
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.target import Target


@dataclass(frozen=True)
class Stranger(ParticleMixin):
    """Particles along a velocity (particles, gradients, weights) -> (M, d), with a step of the stranger's own."""

    field: Callable[..., jax.Array]
    moves: Callable[..., jax.Array] | None = None
    declared: Any = None
    bandwidth: float = 1.0

    @property
    def claims(self) -> Claims:
        return Claims(Source("", "none"), ParticleLaw(), ParticleVelocity(self.field), self.declared)

    def move(self, particles, gradients, weights, bandwidths):
        return self.field(particles, gradients, weights)

    def step(self, key, state, step_size, estimator):
        if self.moves is None:
            return super().step(key, state, step_size, estimator)
        gradients = jax.vmap(lambda x: estimator.estimate(key, (), x)[0].gradient)(state.position)
        moved = self.moves(key, state, gradients, step_size)
        return Particles(moved, state.count + 1, moved[0, 0] - state.position[0, 0], state.estate)


def by_pairs(give, shared=lambda x: None):
    """sum_i w_i give(x_i, g_i, x_j), with a number that `shared` makes of all particles."""

    def field(x, g, w):
        more = shared(x)
        arguments = () if more is None else (more,)
        one = lambda y: w @ jax.vmap(lambda a, b: give(a, b, y, *arguments))(x, g)
        return jax.vmap(one)(x)

    return field


def stein(kernel):
    return lambda x, g, y, *more: jax.grad(kernel)(x, y, *more) - kernel(x, y, *more) * g


gaussian = lambda x, y: jnp.exp(-jnp.sum((x - y) ** 2) / 1.4)
multiquadric = lambda x, y: (1 + jnp.sum((x - y) ** 2)) ** -0.5
rational = lambda x, y: 1 / (2 + jnp.sum((x - y) ** 2))
linear = lambda x, y: 1 + x @ y
of_width = lambda x, y, h: jnp.exp(-jnp.sum((x - y) ** 2) / h)
distances = lambda x: jnp.sum((x[:, None] - x[None]) ** 2, -1)
preconditioned = lambda x, g, y: jnp.array([2.0, 0.5])[: x.size] * stein(gaussian)(x, g, y)
right = by_pairs(stein(gaussian))
median = by_pairs(stein(of_width), lambda x: jnp.median(distances(x)))


def functional(x, g, y):
    """grad_y [-grad U(x) . grad_x k + Lap_x k]."""
    inside = lambda at: jnp.trace(jax.hessian(gaussian)(x, at)) - g @ jax.grad(gaussian)(x, at)
    return jax.grad(inside)(y)


def of_flat_metric(scale=lambda x: 1.0):
    return RiemannianVelocity(lambda x: gaussian, lambda at: scale(at) * jnp.eye(at.size))


RIGHT = {
    "Gaussian kernel": Stranger(right),
    "inverse multiquadric": Stranger(by_pairs(stein(multiquadric))),
    "rational": Stranger(by_pairs(stein(rational))),
    "kernel that is no function of the distance": Stranger(by_pairs(stein(linear))),
    "two kernels": Stranger(by_pairs(lambda x, g, y: stein(gaussian)(x, g, y) + 0.3 * stein(rational)(x, g, y))),
    "preconditioned": Stranger(by_pairs(preconditioned)),
    "jnp.median of the distances": Stranger(median),
    "kernel declared": Stranger(right, declared=SteinVelocity(lambda x: gaussian)),
    "kernel declared, flat metric": Stranger(by_pairs(functional), declared=of_flat_metric()),
    "step of its own": Stranger(right, lambda key, s, g, h: s.position + h * right(s.position, g, jnp.full(3, 1 / 3))),
    "step in two halves of the sum": Stranger(
        right,
        lambda key, s, g, h: (
            s.position
            + h * right(s.position, 0 * g, jnp.full(3, 1 / 3))
            + h * (right(s.position, g, jnp.full(3, 1 / 3)) - right(s.position, 0 * g, jnp.full(3, 1 / 3)))
        ),
    ),
}


def own(change):
    """A step x + h v with a change (x, h, v, state) -> x'."""
    return lambda key, s, g, h: change(s.position, h, right(s.position, g, jnp.full(3, 1 / 3)), s)


WRONG = {
    # the mean does not vanish at the target
    "gradient at the particle that is moved": (
        STEIN,
        lambda x, g, w: jax.vmap(lambda y, own: w @ jax.vmap(lambda a: stein(gaussian)(a, own, y))(x))(x, g),
    ),
    "repulsion of another kernel": (STEIN, by_pairs(lambda x, g, y: jax.grad(rational)(x, y) - gaussian(x, y) * g)),
    "repulsion by y": (STEIN, by_pairs(lambda x, g, y: jax.grad(gaussian, 1)(x, y) - gaussian(x, y) * g)),
    "twice the repulsion": (STEIN, by_pairs(lambda x, g, y: 2 * jax.grad(gaussian)(x, y) - gaussian(x, y) * g)),
    "no repulsion": (STEIN, by_pairs(lambda x, g, y: -gaussian(x, y) * g)),
    "uphill": (STEIN, by_pairs(lambda x, g, y: jax.grad(gaussian)(x, y) + gaussian(x, y) * g)),
    # another step than the velocity
    "backwards": (ALONG, Stranger(right, own(lambda x, h, v, s: x - h * v))),
    "sum for mean": (ALONG, Stranger(right, own(lambda x, h, v, s: x + 3 * h * v))),
    "h squared": (ALONG, Stranger(right, own(lambda x, h, v, s: x + h**2 * v))),
    "first particle kept": (ALONG, Stranger(right, own(lambda x, h, v, s: (x + h * v).at[0].set(x[0])))),
    "friction towards the origin": (ALONG, Stranger(right, own(lambda x, h, v, s: x + h * (v - 1e-3 * x)))),
    # particles that are not alike
    "last one moves nobody": (ALIKE, lambda x, g, w: right(x, g, w * (jnp.arange(3) < 2))),
    "first one counts twice": (ALIKE, lambda x, g, w: right(x, g, w * jnp.array([2.0, 1.0, 1.0]))),
    "last one is not moved": (ALIKE, lambda x, g, w: right(x, g, w) * jnp.array([1.0, 1.0, 0.0])[:, None]),
    "two kinds of kernels": (ALIKE, lambda x, g, w: right(x, g, w).at[0].set(by_pairs(stein(rational))(x, g, w)[0])),
    "first does not move last": (ALIKE, lambda x, g, w: right(x, g, w).at[2].set(right(x, g, w.at[0].set(0.0))[2])),
    # another velocity than that of the declared kernel
    "another kernel": (METHOD, Stranger(right, declared=SteinVelocity(lambda x: rational))),
    "another width": (METHOD, Stranger(right, declared=SteinVelocity(lambda x: lambda a, b: gaussian(a, b) ** 2))),
    "not normalised": (METHOD, Stranger(right, declared=SteinVelocity(lambda x: lambda a, b: 3 * gaussian(a, b)))),
    "no gradient field": (METHOD, Stranger(right, declared=of_flat_metric())),
    "another metric": (METHOD, Stranger(by_pairs(functional), declared=of_flat_metric(lambda x: 2 + x[0] ** 2))),
}


def all_but_direction(proof):
    """Whether all statements are proved, but for the last one."""
    return proof.results and all(r.outcome == "proved" for r in proof.results if r.statement != DIRECTION)


def test_a_target_that_repels_is_not_proved():
    back = by_pairs(lambda x, g, y: -stein(gaussian)(x, g, y))
    assert prove(Stranger(back), 1).verdict == "undecided"
    negative = SteinVelocity(lambda x: lambda a, b: -gaussian(a, b))
    assert prove(Stranger(back, declared=negative), 1).verdict == "undecided"


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("dimension", [1, 2])
def test_right_particles_are_proved_but_for_their_direction_without_a_kernel(name, dimension):
    proof = prove(RIGHT[name], dimension)
    assert all_but_direction(proof), str(proof)
    assert proof.is_proved == (RIGHT[name].declared is not None), str(proof)


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("dimension", [1, 2])
def test_wrong_particles_fail_by_the_statement_they_violate(name, dimension):
    statement, sampler = WRONG[name]
    proof = prove(sampler if isinstance(sampler, Stranger) else Stranger(sampler), dimension)
    assert proof.verdict != "pass", str(proof)
    if name != "gradient at the particle that is moved":  # which is no sum over particles that each give something
        assert proof.verdict == "fail", str(proof)
        assert [r.statement for r in proof.results if r.outcome == "violated"] == [statement], str(proof)


HIDDEN = {
    "move of the step before": own(lambda x, h, v, s: x + h * v + 1e-9 * s.bandwidth),
    "counter": own(lambda x, h, v, s: jnp.where(s.count > 100, x, x + h * v)),
    "noise": lambda key, s, g, h: s.position + h * jax.random.normal(key, s.position.shape),
    "key of a half": lambda key, s, g, h: s.position + h * jax.random.randint(key, (), 0, 2) * g,
    "branch on the state": own(lambda x, h, v, s: jnp.where(x[0, 0] > 1e3, x, x + h * v)),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_is_hidden_is_neither_proved_nor_refuted(name):
    assert prove(Stranger(right, HIDDEN[name]), 1).verdict == "undecided"


SHAPES = {
    "kernel that cannot be read": by_pairs(stein(lambda x, y: jnp.median(jnp.stack([x[0] - y[0], y[0] - x[0], 0.0])))),
    "width of a rule that moves with a smooth function": by_pairs(
        stein(of_width), lambda x: 1 + jnp.mean(distances(x))
    ),
    "two rules": lambda x, g, w: median(x, g, w) / jnp.median(x),
    "wrong with a rule": by_pairs(lambda x, g, y, h: -of_width(x, y, h) * g, lambda x: jnp.median(distances(x))),
    "force by another particle": lambda x, g, w: right(x, g, w) * jnp.roll(x, 1, axis=0),
    "no linear function of the gradient": by_pairs(lambda x, g, y: jnp.tanh(stein(gaussian)(x, g, y))),
}


@pytest.mark.parametrize("name", SHAPES)
def test_velocities_of_another_form_are_left_open(name):
    assert prove(Stranger(SHAPES[name]), 1).verdict == "undecided"


def test_a_function_kept_whole_is_the_number_that_the_program_makes():
    """The polynomials of a step with the median of its arguments in the place of the call: the step itself."""
    sampler, target, h, rng = SVGD(), any_target(2), 0.1, np.random.default_rng(0)
    traced = Traced(sampler, Exact(target), cloud_of(target))
    reader = new_reader(finite_space(None), Path(), finite=True)
    reader.keeps_calls = True
    state = traced.any_state(reader)
    z = [a.constant_term for a in traced.position_of(reader, state)]
    after = [a.constant_term for a in traced.moved(reader, state, finite_step(reader.space))]
    at, generators = rng.normal(size=6), reader.ring.generators
    calls = [number for number, g in enumerate(generators) if isinstance(g, Call)]
    assert [len(generators[number].arguments) for number in calls] == [9]
    values = {next(iter(p.numbers())): mpmath.mpf(v) for p, v in zip(z, at, strict=True)}
    potential = lambda x: jnp.sum(0.3 * x**4) + jnp.sin(x[0] * x[1])
    slope = jax.jit(jax.grad(potential))

    def free(number):
        generator = generators[number]
        match generator:
            case Jet():
                return mpmath.mpf(
                    float(slope(jnp.array([float(of(p)) for p in generator.point]))[generator.orders.index(1)])
                )
            case Call():
                return mpmath.mpf(float(np.median([float(of(p)) for p in generator.arguments])))
        return mpmath.sqrt(mpmath.mpf(h))

    of = evaluator(reader.ring, values, free)
    concrete = Target("quartic", Euclidean(2), jnp.zeros(2), potential)
    start = sampler.init(jax.random.key(0), jnp.asarray(at.reshape(3, 2)), Exact(concrete))
    real = sampler.step(jax.random.key(0), start, h, Exact(concrete)).position
    read = np.array([float(of(p)) for p in after]).reshape(3, 2)
    # the region that is read first is that of particles that do not coincide
    assert np.abs(read - np.asarray(real)).max() < 1e-13


def test_two_calls_are_one_number_only_for_the_same_program_and_inputs():
    reader = new_reader(finite_space(None), Path(), finite=True)
    reader.keeps_calls = True
    traced = Traced(SVGD(), Exact(any_target(1)), cloud_of(any_target(1)))
    z = [a.constant_term for a in traced.position_of(reader, traced.any_state(reader))]
    functions = (jnp.median, jnp.median, lambda x: jnp.median(x[::-1]), lambda x: jnp.quantile(x, 0.3))
    out = evaluated(reader, lambda x: jnp.stack([function(x) for function in functions]), z)
    assert out[0] == out[1]
    assert len(set(out)) == 3
    with pytest.raises(Unreadable):
        out[0].derivative(next(iter(z[0].numbers())))
    assert of_polynomials("", "", [("the difference", out[0] - out[2])]).outcome == "violated"


@pytest.mark.parametrize("name", ["svgd", "rsvgd", "rsvgd-diagonal"])
def test_our_own_rows_are_proved(name):
    proof = prove(sampler_row(name).build, 2)
    assert proof.is_proved, str(proof)


def test_a_call_that_forgets_its_inputs_is_seen(monkeypatch):
    """Planted in the reader: the width of the particles before the step for that of others."""
    wrong = Stranger(median, lambda key, s, g, h: s.position + h * median(2 * s.position, g, jnp.full(3, 1 / 3)))
    other = by_pairs(stein(of_width), lambda x: jnp.median(distances(x)))
    scaled = lambda x, g, w: by_pairs(stein(of_width), lambda _: jnp.median(distances(2 * x)))(x, g, w)
    moves = lambda key, s, g, h: s.position + h * scaled(s.position, g, jnp.full(3, 1 / 3))
    assert prove(wrong, 1).verdict == "undecided"
    assert prove(Stranger(other, moves), 1).verdict == "undecided"
    monkeypatch.setattr(Call, "__eq__", lambda self, another: isinstance(another, Call))
    monkeypatch.setattr(Call, "__hash__", lambda self: 0)
    assert all_but_direction(prove(Stranger(other, moves), 1))


def test_a_divergence_that_is_lost_is_seen(monkeypatch):
    """Planted in the reader: b = 0 for b = div_x a."""
    right_pair = velocity.Velocity._pair

    def without(self, single, i, j):
        pair = right_pair(self, single, i, j)
        return velocity.Pair([[self.ring.zero for _ in row] for row in pair.a], pair.b)

    monkeypatch.setattr(velocity.Velocity, "_pair", without)
    assert prove(Stranger(right), 1).verdict == "fail"
    assert all_but_direction(prove(Stranger(by_pairs(lambda x, g, y: -gaussian(x, y) * g)), 1))
