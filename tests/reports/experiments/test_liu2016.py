"""Experiments of the SGGMC paper: the circle in its quick version, the parts of all three."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from sgmcmc_verification.reports.experiments.common.distances import (
    counts_of,
    distance,
    kolmogorov,
    relaxation_rate,
    total_variation,
)
from sgmcmc_verification.reports.experiments.common.grid import load
from sgmcmc_verification.reports.experiments.liu2016 import figure3 as circle
from sgmcmc_verification.reports.experiments.liu2016 import figure4 as posterior
from sgmcmc_verification.reports.experiments.liu2016 import table1 as table

pytestmark = pytest.mark.xdist_group("experiments_liu2016")  # what the fixture makes serves one worker

RESULTANT = special.ive(1, 5) / special.ive(0, 5)
"""Mean resultant of a von Mises law of concentration 5."""


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run of figure 3."""
    folder = tmp_path_factory.mktemp("figure3")
    assert circle.main(["--quick", "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def results(quick):
    """Its results, with V^ = V and with V^ = 0."""
    lines = load(quick / f"{circle.NAME}.jsonl")
    return {cell.setting: lines[cell.key]["result"] for cell in circle.plan(True)}


def angle_density(angle):
    """The density of figure 3 with its constant in digits."""
    return (np.exp(5 * np.cos(angle - np.pi / 3)) + 2 * np.exp(5 * np.cos(angle + np.pi / 3))) / 513.4594872


# Figure 3 ----------------------------------------------------------------------------------------------------------


def test_the_bins_have_the_probabilities_of_the_closed_form():
    assert 6 * np.pi * special.i0(5) == pytest.approx(513.4594872, rel=1e-9)
    found = circle.probabilities(circle.problem())
    for i in (5, 24, 36, 50):
        mass = integrate.quad(angle_density, *circle.EDGES[i : i + 2], epsabs=0)[0]
        assert found[i] == pytest.approx(mass, rel=1e-9)  # the digits of the constant


def test_compensated_noise_gives_the_moments_of_the_closed_form(results):
    r = results[circle.base(True)[0]]
    for name, expected in (("cos", RESULTANT / 2), ("sin", -np.sqrt(3) / 6 * RESULTANT), ("kinetic", 1.0)):
        mean, error = r[name]
        # 4.4 standard errors: 1e-5; the discretisation adds less than 1 - u C h / sinh(C h), which is 0.7%
        assert abs(mean - expected) < 4.4 * error + 0.007, name


def test_noise_that_is_not_compensated_gives_the_predicted_temperature(results):
    s = circle.base(True)[1]
    assert circle.temperature(s) == pytest.approx(2.0, rel=2e-3)
    mean, error = results[s]["kinetic"]
    assert abs(mean - 2.0) < 4.4 * error + 0.014
    assert mean - 1.0 > 4.4 * error
    assert results[s]["KS"][0] > results[s]["KS"][2]


def test_the_verdict_is_turned_by_a_sampler_that_is_not_told_its_noise(results):
    settings = circle.base(True)
    assert [verdict for _, verdict, _ in circle.claims(results, settings)] == ["holds", "holds"]
    planted = {settings[0]: results[settings[1]], settings[1]: results[settings[0]]}
    assert [verdict for _, verdict, _ in circle.claims(planted, settings)] == ["does not hold", "not decided"]


def test_the_quick_run_leaves_a_page_and_a_figure_and_is_not_computed_again(quick, monkeypatch):
    assert (quick / f"{circle.NAME}.png").read_bytes().startswith(b"\x89PNG")
    file = quick / f"{circle.NAME}.jsonl"
    before = file.read_text(encoding="utf-8")
    monkeypatch.setattr(circle, "sampled", None)
    assert circle.main(["--quick", "--resume", "--out", str(quick)]) == 0
    assert file.read_text(encoding="utf-8") == before
    assert "**holds**" in (quick / f"{circle.NAME}.md").read_text(encoding="utf-8")


# Distances ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [kolmogorov, total_variation])
def test_chance_is_measured_for_chains_whose_draws_depend_on_each_other(measure):
    """Chains that stay where they are for five draws: the mean of the distance is that of a fifth of the draws."""
    law, rng, chains, repeats = np.array([0.1, 0.3, 0.2, 0.4]), np.random.default_rng(0), 200, 60
    found = []
    for seed in range(repeats):
        cells = np.repeat(rng.choice(4, size=(chains, 2), p=law), 5, axis=1)
        found.append(distance(measure, counts_of(cells, 4), law, seed))
    values, noise = np.array([d.value for d in found]), np.array([d.noise for d in found])
    error = 4.9 * values.std() / np.sqrt(repeats)  # normal quantile at 1e-6, two-sided
    assert abs(values.mean() - noise.mean()) < error
    alone = [measure(rng.multinomial(chains * 10, law) / (chains * 10), law) for _ in range(repeats)]
    assert noise.mean() > np.mean(alone) + error  # as if they were independent
    assert all(d.explained for d in found)
    wrong = np.array([0.2, 0.2, 0.2, 0.4])
    assert not distance(measure, counts_of(cells, 4), wrong).explained


def test_distances_are_those_of_scipy():
    p, q = np.array([0.1, 0.2, 0.7]), np.array([0.3, 0.3, 0.4])
    assert total_variation(p, q) == pytest.approx(0.3)
    x = np.repeat([0, 1, 2], [1, 2, 7])
    y = np.repeat([0, 1, 2], [3, 3, 4])
    assert kolmogorov(p, q) == pytest.approx(stats.ks_2samp(x, y)[0])


def test_relaxation_rates_are_those_of_closed_forms():
    width = 2 * np.pi / 200
    # cos is an eigenvector of the differences with the eigenvalue 2 (1 - cos w) / w^2
    assert relaxation_rate(np.ones(200), (width,), True) == pytest.approx(2 * (1 - np.cos(width)) / width**2, rel=1e-8)
    x = np.linspace(-6, 6, 161)
    gaussian = np.exp(-(x[:, None] ** 2) / 2 - x[None, :] ** 2 / 2 * 3)
    found = relaxation_rate(gaussian, (x[1] - x[0], x[1] - x[0]), False)
    assert found == pytest.approx(1.0, abs=(x[1] - x[0]) ** 2)  # of second order in the width


# Figure 4 ----------------------------------------------------------------------------------------------------------


def test_the_cells_of_the_posterior_have_the_marginals_of_its_distribution_functions():
    law = posterior.probabilities()
    for i, edges in enumerate(posterior.edges()):
        masses = np.diff(posterior.problem().cdfs[f"angle[{i}]"].cdf(edges))
        outside = 1 - masses.sum()
        assert outside < 5e-6
        # midpoints, of second order in their spacing: 1/24 (width / sd)^2 of the narrowest conditional law
        narrow = posterior.moments()["sd 1"] * np.sqrt(1 - posterior.moments()["correlation"] ** 2)
        relative = ((edges[1] - edges[0]) / posterior.SUB / narrow) ** 2 / 24
        assert np.abs(law.sum(axis=1 - i) - masses).max() < outside + relative * masses.max()


def test_the_moments_of_the_posterior_are_those_of_the_target():
    exact, found = posterior.problem().moments, posterior.moments()
    means = [exact[f"angle[{i}]"].value for i in range(2)]
    sds = [np.sqrt(exact[f"angle[{i}]^2"].value - means[i] ** 2) for i in range(2)]
    product = exact["angle[0]*angle[1]"].value - means[0] * means[1]
    expected = [*means, *sds, product / sds[0] / sds[1]]
    got = [found[k] for k in ("mean 1", "mean 2", "sd 1", "sd 2", "correlation")]
    np.testing.assert_allclose(got, expected, rtol=1e-8)


def test_the_variance_of_the_gradient_is_that_of_the_scores_in_closed_form():
    """The score of a datum x in the angles: slopes kappa sin(x - c) of the two components, weighted by their shares."""
    law = posterior.law_of("mean", "e1")
    first, second, density = law.joint(40)
    expected = np.zeros((2, 2))
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            weight = density[i, j] / density.sum()
            if weight <= 1e-9:
                continue
            own = 1 / (1 + np.exp(20 * (np.cos(law.data - (a + b) / 2) - np.cos(law.data - a))))
            shared = (1 - own) * 10 * np.sin(law.data - (a + b) / 2)
            scores = np.stack([own * 20 * np.sin(law.data - a) + shared, shared])
            expected += weight * 100**2 / posterior.BATCH * np.cov(scores, bias=True)
    np.testing.assert_allclose(posterior.exact_variance(), expected, rtol=1e-5)  # the weights that are left out


# Table 1 -----------------------------------------------------------------------------------------------------------


def test_iterations_of_nested_loops_are_counted():
    def triangle(n):
        inner = lambda i: jax.lax.while_loop(lambda j: j < i, lambda j: j + 1, 0)
        outer = jax.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + inner(c[0])), (0, 0))
        return jax.lax.scan(lambda c, x: (c + inner(x), c), outer[1], jnp.arange(3), reverse=True)

    # 4 outer and 0 + 1 + 2 + 3 inner ones, and 0 + 1 + 2 in the scan
    assert table.count_iterations(jax.jit(triangle), 4) == 4 + 6 + 3
    jaxpr = jax.make_jaxpr(triangle)(4)
    got = table.Counter().evaluate(jaxpr.jaxpr, jaxpr.consts, [4])
    for a, b in zip(got, jax.tree.leaves(triangle(4)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_test_on_minibatches_has_the_law_of_the_mean_of_the_densities():
    """On the line: minibatches with mean -1, 0, 1 and weights 1/4, e^(-2) / 2 (their spread), 1/4; variance 1/2."""
    assert table.exact(False) == pytest.approx(0.5, rel=1e-12)
    # U_S = sum over two of (theta - y)^2 / 2 = (theta - mean)^2 + spread: spread 0, or 1 where the two differ
    weights = np.array([0.25, 0.5 * np.exp(-1.0), 0.25])
    expected = 0.5 + (weights[0] + weights[2]) / weights.sum()
    assert table.limit_of_a_noisy_test(False) == pytest.approx(expected, rel=1e-12)


def test_orders_of_energy_errors_are_two_and_a_kick_at_the_wrong_end_is_seen():
    assert table.energy_order(table.METHODS["GMC"]) == pytest.approx(2.0, abs=0.05)

    class Late(table.GMC):
        """Whole kicks before the geodesic."""

        def integrate(self, key, state, velocity, step_size, estimator):
            v = self._kick(state, velocity, step_size)
            x, v = self.manifold.geodesic(state.position, v, step_size)
            state = self.init(key, self.manifold.project_roundoff(x), estimator)
            return state, v, True

    method = table.METHODS["GMC"]._replace(build=lambda t: Late(t.manifold, 3))
    assert table.energy_order(method) == pytest.approx(1.0, abs=0.1)
