"""Every method on SAM with two topics on S^1 and S^2 and three documents: its law against quadrature.

Chains are independent and start from the exact law, so that the moments of their ends have a binomial-like error and no
autocorrelation enters. The bias that remains has a computed allowance.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from samplers.gmc import GMC
from samplers.gradients import Exact
from samplers.gsgnht import GSGNHT
from samplers.sam import methods as methods_module
from samplers.sam.estimator import draw_batch
from samplers.sam.methods import Method, build
from samplers.sam.weights import WeightSettings
from samplers.sggmc import SGGMC
from targets.manifolds.product_of_spheres import ProductOfSpheres
from targets.registry import target
from targets.sam import tiny
from targets.sam.documents import as_rows
from targets.sam.model import SAM

Z = stats.norm.isf(5e-7 / 8)  # 1e-6 over up to nine statistics
CHAINS = 1500


@cache
def exact(words, temperature=1.0):
    """Points (m, 2, V), weights and the moments' values at a temperature."""
    points, weights = target(f"sam-s{words - 1}").quadrature(72 if words == 2 else 16)
    weights = np.where(weights > 0, weights, 0) ** (1 / temperature)
    if temperature != 1.0 and words == 3:
        raise ValueError("the rule on S^2 has weights that are not equal")
    return points.reshape(-1, 2, words), weights / weights.sum()


def starts(words, count, seed=0):
    """Draws from the points of the rule: their expectations are those of the law, for smooth functions."""
    points, weights = exact(words)
    return points[np.random.default_rng(seed).choice(len(points), count, p=weights)]


def statistics(words, beta):
    law = target(f"sam-s{words - 1}")
    return {name: np.asarray(jax.vmap(m.function)(jnp.asarray(beta))) for name, m in law.moments.items()}


def deviations(words, beta):
    """{name: (mean minus the exact value, its standard error)}."""
    law = target(f"sam-s{words - 1}")
    return {
        name: (values.mean() - law.moments[name].value, values.std(ddof=1) / np.sqrt(len(values)))
        for name, values in statistics(words, beta).items()
    }


def worst(words, beta, allowance=None):
    """Largest deviation, less its allowance, in standard errors."""
    allowance = allowance or {}
    return max((abs(d) - allowance.get(k, 0.0) - 2e-4) / e for k, (d, e) in deviations(words, beta).items())


def rows(words):
    return as_rows(tiny.tiny_documents(words))


def advanced(method, words, samples, seed=0, chains=CHAINS):
    """Topics of independent chains after so many samples."""
    rng = np.random.default_rng(seed)
    state = method.init(rng, starts(words, chains, seed))
    for _ in range(samples):
        state = method.sample(rng, state)
    return method.topics(state)


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


# Exact gradients: nothing but the step size can be wrong ---------------------------------------------------------


def exact_chains(sampler, words, step_size, steps, chains=CHAINS):
    law = target(f"sam-s{words - 1}")
    estimator = Exact(law)

    @jax.jit
    def go(key, start):
        def chain(key, x):
            first, rest = jax.random.split(key)
            body = lambda s, k: (sampler.step(k, s, step_size, estimator), None)
            return sampler.position(
                jax.lax.scan(body, sampler.init(first, x, estimator), jax.random.split(rest, steps))[0]
            )

        return jax.vmap(chain)(jax.random.split(key, len(start)), start)

    return np.asarray(go(jax.random.key(0), jnp.asarray(starts(words, chains))))


@pytest.mark.parametrize(("name", "words"), [("sggmc", 2), ("gsgnht", 2), ("gmc", 2), ("gsgnht", 3)])
def test_samplers_with_exact_gradients_have_the_law_of_quadrature(name, words):
    manifold = ProductOfSpheres(2, words)
    sampler = {"sggmc": SGGMC(manifold, 3.0), "gsgnht": GSGNHT(manifold, 3.0), "gmc": GMC(manifold, 4)}[name]
    # h^2 lambda / 12 of a standard deviation (FACTS of a Gaussian law): below 1e-3 at h = 0.02, lambda = 26
    assert worst(words, exact_chains(sampler, words, 0.02 if name != "gmc" else 0.15, 50 if name != "gmc" else 6)) < Z


class Ambient(ProductOfSpheres):
    """The released program's dimension."""

    @property
    def dim(self):
        return self.count * self.n


def test_the_ambient_dimension_in_gsgnht_is_seen():
    assert worst(2, exact_chains(GSGNHT(Ambient(2, 2), 3.0), 2, 0.02, 100, 5000)) > Z


# Batches and sampled weights ---------------------------------------------------------------------------------------


def noisy(kind, words, **changes):
    manifold = changes.pop("manifold", ProductOfSpheres(2, words))
    settings = {"step_size": 0.008, "num_steps": 3, "batch_size": 2, "weights": WeightSettings(12, 4, 4, 0.2)} | changes
    sampler = SGGMC(manifold, 10.0) if kind == "sggmc" else GSGNHT(manifold, 10.0)
    return Method(settings.pop("model", tiny.tiny_model(words)), sampler, rows(words), **settings)


@cache
def inflation():
    """Temperature of a chain on S^1 with gradient noise that is frozen for L steps: 1 + L h V / (2 C), and its effect.

    V is the largest eigenvalue of the covariance of the tangent gradient over batches and weights, mean over the law.
    """
    method, rng = noisy("sggmc", 2), np.random.default_rng(1)
    points = starts(2, 200, 5)
    repeated = jnp.asarray(np.repeat(points, 30, axis=0))
    batch = draw_batch(rng, method.model, method.rows, np.asarray(repeated), 2, method.weights)
    gradients = np.asarray(jax.vmap(lambda x, *b: _gradient(method.model, x, b))(repeated, *map(jnp.asarray, batch)))
    turned = np.stack([-repeated[..., 1], repeated[..., 0]], axis=-1)
    along = np.sum(gradients * turned, axis=-1).reshape(200, 30, 2)
    covariance = np.mean([np.cov(part.T) for part in along], axis=0)
    temperature = 1 + 3 * 0.008 * float(np.linalg.eigvalsh(covariance)[-1]) / (2 * 10)
    points, hot = exact(2, temperature)
    _, cold = exact(2)
    values = statistics(2, points)
    return temperature, {name: abs(hot @ v - cold @ v) for name, v in values.items()}


def _gradient(model, x, batch):
    return methods_module.BatchEstimator(model, methods_module.Batch(*batch)).estimate(None, (), x)[0].gradient


def test_sggmc_with_batches_and_sampled_weights_has_the_law_up_to_its_noise():
    temperature, shift = inflation()
    assert 1.0 < temperature < 1.2
    assert worst(2, advanced(noisy("sggmc", 2), 2, 60), shift) < Z


def test_gsgnht_with_batches_and_sampled_weights_has_the_law():
    # its thermostat takes up the noise but for its anisotropy, of which the inflation of SGGMC is a bound
    assert worst(2, advanced(noisy("gsgnht", 2), 2, 60), inflation()[1]) < Z


def test_sggmc_on_s2_has_the_law():
    # the shift on S^1 as the allowance: the noise is of the same size and the law has more dimensions to share it
    largest = max(inflation()[1].values())
    allowed = dict.fromkeys(target("sam-s2").moments, largest)
    assert worst(3, advanced(noisy("sggmc", 3), 3, 50), allowed) < Z


class NoPrior(SAM):
    """The Bessel ratio term is missing."""

    def prior_gradient(self, beta):
        return jnp.zeros_like(beta[0])


def planted(bug, monkeypatch):
    """Chains of SGGMC on S^1 with a planted bug."""
    if bug == "no Bessel ratio":
        m = tiny.tiny_model(2)
        model = NoPrior(m.direction, m.alpha, m.prior_concentration, m.topic_concentration, m.concentration)
        return noisy("sggmc", 2, model=model)
    usual = methods_module.draw_batch
    if bug == "no D / S":

        def changed(*arguments):
            batch = usual(*arguments)
            return batch._replace(scale=np.full_like(batch.scale, 1 / batch.weights.shape[2]))
    elif bug == "Gram of other topics":

        def changed(generator, model, documents, beta, *rest):
            return usual(generator, model, documents, beta[:, ::-1].copy(), *rest)
    else:

        def changed(*arguments):
            batch = usual(*arguments)
            return batch._replace(weights=batch.weights[:, ::-1].copy())

    monkeypatch.setattr(methods_module, "draw_batch", changed)
    # with one of the three documents two thirds of the force are missing without D / S
    return noisy("sggmc", 2, batch_size=1 if bug == "no D / S" else 2)


@pytest.mark.parametrize("bug", ["no Bessel ratio", "no D / S", "Gram of other topics", "weights of another document"])
def test_planted_bugs_of_the_method_are_seen(bug, monkeypatch):
    shift = inflation()[1]
    assert worst(2, advanced(planted(bug, monkeypatch), 2, 60), shift) > Z


# Metropolis methods --------------------------------------------------------------------------------------------------


DRAWN = 20
"""Weights a document of GMC-apprMH."""


def metropolis(name, words, step_size, num_steps=1, **options):
    manifold = ProductOfSpheres(2, words)
    weights = WeightSettings(options.pop("burn_in", 12), 1 if name == "gmc-bgibbs" else DRAWN, 4, 0.2)
    return build(
        name, tiny.tiny_model(words), rows(words), sampler=GMC(manifold, 4), step_size=step_size, num_steps=num_steps,
        weights=weights,
    )  # fmt: skip


@pytest.mark.parametrize("words", [2, 3])
def test_gibbs_sampling_by_blocks_has_the_law(words):
    assert worst(words, advanced(metropolis("gmc-bgibbs", words, 0.15), words, 25)) < Z


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


def test_the_mean_of_potentials_is_right_for_short_trajectories_and_wrong_for_complete_refreshes():
    """GMC-apprMH: its law tends to the posterior with the length of a trajectory, and to another law without bound."""
    short = advanced(metropolis("gmc-apprmh", 2, 0.02, burn_in=15), 2, 30, chains=800)
    assert worst(2, short) < Z
    points, law = full_refresh_law()
    values = statistics(2, points)
    moments = target("sam-s1").moments
    off = {name: float(law @ v - moments[name].value) for name, v in values.items()}
    assert max(abs(v) for v in off.values()) > 0.02
    # complete refreshes by simulation: 8 trajectories with the same potential
    method = metropolis("gmc-apprmh", 2, 0.25, num_steps=8, burn_in=15)
    long = deviations(2, advanced(method, 2, 8, chains=1000))
    # with one weight it is Gibbs sampling, without bias, so that the limit is reached up to 1 / N of it
    allowed = max(abs(v) for v in off.values()) / DRAWN
    for name, (found, error) in long.items():
        assert abs(found - off[name]) < Z * error + allowed, name
    assert max(abs(d) / e for d, e in long.values()) > Z
