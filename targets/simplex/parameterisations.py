"""The posterior of category probabilities in the four parameterisations of Patterson and Teh.

n_k observed labels of category k, N = sum n_k, a prior Dirichlet(alpha), so pi ~ Dirichlet(a), a = alpha + n. The same
law of pi under four coordinates theta; densities are with respect to Lebesgue measure in theta.

    reduced mean      theta = (pi_1, .., pi_{K-1})     U = -sum_k (a_k - 1) log pi_k
    reduced natural   theta = log(pi_k / pi_K), k < K  U = -sum_k a_k log pi_k
    expanded mean     pi = theta / theta_.             U = -sum_k (a_k - 1) log theta_k + N log theta_. + theta_.
    expanded natural  pi = softmax(theta)              U = -sum_k a_k theta_k + N log theta_. + theta_.

In the expanded ones theta_. (the sum of theta_k, of e^theta_k in the last) is independent of pi, Gamma(sum alpha, 1).

Source: patterson2013stochastic, section 4 (the parameterisations and their priors).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.manifolds.open_simplex import Corner
from sgmcmc_verification.targets.manifolds.orthant import Positive
from sgmcmc_verification.targets.numerics.quadrature import Rule, jacobi_rule
from sgmcmc_verification.targets.simplex.dirichlet import sample_log_dirichlet, simplex_rule
from sgmcmc_verification.targets.target import Cdf, Moment, Target

PRIOR = 2.0
SMOOTH = 6.0
"""Prior shape of the expanded ones, so that the logarithm of the sum has moderate fourth moments."""
REDUCED = (6.0, 10.0, 7.0)
"""Labels of three categories: two coordinates."""
EXPANDED = (6.0, 9.0)
"""Labels of two categories: two coordinates."""


def reduced_mean() -> Target:
    """(pi_1, pi_2) of Dirichlet(8, 12, 9); the law of the open triangle."""
    a = PRIOR + np.array(REDUCED)

    def potential(theta):
        return -jnp.sum(jnp.asarray(a - 1, theta.dtype) * jnp.log(_whole(theta)))

    return _reduced("simplex-reduced-mean", a, potential, Corner(2), _whole, lambda pi: pi[..., :-1])


def reduced_natural() -> Target:
    """(log pi_1 / pi_3, log pi_2 / pi_3) of Dirichlet(8, 12, 9)."""
    a = PRIOR + np.array(REDUCED)

    def potential(theta):
        last = jnp.log(1 + jnp.sum(jnp.exp(theta)))
        return float(a.sum()) * last - jnp.sum(jnp.asarray(a[:-1], theta.dtype) * theta)

    def simplex(theta):
        weights = jnp.concatenate([jnp.exp(theta), jnp.ones(1, theta.dtype)])
        return weights / jnp.sum(weights)

    return _reduced(
        "simplex-reduced-natural", a, potential, Euclidean(2), simplex, lambda pi: np.log(pi[..., :-1] / pi[..., -1:])
    )


def expanded_mean() -> Target:
    """Two positive numbers with ratio law Beta(12, 15) and sum Gamma(12)."""
    n = np.array(EXPANDED)

    def potential(theta):
        logs = jnp.sum(jnp.asarray(SMOOTH + n - 1, theta.dtype) * jnp.log(theta))
        return float(n.sum()) * jnp.log(jnp.sum(theta)) + jnp.sum(theta) - logs

    return _expanded(
        "simplex-expanded-mean", n, potential, Positive(2), lambda t: t / jnp.sum(t), jnp.sum, lambda theta: theta
    )


def expanded_natural() -> Target:
    """The logarithms of `expanded_mean`."""
    n = np.array(EXPANDED)

    def potential(theta):
        total = jnp.sum(jnp.exp(theta))
        return float(n.sum()) * jnp.log(total) + total - jnp.sum(jnp.asarray(SMOOTH + n, theta.dtype) * theta)

    return _expanded(
        "simplex-expanded-natural", n, potential, Euclidean(2), jax.nn.softmax, lambda t: jnp.sum(jnp.exp(t)), np.log
    )


def _whole(theta):
    """(pi_1, .., pi_{K-1}) -> pi."""
    return jnp.concatenate([theta, jnp.reshape(1 - jnp.sum(theta), (1,))])


def _reduced(name, a, potential, manifold, simplex, coordinates) -> Target:
    def sample(key, count):
        pi = jnp.exp(sample_log_dirichlet(key, jnp.asarray(a), count))
        return coordinates(pi) if name.endswith("mean") else jnp.log(pi[..., :-1] / pi[..., -1:])

    def quadrature(m: int) -> Rule:
        pi, weights = simplex_rule(a, m)
        return coordinates(pi), weights

    return _finished(name, a, potential, manifold, simplex, sample, quadrature, coordinates(a / a.sum()))


def _expanded(name, n, potential, manifold, simplex, total, coordinates) -> Target:
    a, prior = SMOOTH + n, SMOOTH * len(n)
    in_jax = jnp.log if coordinates is np.log else lambda theta: theta

    def sample(key, count):
        ratio_key, sum_key = jax.random.split(key)
        pi = jnp.exp(sample_log_dirichlet(ratio_key, jnp.asarray(a), count))
        return in_jax(jax.random.gamma(sum_key, prior, (count, 1)) * pi)

    def quadrature(m: int) -> Rule:
        k = np.arange(m)
        sums, w = jacobi_rule(2.0 * k + prior, np.sqrt(k[1:] * (k[1:] + prior - 1)))
        pi, weights = simplex_rule(a, m)
        points = (sums[:, None, None] * pi).reshape(-1, len(a))
        return coordinates(points), np.outer(w, weights).ravel()

    example = coordinates(0.9 * prior * a / a.sum())
    made = _finished(name, a, potential, manifold, simplex, sample, quadrature, example)
    cdf = lambda x: special.gammainc(prior, np.maximum(np.asarray(x), 0))
    moments = {**made.moments, "sum": Moment(total, float(prior))}
    return Target(**{**vars(made), "moments": moments, "cdfs": {**made.cdfs, "sum": Cdf(total, cdf)}})


def _finished(name, a, potential, manifold, simplex: Callable, sample, quadrature, example) -> Target:
    """A Target whose statistics are those of pi."""
    whole = a.sum()
    moments, cdfs = {}, {}
    for k in range(len(a)):
        part = lambda theta, k=k: simplex(theta)[k]
        moments[f"pi[{k}]"] = Moment(part, float(a[k] / whole))
        square = float(a[k] * (a[k] + 1) / (whole * (whole + 1)))
        moments[f"pi[{k}]^2"] = Moment(lambda theta, f=part: f(theta) ** 2, square)
        cdfs[f"pi[{k}]"] = Cdf(part, lambda x, k=k: special.betainc(a[k], whole - a[k], np.clip(x, 0, 1)))
    centre = jnp.asarray(np.asarray(example) * 1.1 + 0.02)  # not the mode
    return Target(
        name=name,
        manifold=manifold,
        example=centre,
        potential=potential,
        sample=sample,
        moments=moments,
        cdfs=cdfs,
        quadrature=quadrature,
        curvature=_curvature(potential, *quadrature(24)),
        source="patterson2013stochastic, section 4; closed form",
    )


def _curvature(potential, points: np.ndarray, weights: np.ndarray) -> float:
    """The largest eigenvalue of the Hessian of U on all but 0.2 % of the mass."""
    with jax.enable_x64(True):
        hessians = jax.jit(jax.vmap(jax.hessian(potential)))(jnp.asarray(points, jnp.float64))
    largest = np.linalg.eigvalsh(np.asarray(hessians)).max(axis=-1)
    order = np.argsort(largest)
    return float(largest[order][np.searchsorted(np.cumsum(weights[order]), 0.998)])


ENTRIES = (
    TargetRow("simplex-reduced-mean", reduced_mean),
    TargetRow("simplex-reduced-natural", reduced_natural),
    TargetRow("simplex-expanded-mean", expanded_mean),
    TargetRow("simplex-expanded-natural", expanded_natural),
)
