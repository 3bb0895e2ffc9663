"""Splice junctions of DNA: 60 nucleotides, 3,175 examples, junction or not."""

from typing import Literal

import numpy as np

from sgmcmc_verification.targets.datasets.files import DataFile, read
from sgmcmc_verification.targets.datasets.table import Split, Table, expect, parse_libsvm

_ORIGIN = "UCI Molecular Biology (Splice-junction Gene Sequences), by way of DELVE and LIBSVM"
# LIBSVM's own site serves these files without a version; a repository that holds copies of them can be pinned.
_ROOT = (
    "https://raw.githubusercontent.com/troyastorino/14.15-neural-network-analysis/"
    "96f83c8b70de0414c6ec3c58cad33ab10a1a8839/data/"
)
TRAIN = DataFile(
    "splice/splice.libsvm",
    _ROOT + "splice",
    "eee33566cfe8988ec26122460cc712d66c5c5b79b966b259408e803addaa584d",
    _ORIGIN,
)
TEST = DataFile(
    "splice/splice.t.libsvm",
    _ROOT + "splice-t",
    "f40da7cfd17860f3f1a1bb7d118f8e86c306d232ca6ac6ddefbaaef266abaa03",
    _ORIGIN,
)
FILES = (TRAIN, TEST)
COLUMNS = 60
# rows, rows labelled +1
COUNTS = {TRAIN.name: (1000, 517), TEST.name: (2175, 1131)}


def parse(content: bytes, name: str, scaling: Literal["raw", "unit"]) -> Table:
    """One file -> features (n, 60) and labels in {0, 1}, without counts being checked.

    Raises:
        DataError: if a line is malformed, a label is not +1 or -1, or a value is not a nucleotide 1, 2, 3, 4.
    """
    features, labels = parse_libsvm(content, COLUMNS, name)
    expect(name, "the set of labels", sorted(set(labels.tolist()) - {-1.0, 1.0}), [])
    expect(name, "the set of values other than 1, 2, 3, 4", sorted(set(features.ravel().tolist()) - {1, 2, 3, 4}), [])
    if scaling == "unit":
        features = (features - 2.5) / 1.5
    return Table(features, (labels > 0).astype(np.float64))


def load_splice(scaling: Literal["raw", "unit"] = "unit") -> Split:
    """The splice data with LIBSVM's split, 1,000 training and 2,175 test rows of 60 features.

    Source: the pool of examples of liu2018riemannian, section 5.1. Differs from the source in:
        1. the split: the paper takes split 19 of a file of benchmarks that is not available; this is LIBSVM's
           split, of the same sizes, from the same 3,175 examples.
        2. the scaling: that of the paper's file is unknown. `raw` are the nucleotide codes 1 to 4, `unit` is
           (x - 2.5) / 1.5, LIBSVM's scaled version, in [-1, 1].

    Args:
        scaling: `raw` or `unit`.

    Returns:
        Tables with labels 1 for LIBSVM's +1 and 0 for -1.

    Raises:
        DataError: if a file cannot be had, is damaged or is not the published one.
        ValueError: if `scaling` is neither `raw` nor `unit`.
    """
    if scaling not in ("raw", "unit"):
        raise ValueError(f"scaling: must be 'raw' or 'unit', got {scaling!r}")
    tables = []
    for file in FILES:
        table = parse(read(file), file.name, scaling)
        expect(file.name, "(rows, positive labels)", (len(table.labels), int(table.labels.sum())), COUNTS[file.name])
        tables.append(table)
    return Split(*tables)
