"""Riemannian Stein discrepancy: its kernel by automatic differentiation, Stein's identity, level, power, memory."""

import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.statistics.ksd import ksd, ksd_test
from sgmcmc_verification.checks.statistics.rksd import _tile, rksd, rksd_test
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.registry import target

EPS = np.finfo(float).eps
KAPPA, MU = 3.0, np.array([2.0, -1.0, 2.0]) / 3
"""Those of vmf-s2."""
KERNELS = [("imq", 1.0), ("imq", 0.6), ("vmf", 2.5)]
SCORE = KAPPA * MU


def points(n, seed):
    return np.asarray(jax.vmap(Sphere(3).random)(jax.random.split(jax.random.key(seed), n)))


def scores(x):
    return np.broadcast_to(SCORE, x.shape)


def draws(n, seed):
    return np.asarray(target("vmf-s2").sample(jax.random.key(seed), n))


@pytest.mark.parametrize(("kernel", "scale"), KERNELS)
def test_the_kernel_is_the_stein_operator_twice_by_automatic_differentiation(kernel, scale):
    """A f = tr(P Hess f) - 2 x . grad f + P g . grad f on S^2, applied to both arguments."""
    g = jnp.asarray(SCORE)

    def k(x, y):
        if kernel == "vmf":
            return jnp.exp(scale * (x @ y - 1))
        return (scale**2 + jnp.sum((x - y) ** 2)) ** -0.5

    def operator(f):
        def applied(x):
            P = jnp.eye(3) - jnp.outer(x, x)
            gradient = jax.grad(f)(x)
            return jnp.trace(P @ jax.hessian(f)(x)) - 2 * x @ gradient + g @ P @ gradient

        return applied

    stein = lambda x, y: operator(lambda a: operator(lambda b: k(a, b))(y))(x)
    x = points(5, 1)
    expected = np.asarray(jax.jit(jax.vmap(jax.vmap(stein, (None, 0)), (0, None)))(jnp.asarray(x), jnp.asarray(x)))
    for statistic, gram, count in (("V", expected, 25), ("U", expected - np.diag(np.diag(expected)), 20)):
        for block in (2, 64):
            found = rksd(x, scores(x), kernel=kernel, scale=scale, statistic=statistic, block=block)
            assert found == pytest.approx(np.sum(gram) / count, rel=1e-10)


@pytest.mark.parametrize(("kernel", "scale"), KERNELS)
def test_steins_identity_by_quadrature(kernel, scale):
    """E_p u(x, y) = 0 for every y, and not for another law."""
    nodes, weights = target("vmf-s2").quadrature(40)
    places = points(6, 2)
    x = np.concatenate([places, nodes])
    for factor, zero in ((1.0, True), (1.1, False)):
        tangential = factor * (scores(x) - (x @ SCORE)[:, None] * x)
        u = _tile(x, tangential, kernel, scale)(slice(0, 6), slice(6, len(x)))
        size = np.abs(u) @ weights
        assert (np.abs(u @ weights) < 1e4 * EPS * size).all() == zero
        assert zero or (np.abs(u @ weights) > 1e-3 * size).any()


@pytest.mark.parametrize("statistic", ["U", "V"])
def test_the_level_of_the_bootstrap_and_its_power(statistic):
    """Under the law p <= 0.1 in a tenth of the samples; at 1.35 times the concentration nearly always."""
    hits, power, runs, n = 0, 0, 300, 150
    pool, wrong = draws(runs * n, 4), np.asarray(target("vmf-s2").tempered(1 / 1.5).sample(jax.random.key(5), 40 * n))
    for r in range(runs):
        x = pool[r * n : (r + 1) * n]
        hits += rksd_test(x, scores(x), statistic=statistic, replicates=99, seed=r).p <= 0.1
    for r in range(40):
        x = wrong[r * n : (r + 1) * n]
        power += rksd_test(x, scores(x), statistic=statistic, replicates=99, seed=r).p <= 0.1
    # binomial(300, 0.1), two-sided at 1e-6 is 30 +- 4.9 * 5.2; the bootstrap itself is right to O(n^-1/2)
    assert abs(hits - 30) < 4.9 * 5.2
    assert power > 30


@pytest.mark.parametrize("statistic", ["U", "V"])
def test_ksd_has_the_same_bootstrap(statistic):
    """Gaussian samples: p-values above and below a half, and the smallest possible one for a wrong scale."""
    rng = np.random.default_rng(6)
    low = 0
    for r in range(100):
        x = rng.normal(size=(100, 2))
        low += ksd_test(x, -x, statistic=statistic, replicates=49, seed=r).p <= 0.5
        if r == 0:
            assert ksd_test(x, -x, statistic=statistic, replicates=1).value == ksd(x, -x, statistic=statistic)
    assert abs(low - 50) < 4.9 * 5
    x = 1.5 * rng.normal(size=(400, 2))
    assert ksd_test(x, -x, statistic=statistic, replicates=49).p == 1 / 50


def test_memory_is_that_of_a_tile_and_the_weights():
    n, replicates = 4000, 10
    x = draws(n, 7)
    tracemalloc.start()
    found = rksd_test(x, scores(x), replicates=replicates, block=256)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n**2 / 10
    assert found.replicates.shape == (replicates,)


def test_v_is_never_negative_and_u_may_be():
    x = draws(60, 8)
    assert rksd(x, scores(x), statistic="V") > 0
    assert rksd(x[:1].repeat(2, 0), scores(x[:2]), statistic="V") > 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rksd(2 * points(3, 0), points(3, 0)), "off the unit sphere"),
        (lambda: rksd(points(3, 0), points(4, 0)), "scores has shape"),
        (lambda: rksd(points(3, 0), points(3, 0), kernel="gauss"), "kernel is 'gauss'"),
        (lambda: rksd(points(3, 0), points(3, 0), scale=0.0), "scale is 0"),
        (lambda: rksd(points(3, 0), points(3, 0), statistic="W"), "statistic is 'W'"),
        (lambda: rksd_test(points(3, 0), points(3, 0), replicates=0), "replicates is 0"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
