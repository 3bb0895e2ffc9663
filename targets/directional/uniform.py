"""Uniform laws on compact manifolds."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.targets.directional.von_mises_fisher import uniform_height_cdf
from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.manifolds.spheres import ProductOfSpheres
from sgmcmc_verification.targets.manifolds.stiefel import Stiefel
from sgmcmc_verification.targets.numerics.quadrature import coordinate, legendre_rule
from sgmcmc_verification.targets.numerics.spherical import frame_rule, sphere_rule
from sgmcmc_verification.targets.target import Cdf, Moment, Target


def uniform_sphere(n: int = 3) -> Target:
    """The uniform law on S^(n-1): Hausdorff (surface) measure, normalised.

        U(x) = 0;  E x_1^2 = 1 / n,  E x_1^4 = 3 / (n (n + 2)),  E x_1^2 x_2^2 = 1 / (n (n + 2)),
        (1 + x_1) / 2 ~ Beta((n - 1) / 2, (n - 1) / 2)

    The uniform law on the simplex is Dirichlet(1, ..., 1): `targets.simplex.dirichlet`.

    Source: mardia2000directional, section 9.3.1.

    Args:
        n: dimension of the embedding space, at least 2.
    """
    moments = _moments(n, (0,), (1,))

    def rule(m):
        heights, weights = legendre_rule(-1.0, 1.0, 1, m)
        return sphere_rule(heights, weights / 2, np.eye(3))

    return _uniform(Sphere(n), f"uniform-s{n - 1}", moments, n, [(0,), (n - 1,)], rule if n == 3 else None)


def uniform_spheres(count: int = 3, n: int = 3) -> Target:
    """The uniform law on (S^(n-1))^k: independent uniform rows, with respect to Hausdorff measure.

        U(x) = 0;  moments of a row as on one sphere, products of rows factorise

    Source: mardia2000directional, section 9.3.1; independence.

    Args:
        count: k, number of spheres, at least 2.
        n: dimension of the embedding space of each.
    """
    if count < 2:
        raise ValueError(f"count: must be at least 2, got {count!r}; one sphere is `uniform_sphere`")
    moments = _moments(n, (0, 0), (0, 1))
    moments["theta[0,0]*theta[1,0]"] = Moment(_product((0, 0), (1, 0)), 0.0)
    moments["theta[0,0]^2*theta[1,0]^2"] = Moment(_product((0, 0), (0, 0), (1, 0), (1, 0)), 1 / n**2)
    manifold = ProductOfSpheres(count, n)
    return _uniform(manifold, f"uniform-s{n - 1}^{count}", moments, n, [(0, 0), (count - 1, n - 1)], None)


def uniform_stiefel(n: int = 3, p: int = 2) -> Target:
    """The uniform law on V_p(R^n): invariant under rotations from both sides; Hausdorff measure, normalised.

        U(X) = 0;  every column (and, for p = n, every row) is uniform on its sphere;
        E X_11^2 X_22^2 = (n + 1) / (n (n - 1) (n + 2)),  E X_11 X_12 X_21 X_22 = -1 / (n (n - 1) (n + 2))

    Source: chikuse2003statistics, section 2.1; collins2006integration (fourth moments of the orthogonal group).

    Args:
        n: rows.
        p: columns, between 2 and n.
    """
    if not 2 <= p <= n:
        raise ValueError(f"p: must lie between 2 and n = {n}, got {p!r}; p = 1 is `uniform_sphere`")
    moments = _moments(n, (0, 0), (1, 0))
    corners = n * (n - 1) * (n + 2)
    moments["theta[0,0]*theta[0,1]"] = Moment(_product((0, 0), (0, 1)), 0.0)
    moments["theta[0,0]^2*theta[1,1]^2"] = Moment(_product((0, 0), (0, 0), (1, 1), (1, 1)), (n + 1) / corners)
    moments["corners"] = Moment(_product((0, 0), (0, 1), (1, 0), (1, 1)), -1 / corners)
    rule = frame_rule if (n, p) == (3, 2) else None
    return _uniform(Stiefel(n, p), f"uniform-stiefel-{n}-{p}", moments, n, [(0, 0), (n - 1, p - 1)], rule)


def _uniform(manifold, name, moments, n, indices, rule) -> Target:
    """The Target; entries `indices` have the law of a coordinate of S^(n-1)."""
    return Target(
        name=name,
        manifold=manifold,
        example=manifold.random(jax.random.key(0)),
        potential=lambda x: jnp.zeros((), x.dtype),
        sample=lambda key, m: jax.vmap(manifold.random)(jax.random.split(key, m)),
        moments=moments,
        cdfs={_label(i): Cdf(coordinate(i), lambda t: uniform_height_cdf(n, t)) for i in indices},
        quadrature=rule,
        curvature=1.0,
        tempered=lambda temperature: _uniform(manifold, name, moments, n, indices, rule),
        source="invariance; closed form",
    )


def _moments(n: int, i: tuple, j: tuple) -> dict[str, Moment]:
    """Moments of two coordinates of one uniform unit vector of R^n."""
    return {
        _label(i): Moment(_product(i), 0.0),
        f"{_label(i)}^2": Moment(_product(i, i), 1 / n),
        f"{_label(i)}^4": Moment(_product(i, i, i, i), 3 / (n * (n + 2))),
        f"{_label(i)}*{_label(j)}": Moment(_product(i, j), 0.0),
        f"{_label(i)}^2*{_label(j)}^2": Moment(_product(i, i, j, j), 1 / (n * (n + 2))),
    }


def _label(index: tuple) -> str:
    return f"theta[{','.join(map(str, index))}]"


def _product(*indices: tuple):
    """Statistic: the product of entries of an array."""

    def statistic(x):
        value = x[indices[0]]
        for index in indices[1:]:
            value = value * x[index]
        return value

    return statistic


ENTRIES = (
    TargetRow("uniform-s2", uniform_sphere),
    TargetRow("uniform-s2^3", uniform_spheres),
    TargetRow("uniform-stiefel-3-2", uniform_stiefel),
)
