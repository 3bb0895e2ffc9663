"""The Microsoft web data: what a line means, and one clear error for each that means nothing."""

import lzma

import numpy as np
import pytest

from sgmcmc_verification.targets.datasets import files, msweb
from sgmcmc_verification.targets.datasets.files import DATA_VARIABLE, DataError, DataFile, available, read
from sgmcmc_verification.targets.numerics.ragged import sparse_rows

LINES = [
    'I,4,"www.microsoft.com","created by getlog.pl"',
    'T,1,"VRoot",0,0,"VRoot"',
    'N,0,"0"',
    'A,1007,1,"Windows, the family","/windows"',
    'A,1000,1,"regwiz","/regwiz"',
    'A,1003,1,"Knowledge Base","/kb"',
    'C,"10001",10001',
    "V,1003,1",
    "V,1000,1",
    'C,"10002",10002',
    'C,"10003",10003',
    "V,1007,1",
]


def content(lines=LINES, end="\n"):
    return "".join(line + end for line in lines).encode()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_users_become_rows_of_areas_in_the_order_of_their_numbers_and_those_without_visits_are_counted(end):
    found = msweb.parse(content(end=end), "toy")
    np.testing.assert_array_equal(found.users.dense(), [[1, 1, 0], [0, 0, 1]])
    np.testing.assert_array_equal(found.areas, [1000, 1003, 1007])
    assert found.titles == ("regwiz", "Knowledge Base", "Windows, the family")
    assert found.dropped == 1


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (4, "A,1007,1"),
        (5, 'A,1007,1,"again","/again"'),
        (6, 'A,1003,2,"Knowledge Base","/kb"'),
        (7, "V,1000,1"),
        (7, 'C,"10001",10002'),
        (8, "V,1001,1"),
        (8, "V,1003"),
        (8, "V,1003,2"),
        (8, "V,x,1"),
        (9, "V,1003,1"),
        (10, 'C,"10001",10001'),
        (12, "V,10"),
        (12, ""),
        (12, "W,1007,1"),
    ],
)
def test_a_malformed_line_is_named_with_its_file(number, line):
    lines = [*LINES]
    lines[number - 1] = line
    with pytest.raises(DataError, match=rf"toy/web\.data: line {number} "):
        msweb.parse(content(lines), "toy/web.data")


def test_a_file_with_other_counts_is_refused(monkeypatch):
    monkeypatch.setattr(msweb, "read", lambda file: content())
    with pytest.raises(DataError, match=r"anonymous-msweb\.data: \(users, visits\) is \(3, 3\), expected"):
        msweb.load_msweb()


@pytest.fixture
def staged(tmp_path, monkeypatch):
    """A file published with CR LF, and a function that puts bytes in its place."""
    import hashlib

    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    digest = hashlib.sha256(content(end="\r\n")).hexdigest()
    file = DataFile("web.data", None, digest, "made for this test", crlf=True)

    def put(raw, suffix=""):
        (tmp_path / f"web.data{suffix}").write_bytes(raw)
        return file

    return put


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_alone_do_not_make_another_file(staged, end):
    assert msweb.parse(read(staged(content(end=end))), "web.data").users.size == 2


@pytest.mark.parametrize("cut", [1, 2, 40])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_truncated_file_is_refused_by_its_checksum(staged, cut, end):
    with pytest.raises(DataError, match=r"web\.data: damaged or another version"):
        read(staged(content(end=end)[:-cut]))


def test_a_changed_file_and_a_truncated_archive_are_refused(staged):
    with pytest.raises(DataError, match="damaged"):
        read(staged(content().replace(b"1003", b"1004")))
    (files.directories()[0] / "web.data").unlink()
    with pytest.raises(DataError, match=r"web\.data\.xz: cannot be read"):
        read(staged(lzma.compress(content())[:-9], ".xz"))


@pytest.mark.parametrize("file", msweb.FILES, ids=lambda file: file.name)
def test_sources_are_pinned_to_a_whole_commit(file):
    assert len(bytes.fromhex(file.sha256)) == 32
    assert len(bytes.fromhex(file.url.removeprefix("https://raw.githubusercontent.com/").split("/")[2])) == 20


@pytest.mark.parametrize("load", [msweb.load_msweb] if available(*msweb.FILES) else [])
def test_the_real_files_have_the_published_counts_and_no_user_without_a_visit(load):
    found = load()
    assert [part.users.size for part in found] == [32_711, 5_000]
    assert [len(part.users.columns) for part in found] == [98_654, 15_191]
    assert [part.dropped for part in found] == [0, 0]
    assert {part.users.width for part in found} == {294}
    visited = [len(np.unique(part.users.columns)) for part in found]
    assert visited == [285, 236]  # of 294 areas, counted by an independent program


def test_rows_taken_are_the_rows_of_the_dense_table_in_the_order_asked_for():
    table = np.array([[0, 2, 0], [0, 0, 0], [1, 0, 3], [4, 5, 6]])
    rows = sparse_rows(table)
    np.testing.assert_array_equal(rows.dense(), table)
    order = np.array([3, 1, 0, 3])
    np.testing.assert_array_equal(rows.take(order).dense(), table[order])
    np.testing.assert_array_equal(rows.lengths, [1, 0, 2, 3])


@pytest.mark.parametrize("table", [[1, 2], [[1, -1]], [[np.nan, 1]]])
@pytest.mark.usefixtures("unchecked")
def test_a_table_that_holds_no_counts_is_refused(table):
    with pytest.raises(ValueError, match="table"):
        sparse_rows(table)
