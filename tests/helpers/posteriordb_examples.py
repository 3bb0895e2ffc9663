"""Data for every model of posteriordb that has a density, and its log density written again with SciPy."""

import numpy as np
from scipy import special, stats

from sgmcmc_verification.targets.posteriordb.files import Fields


def _regression_data(random, n, **columns):
    return {"N": n, **{name: draw(random, n).tolist() for name, draw in columns.items()}}


def data(model: str, seed: int = 0) -> Fields:
    """Data in the format of a model, small and made up; positive, binary or integer where the model takes such."""
    random = np.random.RandomState(seed)
    normal = lambda r, n: 3 * r.standard_normal(n)
    binary = lambda r, n: r.randint(0, 2, n)
    grades = lambda r, n: r.randint(1, 5, n)
    if model.startswith("eight_schools"):
        return Fields(model, {"J": 3, "y": [28, -3, 7.5], "sigma": [15, 10, 16]})
    if model.startswith("kidscore"):
        return Fields(model, _regression_data(random, 9, kid_score=normal, mom_hs=binary, mom_iq=normal))
    if model == "logearn_interaction":
        positive = lambda r, n: np.exp(normal(r, n))
        return Fields(model, _regression_data(random, 11, earn=positive, height=normal, male=binary))
    if model == "nes":
        columns = dict.fromkeys(["partyid7", "real_ideo", "race_adj", "educ1", "gender", "income"], normal)
        return Fields(model, _regression_data(random, 13, age_discrete=grades, **columns))
    if model == "blr":
        matrix = lambda r, n: normal(r, (n, 2))
        return Fields(model, {"D": 2, **_regression_data(random, 7, y=normal, X=matrix)})
    if model == "kilpisjarvi":
        priors = {"pmualpha": 0.7, "psalpha": 2.0, "pmubeta": -0.4, "psbeta": 0.3}
        return Fields(model, {**priors, **_regression_data(random, 8, x=normal, y=normal)})
    if model == "arK":
        return Fields(model, {"K": 2, "T": 9, "y": normal(random, 9).tolist()})
    assert model == "low_dim_gauss_mix", model
    return Fields(model, _regression_data(random, 10, y=normal))


def log_density(model: str, d, v) -> tuple[float, float]:
    """Log prior and log likelihood of constrained parameters, from the statement of the model.

    Args:
        model: name of the model.
        d: the data, an object of lists.
        v: constrained parameters, of NumPy.
    """
    a = {key: np.asarray(value, float) for key, value in d.items()}
    sigma = v.get("sigma")
    if model == "eight_schools_centered":
        prior = stats.norm.logpdf(v["theta"], v["mu"], v["tau"]).sum() + _schools(v)
        return prior, stats.norm.logpdf(a["y"], v["theta"], a["sigma"]).sum()
    if model == "eight_schools_noncentered":
        theta = v["mu"] + v["tau"] * v["theta_trans"]
        prior = stats.norm.logpdf(v["theta_trans"]).sum() + _schools(v)
        return prior, stats.norm.logpdf(a["y"], theta, a["sigma"]).sum()
    if model == "low_dim_gauss_mix":
        # an ordered pair has twice the density of a pair
        prior = np.log(2) + stats.norm.logpdf(v["mu"], 0, 2).sum()
        prior += stats.halfnorm.logpdf(sigma, 0, 2).sum() + stats.beta.logpdf(v["theta"], 5, 5)
        parts = stats.norm.logpdf(a["y"][:, None], v["mu"], sigma) + np.log([v["theta"], 1 - v["theta"]])
        return prior, special.logsumexp(parts, axis=1).sum()
    if model == "kilpisjarvi":
        prior = stats.norm.logpdf(v["alpha"], d["pmualpha"], d["psalpha"])
        prior += stats.norm.logpdf(v["beta"], d["pmubeta"], d["psbeta"])
        return prior, stats.norm.logpdf(a["y"], v["alpha"] + v["beta"] * a["x"], sigma).sum()
    if model == "arK":
        prior = stats.norm.logpdf([v["alpha"], *v["beta"]], 0, 10).sum() + stats.halfcauchy.logpdf(sigma, 0, 2.5)
        order, total = d["K"], 0.0
        for t in range(order, d["T"]):
            mean = v["alpha"] + sum(v["beta"][k] * a["y"][t - k - 1] for k in range(order))
            total += stats.norm.logpdf(a["y"][t], mean, sigma)
        return prior, total
    b = v["beta"]
    if model == "blr":
        prior = stats.norm.logpdf(b, 0, 10).sum() + stats.halfnorm.logpdf(sigma, 0, 10)
        return prior, stats.norm.logpdf(a["y"], a["X"] @ b, sigma).sum()
    if model == "logearn_interaction":
        mean = b[0] + b[1] * a["height"] + b[2] * a["male"] + b[3] * a["height"] * a["male"]
        return 0.0, stats.norm.logpdf(np.log(a["earn"]), mean, sigma).sum()
    if model == "nes":
        age = a["age_discrete"]
        mean = b[0] + b[1] * a["real_ideo"] + b[2] * a["race_adj"] + b[3] * (age == 2) + b[4] * (age == 3)
        mean = mean + b[5] * (age == 4) + b[6] * a["educ1"] + b[7] * a["gender"] + b[8] * a["income"]
        return 0.0, stats.norm.logpdf(a["partyid7"], mean, sigma).sum()
    mean = {
        "kidscore_momiq": lambda: b[0] + b[1] * a["mom_iq"],
        "kidscore_momhsiq": lambda: b[0] + b[1] * a["mom_hs"] + b[2] * a["mom_iq"],
        "kidscore_interaction": lambda: (
            b[0] + b[1] * a["mom_hs"] + b[2] * a["mom_iq"] + b[3] * a["mom_hs"] * a["mom_iq"]
        ),
    }[model]()
    return stats.halfcauchy.logpdf(sigma, 0, 2.5), stats.norm.logpdf(a["kid_score"], mean, sigma).sum()


def _schools(v) -> float:
    return stats.norm.logpdf(v["mu"], 0, 5) + stats.halfcauchy.logpdf(v["tau"], 0, 5)
