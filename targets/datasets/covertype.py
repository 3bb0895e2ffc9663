"""Forest cover types: 54 cartographic features, spruce/fir and others against lodgepole pine."""

import gzip
import zlib

import numpy as np

from sgmcmc_verification.targets.datasets.files import DataError, DataFile, read
from sgmcmc_verification.targets.datasets.table import Split, Table, expect, parse_csv

_ORIGIN = (
    "UCI Covertype, copyright Jock A. Blackard and Colorado State University; reuse unlimited with retention of the "
    "copyright notice"
)
# The commit of each URL is one that holds the file; the checksum is that of the bytes that were examined.
SCALED = DataFile(
    "covertype/covertype_ramp_test_92962.csv.gz",
    "https://raw.githubusercontent.com/ramp-kits/covertype/af435f432b221d5c205209d9331ca3b540a6a3a1/data/test.csv.gz",
    "d1683af154f7279cfb7221e813d44d904346d4965779c56bfbe7c5c74cebf8fd",
    _ORIGIN,
)
PLAIN = DataFile(
    "covertype/covtype_20k.data",
    "https://raw.githubusercontent.com/masonblier/fluxml-covtype/b5d4c6e0e19bfb1e54ccb9ff8e439691e12eaecf/"
    "covtype-min.data",
    "80558f267915e67c46115a120c6e4c3a002846c307aa21bc9a574bac8d8d65cf",
    _ORIGIN,
)
FILES = (SCALED, PLAIN)
FIELDS = 55
"""54 features and the class."""
QUANTITATIVE = 10
"""The first ten features are quantities, the other 44 indicators of wilderness (4) and soil (40)."""
MINIMUM = np.array([1859, 0, 0, 0, -173, 0, 0, 0, 0, 0], np.float64)
MAXIMUM = np.array([3858, 360, 66, 1397, 601, 7117, 254, 254, 254, 7173], np.float64)
"""Ranges of the quantities in the full data, which the scaled file was divided by."""
SCALED_CLASSES = (33_894, 45_328, 5_721, 439, 1_519, 2_779, 3_282)
PLAIN_ROWS = 20_000
ROWS = 109_786
TRAIN_ROWS = 87_829
SPLIT_SEED = 42


def parse_scaled(content: bytes, name: str) -> np.ndarray:
    """The gzipped file with quantities scaled to [0, 1] -> (n, 55) integers in the units of the original.

    Raises:
        DataError: if it is damaged, a line is malformed, or a quantity does not come back as an integer.
    """
    try:
        content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{name}: not a whole gzip file ({error})") from error
    table = parse_csv(content, FIELDS, name, header=True)
    quantities = table[:, :QUANTITATIVE] * (MAXIMUM - MINIMUM) + MINIMUM
    # six printed decimals are half a unit of 1e-6, times the range: at most 0.0036
    allowed = 0.5e-6 * (MAXIMUM - MINIMUM) * (1 + 1e-6)
    off = np.abs(quantities - np.rint(quantities)) > allowed
    if off.any():
        raise DataError(f"{name}: line {int(np.argwhere(off)[0, 0]) + 2} holds a quantity that is not a scaled integer")
    table[:, :QUANTITATIVE] = np.rint(quantities)
    return _integers(table, name, first_line=2)


def parse_plain(content: bytes, name: str) -> np.ndarray:
    """The file in the format of the original -> (n, 55) integers.

    Raises:
        DataError: if a line is malformed.
    """
    return _integers(parse_csv(content, FIELDS, name, header=False), name, first_line=1)


def _integers(table: np.ndarray, name: str, first_line: int) -> np.ndarray:
    """Check what every row of the data satisfies: integers, one wilderness, one soil, a class from 1 to 7."""
    integers = table.astype(np.int32)
    indicators = integers[:, QUANTITATIVE:-1]
    good = (
        np.all(integers == table, axis=1)
        & np.all((indicators == 0) | (indicators == 1), axis=1)
        & (indicators[:, :4].sum(axis=1) == 1)
        & (indicators[:, 4:].sum(axis=1) == 1)
        & (integers[:, -1] >= 1)
        & (integers[:, -1] <= 7)
    )
    if not good.all():
        line = int(np.flatnonzero(~good)[0]) + first_line
        raise DataError(f"{name}: line {line} is not integers with one wilderness, one soil and a class from 1 to 7")
    return integers


def split(rows: np.ndarray, train_rows: int, standardise: bool = True, seed: int = SPLIT_SEED) -> Split:
    """Distinct integer rows (n, 55), sorted, permuted, cut; class 2 is label 1.

    Args:
        rows: features and class.
        train_rows: size of the training part.
        standardise: centre the ten quantities and divide them by their standard deviation (of the training rows);
            the 44 indicators stay 0 and 1.
        seed: of the permutation.
    """
    rows = np.unique(rows, axis=0)
    # the stream of RandomState is frozen, that of Generator may change between versions of NumPy
    order = np.random.RandomState(seed).permutation(len(rows))
    rows = rows[order]
    features = rows[:, :-1].astype(np.float64)
    labels = (rows[:, -1] == 2).astype(np.float64)
    if standardise:
        train = features[:train_rows, :QUANTITATIVE]
        features[:, :QUANTITATIVE] = (features[:, :QUANTITATIVE] - train.mean(axis=0)) / train.std(axis=0)
    return Split(
        Table(features[:train_rows], labels[:train_rows]),
        Table(features[train_rows:], labels[train_rows:]),
    )


def load_covertype(standardise: bool = True) -> Split:
    """109,786 distinct rows of Covertype, class 2 against the rest: 87,829 for training, 21,957 for testing.

    Source: the data of liu2018riemannian, section 5.1 (80/20). Differs from the source in:
        1. the rows: a fifth of the 581,012, the union of two public subsets (92,962 and 20,000 rows, 3,176 in both).
        2. the split: rows in lexicographic order, permuted by `numpy.random.RandomState(42)`.
        3. the scaling, see `split`.

    Raises:
        DataError: if a file cannot be had, is damaged or is not the published one.
    """
    scaled = parse_scaled(read(SCALED), SCALED.name)
    expect(SCALED.name, "rows by class", tuple(np.bincount(scaled[:, -1], minlength=8)[1:].tolist()), SCALED_CLASSES)
    plain = parse_plain(read(PLAIN), PLAIN.name)
    expect(PLAIN.name, "the number of rows", len(plain), PLAIN_ROWS)
    parts = split(np.concatenate([scaled, plain]), TRAIN_ROWS, standardise)
    expect("covertype", "the number of distinct rows", sum(len(part.labels) for part in parts), ROWS)
    return parts
