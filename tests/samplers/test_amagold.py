"""AMAGOLD: one transition by hand, what a rejection does, and the law with minibatches at a large step.

Oracles: a plain NumPy loop from the algorithm of the paper; the exact posterior of Gaussian data.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sgmcmc_verification.checks.tracing.noise_tape import Noise, record
from sgmcmc_verification.samplers.dynamics.underdamped import PhasePoint
from sgmcmc_verification.samplers.estimators.basic import Exact, FromLogDensity, FullEnergy, Minibatch
from sgmcmc_verification.samplers.underdamped.amagold import AMAGOLD
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.targets.registry import target

EPS = float(np.finfo(np.float64).eps)
RATE = 1e-6
QUARTIC = FromLogDensity(lambda x: -jnp.sum(x**4) / 4 - jnp.sum(x**2))
DATA = target("tiny-gaussian-data")


def transition(x, r, noise, h, C, T):
    """End of the trajectory and log of its acceptance ratio, as in the source with sigma^2 = T and beta = C / 2."""
    U = lambda a: np.sum(a**4) / 4 + np.sum(a**2)
    beta, start, rho = C / 2, x, 0.0
    x = x + h / 2 * r
    for t, n in enumerate(noise):
        if t:
            x = x + h * r
        g = x**3 + 2 * x
        new = ((1 - h * beta) * r - h * g + np.sqrt(4 * h * beta * T) * n) / (1 + h * beta)
        rho += h * g @ (r + new) / 2 / T
        r = new
    x = x + h / 2 * r
    return x, r, (U(start) - U(x)) / T + rho


@pytest.mark.parametrize("num_steps", [1, 3])
def test_transition_is_that_of_the_published_algorithm(num_steps):
    h, C, T = 0.5, 1.3, 0.6
    sampler = AMAGOLD(num_steps, C, T)
    state = sampler.pack(jax.random.key(0), PhasePoint(jnp.array([0.9, -0.4]), jnp.array([1.1, 0.8])), QUARTIC)
    program = record(lambda s: sampler.step(jax.random.key(1), s, h, QUARTIC), state)
    assert program.count("normal") == 2 * num_steps
    run = jax.jit(lambda e, u: program(Noise(e, u[None], jnp.zeros(0, int)), state))
    for seed in range(6):
        noise = np.random.default_rng(seed).standard_normal((num_steps, 2))
        x, r, log_ratio = transition(np.array([0.9, -0.4]), np.array([1.1, 0.8]), noise, h, C, T)
        a = min(1.0, np.exp(log_ratio))
        end = run(jnp.asarray(noise.ravel()), jnp.asarray(a * (1 - 1e-9)))
        np.testing.assert_allclose(end.position, x, rtol=0, atol=1e2 * EPS)
        np.testing.assert_allclose(end.momentum, r, rtol=0, atol=1e2 * EPS)
        assert float(end.potential) == pytest.approx(np.sum(x**4) / 4 + np.sum(x**2), rel=1e2 * EPS)
        if a < 1:
            back = run(jnp.asarray(noise.ravel()), jnp.asarray(a * (1 + 1e-9)))
            np.testing.assert_array_equal(back.position, state.position)
            np.testing.assert_array_equal(back.momentum, -state.momentum)
            assert float(back.potential) == float(state.potential)


def test_law_with_minibatches_at_a_large_step_is_the_posterior_where_that_of_sghmc_is_not():
    estimator = FullEnergy(Minibatch(DATA.terms, 1), DATA)
    root = np.linalg.cholesky(DATA.gaussian.precision)
    h, count, steps, size = 0.9 / np.sqrt(DATA.curvature), 20_000, 15, DATA.size
    generator = np.random.default_rng(0)
    x = DATA.gaussian.mean + generator.standard_normal((count, size)) @ np.linalg.inv(root)
    z = PhasePoint(jnp.asarray(x), jnp.asarray(generator.standard_normal((count, size))))

    def ends(sampler):
        def chain(key, z):
            state = sampler.pack(key, z, estimator)
            body = lambda i, s: sampler.step(jax.random.fold_in(key, i), s, h, estimator)
            return sampler.position(jax.lax.fori_loop(0, steps, body, state))

        found = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(5), count), z)
        return float(np.sum(((np.asarray(found) - DATA.gaussian.mean) @ root) ** 2))

    low, high = stats.chi2(size * count).ppf(RATE / 2), stats.chi2(size * count).isf(RATE / 2)
    assert low < ends(AMAGOLD()) < high
    assert ends(SGHMC()) > high


def test_estimators_without_a_potential_and_options_out_of_range_are_refused():
    with pytest.raises(ValueError, match="estimator: a Metropolis test needs the potential"):
        AMAGOLD().init(jax.random.key(0), jnp.zeros(1), FullEnergyless())
    for options in ({"num_steps": 0}, {"friction": 0.0}, {"temperature": -1.0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            AMAGOLD(**options)


class FullEnergyless:
    """Exact gradients of a Gaussian, no potential."""

    def init(self, key, position):
        return ()

    def estimate(self, key, estate, position):
        estimate, estate = Exact(target("gaussian-1d-scaled")).estimate(key, estate, position)
        return estimate._replace(potential=None), estate
