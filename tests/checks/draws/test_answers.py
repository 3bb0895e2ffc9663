"""Draws of strangers: numbers of the right shape, or one error that says what to give."""

import io
import os
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

from sgmcmc_verification.checks import BadInput
from sgmcmc_verification.checks.draws import answers
from sgmcmc_verification.checks.draws.answers import given_run, read_run

X = np.random.default_rng(0).normal(size=(3, 12, 2))


def table(chain, extra="", comment=""):
    """A file as Stan writes it."""
    lines = [comment + f"lp__,x.1,x.2{extra}"] + [f"-1.5,{a!r},{b!r}" for a, b in X[chain].tolist()]
    return "\n".join(lines) + "\n# Elapsed Time: 0.1 seconds\n"


def test_files_of_stan_are_chains_in_the_order_of_their_numbers(tmp_path):
    for number, chain in ((2, 0), (10, 1), (11, 2)):
        text = table(chain, comment="# model = density\n#   seed = 3\n")
        (tmp_path / f"exact-{number}.csv").write_text(text)
    np.testing.assert_array_equal(read_run(tmp_path, "exact", 2).x, X)


def test_one_table_of_several_chains(tmp_path):
    rows = [f"{c + 1},{a!r},{b!r}" for c in range(3) for a, b in X[c].tolist()]
    (tmp_path / "h1.csv").write_text("\n".join(['"chain","x.1","x.2"', *rows]))
    np.testing.assert_array_equal(read_run(tmp_path, "h1", 2).x, X)


def test_an_archive_has_momenta_and_work(tmp_path):
    np.savez(tmp_path / "h1.npz", x=X, p=2 * X, work=X[..., 0], more=np.ones(3))
    found = read_run(tmp_path, "h1", 2)
    np.testing.assert_array_equal(found.p, 2 * X)
    np.testing.assert_array_equal(found.work, X[..., 0])


def test_draws_in_memory():
    data = {"x": X, "p": 3 * X}
    for value in (data, SimpleNamespace(posterior=data)):
        np.testing.assert_array_equal(given_run("exact", value, 2).p, 3 * X)
    np.testing.assert_array_equal(given_run("exact", X[..., 0], 1).x, X[..., :1])


def test_no_file_is_no_draws(tmp_path):
    (tmp_path / "h10-1.csv").write_text("")
    assert read_run(tmp_path, "h1", 2) is None


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"h1.csv": "a,b\n1,2\n"}, "needs the columns x.1, x.2; got a, b"),
        ({"h1.csv": "x.1,x.2,p.1\n1,2,3\n"}, "needs the columns p.1, p.2"),
        ({"h1.csv": "x.1,x.2,x.1\n1,2,3\n"}, "two columns have one name"),
        ({"h1.csv": ""}, "needs the columns"),
        ({"h1.csv": "x.1,x.2\n1,2\nnot,numbers\n"}, "no table of numbers"),
        ({"h1.csv": "x.1,x.2\n" + "1,nan\n" * 12}, "12 values that are not finite"),
        ({"h1.csv": "x.1,x.2\n" + "1,2\n" * 3}, "give at least 10 draws"),
        ({"h1-1.csv": table(0), "h1-2.csv": "x.1,x.2\n" + "1,2\n" * 20}, "chains differ in their length"),
        ({"h1.csv": table(0), "h1-1.csv": table(1)}, "keep one"),
        ({"h1.csv": b"\xff\xfe\x00x.1"}, "no table of numbers"),
        ({"h1.npz": b"no archive"}, "no archive of plain arrays"),
    ],
)
def test_a_file_that_is_not_draws_is_one_error(tmp_path, files, message):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BadInput, match=message) as error:
        read_run(tmp_path, "h1", 2)
    assert "\n" not in str(error.value)


class Trap:
    """An object whose pickle runs a command."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_an_archive_with_pickles_is_not_unpickled(tmp_path):
    np.savez(tmp_path / "h1.npz", x=np.array([Trap(tmp_path / "ran")], dtype=object))
    with pytest.raises(BadInput, match="no archive of plain arrays"):
        read_run(tmp_path, "h1", 1)
    assert not (tmp_path / "ran").exists()
    with np.load(tmp_path / "h1.npz", allow_pickle=True) as file:
        file["x"]  # the trap works
    assert (tmp_path / "ran").exists()


def test_an_archive_that_unpacks_to_much_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(answers, "MOST_BYTES", 1 << 16)
    np.savez_compressed(tmp_path / "h1.npz", x=np.zeros((4, 10_000, 1)))
    assert (tmp_path / "h1.npz").stat().st_size < 1 << 16
    with pytest.raises(BadInput, match="unpacks to more"):
        read_run(tmp_path, "h1", 1)
    (tmp_path / "h2.csv").write_bytes(b"x.1\n" + b"1\n" * (1 << 16))
    with pytest.raises(BadInput, match="has more than 0 MiB"):
        read_run(tmp_path, "h2", 1)


def test_an_archive_that_lies_about_its_shape_is_one_error(tmp_path):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (4, 1 << 40, 1)})
    with zipfile.ZipFile(tmp_path / "h1.npz", "w") as archive:
        archive.writestr("x.npy", file.getvalue() + bytes(64))
    with pytest.raises(BadInput, match="no archive of plain arrays"):
        read_run(tmp_path, "h1", 1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (X[..., 0], r"has shape \(3, 12\); give \(chains, draws, 2\)"),
        ({"p": X}, "has no positions x"),
        ({"x": X, "p": X[:2]}, "p: has shape"),
        ({"x": X, "work": X}, "work: has shape"),
        (X.astype(complex), "give real numbers"),
        (X.astype(str), "give real numbers"),
        (np.where(X > 1, np.inf, X), "not finite, the first at"),
        ("text", "give real numbers"),
    ],
)
def test_arrays_that_are_not_draws_are_one_error(value, message):
    with pytest.raises(BadInput, match=message):
        given_run("h1", value, 2)
