"""Eight schools, centred and non-centred: one posterior in two coordinates."""

import jax.numpy as jnp
import numpy as np
from jax.scipy import stats

from sgmcmc_verification.targets.posteriordb.bijections import Identity, Positive
from sgmcmc_verification.targets.posteriordb.files import Fields
from sgmcmc_verification.targets.posteriordb.model import Model, Parameter
from sgmcmc_verification.targets.posteriordb.priors import half_cauchy


def centered(data: Fields) -> Model:
    """theta_j ~ N(mu, tau), mu ~ N(0, 5), tau ~ half-Cauchy(5), y_j ~ N(theta_j, sigma_j).

    A funnel: theta is confined to mu as tau -> 0.
    """

    def log_prior(values):
        return _hyperprior(values) + jnp.sum(stats.norm.logpdf(values["theta"], values["mu"], values["tau"]))

    rows, parameters = _schools(data, "theta")
    return Model(parameters, log_prior, lambda values, row: _log_likelihood(values["theta"], row), rows)


def noncentered(data: Fields) -> Model:
    """theta_j = mu + tau theta_trans_j with theta_trans_j ~ N(0, 1); else as `centered`."""

    def log_prior(values):
        return _hyperprior(values) + jnp.sum(stats.norm.logpdf(values["theta_trans"]))

    def quantities(values):
        theta = values["mu"] + values["tau"] * values["theta_trans"]
        return {"theta": theta, "mu": values["mu"], "tau": values["tau"]}

    def parameters_of(values):
        trans = (values["theta"] - values["mu"]) / values["tau"]
        return {"theta_trans": trans, "mu": values["mu"], "tau": values["tau"]}

    rows, parameters = _schools(data, "theta_trans")
    return Model(
        parameters,
        log_prior,
        lambda values, row: _log_likelihood(quantities(values)["theta"], row),
        rows,
        quantities,
        parameters_of,
    )


def _hyperprior(values):
    return stats.norm.logpdf(values["mu"], 0.0, 5.0) + half_cauchy(values["tau"], 5.0)


def _log_likelihood(theta, row):
    return stats.norm.logpdf(row["y"], theta[row["school"]], row["sigma"])


def _schools(data: Fields, effects: str):
    n = data.count("J")
    sigma = data.vector("sigma", n)
    if np.any(sigma <= 0):
        raise data.error("sigma", "must be positive")
    rows = {"school": np.arange(n), "y": data.vector("y", n), "sigma": sigma}
    return rows, {effects: Parameter(Identity(), (n,)), "mu": Parameter(Identity()), "tau": Parameter(Positive())}
