"""The code of the pages about spaces and about samplers of one's own runs as it is printed; spaces are all named."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sgmcmc_verification.checks.core.lookup import DEFAULT_TARGETS

OF_ITS_OWN = "finite"
"""A space that has a page of its own."""
PAGES = Path(__file__).resolve().parents[2] / "docs" / "pages"


@pytest.mark.parametrize(("page", "least"), [("spaces", len(DEFAULT_TARGETS) - 1), ("your-sampler", 5)])
def test_the_code_of_the_page_runs(page, least, tmp_path):
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    code = "\n\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert code.count("assert ") >= least
    if "import torch" in code:
        pytest.importorskip("torch")
    script = tmp_path / "page.py"
    script.write_text(code, encoding="utf-8")
    found = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[-2000:]


def test_the_page_names_every_space_and_its_targets():
    rows = [line for line in (PAGES / "spaces.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    table = "\n".join(rows)
    for space, names in DEFAULT_TARGETS.items():
        if space == OF_ITS_OWN:
            continue
        assert f"`{space}`" in table
        assert space == "euclidean" or all(f"`{name}`" in table for name in names)
