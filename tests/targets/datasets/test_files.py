"""Data access: checksums, sources, formats. Downloads come from a server on this machine."""

import gzip
import hashlib
import lzma
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from sgmcmc_verification.targets.datasets import covertype, splice
from sgmcmc_verification.targets.datasets.files import (
    CACHE_VARIABLE,
    DATA_VARIABLE,
    DataError,
    DataFile,
    available,
    locate,
    read,
)
from sgmcmc_verification.targets.datasets.table import parse_csv, parse_libsvm
from sgmcmc_verification.targets.reference import load_reference
from sgmcmc_verification.targets.regression.benchmarks import COVERTYPE, SPLICE, WORKLOADS, labels_digest

CONTENT = b"+1 1:1.0 2:3.0\n-1 1:2.0 2:4.0\n"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Empty data and cache directories."""
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    monkeypatch.setenv(DATA_VARIABLE, str(data))
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    return data, cache


@pytest.fixture
def server():
    """A server on this machine; `/whole` has CONTENT, `/cut` announces it but sends half, anything else is absent."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            if self.path not in ("/whole", "/cut"):
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT if self.path == "/whole" else CONTENT[: len(CONTENT) // 2])

        def log_message(self, format, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}", requests
        running.shutdown()
        thread.join()


def data_file(url, sha256=DIGEST):
    return DataFile("toy/toy.libsvm", url, sha256, "made for this test")


def files_below(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_missing_file_is_fetched_once_into_the_cache_and_not_into_the_data_directory(folders, server):
    data, cache = folders
    url, requests = server
    file = data_file(url + "/whole")
    assert not available(file)
    assert read(file) == CONTENT
    assert read(file) == CONTENT
    assert requests == ["/whole"]
    assert available(file)
    assert files_below(cache) == [cache / "toy" / "toy.libsvm"]
    assert files_below(data) == []


@pytest.mark.parametrize(("page", "digest"), [("/whole", "0" * 64), ("/cut", DIGEST)], ids=["wrong bytes", "truncated"])
def test_a_failed_download_leaves_nothing_behind(folders, server, page, digest):
    _, cache = folders
    url = server[0] + page
    with pytest.raises(DataError, match=r"toy/toy\.libsvm") as caught:
        read(data_file(url, digest))
    assert url in str(caught.value)
    assert DATA_VARIABLE in str(caught.value)
    assert files_below(cache) == []


@pytest.mark.parametrize("page", ["/absent", None])
def test_the_error_of_an_unreachable_source_names_file_source_and_variable(folders, server, page):
    # None: a port that nobody listens on, as on a machine without network
    url = server[0] + page if page else "http://127.0.0.1:1/whole"
    with pytest.raises(DataError, match=r"toy/toy\.libsvm") as caught:
        read(data_file(url))
    for part in (url, DATA_VARIABLE, "made for this test"):
        assert part in str(caught.value)
    assert files_below(folders[1]) == []


def test_the_error_of_a_file_without_public_source_names_file_and_variable(folders):
    with pytest.raises(DataError, match=r"toy/toy.libsvm.*" + DATA_VARIABLE):
        read(data_file(None))


def stage(folder, content, suffix=""):
    path = folder / f"toy/toy.libsvm{suffix}"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_a_staged_file_is_read_plain_and_compressed_without_the_network(folders, suffix):
    path = stage(folders[0], lzma.compress(CONTENT) if suffix else CONTENT, suffix)
    file = data_file("http://127.0.0.1:1/whole")
    assert locate(file) == path
    assert read(file) == CONTENT


@pytest.mark.parametrize(
    ("content", "suffix"),
    [(lzma.compress(CONTENT)[:-9], ".xz"), (CONTENT[:-1], ""), (CONTENT.replace(b"3", b"2"), "")],
    ids=["truncated xz", "truncated", "one byte changed"],
)
def test_a_damaged_staged_file_is_refused_by_name(folders, content, suffix):
    path = stage(folders[0], content, suffix)
    with pytest.raises(DataError, match=re.escape(str(path))):
        read(data_file("http://127.0.0.1:1/whole"))


def test_a_file_without_checksum_is_read_as_it_is(folders):
    stage(folders[0], b"anything")
    assert read(data_file(None, None)) == b"anything"


@pytest.mark.parametrize("file", [file for w in WORKLOADS.values() for file in w.files], ids=lambda file: file.name)
def test_sources_are_pinned_to_a_whole_commit_and_checksums_are_whole(file):
    assert len(bytes.fromhex(file.sha256)) == 32
    assert len(bytes.fromhex(file.url.removeprefix("https://raw.githubusercontent.com/").split("/")[2])) == 20


def test_libsvm_lines_become_rows_with_zero_for_what_is_absent():
    features, labels = parse_libsvm(b"+1 1:0.5 3:-2\n-1 2:1e1\n", 3, "toy")
    np.testing.assert_array_equal(features, [[0.5, 0, -2], [0, 10, 0]])
    np.testing.assert_array_equal(labels, [1, -1])


@pytest.mark.parametrize("line", ["+1 1:", "+1 4:1", "+1 0:1", "+1 2:1 1:1", "yes 1:1", "+1 1:nan", "+1 1 2", ""])
def test_a_malformed_libsvm_line_is_named_with_its_file(line):
    with pytest.raises(DataError, match=r"toy\.libsvm: line 2"):
        parse_libsvm(f"+1 1:1\n{line}\n-1 1:2\n".encode(), 3, "toy.libsvm")


@pytest.mark.parametrize("line", ["1,2", "1,2,3,4", "1,x,3", "1,nan,3", "1,,3", ""])
@pytest.mark.parametrize("header", [False, True])
def test_a_malformed_csv_line_is_named_with_its_file(line, header):
    text = ("a,b,c\n" if header else "") + f"1,2,3\n{line}\n4,5,6\n"
    with pytest.raises(DataError, match=rf"toy\.csv: line {3 if header else 2}"):
        parse_csv(text.encode(), 3, "toy.csv", header)


def splice_line(label, first):
    return " ".join([label, f"1:{first}"] + [f"{j}:{1 + j % 4}.000000" for j in range(2, 61)])


@pytest.mark.parametrize("scaling", ["raw", "unit"])
def test_splice_labels_become_zero_and_one_and_codes_are_scaled_as_told(scaling):
    table = splice.parse(f"{splice_line('+1', 4)}\n{splice_line('-1', 1)}\n".encode(), "toy", scaling)
    codes = np.tile([1.0 + j % 4 for j in range(1, 61)], (2, 1))
    codes[:, 0] = 4, 1
    np.testing.assert_array_equal(table.labels, [1, 0])
    np.testing.assert_array_equal(table.features, codes if scaling == "raw" else (codes - 2.5) / 1.5)


@pytest.mark.parametrize(("label", "first"), [("0", 1), ("2", 1), ("+1", 5), ("+1", 1.5)])
def test_splice_refuses_other_labels_and_codes(label, first):
    with pytest.raises(DataError, match="toy"):
        splice.parse(splice_line(label, first).encode(), "toy", "raw")


def test_splice_refuses_files_with_other_counts(monkeypatch):
    monkeypatch.setattr(splice, "read", lambda file: (splice_line("+1", 4) + "\n").encode() * 1000)
    with pytest.raises(DataError, match=r"\(1000, 1000\), expected \(1000, 517\)"):
        splice.load_splice()


def test_splice_refuses_an_unknown_scaling():
    with pytest.raises(ValueError, match="scaling"):
        splice.load_splice("standard")  # type: ignore[arg-type]


def forest(n, seed=0):
    """Rows in the format of Covertype, distinct with near certainty: (n, 55) integers."""
    random = np.random.RandomState(seed)
    quantities = random.randint(covertype.MINIMUM.astype(int), covertype.MAXIMUM.astype(int) + 1, size=(n, 10))
    wilderness = np.eye(4, dtype=int)[random.randint(4, size=n)]
    soil = np.eye(40, dtype=int)[random.randint(40, size=n)]
    return np.hstack([quantities, wilderness, soil, random.randint(1, 8, size=(n, 1))])


def scaled_file(rows, shift=0.0):
    values = (rows[:, :10] + shift - covertype.MINIMUM) / (covertype.MAXIMUM - covertype.MINIMUM)
    lines = [
        ",".join([*(f"{v:.6f}" for v in value), *map(str, row[10:])]) for value, row in zip(values, rows, strict=True)
    ]
    return gzip.compress(("\n".join([",".join("h" * 55), *lines]) + "\n").encode())


def test_scaled_covertype_comes_back_as_the_integers_it_was_made_from():
    rows = forest(300)
    np.testing.assert_array_equal(covertype.parse_scaled(scaled_file(rows), "toy"), rows)


def test_scaled_covertype_refuses_quantities_off_the_grid_and_damaged_files():
    with pytest.raises(DataError, match="toy: line 2 "):
        covertype.parse_scaled(scaled_file(forest(3), shift=0.4), "toy")
    with pytest.raises(DataError, match="toy: not a whole gzip file"):
        covertype.parse_scaled(scaled_file(forest(3))[:-20], "toy")


@pytest.mark.parametrize(("column", "value"), [(10, None), (20, None), (54, 8), (54, 0), (3, 0.5), (15, -1)])
def test_plain_covertype_refuses_rows_that_cannot_be(column, value):
    rows = forest(3).astype(float)
    # None: a second wilderness or soil
    rows[1, column] = 1 - rows[1, column] if value is None else value
    text = "\n".join(",".join(f"{v:g}" for v in row) for row in rows)
    with pytest.raises(DataError, match="toy: line 2 "):
        covertype.parse_plain(text.encode(), "toy")


def test_plain_covertype_is_read_as_it_is():
    rows = forest(20)
    text = "\n".join(",".join(map(str, row)) for row in rows)
    np.testing.assert_array_equal(covertype.parse_plain(text.encode(), "toy"), rows)


def test_covertype_split_is_of_distinct_rows_and_does_not_depend_on_their_order():
    rows = forest(100)
    parts = covertype.split(np.concatenate([rows, rows[::-3]]), 80, standardise=False)
    again = covertype.split(rows[::-1], 80, standardise=False)
    assert [len(part.labels) for part in parts] == [80, 20]
    for part, other in zip(parts, again, strict=True):
        np.testing.assert_array_equal(part.features, other.features)
        np.testing.assert_array_equal(part.labels, other.labels)
    found = {tuple(row) for part in parts for row in np.column_stack([part.features, part.labels])}
    assert found == {(*row[:-1], float(row[-1] == 2)) for row in rows.tolist()}


def test_covertype_quantities_are_standardised_on_the_training_rows_alone():
    rows = forest(100)
    raw, standard = (covertype.split(rows, 80, standardise=flag) for flag in (False, True))
    mean, scale = raw.train.features[:, :10].mean(axis=0), raw.train.features[:, :10].std(axis=0)
    for before, after in zip(raw, standard, strict=True):
        # four roundings at the scale of the largest quantity, 7173
        np.testing.assert_allclose(
            after.features[:, :10] * scale + mean, before.features[:, :10], rtol=0, atol=8 * 7173 * 2.3e-16
        )
        np.testing.assert_array_equal(after.features[:, 10:], before.features[:, 10:])


@pytest.mark.parametrize("name", [name for name, w in WORKLOADS.items() if available(*w.files)])
def test_data_at_hand_have_the_rows_that_the_stored_reference_was_made_from(name):
    # generated data are always at hand; the real files are when they are in SGMCMC_DATA_DIR or the cache
    workload = WORKLOADS[name]
    split = workload.load()
    provenance = load_reference(workload.name)["provenance"]
    assert [len(part.labels) for part in split] == provenance["rows"]
    assert {part.features.shape[1] for part in split} == {provenance["columns"]}
    assert labels_digest(split) == provenance["labels_sha256"]
    assert all(np.all(part.features[:, -1] == 1) for part in split)


def test_real_workloads_have_the_published_sizes():
    sizes = {w.name: load_reference(w.name)["provenance"]["rows"] for w in (SPLICE, COVERTYPE)}
    assert sizes == {"logistic-splice": [1000, 2175], "logistic-covertype": [87_829, 21_957]}
