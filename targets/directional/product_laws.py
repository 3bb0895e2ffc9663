"""Laws of independent parts on a product of manifolds."""

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.targets.directional import von_mises_fisher as vmf
from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.euclidean import gaussian
from sgmcmc_verification.targets.manifolds.base import Manifold
from sgmcmc_verification.targets.manifolds.product import Product
from sgmcmc_verification.targets.manifolds.spheres import ProductOfSpheres
from sgmcmc_verification.targets.target import Cdf, Moment, Target

MOST_COORDINATES = 4
"""Coordinates for which a product rule is small enough."""


def independent(parts: tuple[Target, ...], name: str, stacked: Manifold | None = None) -> Target:
    """The law of (x_1, .., x_k) with independent x_i from the parts.

        U(x) = sum_i U_i(x_i);  E f(x_i) g(x_j) = E f E g;  exp(-U / T) is the product of exp(-U_i / T)

    A sampler that mixes the parts, or gives them a common velocity or thermostat where it must not, is off here.

    Source: independence; the oracles are those of the parts.

    Args:
        parts: two or more targets.
        name: name of the target.
        stacked: the manifold of positions that are one array with a part a row; None for tuples on the product of the
            parts' manifolds.

    Raises:
        ValueError: if there are fewer than two parts.
    """
    if len(parts) < 2:
        raise ValueError(f"parts: must be two or more targets, got {len(parts)}")
    join: Callable[[list[Any]], Any] = tuple if stacked is None else lambda rows: jnp.stack(rows, axis=-2)

    samplers = [part.sample for part in parts if part.sample is not None]

    def sample(key, count):
        keys = jax.random.split(key, len(parts))
        return join([draw(k, count) for draw, k in zip(samplers, keys, strict=True)])

    moments, cdfs = {}, {}
    for i, part in enumerate(parts):
        of_part = oracles_of(part, i)
        moments |= of_part[0]
        cdfs |= of_part[1]
    (first, a), (second, b) = (next(iter(part.moments.items())) for part in parts[:2])
    value, error = a.value * b.value, a.error * abs(b.value) + b.error * abs(a.value) + a.error * b.error
    moments[f"0:{first}*1:{second}"] = Moment(lambda x: a.function(x[0]) * b.function(x[1]), value, error)
    tempered = None
    if all(part.tempered or part.gaussian for part in parts):
        tempered = lambda temperature: independent(tuple(_at(part, temperature) for part in parts), name, stacked)
    rules = [part.quadrature for part in parts if part.quadrature is not None]

    def quadrature(n):
        points, weights = np.zeros((1, 0)), np.ones(1)
        for rule in rules:
            x, w = rule(n)
            points = np.concatenate([np.repeat(points, len(w), axis=0), np.tile(x, (len(weights), 1))], axis=1)
            weights = np.outer(weights, w).ravel()
        return points, weights

    small = stacked is None and len(rules) == len(parts) and sum(part.size for part in parts) <= MOST_COORDINATES
    return Target(
        name=name,
        manifold=stacked or Product(tuple(part.manifold for part in parts)),
        example=join([part.example for part in parts]),
        potential=lambda x: reduce(add, (part.potential(x[i]) for i, part in enumerate(parts))),
        sample=sample if len(samplers) == len(parts) else None,
        moments=moments,
        cdfs=cdfs,
        quadrature=quadrature if small else None,
        curvature=max(part.curvature for part in parts),
        tempered=tempered,
        source="; ".join(dict.fromkeys(part.source for part in parts)),
    )


def oracles_of(part: Target, i: int) -> tuple[dict[str, Moment], dict[str, Cdf]]:
    """The moments and distribution functions of part i, as those of the whole."""

    def of(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: function(x[i])

    moments = {f"{i}:{label}": Moment(of(m.function), m.value, m.error) for label, m in part.moments.items()}
    return moments, {f"{i}:{label}": Cdf(of(c.function), c.cdf) for label, c in part.cdfs.items()}


def _at(part: Target, temperature: float) -> Target:
    """A part with density exp(-U_i / T)."""
    if part.tempered is not None:
        return part.tempered(temperature)
    assert part.gaussian is not None
    law = part.gaussian
    return gaussian.gaussian(law.mean, temperature * np.linalg.inv(law.precision), part.name, part.example)


def circles() -> Target:
    """Von Mises laws of kappa = 2 and 1 on two circles, in one array (2, 2)."""
    parts = vmf.von_mises_fisher((1.0, -2.0), 2.0), vmf.von_mises_fisher((0.6, 0.8), 1.0)
    return independent(parts, "vmf-s1^2", ProductOfSpheres(2, 2))


def sphere_and_plane() -> Target:
    """A von Mises-Fisher law on S^2 and a Gaussian one on R^2, as a tuple."""
    return independent((vmf.von_mises_fisher(), gaussian.correlated_2d()), "vmf-s2-and-gaussian")


ENTRIES = (
    TargetRow("vmf-s1^2", circles),
    TargetRow("vmf-s2-and-gaussian", sphere_and_plane),
)
