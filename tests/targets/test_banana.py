"""The banana at temperatures other than 1."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from sgmcmc_verification.targets.euclidean.banana import banana


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_the_law_at_a_temperature_is_that_of_the_scaled_potential(temperature):
    """Moments and draws against quadrature of exp(-U / T) on a grid, which knows neither."""
    hot, law = banana().tempered(temperature), banana()  # type: ignore[misc]
    x, y = np.linspace(-7, 7, 701), np.linspace(-6, 14, 1201)
    grid = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1)
    energy = np.asarray(jax.vmap(jax.vmap(law.potential))(jnp.asarray(grid)))
    density = np.exp(-energy / temperature)
    total = integrate.simpson(integrate.simpson(density, x=y), x=x)
    for name, moment in hot.moments.items():
        values = np.asarray(jax.vmap(jax.vmap(moment.function))(jnp.asarray(grid)))
        expected = integrate.simpson(integrate.simpson(values * density, x=y), x=x) / total
        assert moment.value == pytest.approx(expected, rel=1e-6, abs=1e-8), name
    nodes, weights = hot.quadrature(24)  # type: ignore[misc]
    assert weights @ nodes[:, 0] ** 2 == pytest.approx(hot.moments["theta[0]^2"].value, rel=1e-8)
    draws = np.asarray(hot.sample(jax.random.key(3), 4000))  # type: ignore[misc]
    for cdf in hot.cdfs.values():
        assert stats.kstest(np.asarray(jax.vmap(cdf.function)(jnp.asarray(draws))), cdf.cdf).pvalue > 1e-3
