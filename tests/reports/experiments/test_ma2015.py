"""Experiments of papers: the figure of the recipe paper in its quick version, and the parts that it rests on."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special

from sgmcmc_verification.reports.experiments.common.partition import divergence, partition
from sgmcmc_verification.reports.experiments.ma2015 import figure2 as figure
from sgmcmc_verification.reports.experiments.ma2015.figure2 import ONE_PEAK, PLANE, QUICK, TWO_PEAKS, Cell, Setting
from sgmcmc_verification.reports.experiments.ma2015.figure2_page import (
    COLOURS,
    MARKERS,
    Results,
    claim_naive,
    claim_right,
)
from sgmcmc_verification.samplers.registry import sampler_row

pytestmark = pytest.mark.xdist_group("experiments")  # what the fixture makes serves one worker

NAIVE, RIGHT = "naive SGRHMC", "gSGRHMC"


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run."""
    folder = tmp_path_factory.mktemp("figure")
    assert figure.main(["--quick", "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def results(quick):
    """Its results."""
    return Results(figure.load(quick / f"{figure.NAME}.jsonl"), True, QUICK)


def test_the_page_names_every_method_and_the_figures_are_small(quick):
    page = (quick / f"{figure.NAME}.md").read_text(encoding="utf-8")
    assert all(f"| {method} |" in page for method in figure.METHODS)
    for panel in ("left", "right"):
        image = quick / f"{figure.NAME}-{panel}.png"
        assert image.read_bytes().startswith(b"\x89PNG")
        assert image.stat().st_size < 300_000
        assert image.name in page


def test_a_cell_that_is_in_the_file_is_not_computed_again(quick, monkeypatch):
    file = quick / f"{figure.NAME}.jsonl"
    before = file.read_text(encoding="utf-8")
    file.write_text(before + '{"cell": {"kind": "exa', encoding="utf-8")  # interrupted while a line was written
    monkeypatch.setattr(figure, "KINDS", {})
    assert figure.main(["--quick", "--resume", "--out", str(quick)]) == 0
    assert file.read_text(encoding="utf-8") == before


def test_a_cell_that_is_not_in_the_file_is_computed(quick, tmp_path, monkeypatch):
    lines = (quick / f"{figure.NAME}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    file = tmp_path / f"{figure.NAME}.jsonl"
    file.write_text("".join(lines[1:]), encoding="utf-8")
    cell = figure.plan(True, QUICK)[0]
    monkeypatch.setattr(figure, "KINDS", {cell.kind: lambda cell: {"kl": 0.0}})
    figure.compute(figure.plan(True, QUICK), file, "")
    added = json.loads(file.read_text(encoding="utf-8").splitlines()[-1])
    assert json.dumps(added["cell"], sort_keys=True) == cell.key


def continuous(setting):
    """KL(exp(-U) G^1/2 || exp(-U)) on one peak, by adaptive quadrature."""
    weight = lambda x: np.exp(-(x**2) / 2)
    wrong = lambda x: weight(x) * (setting.scale * np.sqrt(x**2 / 2 + setting.offset)) ** -0.5
    a, b = (integrate.quad(f, -9, 9, epsabs=0)[0] for f in (weight, wrong))
    return integrate.quad(lambda x: wrong(x) / b * np.log(wrong(x) / b * a / weight(x)), -9, 9)[0]


def test_naive_tends_to_its_own_law_and_not_to_the_target(results):
    far, near = (results.exact(Setting(NAIVE, ONE_PEAK, h), "kl_wrong")[0] for h in (0.1, 0.05))
    assert near < far / 2  # h^2; h would be half
    far, near = (results.exact(Setting(NAIVE, ONE_PEAK, h))[0] for h in (0.1, 0.05))
    # linear in h to its limit, which the extrapolation misses by less than it moves
    assert abs(2 * near - far - continuous(Setting(NAIVE, ONE_PEAK))) < abs(far - near) / 2
    assert claim_naive(results)[1] == "holds"


def test_sgrhmc_tends_to_the_target_and_not_to_the_law_of_the_naive_one(results):
    far, near = (results.exact(Setting(RIGHT, ONE_PEAK, h))[0] for h in (0.1, 0.05))
    assert near < far / 2
    assert claim_right(results)[1] == "holds"


@pytest.mark.parametrize("method", [NAIVE, RIGHT])
def test_samples_are_as_far_from_both_laws_as_the_exact_law_of_the_scheme(results, method):
    setting = Setting(method, ONE_PEAK, 0.1)
    found = [results.result(Cell("sampled", setting, QUICK.left, seed)) for seed in range(QUICK.seeds)]
    gap = np.mean([r["kl"] - r["kl_wrong"] for r in found])  # the bias of the histogram is in both
    exact = results.exact(setting)[0] - results.exact(setting, "kl_wrong")[0]
    # the gap is a mean of log(p_wrong / p_target) over the draws; their correlation at most doubles its variance
    points, weights = figure.problem(ONE_PEAK).quadrature(40)
    ratio = np.array([figure.log_wrong(setting)(x) - figure.log_target(setting)(x) for x in jnp.asarray(points)])
    spread = np.sqrt(weights @ ratio**2 - (weights @ ratio) ** 2)
    error = 4.9 * spread * np.sqrt(2 / (QUICK.seeds * np.prod(QUICK.left)))  # normal quantile at 1e-6, two-sided
    assert abs(gap - exact) < error
    assert abs(gap + exact) > error or method == RIGHT  # the naive sampler is told from one with the laws swapped


@pytest.mark.parametrize(("claim", "method"), [(claim_naive, NAIVE), (claim_right, RIGHT)])
def test_a_swap_of_the_two_laws_is_seen(results, monkeypatch, claim, method):
    right, wrong = figure.log_target, figure.log_wrong
    monkeypatch.setattr(figure, "log_target", wrong)
    monkeypatch.setattr(figure, "log_wrong", right)
    lines = dict(results.lines)
    for h in (0.1, 0.05):
        cell = Cell("exact", Setting(method, ONE_PEAK, h), (*QUICK.grids[0], *QUICK.grids[1]))
        lines[cell.key] = {"result": figure.exact(cell)}
    assert claim(Results(lines, True, QUICK))[1] == "does not hold"


@pytest.mark.parametrize("h", [0.1, 0.05])
def test_exact_divergence_of_sgld_is_the_closed_form(results, h):
    variance = 1 / (1 - h / 2)
    closed = (variance - 1 - np.log(variance)) / 2
    # closer than the leading term of the closed form
    assert abs(results.exact(Setting("SGLD", ONE_PEAK, h))[0] - closed) < abs(closed - h**2 / 16)


def test_compensated_gaussian_noise_leaves_the_law_of_a_step():
    setting = Setting(RIGHT, ONE_PEAK, 0.1)
    quiet = Setting(RIGHT, ONE_PEAK, 0.1, noise=0.0, compensate=False)
    loud = Setting(RIGHT, ONE_PEAK, 0.1, compensate=False)
    divergences = [figure.grid_divergences(s, (32, 28))["kl"] for s in (setting, quiet, loud)]
    assert figure.step_of(setting).noise_size == 2
    assert figure.step_of(quiet).noise_size == 1
    assert divergences[0] == pytest.approx(divergences[1], rel=1e-2)
    assert abs(divergences[2] - divergences[1]) > 0.1 * divergences[1]


def test_noise_that_cannot_be_compensated_is_refused():
    with pytest.raises(ValueError, match="h V must not exceed 2"):
        figure.sampler_of(Setting("SGLD", ONE_PEAK, 0.1, noise=40.0))


@pytest.mark.parametrize("method", figure.METHODS)
@pytest.mark.parametrize("compensate", [True, False])
def test_the_samplers_are_those_of_the_rows(method, compensate):
    setting = Setting(method, TWO_PEAKS, compensate=compensate)
    found = figure.sampler_of(setting)
    assert found.compensate == compensate  # pyright: ignore[reportAttributeAccessIssue]
    options = {"friction": 3.0} if method == "SGHMC" else {}
    name = figure.ROWS[method][compensate]
    if method == NAIVE:
        assert found.gamma == 0.0  # pyright: ignore[reportAttributeAccessIssue]
    else:
        row = sampler_row(name).build(figure.problem(TWO_PEAKS), **options)
        assert type(found) is type(row)
        assert vars(found).keys() == vars(row).keys()
        if method == RIGHT:
            mine, theirs = found.metric, row.metric  # pyright: ignore[reportAttributeAccessIssue]
            assert (mine.scale, mine.offset, type(mine)) == (theirs.scale, theirs.offset, type(theirs))
        else:
            assert found == row


# Cells --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [ONE_PEAK, TWO_PEAKS])
def test_probabilities_of_the_line_are_those_of_the_distribution_function(name):
    cells, found = figure.cells_of(name), figure.problem(name)
    edges = cells.low[0] + cells.width * np.arange(cells.counts[0] + 1)
    masses = np.diff(found.cdfs["theta[0]"].cdf(edges))
    outside = 1 - masses.sum()
    expected = np.bincount(cells.label, masses, cells.classes)
    assert np.abs(cells.target - expected).max() < 2 * outside + 1e3 * np.finfo(float).eps
    assert outside < 1e-6


def test_probabilities_of_the_plane_are_those_of_the_conditional_gaussian():
    cells = figure.cells_of(PLANE)
    masses = np.zeros(cells.counts)
    constant = 2 * 10**0.25 * special.gamma(1.25)  # of exp(-x^4 / 10)
    for i, j in ((40, 16), (20, 20), (58, 19)):
        a, b = cells.low + cells.width * np.array([i, j])

        def density(x, b=b):
            upper, lower = (special.ndtr(4 * (y + 1.2) - x**2) for y in (b + cells.width, b))
            return np.exp(-(x**4) / 10) / constant * (upper - lower)

        masses[i, j] = integrate.quad(density, a, a + cells.width, epsabs=1e-14)[0]
        label = cells.label[np.ravel_multi_index((i, j), cells.counts)]
        # six Gauss points a cell; the target beyond the box is left out
        assert cells.target[label] == pytest.approx(masses[i, j], rel=2e-6)


@pytest.mark.parametrize("name", [ONE_PEAK, PLANE])
def test_positions_fall_into_the_cells_of_a_histogram(name):
    cells = figure.cells_of(name)
    edges = [a + cells.width * np.arange(n + 1) for a, n in zip(cells.low, cells.counts, strict=True)]
    x = np.random.default_rng(3).uniform([e[0] for e in edges], [e[-1] for e in edges], (2000, len(edges)))
    counts = np.histogramdd(x, edges)[0].ravel()
    classes = np.asarray(jax.vmap(cells.classify)(jnp.asarray(x)))
    assert (np.bincount(classes, minlength=cells.classes) == np.bincount(cells.label, counts, cells.classes)).all()


def test_positions_beyond_the_box_are_rare_and_those_that_are_no_numbers_are_apart():
    cells = figure.cells_of(PLANE)
    classify = lambda *x: int(cells.classify(jnp.array(x)))
    assert classify(0.0, 40.0) == classify(-9.0, 0.0) == cells.classes - 1
    assert classify(jnp.nan, 0.0) == classify(0.0, jnp.inf) == cells.classes


def test_divergence_of_a_histogram_of_the_law_itself_is_its_bias():
    law = figure.cells_of(TWO_PEAKS).target
    rng, n, repeats = np.random.default_rng(0), 200_000, 200
    values = [divergence(rng.multinomial(n, law), law) for _ in range(repeats)]
    # 2 n KL is chi-squared with K - 1 degrees of freedom where no cell is empty; rare cells make it smaller
    common = np.sum(n * law > 5)
    error = 4.9 * np.std(values) / np.sqrt(repeats)
    assert (common - 1) / (2 * n) - error < np.mean(values) < (len(law) - 1) / (2 * n) + error
    assert abs(divergence(law, law)) < len(law) * np.finfo(float).eps


def test_a_box_that_is_no_whole_number_of_cells_is_refused():
    with pytest.raises(ValueError, match="whole number of cells"):
        partition(lambda x: -(x[0] ** 2), -1.0, 1.05, 0.1, 4)


def test_methods_differ_in_colour_and_in_marker():
    assert COLOURS.keys() == MARKERS.keys() == set(figure.METHODS)
    assert len(set(COLOURS.values())) == len(set(MARKERS.values())) == len(figure.METHODS)
