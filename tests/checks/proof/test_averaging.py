"""Momenta that keep a fixed share of themselves in each step, as those of optimisers do: averaged over."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.samplers.simple import simple_sampler

SHARE = 0.75


def started(key, x, estimator):
    return (x, jnp.zeros_like(x))


def with_momentum(move):
    """A sampler of (x, v) from move(x, v, h, g, n, gradient) -> (x', v'), with n a normal and g the gradient at x."""

    def step(key, state, h, estimator):
        x, v = state
        gradient = lambda y: estimator.estimate(jax.random.key(0), (), y)[0].gradient
        return move(x, v, h, gradient(x), jax.random.normal(key, x.shape, x.dtype), gradient)

    return simple_sampler(
        step,
        init=started,
        position=lambda s: s[0],
        unpack=lambda s: s,
        pack=lambda k, z, e: z,
        needs=("gradient",),
    )


def friction(x, v, h, g, n, gradient):
    """Chen, Fox and Guestrin (2014), equation 15."""
    v = SHARE * v - h * g + jnp.sqrt(2 * (1 - SHARE) * h) * n
    return x + v, v


def buffer_of_an_optimiser(x, v, h, g, n, gradient):
    v = SHARE * v + g + jnp.sqrt(2 * (1 - SHARE) / h) * n
    return x - h * v, v


def average_of_gradients(x, v, h, g, n, gradient):
    v = SHARE * v + (1 - SHARE) * g
    return x - h * v + jnp.sqrt(2 * h) * n, v


def nesterov(x, v, h, g, n, gradient):
    v = SHARE * v - h * gradient(x + SHARE * v) + jnp.sqrt(2 * (1 - SHARE) * h) * n
    return x + v, v


def moved_before_and_after(x, v, h, g, n, gradient):
    x = x + v / 2
    v = SHARE * v - h * gradient(x) + jnp.sqrt(2 * (1 - SHARE) * h) * n
    return x + v / 2, v


def half_of_the_noise_at_once(x, v, h, g, n, gradient):
    """The noise reaches the position in part by the momentum: n / (1 - SHARE) and n add up."""
    v = SHARE * v - h * g + (1 - SHARE) * jnp.sqrt(h / 2) * n / (1 - SHARE) ** 0.5
    return x + v + jnp.sqrt(h / 2) * n / (1 - SHARE) ** 0.5, v


def without_the_share(x, v, h, g, n, gradient):
    v = SHARE * v - h * g + jnp.sqrt(2 * h) * n
    return x + v, v


def noise_that_passes_the_buffer(x, v, h, g, n, gradient):
    v = SHARE * v + g + jnp.sqrt(2 / h) * n
    return x - h * v, v


def noise_beside_the_buffer(x, v, h, g, n, gradient):
    v = SHARE * v + g
    return x - h * v + jnp.sqrt(2 * h) * n, v


def damped_twice(x, v, h, g, n, gradient):
    v = SHARE * v - h * (1 - SHARE) * g + jnp.sqrt(2 * (1 - SHARE) * h) * n
    return x + v, v


def nesterov_counted_twice(x, v, h, g, n, gradient):
    v = SHARE * v - h * gradient(x + SHARE * v) + jnp.sqrt(2 * (1 - SHARE) * h) * n
    return x + SHARE * v - h * g, v


def noise_of_the_position(x, v, h, g, n, gradient):
    """The variance depends on the position, and nothing makes up for it."""
    spread = 1 + jnp.exp(-(x**2)) / 2
    v = SHARE * v - h * spread**2 * g + jnp.sqrt(2 * (1 - SHARE) * h) * spread * n
    return x + v, v


RIGHT = (
    friction,
    buffer_of_an_optimiser,
    average_of_gradients,
    nesterov,
    moved_before_and_after,
    half_of_the_noise_at_once,
)
WRONG = (
    without_the_share,
    noise_that_passes_the_buffer,
    noise_beside_the_buffer,
    damped_twice,
    nesterov_counted_twice,
    noise_of_the_position,
)


@pytest.mark.parametrize("move", RIGHT, ids=lambda move: move.__name__)
@pytest.mark.parametrize("dimension", [1, 2])
def test_a_right_one_is_proved(move, dimension):
    proof = prove(with_momentum(move), dimension)
    assert proof.verdict == "pass", str(proof)


@pytest.mark.parametrize("move", WRONG, ids=lambda move: move.__name__)
def test_a_wrong_one_fails(move):
    proof = prove(with_momentum(move), 1)
    assert proof.verdict == "fail", str(proof)
    assert "c_" in proof.reason


def limit_of_variance(move, h=1e-4):
    """The variance of x at rest on U = x^2 / 2, by the stationary covariance of the linear recursion of (x, v)."""
    of = lambda x, v, n: np.array([float(a) for a in move(x, v, h, x, n, lambda y: y)])
    matrix = np.stack([of(1.0, 0.0, 0.0), of(0.0, 1.0, 0.0)], axis=1)
    noise = of(0.0, 0.0, 1.0)
    square = np.linalg.solve(np.eye(4) - np.kron(matrix, matrix), np.outer(noise, noise).ravel())
    return square.reshape(2, 2)[0, 0]


@pytest.mark.parametrize("move", [*RIGHT, *WRONG[:-1]], ids=lambda move: move.__name__)
def test_verdicts_are_those_of_the_stationary_covariance_on_a_gaussian(move):
    assert (abs(limit_of_variance(move) - 1) < 1e-3) == (prove(with_momentum(move), 1).verdict == "pass")


def test_a_momentum_whose_share_depends_on_the_position_is_undecided():
    def move(x, v, h, g, n, gradient):
        share = SHARE / (1 + x**2)
        v = share * v - h * g + jnp.sqrt(2 * (1 - share) * h) * n
        return x + v, v

    assert prove(with_momentum(move), 1).verdict == "undecided"


def test_a_momentum_that_never_forgets_is_undecided():
    def move(x, v, h, g, n, gradient):
        return x + v - h * g + jnp.sqrt(2 * h) * n, v

    assert prove(with_momentum(move), 1).verdict == "undecided"


def test_skewed_noise_is_right_at_the_rate_that_it_has():
    """An exponential noise has a third moment: it enters at the rate h^(1/2)."""

    def step(key, state, h, estimator):
        x, v = state
        g = estimator.estimate(jax.random.key(0), (), x)[0].gradient
        v = SHARE * v - h * g + jnp.sqrt(2 * (1 - SHARE) * h) * (jax.random.exponential(key, x.shape, x.dtype) - 1)
        return x + v, v

    keep = {"unpack": lambda s: s, "pack": lambda k, z, e: z, "position": lambda s: s[0], "needs": ("gradient",)}
    proof = prove(simple_sampler(step, init=started, **keep), 1)
    assert proof.verdict == "fail"
    assert "h^(1/2)" in proof.reason
