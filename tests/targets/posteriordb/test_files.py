"""Reading folders in the layout of posteriordb: both layouts, names, and one clear error for every damaged file."""

import dataclasses
import io
import json
import zipfile

import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.targets.datasets.files import CACHE_VARIABLE, DATA_VARIABLE, DataError
from sgmcmc_verification.targets.posteriordb import registry, regression
from sgmcmc_verification.targets.posteriordb.files import DATABASE, FLAT, Folder, load
from sgmcmc_verification.targets.posteriordb.registry import MODELS, NAMES, PINNED, posteriordb_target
from sgmcmc_verification.targets.registry import POSTERIORS, target
from tests.helpers.posteriordb_examples import data

NAME = "toy-blr"
COLUMNS = ("beta[1]", "beta[2]", "sigma")


def zipped(content, member="toy.json"):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content if isinstance(content, str) else json.dumps(content))
    return buffer.getvalue()


def draws(chains=4, length=500):
    """Columns of chains that are independent draws."""
    values = np.random.RandomState(0).standard_normal((chains, length, 3))
    values[..., 2] = np.exp(0.1 * values[..., 2])
    return [{name: chain[:, i].tolist() for i, name in enumerate(COLUMNS)} for chain in values]


def record():
    return {
        "name": "toy-reference",
        "inference": {"method": "stan_sampling", "method_arguments": {"thin": 10}},
        "diagnostics": {
            "diagnostic_information": {"names": list(COLUMNS)},
            "ndraws": 2000,
            "nchains": 4,
            "effective_sample_size_bulk": [2000.0, 1990.0, 2010.0],
            "effective_sample_size_tail": [1900.0, 1950.0, 2000.0],
            "r_hat": [1.0, 1.001, 0.9999],
            "divergent_transitions": [0, 0, 0, 0],
        },
        "checks_made": {"r_hat_below_1_01": True},
    }


def files():
    """The five files of a posterior as what they hold; a field can be changed before `write`."""
    posterior = {
        "name": NAME,
        "model_name": "blr",
        "data_name": "toy",
        "reference_posterior_name": "toy-reference",
        "dimensions": {"beta": 2, "sigma": 1},
    }
    return {
        "posterior": posterior,
        "data": dict(data("blr").values),
        "data_info": {"title": "Made-up numbers"},
        "draws": draws(),
        "draws_info": record(),
    }


def write(folder, content, layout=FLAT):
    """Write files; bytes are written as they are."""
    names = {"posterior": NAME, "data": "toy", "data_info": "toy"}
    for kind, value in content.items():
        path = folder / layout[kind].format(names.get(kind, "toy-reference"))
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(value, bytes):
            value = zipped(value) if path.suffix == ".zip" else json.dumps(value).encode()
        path.write_bytes(value)
    return folder


@pytest.mark.parametrize(
    ("layout", "below"),
    [(FLAT, ""), (DATABASE, ""), (DATABASE, "posterior_database")],
    ids=["flat", "database", "clone"],
)
def test_a_posterior_is_read_from_each_layout_with_its_recorded_quality(tmp_path, layout, below):
    write(tmp_path / below, files(), layout)
    found = load(Folder(tmp_path), NAME)
    assert (found.model, found.title) == ("blr", "Made-up numbers")
    assert found.draws.values["beta"].shape == (4, 500, 2)
    assert found.draws.values["sigma"].shape == (4, 500)
    for i, chain in enumerate(draws()):
        np.testing.assert_array_equal(found.draws.values["beta"][i, :, 1], chain["beta[2]"])
        np.testing.assert_array_equal(found.draws.values["sigma"][i], chain["sigma"])
    quality = found.draws.quality
    assert quality.names == COLUMNS
    assert quality.rhat == (1.0, 1.001, 0.9999)
    assert quality.ess_bulk[1] == 1990
    assert quality.ess_tail[0] == 1900
    assert quality.checks == {"r_hat_below_1_01": True}
    assert (quality.method, dict(quality.arguments)) == ("stan_sampling", {"thin": 10})


def test_a_matrix_of_draws_is_assembled_by_its_indices(tmp_path):
    content = files()
    content["posterior"]["dimensions"] = {"L": 4, "beta": 2}
    columns = ["L[1,1]", "L[2,1]", "L[1,2]", "L[2,2]", "beta[2]", "beta[1]"]
    values = np.random.RandomState(1).standard_normal((4, 500, 6))
    content["draws"] = [{name: chain[:, i].tolist() for i, name in enumerate(columns)} for chain in values]
    diagnostics = content["draws_info"]["diagnostics"]
    diagnostics["diagnostic_information"]["names"] = columns
    for key in ("effective_sample_size_bulk", "effective_sample_size_tail", "r_hat"):
        diagnostics[key] = [1.0 if key == "r_hat" else 2000.0] * 6
    found = load(Folder(write(tmp_path, content)), NAME).draws.values
    np.testing.assert_array_equal(found["L"], values[..., [[0, 2], [1, 3]]])
    np.testing.assert_array_equal(found["beta"], values[..., [5, 4]])


def test_a_folder_is_a_target_by_function_and_by_name(tmp_path):
    write(tmp_path, files())
    law = posteriordb_target(tmp_path, NAME)
    assert law.name == f"{tmp_path}:{NAME}"
    assert find_target(law.name) is target(law.name)
    assert law.source == f"magnusson2024posteriordb; {NAME}: Made-up numbers"
    assert set(law.moments) == {*COLUMNS, *(f"square {name}" for name in COLUMNS)}
    sigma = np.array([chain["sigma"] for chain in draws()])
    value, error = law.moments["sigma"][1:]
    assert value == sigma.mean()
    assert 0.8 * sigma.std() / np.sqrt(2000) < error < 1.25 * sigma.std() / np.sqrt(2000)
    # the moment is a function of the unconstrained position
    assert float(law.moments["sigma"].function(jnp.asarray([0.0, 0.0, 0.3]))) == float(jnp.exp(0.3))


def test_a_model_without_a_density_is_one_error_that_lists_those_known_and_can_be_passed(tmp_path):
    content = files()
    content["posterior"]["model_name"] = "blr2"
    write(tmp_path, content)
    with pytest.raises(
        DataError, match=rf"posteriors/{NAME}\.json: model_name: no density for 'blr2'; did you mean 'blr'"
    ) as e:
        posteriordb_target(tmp_path, NAME)
    assert all(row.name in str(e.value) for row in MODELS)
    assert posteriordb_target(tmp_path, NAME, model=regression.blr).size == 3
    with pytest.raises(BadInput, match=r"^--target .*no density for 'blr2'"):
        find_target(f"{tmp_path}:{NAME}")


def test_a_folder_or_posterior_that_is_not_there_is_named_with_what_is(tmp_path):
    with pytest.raises(DataError, match=r"nowhere: not a folder in the layout of posteriordb; name one that holds"):
        posteriordb_target(tmp_path / "nowhere", NAME)
    write(tmp_path, files())
    with pytest.raises(DataError, match=rf"posteriors/other\.json: there is no such file; .*: {NAME}"):
        posteriordb_target(tmp_path, "other")


def changed(kind, change):
    """A change of what one file holds, in place or by what `change` returns."""

    def apply(content):
        new = change(content[kind])
        content[kind] = content[kind] if new is None else new

    return apply


def lost(kind, *path):
    """A field that is left out."""

    def change(value):
        for key in path[:-1]:
            value = value[key]
        del value[path[-1]]

    return changed(kind, change)


def column(name, values):
    """A column of the second chain, changed."""
    return changed("draws", lambda chains: chains[1].update({name: values(np.array(chains[1][name])).tolist()}))


def flipped(value):
    content = bytearray(zipped(value))
    content[60] ^= 255
    return bytes(content)


diagnostic = lambda key, value: changed("draws_info", lambda record: record["diagnostics"].update({key: value}))
EXTRA = (
    changed("posterior", lambda v: v["dimensions"].update(gamma=1)),
    changed("draws", lambda chains: [c | {"gamma": c["sigma"]} for c in chains]),
    diagnostic("diagnostic_information", {"names": [*COLUMNS, "gamma"]}),
    *(diagnostic(f"effective_sample_size_{part}", [2000.0] * 4) for part in ("bulk", "tail")),
    diagnostic("r_hat", [1.0] * 4),
)
DAMAGE = {
    "posterior is not JSON": (changed("posterior", lambda v: b"{"), "posteriors/toy-blr.json: not JSON"),
    "posterior is a list": (changed("posterior", lambda v: [1]), "posteriors/toy-blr.json: must hold an object"),
    "no model name": (lost("posterior", "model_name"), "posteriors/toy-blr.json: model_name: is missing"),
    "no dimensions": (lost("posterior", "dimensions"), "posteriors/toy-blr.json: dimensions: is missing"),
    "dimension of 0": (
        changed("posterior", lambda v: v["dimensions"].update(beta=0)),
        "posteriors/toy-blr.json: dimensions: beta: must be a positive integer",
    ),
    "no reference": (lost("posterior", "reference_posterior_name"), "there are no reference draws"),
    "no title": (lost("data_info", "title"), "data_info/toy.info.json: title: is missing"),
    "truncated data": (changed("data", lambda v: zipped(v)[:-30]), "data/toy.json.zip: damaged archive"),
    "flipped byte": (
        changed("data", flipped),
        "data/toy.json.zip: damaged archive",
    ),
    "no member": (changed("data", lambda v: zipped(v, "toy.txt")), "data/toy.json.zip: must hold one file of JSON"),
    "member is not JSON": (changed("data", lambda v: zipped("{")), "data/toy.json.zip: its content is not JSON"),
    "data are a list": (changed("data", lambda v: zipped("[1]")), "data/toy.json.zip: must hold an object"),
    "data without X": (lost("data", "X"), "data/toy.json.zip: X: is missing"),
    "data of another shape": (changed("data", lambda v: v.update(N=8)), "data/toy.json.zip: X: must have shape (8, 2)"),
    "no ESS": (
        lost("draws_info", "diagnostics", "effective_sample_size_bulk"),
        "draws_info/toy-reference.info.json: effective_sample_size_bulk: is missing",
    ),
    "low ESS": (
        diagnostic("effective_sample_size_tail", [2000.0, 999.0, 2000.0]),
        "draws_info/toy-reference.info.json: effective_sample_size_tail: beta[2] has 999, below 1000",
    ),
    "high R-hat": (
        diagnostic("r_hat", [1.0, 1.0, 1.02]),
        "draws_info/toy-reference.info.json: r_hat: sigma has 1.02, above 1.01",
    ),
    "R-hat is NaN": (diagnostic("r_hat", [1.0, float("nan"), 1.0]), "r_hat: must be finite"),
    "R-hat of two": (diagnostic("r_hat", [1.0, 1.0]), "r_hat: must have shape (3,), got (2,)"),
    "a failed check": (
        changed("draws_info", lambda r: r["checks_made"].update(ess_within_bounds=False)),
        "draws_info/toy-reference.info.json: checks_made: ess_within_bounds is recorded as False",
    ),
    "NaN draws": (
        column("beta[2]", lambda v: np.append(v[:-1], np.nan)),
        "draws/toy-reference.json.zip: chain 2: beta[2]: must be finite",
    ),
    "short chain": (
        column("sigma", lambda v: v[:-1]),
        "draws/toy-reference.json.zip: chain 2: sigma: must have shape (500,), got (499,)",
    ),
    "a chain is lost": (
        changed("draws", lambda chains: chains[:-1]),
        "draws/toy-reference.json.zip: has 3 chains, the record says 4",
    ),
    "draws are an object": (changed("draws", lambda chains: zipped("{}")), "must hold a list of chains"),
    "a column is lost": (
        changed("draws", lambda chains: [{k: v for k, v in c.items() if k != "sigma"} for c in chains]),
        "draws/toy-reference.json.zip: chain 1: sigma: is missing",
    ),
    "a stuck chain": (
        column("beta[1]", lambda v: 0 * v + v[0]),
        "draws/toy-reference.json.zip: beta[1]: the chains disagree, R-hat is",
    ),
    "more columns than said": (
        changed("posterior", lambda v: v["dimensions"].update(beta=3)),
        "draws/toy-reference.json.zip: beta: there are 2 columns of it, the posterior says 3",
    ),
    "a quantity is not listed": (
        lost("posterior", "dimensions", "beta"),
        "draws/toy-reference.json.zip: beta: the model blr has shape (2,), the draws lack it",
    ),
    "a quantity that the model has not": (
        lambda content: [f(content) for f in EXTRA],
        "posteriors/toy-blr.json: dimensions: gamma: the model blr reports beta, sigma only",
    ),
    "one coordinate twice": (
        changed("draws", lambda chains: [c | {"beta[2]": c["beta[1]"]} for c in chains]),
        "draws/toy-reference.json.zip: the draws lie in fewer than 3 dimensions",
    ),
    "outside the support": (
        column("sigma", lambda v: np.append(-v[:1], v[1:])),
        "draws/toy-reference.json.zip: draw 1 of chain 2 lies outside the support of blr",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_is_one_error_that_names_the_file_and_a_remedy(tmp_path, damage):
    change, message = DAMAGE[damage]
    content = files()
    change(content)
    with pytest.raises(DataError) as error:
        posteriordb_target(write(tmp_path, content), NAME)
    text = str(error.value)
    assert message in text
    assert text.startswith(str(tmp_path))
    assert "\n" not in text
    assert any(word in text for word in ("replace", "put", "choose", "name ", "correct", "leave"))


@pytest.mark.parametrize("kind", FLAT)
def test_a_missing_file_is_named(tmp_path, kind):
    content = files()
    content.pop(kind)
    (tmp_path / "posteriors").mkdir()
    with pytest.raises(
        DataError, match=rf"^{tmp_path}/{kind.replace('posterior', 'posteriors')}/.*there is no such file"
    ):
        posteriordb_target(write(tmp_path, content), NAME)


def test_pinned_posteriors_are_registered_and_without_data_one_error(tmp_path, monkeypatch):
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "data"))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(registry, "PINNED", dataclasses.replace(PINNED, root="http://127.0.0.1:1"))
    rows = {row.name: row for row in POSTERIORS}
    assert len(NAMES) == 11
    for name in NAMES:
        with pytest.raises(DataError, match=rf"posteriordb/posteriors/{name}\.json.*{DATA_VARIABLE}"):
            rows[f"posteriordb/{name}"].build()


def test_a_pinned_file_with_other_bytes_is_refused(tmp_path, monkeypatch):
    write(tmp_path / "posteriordb", files())
    (tmp_path / "posteriordb/posteriors" / f"{NAME}.json").rename(tmp_path / "posteriordb/posteriors/sblrc-blr.json")
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    with pytest.raises(DataError, match=r"sblrc-blr\.json: damaged or another version: sha256"):
        registry.pinned_target("sblrc-blr")
