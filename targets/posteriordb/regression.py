"""Regressions with normal errors: kidscore_*, logearn_interaction, nes, blr, kilpisjarvi and arK."""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import stats

from sgmcmc_verification.targets.posteriordb.bijections import Identity, Positive
from sgmcmc_verification.targets.posteriordb.files import Fields
from sgmcmc_verification.targets.posteriordb.model import Model, Parameter, Values
from sgmcmc_verification.targets.posteriordb.priors import flat, half_cauchy, half_normal


def kidscore_momiq(data: Fields) -> Model:
    """kid_score ~ N(b1 + b2 mom_iq, sigma), b flat, sigma ~ half-Cauchy(2.5)."""
    return _kidscore(data, lambda hs, iq: [iq])


def kidscore_momhsiq(data: Fields) -> Model:
    """kid_score ~ N(b1 + b2 mom_hs + b3 mom_iq, sigma), b flat, sigma ~ half-Cauchy(2.5)."""
    return _kidscore(data, lambda hs, iq: [hs, iq])


def kidscore_interaction(data: Fields) -> Model:
    """kid_score ~ N(b1 + b2 mom_hs + b3 mom_iq + b4 mom_hs mom_iq, sigma), b flat, sigma ~ half-Cauchy(2.5)."""
    return _kidscore(data, lambda hs, iq: [hs, iq, hs * iq])


def logearn_interaction(data: Fields) -> Model:
    """log earn ~ N(b1 + b2 height + b3 male + b4 height male, sigma), all flat."""
    n = data.count("N")
    height, male, earn = data.vector("height", n), data.vector("male", n), data.vector("earn", n)
    if np.any(earn <= 0):
        raise data.error("earn", "must be positive, since its logarithm is the outcome")
    return _linear(_columns(height, male, height * male), np.log(earn), flat)


def nes(data: Fields) -> Model:
    """partyid7 ~ N(b1 + b2 real_ideo + b3 race_adj + b4..b6 [age_discrete = 2, 3, 4] + b7 educ1 + b8 gender
    + b9 income, sigma), all flat."""
    n = data.count("N")
    age = data.vector("age_discrete", n)
    first, last = ("real_ideo", "race_adj"), ("educ1", "gender", "income")
    columns = [data.vector(key, n) for key in first]
    columns += [(age == group).astype(float) for group in (2, 3, 4)]
    columns += [data.vector(key, n) for key in last]
    return _linear(_columns(*columns), data.vector("partyid7", n), flat)


def blr(data: Fields) -> Model:
    """y ~ N(X b, sigma), b ~ N(0, 10), sigma ~ half-N(10)."""
    n, d = data.count("N"), data.count("D")

    def log_prior(values):
        return jnp.sum(stats.norm.logpdf(values["beta"], 0.0, 10.0)) + half_normal(values["sigma"], 10.0)

    return _linear(data.matrix("X", n, d), data.vector("y", n), log_prior)


def kilpisjarvi(data: Fields) -> Model:
    """y ~ N(alpha + beta x, sigma), alpha ~ N(pmualpha, psalpha), beta ~ N(pmubeta, psbeta), sigma flat."""
    n = data.count("N")
    location, scale = data.number("pmualpha"), data.positive("psalpha")
    slope, spread = data.number("pmubeta"), data.positive("psbeta")

    def log_prior(values):
        return stats.norm.logpdf(values["alpha"], location, scale) + stats.norm.logpdf(values["beta"], slope, spread)

    return normal_errors(
        {"alpha": Parameter(Identity()), "beta": Parameter(Identity())},
        lambda values, row: values["alpha"] + values["beta"] * row["x"],
        {"x": data.vector("x", n), "y": data.vector("y", n)},
        log_prior,
    )


def ar_k(data: Fields) -> Model:
    """y_t ~ N(alpha + sum_k beta_k y_{t-k}, sigma) for t > K; alpha, beta ~ N(0, 10), sigma ~ half-Cauchy(2.5).

    The first K values are given.
    """
    order, length = data.count("K"), data.count("T")
    if length <= order:
        raise data.error("T", f"must be above K = {order}, got {length}")
    y = data.vector("y", length)

    def log_prior(values):
        coefficients = stats.norm.logpdf(values["beta"], 0.0, 10.0)
        return stats.norm.logpdf(values["alpha"], 0.0, 10.0) + jnp.sum(coefficients) + half_cauchy(values["sigma"], 2.5)

    return normal_errors(
        {"alpha": Parameter(Identity()), "beta": Parameter(Identity(), (order,))},
        lambda values, row: values["alpha"] + row["past"] @ values["beta"],
        {"past": np.stack([y[order - k : length - k] for k in range(1, order + 1)], axis=1), "y": y[order:]},
        log_prior,
    )


def normal_errors(
    coefficients: Mapping[str, Parameter],
    mean: Callable[[Values, Mapping[str, jax.Array]], jax.Array],
    rows: Mapping[str, np.ndarray],
    log_prior: Callable[[Values], jax.Array],
) -> Model:
    """y_i ~ N(mean(values, row_i), sigma) with sigma > 0 after the coefficients.

    Args:
        coefficients: the parameters of the mean.
        mean: (values, row) -> scalar.
        rows: arrays with a common leading axis, `y` among them.
        log_prior: of all parameters.
    """

    def log_likelihood(values, row):
        return stats.norm.logpdf(row["y"], mean(values, row), values["sigma"])

    return Model({**coefficients, "sigma": Parameter(Positive())}, log_prior, log_likelihood, rows)


def _linear(features: np.ndarray, outcome: np.ndarray, log_prior: Callable[[Values], jax.Array]) -> Model:
    """`normal_errors` with mean x_i.beta for features (n, k)."""
    beta = {"beta": Parameter(Identity(), (features.shape[1],))}
    return normal_errors(beta, lambda values, row: row["x"] @ values["beta"], {"x": features, "y": outcome}, log_prior)


def _columns(*columns: np.ndarray) -> np.ndarray:
    """Features with a constant column before them."""
    return np.stack([np.ones(len(columns[0])), *columns], axis=1)


def _kidscore(data: Fields, columns: Callable[[np.ndarray, np.ndarray], list[np.ndarray]]) -> Model:
    n = data.count("N")
    features = _columns(*columns(data.vector("mom_hs", n), data.vector("mom_iq", n)))
    return _linear(features, data.vector("kid_score", n), lambda values: half_cauchy(values["sigma"], 2.5))
