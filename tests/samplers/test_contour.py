"""Contour SGLD: the weights of draws, where the weights of the bins settle, and the temperature of log-linear weights.

Oracles: adaptive quadrature of the law and of its bins; SGLD on a scaled potential.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

from sgmcmc_verification.checks.tiers.law.contour import log_psi, resting_weights
from sgmcmc_verification.checks.tracing.noise_tape import Noise, record
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.interface.claims import AdaptiveLaw, Diffusion, FlattenedLaw, StationaryLaw
from sgmcmc_verification.samplers.overdamped.contour_sgld import ContourSGLD
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target

EPS = float(np.finfo(np.float64).eps)
WELL = target("double-well")
LINE = np.linspace(*WELL.interval, 20_001)
ENERGY = np.asarray(jax.vmap(WELL.flat_potential)(jnp.asarray(LINE[:, None])))
LAW = np.exp(-(ENERGY - ENERGY.min())) / np.exp(-(ENERGY - ENERGY.min())).sum()
LEAST = float(ENERGY.min())


def test_importance_weights_turn_averages_of_the_flattened_law_into_those_of_the_target():
    log_weights = -0.2 * np.arange(10) + 0.4 * np.cos(3.0 * np.arange(10))
    sampler = ContourSGLD(zeta=0.6, first_edge=LEAST + 0.25, log_weights=tuple(log_weights), rate=1.0)
    psi = log_psi(sampler.claims[FlattenedLaw], jnp.asarray(log_weights), jnp.asarray(ENERGY))
    flattened = LAW * np.exp(-0.6 * np.asarray(psi))
    importance = np.exp(np.asarray(sampler.log_importance(jnp.asarray(log_weights), jnp.asarray(ENERGY))))
    for f in (LINE, LINE**2, LINE**4):
        expected = LAW @ f
        assert flattened @ (importance * f) / (flattened @ importance) == pytest.approx(expected, abs=1e3 * EPS)
    assert abs(flattened @ LINE**2 / flattened.sum() - LAW @ LINE**2) > 1e-3


def test_weights_rest_at_the_histogram_of_the_energy_up_to_the_order_of_zeta():
    """Within a bin w_J / Psi is not 1, so that the weights settle off the histogram by a multiple of zeta."""
    edges, gaps = LEAST + 0.5 * np.arange(1, 11), []
    histogram = np.bincount(np.clip(np.searchsorted(edges, ENERGY), 0, 9), LAW, minlength=10)
    for zeta in (0.02, 0.01):
        resting = resting_weights(FlattenedLaw(1.0, zeta, edges, 1.0), LAW, ENERGY)
        gaps.append(float(np.abs(resting - histogram).sum()))
    # the next term is zeta times as large, and a tenth of the first would already be visible here
    assert gaps[0] == pytest.approx(2 * gaps[1], rel=0.1)


def test_histogram_of_the_grid_is_that_of_adaptive_quadrature():
    density = lambda x: float(np.exp(-(float(WELL.flat_potential(jnp.asarray([x]))) - LEAST)))
    total = integrate.quad(density, *WELL.interval, limit=200)[0]
    half = integrate.quad(density, WELL.interval[0], 0.0, limit=200)[0]
    assert LAW[LINE < 0].sum() == pytest.approx(half / total, abs=2e-3)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_log_linear_weights_make_it_sgld_of_another_temperature(temperature):
    sampler = sampler_row("csgld-kept").build(WELL, temperature=temperature, zeta=0.5)
    tau = 1 / (1 / temperature - 0.5 * 0.3)
    assert sampler.claims.temperature == pytest.approx(temperature, rel=4 * EPS)
    h, x, e = 0.03, jnp.array([0.7]), jnp.array([0.4])
    ends = []
    for method, step in ((sampler, h), (SGLD(temperature), h * tau / temperature)):
        state = method.init(jax.random.key(0), x, Exact(WELL))
        advance = lambda s, method=method, step=step: method.step(jax.random.key(1), s, step, Exact(WELL))
        program = record(advance, state)
        ends.append(float(program(Noise(e, jnp.zeros(0), jnp.zeros(0, int)), state).position[0]))
    # the same SDE with time running tau / T times as fast
    assert ends[0] == pytest.approx(ends[1], rel=1e3 * EPS)


def test_claims_have_a_temperature_for_kept_log_linear_weights_only():
    kinked = ContourSGLD(log_weights=(0.0, 0.3, 0.1))
    assert AdaptiveLaw in kinked.claims
    assert Diffusion not in kinked.claims
    assert AdaptiveLaw in ContourSGLD(log_weights=(0.0, 0.3, 0.6), rate=1.0).claims
    assert StationaryLaw in ContourSGLD(log_weights=(0.0, 0.3, 0.6)).claims


@pytest.mark.parametrize(
    "options",
    [{"temperature": 0.0}, {"zeta": 0.0}, {"width": -1.0}, {"rate": -1.0}, {"log_weights": (0.0,)}],
)
def test_bad_options_are_refused_by_name(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        ContourSGLD(**options)
