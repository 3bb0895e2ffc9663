"""pCN, elliptical slice sampling and Barker's proposal: one step by given numbers, and what is kept.

Oracles: formulas written out in NumPy; densities of SciPy; a law by quadrature; moments by Gauss-Hermite quadrature.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.metropolis.barker import Barker, increments, log_density
from sgmcmc_verification.samplers.metropolis.elliptical_slice import EllipticalSlice
from sgmcmc_verification.samplers.metropolis.pcn import PCN
from sgmcmc_verification.targets.registry import target

EPS = float(np.finfo(float).eps)
LINE = target("anharmonic")
T, H = 1.4, 0.2
MANY = 1 << 17


def test_the_proposal_of_pcn_is_reversible_for_the_reference_law():
    """n(x) q(x, y) = n(y) q(y, x) with SciPy's densities, its moments from many draws."""
    sampler, x = PCN(1.7, T), jnp.asarray([0.6])
    draws = np.asarray(
        jax.vmap(lambda k: sampler.propose(k, x, jnp.asarray(H)))(jax.random.split(jax.random.key(1), MANY))
    )
    e = np.exp(-H * T / 1.7**2)
    sd = 1.7 * np.sqrt(1 - e**2)
    assert abs(draws.mean() - e * 0.6) < 6 * sd / MANY**0.5
    assert abs(draws.var() - sd**2) < 6 * sd**2 * (2 / MANY) ** 0.5
    both = lambda a, b: stats.norm.logpdf(a, scale=1.7) + stats.norm.logpdf(b, e * a, sd)
    assert both(0.6, -1.1) == pytest.approx(both(-1.1, 0.6), abs=100 * EPS)


@pytest.mark.parametrize("sampler", [PCN(1.7, T), Barker(T), EllipticalSlice(T)], ids=lambda s: type(s).__name__)
def test_a_step_keeps_the_law(sampler):
    """From draws of exp(-U / T) by a table of its distribution: means of x, x^2 and cos 2 x of step and start agree."""
    grid = np.linspace(*LINE.interval, 20_001)
    density = np.exp(-np.asarray(jax.vmap(LINE.flat_potential)(jnp.asarray(grid)[:, None])) / T)
    table = integrate.cumulative_trapezoid(density, grid, initial=0)
    start = np.interp(np.random.default_rng(2).random(MANY) * table[-1], table, grid)[:, None]
    estimator = Exact(LINE)

    def move(key, x):
        first, second = jax.random.split(key)
        return sampler.position(sampler.step(second, sampler.init(first, x, estimator), 0.7, estimator))

    end = np.asarray(jax.jit(jax.vmap(move))(jax.random.split(jax.random.key(3), MANY), jnp.asarray(start)))
    for f in (lambda x: x, np.square, lambda x: np.cos(2 * x)):
        change = f(end) - f(start)
        assert abs(change.mean()) < 5 * change.std() / MANY**0.5
    assert np.mean(end != start) > 0.3


def test_the_density_of_barkers_proposal_is_the_one_of_its_increments():
    """P(w < 0) and the density ratio at w and -w, from draws; q integrates to 1 with SciPy's normal density."""
    g, sd = 1.9, np.sqrt(2 * H * T)
    draws = np.asarray(
        jax.vmap(lambda k: increments(k, jnp.asarray([g]), H, T))(jax.random.split(jax.random.key(4), MANY))
    )
    q = lambda w: (
        2
        * stats.norm.pdf(w, scale=sd)
        * np.exp(float(log_density(jnp.zeros(1), jnp.asarray([g]), jnp.asarray([w]), T)))
    )
    assert integrate.quad(q, -12, 12)[0] == pytest.approx(1, abs=1e-9)
    down = integrate.quad(q, -12, 0)[0]
    assert abs(np.mean(draws < 0) - down) < 6 * (down * (1 - down) / MANY) ** 0.5


def test_the_drift_of_barkers_dynamics_is_that_of_langevin_to_first_order():
    """E z b = -h g (1 - h g^2 / (2 T)) + O(h^3), by quadrature: sigmoid(-a) - 1/2 = -a / 4 + a^3 / 48."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    g = 0.8
    for h in (1e-2, 1e-3):
        z = np.sqrt(2 * h * T) * nodes
        drift = weights @ (z * np.tanh(-z * g / T / 2)) / weights.sum()
        assert drift == pytest.approx(-h * g * (1 - h * g**2 / (2 * T)), rel=10 * h**2)
        keys = jax.random.split(jax.random.key(5), MANY)
        moved = np.asarray(jax.vmap(lambda k, h=h: increments(k, jnp.asarray([g]), h, T))(keys))
        assert abs(moved.mean() - drift) < 6 * np.sqrt(2 * h * T / MANY)
