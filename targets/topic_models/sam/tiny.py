"""SAM small enough for quadrature: two topics on S^1 or S^2, three documents."""

import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.numerics.quadrature import coordinate
from sgmcmc_verification.targets.numerics.spherical import circle_rule, sphere_rule
from sgmcmc_verification.targets.target import DataTerms, Moment, Target
from sgmcmc_verification.targets.topic_models.sam.model import SAM

ALPHA = (3.0, 1.5)
"""Not symmetric, so that topics are told apart."""
PRIOR, TOPIC, DATA = 4.0, 4.0, 6.0
"""kappa_0, sigma, kappa."""
ANGLES = (0.1, 0.9, 1.3)
"""Of the three documents, from m."""
NODES = 48
"""Of the rule in the weight."""


def tiny_model(words: int) -> SAM:
    """The model on S^(words - 1), words 2 or 3, with m the first axis."""
    if words not in (2, 3):
        raise ValueError(f"words: must be 2 or 3, got {words!r}")
    return SAM(np.eye(1, words)[0], np.array(ALPHA), PRIOR, TOPIC, DATA)


def tiny_documents(words: int) -> np.ndarray:
    """The three documents (3, words), outside of a plane through m where there is room."""
    angles, turns = np.array(ANGLES), np.array([0.0, 0.4, -1.1])
    if words == 2:
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.stack([np.cos(angles), np.sin(angles) * np.cos(turns), np.sin(angles) * np.sin(turns)], axis=1)


def weight_rule(count: int = NODES) -> tuple[np.ndarray, np.ndarray]:
    """Gauss rule of theta ~ Dirichlet(ALPHA): points (count, 2), weights (count,)."""
    a, b = ALPHA
    x, w = special.roots_jacobi(count, b - 1, a - 1)
    first = (1 + x) / 2
    return np.stack([first, 1 - first], axis=1), w / w.sum()


def sam_posterior(words: int = 2, count: int | None = None) -> Target:
    """The posterior of the topics (2, V) given the documents, weights integrated out.

        U(beta) = log c_V(|mbar|) - sum_d log E_theta exp(kappa v_d . b / |b|),   theta ~ Dirichlet(3, 1.5)

    The expectation is a Gauss rule in the weight, part of the definition here; it differs from the integral by less
    than 1e-8 where the topics are not nearly opposite to each other. Expectations are by a product of rules on the
    spheres, with the change from a coarser rule as error.

    Source: liu2016stochastic, equation (9); quadrature derived here.

    Args:
        words: V, 2 or 3.
        count: angles (and half as many heights on S^2) of the rule on each sphere; 72 or 20 by default.
    """
    model, documents = tiny_model(words), tiny_documents(words)
    theta, mass = weight_rule()

    def datum(beta, v):
        points, logs = jnp.asarray(theta, beta.dtype), jnp.log(jnp.asarray(mass, beta.dtype))
        b = points @ beta
        cosines = (b @ jnp.asarray(v, beta.dtype)) / jnp.sqrt(jnp.sum(b * b, axis=1))
        return -jax.scipy.special.logsumexp(logs + model.concentration * cosines)

    terms = DataTerms(model.prior, datum, jnp.asarray(documents), len(documents))
    potential = lambda beta: model.prior(beta) + jnp.sum(jax.vmap(datum, (None, 0))(beta, terms.data))
    batched = jax.jit(jax.vmap(potential))

    @cache
    def rule(nodes: int) -> tuple[np.ndarray, np.ndarray]:
        one, area = _sphere_points(words, nodes)
        pairs = np.stack(np.broadcast_arrays(one[:, None], one[None]), axis=2).reshape(-1, 2, words)
        parts = [np.asarray(batched(jnp.asarray(p))) for p in np.array_split(pairs, max(1, len(pairs) // 20000))]
        levels = np.concatenate(parts)
        weights = np.exp(levels.min() - levels) * np.outer(area, area).ravel()
        return pairs.reshape(len(pairs), -1), weights / weights.sum()

    nodes = count or (72 if words == 2 else 20)
    functions = {f"theta[{k},{i}]": coordinate((k, i)) for k in range(2) for i in range(words)}
    functions |= {"theta[0]@theta[1]": lambda x: x[0] @ x[1]}
    functions |= {f"theta[{k},0]^2": lambda x, k=k: x[k, 0] ** 2 for k in range(2)}
    moments = {}
    values = {n: _expectations(functions, *rule(n), words) for n in (nodes, nodes - nodes // 5)}
    fine, coarse = values[nodes], values[nodes - nodes // 5]
    for name, function in functions.items():
        moments[name] = Moment(function, fine[name], abs(fine[name] - coarse[name]) + 1e-13)
    return Target(
        name=f"sam-s{words - 1}",
        manifold=model.manifold,
        example=jnp.asarray(np.stack([documents[0], documents[2]])),
        potential=potential,
        moments=moments,
        quadrature=rule,
        terms=terms,
        curvature=float(3 * DATA + 2 * TOPIC),
        source="liu2016stochastic, equation (9); quadrature",
    )


def circle_topics() -> Target:
    """On S^1."""
    return sam_posterior(2)


def sphere_topics() -> Target:
    """On S^2."""
    return sam_posterior(3)


def _sphere_points(words: int, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Rule for the uniform law on S^1 (nodes,) or S^2 (nodes / 2 heights times nodes angles)."""
    if words == 2:
        points = circle_rule(nodes)[1]
        return points, np.full(nodes, 2 * math.pi / nodes)
    heights, weights = np.polynomial.legendre.leggauss(max(nodes // 2, 2))
    return sphere_rule(heights, weights, np.eye(3)[[1, 2, 0]], nodes)


def _expectations(functions, points, weights, words) -> dict[str, float]:
    pairs = jnp.asarray(points.reshape(-1, 2, words))
    return {name: float(weights @ np.asarray(jax.vmap(f)(pairs))) for name, f in functions.items()}


ENTRIES = (
    TargetRow("sam-s1", circle_topics),
    TargetRow("sam-s2", sphere_topics),
)
