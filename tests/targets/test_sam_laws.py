"""SAM with two topics: the quadrature, and where the mean of potentials goes. Laws of the methods: tier `workload`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from sgmcmc_verification.checks.tiers.workload.sam import advanced, moments, starts
from sgmcmc_verification.samplers.topic_models.sam.enumerated import DRAWN, metropolis
from sgmcmc_verification.targets.registry import target
from sgmcmc_verification.targets.topic_models.sam import tiny

Z = stats.norm.isf(5e-7 / 8)  # 1e-6 over up to nine statistics


# The oracle --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [2, 3])
def test_the_potential_is_that_of_an_adaptive_integral_over_the_weight(words):
    law, model, documents = target(f"sam-s{words - 1}"), tiny.tiny_model(words), tiny.tiny_documents(words)
    rng = np.random.default_rng(0)
    values = []
    for beta in rng.standard_normal((3, 2, words)) + 2 * model.direction:
        beta /= np.linalg.norm(beta, axis=1, keepdims=True)
        r = np.linalg.norm(model.prior_concentration * model.direction + model.topic_concentration * beta.sum(axis=0))
        nu = words / 2 - 1
        value = nu * np.log(r) - np.log(special.ive(nu, r)) - r
        for v in documents:

            def density(x, v=v, beta=beta):
                b = x * beta[0] + (1 - x) * beta[1]
                return stats.beta.pdf(x, *tiny.ALPHA) * np.exp(model.concentration * (v @ b) / np.linalg.norm(b))

            value -= np.log(integrate.quad(density, 0, 1, epsabs=0, epsrel=1e-11)[0])
        values.append((float(law.potential(jnp.asarray(beta))), value))
    found, expected = np.array(values).T
    # both up to a constant, which drops out of differences; the rule is in error by 1e-8 at most
    np.testing.assert_allclose(np.diff(found), np.diff(expected), atol=1e-7)
    assert all(m.error < 2e-4 for m in law.moments.values())


# The mean of potentials ----------------------------------------------------------------------------------------------


def full_refresh_law():
    """Stationary law on a grid of S^1 x S^1 of: draw beta' from exp(-E[U(beta', theta) | beta])."""
    model, documents = tiny.tiny_model(2), tiny.tiny_documents(2)
    theta, mass = tiny.weight_rule(24)
    angles = 2 * np.pi * (np.arange(36) + 0.5) / 36
    one = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points = np.stack(np.broadcast_arrays(one[:, None], one[None]), axis=2).reshape(-1, 2, 2)
    b = np.einsum("tk,pkv->ptv", theta, points)
    cosines = model.concentration * np.einsum("ptv,dv->pdt", b / np.linalg.norm(b, axis=-1, keepdims=True), documents)
    given = np.exp(cosines - cosines.max(axis=-1, keepdims=True)) * mass
    given /= given.sum(axis=-1, keepdims=True)
    prior = np.asarray(jax.vmap(model.prior)(jnp.asarray(points)))
    levels = np.einsum("pdt,qdt->pq", given, cosines, optimize=True) - prior
    kernel = np.exp(levels - levels.max(axis=1, keepdims=True))
    kernel /= kernel.sum(axis=1, keepdims=True)
    law = np.full(len(points), 1 / len(points))
    for _ in range(400):
        law = law @ kernel
    assert np.abs(law @ kernel - law).sum() < 1e-8
    return points, law


def test_the_mean_of_potentials_has_another_law_where_trajectories_forget_their_start():
    """GMC-apprMH: with complete refreshes its law is that of a kernel on a grid, and not the posterior."""
    law = target("sam-s1")
    points, weights = full_refresh_law()
    known = moments(law)
    functions = [m.function for m in law.moments.values()]
    values = np.stack([np.asarray(jax.vmap(f)(jnp.asarray(points))) for f in functions], axis=1)
    off = weights @ values - known.expected
    assert np.abs(off).max() > 0.02
    # complete refreshes by simulation: 8 trajectories with the same potential
    start = starts(law, np.random.default_rng(0), 1000)
    ends = advanced(metropolis("gmc-apprmh", 2, 0.25, num_steps=8, burn_in=15), start, 8, 0)
    found = np.stack([np.asarray(jax.vmap(f)(jnp.asarray(ends))) for f in functions], axis=1)
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    deviation = found.mean(axis=0) - known.expected
    # with one weight it is Gibbs sampling, without bias, so that the limit is reached up to 1 / N of it
    assert np.all(np.abs(deviation - off) < Z * error + np.abs(off).max() / DRAWN)
    assert np.any(np.abs(deviation) > Z * error)
