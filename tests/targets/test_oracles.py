"""Targets: moments, laws, quadrature rules and exact samplers against integrals of exp(-potential).

The integrals here use double-exponential and trapezoidal rules on exp(-U), with U from the target and nothing else, so
they tie the oracles to the potential that samplers see.
"""

import math
from functools import cache

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import spatial, special, stats

from sgmcmc_verification.targets.manifolds.box import Box
from sgmcmc_verification.targets.manifolds.orthant import Positive
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.manifolds.spheres import ProductOfSpheres
from sgmcmc_verification.targets.manifolds.stiefel import Stiefel
from sgmcmc_verification.targets.registry import TARGETS, target

EPS = np.finfo(np.float64).eps
NAMES = [row.name for row in TARGETS]
ONE_DIMENSIONAL = ("gaussian-standard", "gaussian-1d-scaled", "double-well", "anharmonic", "gaussian-mixture")
ONE_DIMENSIONAL += ("three-widths",)
ONE_DIMENSIONAL += ("student-t", "gamma", "gamma-sparse", "log-normal", "log-normal-narrow", "half-gaussian")
WITHOUT_RULE = ("gaussian-anisotropic", "gaussian-pytree", "gaussian-50d", "gaussian-network", "gaussian-matrix")
WITHOUT_RULE += (
    "dirichlet-fifty",
    "uniform-s2^3",
    "vmf-s49",
    "vmf-s4999",
    "bingham-s9",
    "vmf-s1^2",
    "vmf-s2-and-gaussian",
)
PRODUCTS = {"vmf-s2-and-line": "vmf-s2", "dirichlet-and-line": "dirichlet-concentrated", "positive-and-line": None}
PRODUCTS |= {"vmf-s2-followed": "vmf-s2", "dirichlet-followed": "dirichlet-concentrated", "positive-followed": None}
"""Laws on a product of a space and a line, with the name of the first part."""
LEVEL = 1e-6
Z = stats.norm.isf(LEVEL / 2)
SAMPLES = 100_000
NUMBERS = 2_500_000  # drawn at most: a law of many coordinates gets fewer samples

# Functions that are not smooth where the law has mass, so that neither Gauss nor trapezoidal rules resolve them.
SINGULAR = {"log theta[0]", "sqrt|theta[1]|", "sqrt|theta[2]|"}

# Round-off of a density exp(-U) in the bulk, |U| of a few tens, and of a sum of positive terms.
CONDITION = 200


def half_line(low=-6.0, high=4.2, step=2.0**-6):
    """Double-exponential rule for (0, inf): points and weights; the defaults reach from 1e-137 to 1e22."""
    t = np.arange(low, high, step)
    points = np.exp(np.pi / 2 * np.sinh(t))
    return points, step * np.pi / 2 * np.cosh(t) * points


def unit_interval(step=2.0**-6):
    """Double-exponential rule for (0, 1): points (accurate near 0) and weights."""
    t = np.arange(-4.2, 4.2, step)
    points = special.expit(np.pi * np.sinh(t))
    return points, step * np.pi * np.cosh(t) * points * special.expit(-np.pi * np.sinh(t))


def uniform_grid(boxes, count):
    """Trapezoidal rule on a box (the integrand vanishes at its boundary): points (m, d)."""
    axes = [np.linspace(low, high, count) for low, high in boxes]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(boxes))


def rotations(count):
    """The first two columns (m, 6) of rotations by Euler angles z-y-z, and the weights of the uniform law."""
    angle = 2 * np.pi * np.arange(count) / count
    cosine, cosine_weights = np.polynomial.legendre.leggauss(count)
    a, b, c = (part.ravel() for part in np.meshgrid(angle, np.arccos(cosine), angle, indexing="ij"))
    columns = spatial.transform.Rotation.from_euler("ZYZ", np.stack([a, b, c], axis=1)).as_matrix()[:, :, :2]
    return columns.reshape(-1, 6), np.tile(np.repeat(cosine_weights, count), count)


@cache
def density(name):
    """exp(-U + U(example)) on flat points (m, d)."""
    law = target(name)
    level = law.potential(law.example)
    compiled = jax.jit(jax.vmap(lambda x: jnp.exp(level - law.flat_potential(x))))
    return lambda points: np.nan_to_num(np.asarray(compiled(jnp.asarray(points))), nan=0.0)


def statistics(law, points):
    """Values of the functions of all moments at flat points (m, d), by label."""
    functions = {label: moment.function for label, moment in law.moments.items()}
    compiled = jax.jit(jax.vmap(lambda x: {label: f(law.unravel(x)) for label, f in functions.items()}))
    return {label: np.asarray(values) for label, values in compiled(jnp.asarray(points)).items()}


LOG_RATIOS = {"sparse": (180, 0.5, 2), "dirichlet-sphere-concentrated": (12, 0.1, 2), "dirichlet-four": (6, 0.2, 3)}
LOG_RATIOS |= {"dirichlet-faces": (45, 0.2, 2)}
"""Reach, step and number of the grid of log-ratios of Dirichlet laws."""


def two_circles():
    """Rule on S^3: circles of radii sqrt(s) and sqrt(1 - s), s uniform."""
    share, weights = np.polynomial.legendre.leggauss(40)
    angle = 2 * np.pi * np.arange(40) / 40
    s, a, b = (g.ravel() for g in np.meshgrid((1 + share) / 2, angle, angle, indexing="ij"))
    near, far = np.sqrt(s), np.sqrt(1 - s)
    points = np.stack([near * np.cos(a), near * np.sin(a), far * np.cos(b), far * np.sin(b)], axis=1)
    return points, np.repeat(weights, angle.size**2)


def of_a_product(name):
    """Points and weights for expectations under the law of a first part and a Gaussian on a line."""
    if PRODUCTS[name] is None:
        points, weights = half_line()
        points, weights = points[:, None], weights * np.exp(-((points - 1) ** 2) / 2)
    else:
        points, weights = reference_rule(PRODUCTS[name])
    held = weights > 1e-30 * weights.max()
    line, line_weights = np.polynomial.hermite_e.hermegauss(12)
    points, weights = points[held], weights[held]
    if name.endswith("-followed"):  # N(x_1, s^2) of a fifth of the standard deviation of x_1
        first, total = points[:, 0], weights.sum()
        mean = first @ weights / total
        means, spread = first, 0.2 * np.sqrt((first - mean) ** 2 @ weights / total)
    else:
        mean, precision = target("gaussian-1d-scaled").gaussian
        means, spread = np.full(len(points), mean[0]), 1 / np.sqrt(precision[0])
    z = (means[:, None] + spread * line).reshape(-1, 1)
    return np.concatenate([np.repeat(points, len(line), axis=0), z], axis=1), np.outer(weights, line_weights).ravel()


def of_a_compact(manifold):
    """Points and weights of the uniform law on spheres and on a Stiefel manifold; None for others."""
    if manifold == Stiefel(3, 2):
        return rotations(28)
    if manifold == Sphere(4):
        return two_circles()
    if manifold == ProductOfSpheres(2, 2):
        angle = 2 * np.pi * np.arange(300) / 300
        one = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return np.concatenate([np.repeat(one, 300, axis=0), np.tile(one, (300, 1))], axis=1), 1.0
    if manifold == Sphere(2):
        angle = 2 * np.pi * np.arange(200) / 200
        return np.stack([np.cos(angle), np.sin(angle)], axis=1), 1.0
    if manifold == Sphere(3):
        height, height_weights = np.polynomial.legendre.leggauss(60)
        angle = 2 * np.pi * np.arange(80) / 80
        radius = np.sqrt(1 - height**2)[:, None]
        grid = np.broadcast_arrays(height[:, None], radius * np.cos(angle), radius * np.sin(angle))
        return np.stack(grid, axis=-1).reshape(-1, 3), np.repeat(height_weights, 80)
    return None


@cache
def reference_rule(name):
    """Points and weights for expectations under exp(-U), from the potential alone."""
    law = target(name)
    if name in PRODUCTS:
        points, weights = of_a_product(name)
    elif law.interval is not None:
        points, weights = half_line()
        centre = 0.0 if law.interval[0] >= 0 or name == "three-widths" else float(law.example[0])
        if law.interval[0] < 0:
            points, weights = np.concatenate([centre - points, centre + points]), np.tile(weights, 2)
        points = points[:, None]
        weights = weights * density(name)(points)
    elif name.startswith("dirichlet") or name == "simplex-reduced-mean":
        # log-ratios: the density falls exponentially, and is analytic in a strip of half-width pi; its width shrinks
        # as alpha grows, and the step with it
        kind = "sparse" if "sparse" in name else name
        reach, step, ratios = LOG_RATIOS.get(kind, (30, 0.2, 2))
        grid = np.meshgrid(*[np.arange(-reach, reach, step)] * ratios, indexing="ij")
        y = np.stack(grid, axis=-1).reshape(-1, ratios)
        theta = special.softmax(np.pad(y, ((0, 0), (0, 1))), axis=1)
        points = np.sqrt(theta) if law.manifold == Sphere(3) else theta
        # d theta = theta_1 theta_2 theta_3 dy, and over the sphere d theta = x_1 x_2 x_3 dx up to a constant
        weights = np.prod(points, axis=1)
        points = points[:, : law.size]
        weights = weights * density(name)(points)
    elif law.manifold == Positive(2):
        line, line_weights = half_line(-4.0, 2.5, 2.0**-5)
        points = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
        weights = np.outer(line_weights, line_weights).ravel() * density(name)(points)
    elif isinstance(law.manifold, Box):
        line, line_weights = unit_interval()
        grid = np.meshgrid(*[line] * law.size, indexing="ij"), np.meshgrid(*[line_weights] * law.size, indexing="ij")
        points, weights = (np.stack(axes, axis=-1).reshape(-1, law.size) for axes in grid)
        weights = np.prod(weights, axis=1) * density(name)(points)
    elif (rule := of_a_compact(law.manifold)) is not None:
        points, weights = rule
        weights = weights * density(name)(points)
    elif name == "funnel":
        standard = uniform_grid([(-30, 30), (-9, 9), (-9, 9)], 60)
        v = standard[:, :1]
        points = np.concatenate([v, standard[:, 1:] * np.exp(v / 2)], axis=1)
        weights = np.exp(v[:, 0]) * density(name)(points)  # Jacobian of two leaves
    else:
        boxes = {"banana": [(-5.0, 5.0), (-4.0, 8.0)], "gaussian-mixture-2d": [(-10, 12), (-9, 11)]}.get(name)
        boxes = {"simplex-reduced-natural": [(-6, 6)] * 2, "simplex-expanded-natural": [(-2.5, 5)] * 2}.get(name, boxes)
        boxes = [(-15, 15), (-15, 15)] if name == "tiny-logistic" else boxes
        if boxes is None:
            mean, precision = law.gaussian
            reach = 9 * np.sqrt(np.diag(np.linalg.inv(precision)))
            boxes = list(zip(mean - reach, mean + reach, strict=True))
        points = uniform_grid(boxes, {2: 220, 3: 80}[law.size])
        weights = density(name)(points)
    keep = weights > 0
    return points[keep], weights[keep] / weights.sum()


WITH_RULE = [name for name in NAMES if name not in WITHOUT_RULE]


def test_the_lists_of_laws_are_complete():
    """They are written down so that no law is built before a test asks for it."""
    assert set(ONE_DIMENSIONAL) == {name for name in NAMES if target(name).interval is not None}
    assert set(WITHOUT_RULE) == {name for name in NAMES if target(name).quadrature is None}


@pytest.mark.parametrize("name", WITH_RULE)
def test_moments_are_integrals_of_the_density(name):
    law = target(name)
    points, weights = reference_rule(name)
    all_values = statistics(law, points)
    decided = 0
    for label, moment in law.moments.items():
        if label.startswith("sqrt"):
            continue  # decided by mpmath below
        values = all_values[label]
        bound = CONDITION * EPS * (weights @ np.abs(values)) + moment.error
        assert abs(weights @ values - moment.value) <= bound, label
        decided += 1
    assert decided >= 3


def test_the_mean_root_of_a_leaf_of_the_funnel():
    with mpmath.workdps(20):

        def normal(x, scale):
            return mpmath.npdf(x, 0, scale)

        outer = mpmath.quad(lambda v: mpmath.exp(v / 4) * normal(v, 3), [-40, 0, 40])
        inner = 2 * mpmath.quad(lambda y: mpmath.sqrt(y) * normal(y, 1), [0, 1, 12])
    for i in (1, 2):
        value = target("funnel").moments[f"sqrt|theta[{i}]|"].value
        assert abs(value - float(outer * inner)) <= 8 * EPS * value


# Points for which the rule has reached round-off; Gauss rules of the law itself need few.
RESOLVED = {
    "tiny-logistic": 100,
    "funnel": 20,
    "student-t": 9,
    "log-normal": 24,
    "log-normal-narrow": 24,
    "banana": 12,
    "vmf-s2": 8,
}
RESOLVED |= {"vmf-s3": 14, "vmf-s1": 40, "vmf-mixture-s1": 60, "bingham-s2": 40, "matrix-langevin-3-2": 30}
RESOLVED |= {
    "truncated-gaussian": 40,
    "half-gaussian": 40,
    "positive-and-line": 40,
    "positive-followed": 40,
    "truncated-interval": 24,
    "truncated-box": 24,
    "circle-posterior-mean-e1": 120,
    "circle-posterior-pair-e2": 120,
}


@pytest.mark.parametrize("name", WITH_RULE)
def test_quadrature_reproduces_the_smooth_moments(name):
    law = target(name)
    points, weights = law.quadrature(RESOLVED.get(name, 6))
    all_values = statistics(law, points)
    for label, moment in law.moments.items():
        if label in SINGULAR or "log" in label:
            continue
        values = all_values[label]
        bound = CONDITION * EPS * (weights @ np.abs(values) + abs(moment.value)) + moment.error
        assert abs(weights @ values - moment.value) <= bound, label


@pytest.mark.parametrize("name", ONE_DIMENSIONAL)
def test_one_dimensional_distribution_functions_are_integrals_of_the_density(name):
    law = target(name)
    p = density(name)
    positive = law.interval[0] >= 0
    (tail, tail_weights), (inside, inside_weights) = half_line(), unit_interval()
    for x in np.quantile(np.asarray(draws(name)[0])[:, 0], [0.01, 0.2, 0.5, 0.8, 0.99]):
        beyond = lambda y, side: tail_weights @ p((y + side * tail)[:, None])
        to_zero = abs(x) * (inside_weights @ p((x * inside)[:, None]))
        above, below = beyond(x, 1), to_zero if positive else beyond(x, -1)
        if name == "three-widths":  # a rule ends at the spike, which it would miss otherwise
            above, below = (beyond(0, 1) + to_zero, below) if x < 0 else (above, beyond(0, -1) + to_zero)
        expected = below / (below + above)
        assert abs(law.cdfs["theta[0]"].cdf(x) - expected) <= CONDITION * EPS * max(1.0, abs(x)), x


@pytest.mark.parametrize("name", ONE_DIMENSIONAL)
def test_the_interval_holds_the_mass(name):
    low, high = target(name).interval
    cdf = target(name).cdfs["theta[0]"].cdf
    p = density(name)
    tail, tail_weights = half_line()
    outside = tail_weights @ p((high + tail)[:, None])
    inside, inside_weights = unit_interval()
    if bool(target(name).manifold.contains(jnp.array([-1.0]))):
        outside += tail_weights @ p((low - tail)[:, None])
        everything = tail_weights @ (p(-tail[:, None]) + p(tail[:, None]))
    else:
        outside += low * (inside_weights @ p((low * inside)[:, None])) if low > 0 else 0.0
        everything = tail_weights @ p(tail[:, None])
    assert outside / everything <= 1e-14
    assert cdf(low) <= 1e-14
    assert 1 - cdf(high) <= 1e-14


@pytest.mark.parametrize(
    ("name", "index", "box"),
    [
        ("banana", 0, (-4.0, 8.0)),
        ("banana", 1, (-5.0, 5.0)),
        ("gaussian-mixture-2d", 0, (-9, 11)),
        ("gaussian-mixture-2d", 1, (-10, 12)),
        ("tiny-logistic", 0, (-14, 14)),
        ("tiny-logistic", 1, (-13, 13)),
        ("gaussian-correlated-2d", 0, (-7, 5)),
        ("gaussian-correlated-2d", 1, (-9, 10)),
    ],
)
def test_marginal_distribution_functions_are_integrals_of_the_density(name, index, box):
    law = target(name)
    tail, tail_weights = half_line(-4.0, 2.0)  # from 1e-18 to 300
    other = np.linspace(*box, 280)

    def mass(line):
        points = np.stack(np.meshgrid(line, other, indexing="ij")[:: 1 if index == 0 else -1], axis=-1)
        return tail_weights @ density(name)(points.reshape(-1, 2)).reshape(len(line), -1).sum(axis=1)

    for x in np.quantile(np.asarray(draws(name)[0])[:, index], [0.05, 0.5, 0.9]):
        below, above = mass(x - tail), mass(x + tail)
        assert abs(law.cdfs[f"theta[{index}]"].cdf(x) - below / (below + above)) <= CONDITION * EPS


def test_the_height_law_of_the_sphere_has_the_mean_and_density_of_its_potential():
    law = target("vmf-s2")
    cdf = law.cdfs["height"].cdf
    w, weights = np.polynomial.legendre.leggauss(40)
    assert abs(1 - weights @ cdf(w) - law.moments["height"].value) <= CONDITION * EPS
    assert (cdf(-1.0), cdf(1.0)) == (0.0, 1.0)
    assert np.ptp(law.cdfs["angle"].cdf(np.array([-math.pi, math.pi]))) == 1.0


def count(name):
    law = target(name)
    return min(SAMPLES, NUMBERS // law.size, NUMBERS // law.terms.size if law.terms else SAMPLES)


def sampler(name):
    """Not compiled as a whole: what laws share in their samplers is then compiled once for all of them."""
    return lambda key: target(name).sample(key, count(name))


@cache
def draws(name):
    """Exact draws and the values of every statistic at them."""
    law = target(name)
    functions = {("moment", label): moment.function for label, moment in law.moments.items()}
    functions |= {("cdf", label): cdf.function for label, cdf in law.cdfs.items()}
    labels, calls = zip(*functions.items(), strict=True)
    positions = sampler(name)(jax.random.key(20_240_917))
    values = jax.jit(jax.vmap(lambda x: [f(x) for f in calls]))(positions)
    return positions, dict(zip(labels, map(np.asarray, values), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_exact_samples_have_the_moments(name):
    _, values = draws(name)
    for label, moment in target(name).moments.items():
        sample = values["moment", label]
        deviation = (sample.mean() - moment.value) / (sample.std() / math.sqrt(count(name)))
        assert abs(deviation) <= Z, label


@pytest.mark.parametrize("name", NAMES)
def test_exact_samples_have_the_distribution_functions(name):
    _, values = draws(name)
    cdfs = target(name).cdfs
    assert cdfs
    for label, cdf in cdfs.items():
        assert stats.kstest(values["cdf", label], cdf.cdf).pvalue >= LEVEL, label


@pytest.mark.parametrize("name", NAMES)
def test_exact_samples_lie_on_the_manifold_and_depend_on_the_key(name):
    first, _ = draws(name)
    assert bool(jnp.all(jax.vmap(target(name).manifold.contains)(first)))
    second = sampler(name)(jax.random.key(1))  # as many, by programs that are there
    for a, b in zip(*map(jax.tree.leaves, (first, second)), strict=True):
        assert not np.any(np.asarray(a)[:50] == np.asarray(b)[:50])


@pytest.mark.parametrize("name", [row.name for row in TARGETS if target(row.name).characteristic is not None])
def test_characteristic_functions_are_those_of_the_law(name):
    """By the rule of the law where it has one, else by exact draws, at a chance of 1e-6 for a false alarm each."""
    law = target(name)
    w = np.cos(np.arange(6.0)[:, None] + 1.7 * np.arange(law.size)) * np.array([[0.1], [0.3], [1], [1], [2], [3]])
    if law.quadrature is not None:
        points, weights = law.quadrature(40 if law.size < 4 else 30)
        scaled = w / np.sqrt(weights @ (points - weights @ points) ** 2)
        error = np.abs(law.characteristic(scaled) - weights @ np.exp(1j * points @ scaled.T))
        assert error.max() <= 1e-9
    else:
        points = np.asarray(jax.vmap(law.ravel)(law.sample(jax.random.key(3), NUMBERS // law.size)))
        scaled = w / points.std(axis=0) / np.linalg.norm(w, axis=1)[:, None]
        values = np.exp(1j * points @ scaled.T)
        for part in (np.real, np.imag):
            gap = part(values).mean(axis=0) - part(law.characteristic(scaled))
            assert np.abs(gap / part(values).std(axis=0)).max() <= Z / np.sqrt(len(points))
