"""Every published page of an experiment is what its published lines say."""

from importlib import import_module

import pytest

from sgmcmc_verification.reports import experiments
from sgmcmc_verification.reports.experiments.common.grid import PUBLISHED, load
from sgmcmc_verification.reports.experiments.liu2016 import table1
from sgmcmc_verification.reports.experiments.ma2015 import figure2, figure3

MODULES = [
    m for m in map(import_module, experiments.names().values()) if m is not figure2
]  # its pages have two figures


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.NAME)
def test_the_published_page_is_what_its_lines_say(module):
    file = PUBLISHED / f"{module.NAME}.jsonl"
    lines = load(file)
    assert module.text(lines, False) == file.with_suffix(".md").read_text(encoding="utf-8")
    if module is not figure3:  # a cell a corpus
        assert {cell.key for cell in module.plan(False)} == lines.keys()
    if module is not table1:  # a table alone
        assert file.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
