"""The code of the page about spaces runs as it is printed, and the page names every space with its default targets."""

import re
import subprocess
import sys
from pathlib import Path

from sgmcmc_verification.checks.core.lookup import DEFAULT_TARGETS

OF_ITS_OWN = "finite"
"""A space that has a page of its own."""
PAGE = Path(__file__).resolve().parents[2] / "docs" / "pages" / "spaces.md"


def test_the_code_of_the_page_runs(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    code = "\n\n".join(blocks)
    assert code.count("assert ") >= len(DEFAULT_TARGETS) - 1
    script = tmp_path / "spaces.py"
    script.write_text(code, encoding="utf-8")
    found = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[-2000:]


def test_the_page_names_every_space_and_its_targets():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    table = "\n".join(rows)
    for space, names in DEFAULT_TARGETS.items():
        if space == OF_ITS_OWN:
            continue
        assert f"`{space}`" in table
        assert space == "euclidean" or all(f"`{name}`" in table for name in names)
