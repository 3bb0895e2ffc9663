"""Logistic regression: the model against closed forms, and stored posteriors against independent methods."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import integrate, special, stats

from sgmcmc_verification.reports.pages import reference_posterior
from sgmcmc_verification.targets.datasets import splice
from sgmcmc_verification.targets.datasets.files import CACHE_VARIABLE, DATA_VARIABLE, DataError, available
from sgmcmc_verification.targets.reference import (
    FOLDER,
    THRESHOLDS,
    failures,
    load_reference,
    reference_moments,
    validate,
)
from sgmcmc_verification.targets.registry import POSTERIORS, target
from sgmcmc_verification.targets.regression.benchmarks import SYNTHETIC, WORKLOADS, generate, logistic_synthetic
from sgmcmc_verification.targets.regression.logistic import expectations, laplace, logistic_regression, predictive

pytestmark = pytest.mark.xdist_group(__name__)  # a fixture of the module is made once

EPS = np.finfo(np.float64).eps
REFERENCES = sorted(path.stem for path in FOLDER.glob("*.json"))


@pytest.fixture(scope="module")
def small():
    """(features, labels) of 30 rows and 3 columns."""
    return generate(30, 3, 5).train


def test_potential_is_the_formula_to_round_off(small):
    target = logistic_regression(*small, 0.3, "toy")
    w = np.array([0.7, -1.2, 0.4])
    margins = [mpmath.fdot(zip(row.tolist(), w.tolist(), strict=True)) for row in small.features]
    terms = [mpmath.log(1 + mpmath.exp(z)) - y * z for z, y in zip(margins, small.labels, strict=True)]
    exact = mpmath.fsum(terms) + mpmath.fdot(w.tolist(), w.tolist()) / mpmath.mpf(0.6)
    value = float(target.potential(jnp.asarray(w)))
    assert abs(value - exact) < 40 * EPS * float(exact)


def test_sum_over_data_is_the_potential(small):
    target = logistic_regression(*small, 0.3, "toy")
    terms = target.terms
    w = jnp.asarray([0.7, -1.2, 0.4])
    total = terms.prior(w) + jnp.sum(jax.vmap(terms.datum, (None, 0))(w, terms.data))
    assert abs(float(total - target.potential(w))) < 2 * terms.size * EPS * float(total)
    assert terms.size == 30


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("margin", [-1e4, -40.0, 0.0, 40.0, 1e4])
def test_potential_and_gradient_do_not_overflow(margin, label):
    target = logistic_regression([[1.0]], [label], 1e12, "toy")
    w = jnp.asarray([margin])
    value, gradient = jax.value_and_grad(target.potential)(w)
    with mpmath.workdps(40):
        z = mpmath.mpf(margin)
        exact = mpmath.log1p(mpmath.exp(-abs(z))) + max(z, 0) - label * z + z**2 / mpmath.mpf(2e12)
        slope = 1 / (1 + mpmath.exp(-z)) - label + z / mpmath.mpf(1e12)
    assert abs(value - float(exact)) <= 8 * EPS * float(exact)
    # the sigmoid is rounded at the scale of 1 before the label is taken off
    assert abs(gradient[0] - float(slope)) <= 8 * EPS


def test_a_float32_position_stays_float32_under_strict_promotion(small):
    target = logistic_regression(*small, 0.3, "toy")
    w = jnp.asarray([0.7, -1.2, 0.4], jnp.float32)
    row = jax.tree.map(lambda a: a[0], target.terms.data)
    with jax.numpy_dtype_promotion("strict"):
        values = [jax.grad(target.potential)(w), jax.grad(target.terms.prior)(w), jax.grad(target.terms.datum)(w, row)]
    assert {value.dtype for value in values} == {jnp.dtype("float32")}


def test_mode_has_zero_gradient_and_the_precision_is_the_hessian_there(small):
    target = logistic_regression(*small, 0.3, "toy")
    law = laplace(*small, 0.3)
    scale = np.abs(small.features).sum(axis=0) + np.abs(law.mean) / 0.3
    assert np.all(np.abs(jax.grad(target.potential)(jnp.asarray(law.mean))) < 30 * EPS * scale)
    hessian = jax.hessian(target.potential)(jnp.asarray(law.mean))
    np.testing.assert_allclose(law.precision, hessian, rtol=0, atol=30 * EPS * float(np.abs(hessian).max()))


def test_mode_is_found_when_the_classes_are_separable_and_the_prior_is_wide():
    features = np.column_stack([np.linspace(-1, 1, 10), np.ones(10)])
    labels = (features[:, 0] > 0).astype(float)
    target = logistic_regression(features, labels, 1e4, "toy")
    gradient = jax.grad(target.potential)(jnp.asarray(laplace(features, labels, 1e4).mean))
    assert np.all(np.abs(gradient) < 100 * EPS * np.abs(features).sum(axis=0))


def test_curvature_bounds_the_hessian_and_is_attained_at_zero(small):
    target = logistic_regression(*small, 0.3, "toy")
    largest = jax.jit(lambda w: jnp.linalg.eigvalsh(jax.hessian(target.potential)(w))[-1])
    rounding = 1 + 30 * EPS
    assert target.curvature == pytest.approx(float(largest(jnp.zeros(3))), rel=30 * EPS)
    for w in np.random.RandomState(0).standard_normal((5, 3)):
        assert float(largest(jnp.asarray(w))) < target.curvature * rounding


def test_quadrature_agrees_with_adaptive_integration_in_two_dimensions():
    split = generate(40, 2, 1)
    target = logistic_regression(*split.train, 1.0, "toy")
    law = laplace(*split.train, 1.0)
    low, high = (law.mean + s * 9 * np.sqrt(np.diag(np.linalg.inv(law.precision))) for s in (-1, 1))
    X, y = split.train

    def density(b, a):
        z = X @ np.array([a, b])
        shift = X @ law.mean
        return np.exp(
            -(a * a + b * b - law.mean @ law.mean) / 2
            - np.sum(np.logaddexp(0, z) - y * z - np.logaddexp(0, shift) + y * shift)
        )

    def integral(function):
        return integrate.dblquad(
            lambda b, a: function(a, b) * density(b, a), low[0], high[0], low[1], high[1], epsabs=1e-10, epsrel=1e-10
        )[0]

    total = integral(lambda a, b: 1.0)
    points, weights = target.quadrature(40)
    coarse = target.quadrature(30)
    for function in (lambda a, b: a, lambda a, b: a * b):
        value = weights @ function(*points.T)
        # the rule's own error, by its change, and that of the adaptive one
        allowed = abs(value - coarse[1] @ function(*coarse[0].T)) + 1e-8 + 1e-9 / total
        assert abs(value - integral(function) / total) < allowed


BAD = [
    ({"features": np.zeros(3)}, "features"),
    ({"features": np.zeros((0, 2)), "labels": np.zeros(0)}, "features"),
    ({"features": np.array([[1.0], [np.nan]])}, "features: must be finite; row 1"),
    ({"labels": np.array([0.0, 1.0, 1.0])}, "labels"),
    ({"labels": np.array([-1.0, 1.0])}, "labels: must be 0 or 1; row 0"),
    ({"labels": np.array([1.0, np.nan])}, "labels: must be 0 or 1; row 1"),
    ({"prior_variance": 0.0}, "prior_variance"),
    ({"prior_variance": np.nan}, "prior_variance"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[message + str(i) for i, (_, message) in enumerate(BAD)])
def test_bad_input_is_one_error_that_names_the_argument(change, message):
    good = {"features": np.array([[1.0], [2.0]]), "labels": np.array([0.0, 1.0]), "prior_variance": 1.0}
    with pytest.raises(ValueError, match=f"^{message}"):
        logistic_regression(**(good | change), name="toy")


def test_predictions_average_probabilities_over_draws_not_logarithms(small):
    draws = np.random.RandomState(3).standard_normal((7, 3))
    probability = special.expit(small.features @ draws.T).mean(axis=1)
    result = predictive(draws, *small)
    assert result.accuracy == np.mean((probability > 0.5) == small.labels)
    exact = np.mean(np.log(np.where(small.labels == 1, probability, 1 - probability)))
    assert abs(result.log_likelihood - exact) < 100 * EPS * abs(exact)
    assert np.isfinite(predictive(1e4 * draws, *small).log_likelihood)


@pytest.mark.parametrize("weights", [np.zeros(3), np.zeros((2, 4)), np.full((1, 3), np.nan), np.zeros((0, 3))])
def test_predictions_refuse_bad_weights(small, weights):
    with pytest.raises(ValueError, match=r"^weights"):
        predictive(weights, *small)


def test_statistics_are_what_their_names_say():
    split = generate(20, 3, 2)
    w, centre = np.array([0.3, -0.5, 1.0]), np.array([0.1, 0.2, 0.3])
    values = {k: float(f(jnp.asarray(w))) for k, f in expectations(split.train, split.test, centre).items()}

    def log_likelihood(table):
        p = special.expit(table.features @ w)
        return stats.bernoulli.logpmf(table.labels, p)

    exact = {f"weight[{j}]": w[j] for j in range(3)} | {f"square[{j}]": (w[j] - centre[j]) ** 2 for j in range(3)}
    exact["log likelihood"] = log_likelihood(split.train).sum()
    exact["test log likelihood"] = log_likelihood(split.test).mean()
    exact |= {f"probability[{k}]": special.expit(split.test.features[k] @ w) for k in range(5)}
    assert values.keys() == exact.keys()
    assert all(abs(values[k] - exact[k]) <= 400 * EPS * abs(exact[k]) for k in exact)


def test_synthetic_target_without_a_rule_has_no_moments():
    target = logistic_synthetic(n=20, d=5, seed=1)
    assert target.quadrature is None
    assert not target.moments
    assert target.size == 5


@pytest.mark.parametrize("name", [name for name, w in WORKLOADS.items() if name != "covertype" and available(*w.files)])
def test_registered_posterior_is_built_under_its_name_with_moments(name):
    law = target(WORKLOADS[name].name)
    assert law.name == WORKLOADS[name].name
    stored = reference_moments(law.name)
    limit = stats.norm.isf(1e-6 / (2 * len(stored)))
    assert law.moments.keys() == stored.keys()
    for key, moment in law.moments.items():
        assert abs(moment.value - stored[key].value) <= limit * stored[key].mcse, key
        assert np.isfinite(moment.function(law.example))
    assert law.manifold.contains(law.example)
    assert law.size == load_reference(law.name)["provenance"]["columns"]


def test_a_posterior_without_its_data_is_one_error_and_listing_needs_none(tmp_path, monkeypatch):
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "data"))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    absent = dataclasses.replace(splice.TRAIN, url="http://127.0.0.1:1/splice")
    monkeypatch.setattr(splice, "FILES", (absent,))
    rows = {row.name: row for row in POSTERIORS}
    assert {w.name for w in WORKLOADS.values()} <= set(rows)
    with pytest.raises(DataError, match=rf"splice/splice\.libsvm.*{DATA_VARIABLE}"):
        rows["logistic-splice"].build()


def test_each_workload_has_a_stored_reference():
    assert sorted(w.name for w in WORKLOADS.values()) == REFERENCES


@pytest.mark.parametrize("name", REFERENCES)
def test_stored_reference_meets_its_thresholds_and_its_cross_checks(name):
    document = load_reference(name)
    assert reference_posterior.problems(document) == []
    assert document["provenance"]["cross_checks"], "no independent check is recorded"
    assert min(check["n"] for check in document["provenance"]["cross_checks"]) >= 1000


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_stored_reference_was_made_from_the_data_that_the_loader_reads(workload):
    provenance = load_reference(workload.name)["provenance"]
    if workload.files:
        assert provenance["data"] == {file.name: file.sha256 for file in workload.files}
    else:
        assert provenance["data"].startswith("generated")
    assert provenance["prior_variance"] == workload.prior_variance
    assert "reports.pages.reference_posterior " in provenance["command"]  # made before the packages had one name
    names = set(expectations(*[(np.zeros((5, 1)), np.zeros(5))] * 2, np.zeros(provenance["columns"])))
    assert names == set(reference_moments(workload.name))


def test_stored_synthetic_reference_agrees_with_quadrature():
    stored, moments = reference_moments(SYNTHETIC.name), logistic_synthetic().moments
    limit = stats.norm.isf(1e-6 / (2 * len(stored)))
    assert stored.keys() == moments.keys()
    for name, row in stored.items():
        assert abs(row.value - moments[name].value) < limit * row.mcse + moments[name].error, name


def fresh_check(workload, n):
    """A new importance sample against the stored reference of a workload."""
    split = workload.load()
    law = laplace(*split.train, workload.prior_variance)
    functions = expectations(split.train, split.test, law.mean)
    other, k = reference_posterior.importance(functions, workload, law, n, seed=7)
    rows = load_reference(WORKLOADS["splice" if "splice" in workload.name else "synthetic"].name)["expectations"]
    return reference_posterior.compare(rows, other, "importance sampling", n=n, pareto_k=k)


# Covertype's 87,829 rows are too slow to go through here; its file records the check
@pytest.mark.parametrize("name", [name for name in ("splice", "synthetic") if available(*WORKLOADS[name].files)])
def test_stored_reference_agrees_with_a_fresh_importance_sample(name):
    check = fresh_check(WORKLOADS[name], 4000)
    assert check["largest_z"] < check["limit"]
    assert check["pareto_k"] < 0.7


@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_cross_check_sees_a_reference_of_another_prior(factor):
    wrong = dataclasses.replace(SYNTHETIC, prior_variance=factor * SYNTHETIC.prior_variance)
    check = fresh_check(wrong, 4000)
    assert check["largest_z"] > check["limit"]


def test_hmc_in_whitened_coordinates_agrees_with_quadrature():
    split = SYNTHETIC.load()
    target = logistic_synthetic()
    law = laplace(*split.train, 1.0)
    options = {"chains": 4, "draws": 4000, "warmup": 50, "num_steps": 8, "step_size": 0.2}
    draws, acceptance = reference_posterior.hmc(target, law, 3, options)
    assert draws.shape == (4, 4000, 3)
    assert 0.8 < acceptance <= 1
    functions = {name: moment.function for name, moment in target.moments.items()}
    rows = reference_posterior.summarise(reference_posterior.evaluate(functions, draws))
    limit = stats.norm.isf(1e-6 / (2 * len(rows)))
    for name, row in rows.items():
        assert abs(row["value"] - target.moments[name].value) < limit * row["mcse"]


def test_command_refuses_to_store_a_run_that_is_too_short(tmp_path, capsys):
    short = ["synthetic", "--draws", "40", "--warmup", "2", "--importance", "500", "--nuts", "0", "--folder"]
    assert reference_posterior.main([*short, str(tmp_path)]) == 1
    assert "not stored" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_written_document_is_read_back(tmp_path):
    document = load_reference(SYNTHETIC.name)
    (tmp_path / f"{SYNTHETIC.name}.json").write_text(reference_posterior.dumps(document))
    assert load_reference(SYNTHETIC.name, tmp_path) == document


@pytest.mark.parametrize(
    ("field", "value"), [("rhat", 1.02), ("ess_bulk", 900.0), ("ess_tail", 900.0), ("mcse", 1.0), ("mcse", 0.0)]
)
def test_a_reference_that_misses_a_threshold_is_refused(tmp_path, field, value):
    document = load_reference(SYNTHETIC.name)
    document["expectations"]["weight[1]"][field] = value
    assert len(failures(document)) == 1
    (tmp_path / f"{SYNTHETIC.name}.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"thresholds: weight\[1\]"):
        reference_moments(SYNTHETIC.name, tmp_path)
    assert THRESHOLDS["rhat"] <= 1.01


def test_a_cross_check_that_disagrees_or_cannot_be_trusted_is_a_problem():
    document = load_reference(SYNTHETIC.name)
    checks = document["provenance"]["cross_checks"]
    checks[0] |= {"largest_z": 7.0, "pareto_k": 0.8}
    assert len(reference_posterior.problems(document)) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 0}, "schema"),
        ({"provenance": {}}, "provenance: lacks acceptance"),
        ({"expectations": {}}, "expectations"),
        ({"expectations": {"a": {"value": 1.0}}}, "expectations: a"),
    ],
)
def test_a_document_of_another_form_is_refused_by_field(change, message):
    with pytest.raises(ValueError, match=f"toy: {message}"):
        validate(load_reference(SYNTHETIC.name) | change, "toy")


def test_an_unknown_reference_is_refused_by_name():
    with pytest.raises(ValueError, match="logistic-synthetic"):
        load_reference("logistic-nowhere")
