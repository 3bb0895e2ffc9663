"""A mixture of two normal laws in one dimension."""

import math

import jax.numpy as jnp
from jax.scipy import stats

from sgmcmc_verification.targets.posteriordb.bijections import Ordered, Positive, UnitInterval
from sgmcmc_verification.targets.posteriordb.files import Fields
from sgmcmc_verification.targets.posteriordb.model import Model, Parameter
from sgmcmc_verification.targets.posteriordb.priors import beta, half_normal


def low_dim_gauss_mix(data: Fields) -> Model:
    """y ~ theta N(mu_1, sigma_1) + (1 - theta) N(mu_2, sigma_2), mu_1 < mu_2; mu_k ~ N(0, 2), sigma_k ~ half-N(2),
    theta ~ Beta(5, 5).

    The prior of mu is restricted to mu_1 < mu_2, so its normalised density has a factor 2.
    """

    def log_prior(values):
        mu = jnp.sum(stats.norm.logpdf(values["mu"], 0.0, 2.0)) + math.log(2)
        return mu + jnp.sum(half_normal(values["sigma"], 2.0)) + beta(values["theta"], 5.0, 5.0)

    def log_likelihood(values, row):
        parts = stats.norm.logpdf(row["y"], values["mu"], values["sigma"])
        return jnp.logaddexp(jnp.log(values["theta"]) + parts[0], jnp.log1p(-values["theta"]) + parts[1])

    parameters = {
        "mu": Parameter(Ordered(), (2,)),
        "sigma": Parameter(Positive(), (2,)),
        "theta": Parameter(UnitInterval()),
    }
    return Model(parameters, log_prior, log_likelihood, {"y": data.vector("y", data.count("N"))})
