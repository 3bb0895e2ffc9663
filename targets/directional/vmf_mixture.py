"""Mixtures of von Mises-Fisher laws on a sphere of any dimension."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.targets.directional.von_mises_fisher import vmf_rule
from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.euclidean.gaussian_mixture import require_weights
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.numerics.bessel import log_vmf_constant, mean_resultant
from sgmcmc_verification.targets.numerics.quadrature import DensityLaw, coordinate, power, product, until_accepted
from sgmcmc_verification.targets.numerics.spherical import sample_vmf, unit_rows, vmf_height_law
from sgmcmc_verification.targets.target import Cdf, Moment, Target


def vmf_mixture(weights: Any, directions: Any, concentrations: Any, name: str, separated: bool = False) -> Target:
    """sum_k w_k vMF(mu_k, kappa_k) on S^(n-1), density with respect to Hausdorff (surface) measure.

        U(x) = -log sum_k w_k c_n(kappa_k) exp(kappa_k mu_k . x)

    Here U is minus the log of the normalised density. Draws by the label of the component; moments are means over the
    components (see `targets.directional.von_mises_fisher`).

    The law at temperature T, p = 1 / T, is drawn by rejection from the mixture of the tempered components, with weights
    proportional to w_k^p c_n(kappa_k)^p / c_n(p kappa_k): (sum_k a_k)^p is at most max(1, K^(p-1)) sum_k a_k^p.

    Source: mardia2000directional, section 9.3; mixtures by linearity.

    Args:
        weights: w (k,), positive, with sum one.
        directions: mu (k, n), normalised here.
        concentrations: kappa (k,), positive.
        name: name of the target.
        separated: True if a local move does not connect the modes in reasonable time.

    Raises:
        ValueError: if a shape does not fit, the weights are no probabilities, or a direction or concentration is out
            of range.
    """
    weights, directions, concentrations = (np.array(a, np.float64) for a in (weights, directions, concentrations))
    _validate(weights, directions, concentrations)
    directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    n = directions.shape[1]
    levels = np.log(weights) + log_vmf_constant(n, concentrations)
    resultants = mean_resultant(n, concentrations)
    squares = 1 - (n - 1) * resultants / concentrations
    variances = (1 - squares) / (n - 1)
    outer = directions[:, :, None] * directions[:, None, :]
    second = np.einsum("k,kij->ij", weights * (squares - variances), outer) + weights @ variances * np.eye(n)
    first = (weights * resultants) @ directions
    moments, cdfs = {}, {}
    shown = range(n) if n <= 3 else (0, n - 1)
    for i in shown:
        moments[f"theta[{i}]"] = Moment(coordinate(i), float(first[i]))
        for j in shown:
            if j <= i:
                moments[f"theta[{j}]*theta[{i}]"] = Moment(product(j, i), float(second[j, i]))
        heights = vmf_height_law(np.eye(1, n, i)[0], weights, directions, concentrations)
        moments[f"theta[{i}]^4"] = Moment(power(i, 4), heights.expect(lambda t: t**4), 1e-14)
        cdfs[f"theta[{i}]"] = Cdf(coordinate(i), heights.cdf)
    if n == 2:
        cdfs["angle"] = Cdf(circle_angle, _angle_cdf(levels, directions, concentrations, 1.0))

    def quadrature(m):
        """The rules of the components, weighted."""
        rules = [vmf_rule(mu, kappa, m) for mu, kappa in zip(directions, concentrations, strict=True)]
        return np.concatenate([p for p, _ in rules]), np.concatenate(
            [w * r for w, (_, r) in zip(weights, rules, strict=True)]
        )

    def tempered(temperature):
        return _tempered(levels, directions, concentrations, temperature, f"{name} at temperature {temperature:g}")

    return Target(
        name=name,
        manifold=Sphere(n),
        example=_example(directions),
        potential=_potential(levels, directions, concentrations, 1.0),
        sample=lambda key, m: _draw(
            key, m, jnp.asarray(np.log(weights)), jnp.asarray(directions), jnp.asarray(concentrations)
        ),
        moments=moments,
        cdfs=cdfs,
        quadrature=quadrature if n <= 3 else None,
        # On a great circle U'' is the mean of kappa_k cos less a variance of slopes.
        curvature=float(concentrations.max()),
        tempered=tempered,
        separated=separated,
        source="mardia2000directional, section 9.3; sampling by the label of the component",
    )


def circle_mixture() -> Target:
    """The law on S^1 of liu2016stochastic, section 5.1: U = -log(exp(5 mu_1 . x) + 2 exp(5 mu_2 . x)).

    mu_1 and mu_2 are read as the points at the *angles* pi / 3 and -pi / 3; read as vectors, mu_1 = -mu_2 would be
    antipodal, with mu_2 at the angle -2 pi / 3. The potential here is theirs plus the log of the normaliser
    6 pi I_0(5) = 513.459.
    """
    angles = np.array([1, -1]) * math.pi / 3
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return vmf_mixture([1 / 3, 2 / 3], directions, [5.0, 5.0], "vmf-mixture-s1", separated=True)


def sphere_mixture() -> Target:
    """Three components on S^2, of unequal weights and concentrations, that touch each other."""
    directions = [[1.0, 0.2, 0.0], [-0.3, 1.0, 0.5], [0.1, -0.4, 1.0]]
    return vmf_mixture([0.5, 0.3, 0.2], directions, [4.0, 6.0, 2.0], "vmf-mixture-s2")


def circle_angle(x: jax.Array) -> jax.Array:
    """Statistic: the angle of a point (2,) of the circle, in (-pi, pi]."""
    return jnp.arctan2(x[1], x[0])


def _potential(levels, directions, concentrations, p):
    def potential(x):
        slopes = jnp.asarray(concentrations[:, None] * directions, x.dtype)
        return -p * jax.nn.logsumexp(jnp.asarray(levels, x.dtype) + slopes @ x)

    return potential


def _angle_cdf(levels, directions, concentrations, p):
    centres = np.arctan2(directions[:, 1], directions[:, 0])

    def density(angle):
        terms = np.exp(levels + concentrations * (np.cos(np.asarray(angle)[:, None] - centres)))
        return np.sum(terms, axis=1) ** p

    return DensityLaw(density, (-math.pi, math.pi), 40 + int(p * concentrations.max())).cdf


def _draw(key, count, log_weights, directions, concentrations):
    label_key, draw_key = jax.random.split(key)
    labels = jax.random.categorical(label_key, log_weights, shape=(count,))
    return sample_vmf(draw_key, directions[labels], concentrations[labels])


@partial(jax.jit, static_argnums=1)
def _draw_tempered(key, count, levels, directions, concentrations, hot, p, excess):
    def attempt(key):
        draw_key, accept_key = jax.random.split(key)
        x = _draw(draw_key, count, hot, directions, p * concentrations)
        terms = levels + x @ (concentrations[:, None] * directions).T
        level = p * jax.nn.logsumexp(terms, axis=1) - jax.nn.logsumexp(p * terms, axis=1) - excess
        return x, jnp.log(jax.random.uniform(accept_key, (count,), x.dtype)) < level

    return until_accepted(key, attempt)


def _tempered(levels, directions, concentrations, temperature, name) -> Target:
    count, n = directions.shape
    p = 1 / temperature
    hot = p * levels - log_vmf_constant(n, p * concentrations)
    potential = _potential(levels, directions, concentrations, p)
    excess = max(0.0, (p - 1) * math.log(count))

    parts = (levels, directions, concentrations, hot, p, excess)

    return Target(
        name=name,
        manifold=Sphere(n),
        example=_example(directions),
        potential=potential,
        sample=lambda key, m: _draw_tempered(key, m, *(jnp.asarray(part) for part in parts)),
        cdfs={"angle": Cdf(circle_angle, _angle_cdf(levels, directions, concentrations, p))} if n == 2 else {},
        curvature=float(p * concentrations.max()),
        tempered=lambda t: _tempered(levels, directions, concentrations, t * temperature, name),
        source="rejection from a mixture of tempered components, derived here",
    )


def _example(directions):
    """A point beside the first direction."""
    shifted = jnp.asarray(directions[:1] + 0.4 * np.roll(directions[0], 1))
    return unit_rows(shifted)[0]


def _validate(weights: np.ndarray, directions: np.ndarray, concentrations: np.ndarray) -> None:
    if directions.ndim != 2 or directions.shape[1] < 2 or not np.all(np.isfinite(directions)):
        raise ValueError(f"directions: must be a finite (k, n) array with n >= 2, got shape {directions.shape}")
    if not np.all(directions.any(axis=1)):
        raise ValueError("directions: must not hold a zero vector")
    count = len(directions)
    require_weights(weights, count)
    if concentrations.shape != (count,) or not np.all((concentrations > 0) & np.isfinite(concentrations)):
        raise ValueError(f"concentrations: must be {count} positive finite numbers, got {concentrations}")


ENTRIES = (
    TargetRow("vmf-mixture-s1", circle_mixture),
    TargetRow("vmf-mixture-s2", sphere_mixture),
)
