"""Problems as folders of plain files: what is written is the density, and nothing of a folder is believed or run."""

import csv
import json
import runpy

import jax
import numpy as np
import pytest

from sgmcmc_verification.checks import BadInput, write_problems
from sgmcmc_verification.checks.draws.densities import DENSITIES
from sgmcmc_verification.checks.draws.problems import problem, read_problem
from sgmcmc_verification.targets.registry import target

pytestmark = pytest.mark.xdist_group(__name__)  # a fixture of the module is made once


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {path.name: path for path in write_problems(tmp_path_factory.mktemp("problems"))}


def test_there_is_a_folder_for_each_density(folders):
    assert set(folders) == set(DENSITIES)


@pytest.mark.parametrize("name", DENSITIES)
def test_the_density_in_numpy_is_that_of_the_target(name, folders):
    law = target(name)
    points = np.random.default_rng(1).normal(size=(20, law.size))
    written = runpy.run_path(str(folders[name] / "density.py"))["potential"]
    ours = np.array([float(law.potential(law.unravel(x))) for x in points])
    theirs = np.array([float(written(x)) for x in points])
    differences = theirs - ours  # one constant
    size = np.abs(ours).max() + np.abs(theirs).max()
    assert np.ptp(differences) <= 1000 * np.finfo(float).eps * size


@pytest.mark.parametrize("name", DENSITIES)
def test_the_program_in_stan_declares_every_constant_and_one_parameter(name, folders):
    """Its syntax was seen by stanc; here, that the data it declares are the data that are there."""
    text = (folders[name] / "density.stan").read_text()
    constants = json.loads((folders[name] / "data.json").read_text())
    block = text.partition("data {")[2].partition("}")[0]
    declared = {line.split()[-1].rstrip(";") for line in block.splitlines() if line.strip()}
    assert declared == set(constants)
    assert "vector[d] x;" in text


def test_data_are_a_table_too(folders):
    with (folders["tiny-logistic"] / "data.csv").open() as file:
        rows = list(csv.DictReader(file))
    features, labels = target("tiny-logistic").terms.data
    assert [[float(r["features.1"]), float(r["features.2"])] for r in rows] == np.asarray(features).tolist()
    assert [float(r["label"]) for r in rows] == np.asarray(labels).tolist()


def test_a_written_problem_is_read_as_it_was(folders):
    for name, folder in folders.items():
        assert read_problem(folder) == problem(name)


def test_what_is_there_is_left_alone(tmp_path):
    (folder,) = write_problems(tmp_path, ["banana"])
    (folder / "problem.json").write_text("mine")
    write_problems(tmp_path, ["banana"])
    assert (folder / "problem.json").read_text() == "mine"


def test_a_second_temperature_is_asked_for_where_its_law_is_known():
    temperatures = {name: {run.temperature for run in problem(name).runs} for name in DENSITIES}
    assert temperatures.pop("tiny-logistic") == {1.0}
    assert set(map(frozenset, temperatures.values())) == {frozenset({1.0, 2.0})}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "no-such"}, "there is none"),
        ({"name": 3}, "has no name"),
        ({"runs": []}, "list of 1 to 8 runs"),
        ({"runs": [{"file": "../../etc/passwd", "step_size": None}]}, "letters, digits and underscores"),
        ({"runs": [{"file": "h*", "step_size": None}]}, "letters, digits and underscores"),
        ({"runs": [{"file": "h1", "step_size": -1}]}, "step_size of h1 is -1"),
        ({"runs": [{"file": "h1", "step_size": True}]}, "step_size of h1 is True"),
        ({"runs": [{"file": "h1", "step_size": 0.1, "temperature": float("nan")}]}, "temperature of h1 is nan"),
        ({"runs": [{"file": "h1", "step_size": 0.1}] * 2}, "two runs have one file"),
        ({"runs": [7]}, "a run is an object"),
    ],
)
def test_a_problem_that_was_changed_is_one_error(tmp_path, change, message):
    (folder,) = write_problems(tmp_path, ["banana"])
    document = json.loads((folder / "problem.json").read_text()) | change
    (folder / "problem.json").write_text(json.dumps(document))
    with pytest.raises(BadInput, match=message):
        read_problem(folder)


@pytest.mark.parametrize("text", ["", "[1, 2]", "{", "[" * 100_000, " " * (1 << 21)])
def test_a_file_that_is_no_problem_is_one_error(tmp_path, text):
    (tmp_path / "problem.json").write_text(text)
    with pytest.raises(BadInput, match=r"problem\.json"):
        read_problem(tmp_path)


def test_a_law_that_is_not_known_hot_is_not_asked_for_hot(tmp_path):
    (folder,) = write_problems(tmp_path, ["tiny-logistic"])
    document = json.loads((folder / "problem.json").read_text())
    document["runs"] = [{"file": "hot", "step_size": None, "temperature": 2.0}]
    (folder / "problem.json").write_text(json.dumps(document))
    with pytest.raises(BadInput, match="known at temperature 1 only"):
        read_problem(folder)


def test_moments_at_another_temperature_are_those_of_quadrature():
    """Independent oracle: the trapezoidal rule, whose error vanishes faster than any power of its spacing here."""
    from sgmcmc_verification.checks.draws.functions import law_at

    x = np.linspace(-8, 8, 20_001)
    for name, a, b in (("double-well", 1.0, -2.0), ("anharmonic", 0.25, 0.5)):
        weights = np.exp(-(a * x**4 + b * x**2) / 2.0)
        law = law_at(target(name), 2.0)
        for power in (2, 4):
            expected = float(weights @ x**power / weights.sum())
            assert abs(law.moments[f"theta[0]^{power}"].value - expected) <= 1e-9 * expected
        points = np.array([-1.3, 0.2, 0.9])
        below = [weights[x <= point].sum() / weights.sum() for point in points]
        # the sum up to a point is off by at most one node
        assert np.abs(law.cdfs["theta[0]"].cdf(points) - below).max() <= weights.max() / weights.sum()
        at = jax.numpy.asarray([0.4])
        assert float(law.potential(at)) == float(target(name).potential(at))
