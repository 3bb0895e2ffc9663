"""What a diagnosis may be fitted to: a diffusion, and no draws that the state keeps."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.core.lookup import resolve_object
from sgmcmc_verification.checks.diagnosis import diagnose
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.samplers.interface.claims import Claims, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.from_step import simple_sampler
from sgmcmc_verification.targets.registry import target

LINE = target("gaussian-1d-scaled")
CLAIMS = Claims(Source("leimkuhler2013rational", "equation (3)"), StationaryLaw(order=1))


def moved(key, x, h, estimator):
    gradient_key, key = jax.random.split(key)
    return x - h * estimator.estimate(gradient_key, (), x)[0].gradient, jax.random.normal(key, x.shape, x.dtype)


def test_noise_that_is_too_large_is_named():
    def step(key, x, h, estimator):
        x, draw = moved(key, x, h, estimator)
        return x + 2 * jnp.sqrt(h) * draw

    found = diagnose(resolve_object("local", simple_sampler(step, claims=CLAIMS))[0], LINE)
    assert found is not None
    assert "4 h for 2 h" in found.text


def test_a_draw_that_is_kept_is_no_noise_of_the_order_one():
    """Averaged draws that are too large: the state holds the last one, whose variance does not depend on h."""

    def step(key, state, h, estimator):
        x, before = state
        x, draw = moved(key, x, h, estimator)
        return x + jnp.sqrt(h) * (before + draw), draw

    init = lambda key, position, estimator: (position, jax.random.normal(key, position.shape, position.dtype))
    sampler = simple_sampler(step, init=init, position=lambda state: state[0], claims=CLAIMS)
    subject = resolve_object("local", sampler)[0]
    assert step_map(subject, LINE).size == 2 * LINE.size
    assert diagnose(subject, LINE) is None
