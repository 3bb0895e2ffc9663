"""Pytrees, many coordinates and gradient noise: what is right for two coordinates and wrong for others."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.proof.prove import prove, prove_everywhere
from sgmcmc_verification.checks.proof.settings import LARGE, TREE
from sgmcmc_verification.samplers.interface.claims import Claims, Source, StationaryLaw
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.samplers.simple import simple_sampler


def gradient(estimator, x, key=None):
    return estimator.estimate(jax.random.key(0) if key is None else key, (), x)[0].gradient


def sampler(noise, reflected=False):
    """SGLD on any pytree with the noise `noise(key, x)`; on positive ones `reflected` at zero."""

    def step(key, x, h, estimator):
        other, key = jax.random.split(key)
        g = gradient(estimator, x, other)
        new = jax.tree.map(lambda a, b, n: a - h * b + jnp.sqrt(2 * h) * n, x, g, noise(key, x))
        return jax.tree.map(jnp.abs, new) if reflected else new

    if not reflected:
        return simple_sampler(step)
    claims = Claims(Source("", "none"), StationaryLaw(order=1), spaces=("positive",))
    return simple_sampler(step, claims=claims)


def flat_noise(key, x):
    flat, unravel = ravel_pytree(x)
    return unravel(jax.random.normal(key, flat.shape, flat.dtype))


def shared_by_leaves(key, x):
    return jax.tree.map(lambda a: jax.random.normal(key, a.shape, a.dtype), x)


def first_twenty(key, x):
    flat, unravel = ravel_pytree(x)
    return unravel(jnp.where(jnp.arange(flat.size) < 20, jax.random.normal(key, flat.shape, flat.dtype), 0.0))


def test_a_right_sampler_passes_everywhere():
    proof = prove_everywhere(sampler(flat_noise))
    assert proof.verdict == "pass", str(proof)
    assert f"d = {LARGE}" in proof.setting
    assert "pytree" in proof.setting
    assert not proof.left_out


def test_what_is_wrong_for_many_coordinates_fails_there():
    assert prove(sampler(first_twenty), 2).verdict == "pass"
    proof = prove_everywhere(sampler(first_twenty))
    assert proof.verdict == "fail", str(proof)
    assert proof.reason.startswith(f"d = {LARGE}")


def test_a_key_for_all_leaves_does_not_pass():
    """Leaves of one shape get the same draws; what those of other shapes have in common is not known."""
    assert prove(sampler(shared_by_leaves), 2).verdict == "pass"
    proof = prove_everywhere(sampler(shared_by_leaves))
    assert proof.verdict == "undecided", str(proof)
    assert any(result.outcome == "violated" and "pytree" in result.setting for result in proof.results)


def test_reflections_on_a_positive_pytree_are_no_branches():
    right, wrong = (prove(sampler(noise, reflected=True), TREE) for noise in (flat_noise, shared_by_leaves))
    assert right.verdict == "pass", str(right)
    assert wrong.verdict != "pass"
    assert any(result.outcome == "violated" for result in wrong.results)


def test_a_step_with_too_many_branches_is_given_up_at_once():
    """|x| of nine coordinates of any sign has 512 regions."""

    def step(key, x, h, estimator):
        size = jax.tree.map(lambda a: jnp.sqrt(1 + jnp.abs(a)), x)
        noise = flat_noise(key, x)
        return jax.tree.map(lambda a, b, c: a + jnp.sqrt(2 * h) * b * c, x, noise, size)

    proof = prove(simple_sampler(step), TREE)
    assert proof.verdict == "undecided"
    assert "more than 7 branches" in proof.reason


def test_a_key_that_is_shared_with_the_gradient_shows_under_noise_only():
    def step(key, x, h, estimator):
        noise = jax.random.normal(key, x.shape, x.dtype)
        return x - h * gradient(estimator, x, key) + jnp.sqrt(2 * h) * noise

    assert prove(simple_sampler(step), 2).verdict == "pass"
    proof = prove_everywhere(simple_sampler(step))
    assert proof.verdict == "undecided"
    assert "gradient noise" in proof.reason


def test_positions_that_a_sampler_refuses_are_left_out():
    row = sampler_row("sgrld-non-hessian")  # for two coordinates
    proof = prove_everywhere(row.build, row.estimator)
    assert proof.verdict == "pass", str(proof)
    assert any("2 coordinates" in reason for reason in proof.left_out)
