"""The code of the tutorial runs as it is printed, as a script of somebody who has installed the suite."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "pages" / "tutorial.md"


def test_the_code_of_the_tutorial_runs_and_imports_public_names_alone(tmp_path):
    source = TUTORIAL.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", source, re.MULTILINE | re.DOTALL)
    code = "\n\n".join(blocks)
    assert len(blocks) > 4
    assert code.count("assert ") > 4
    assert (
        re.findall(r"^from sgmcmc_verification\.(checks\S*|samplers\S*|targets\S*) import", code, re.MULTILINE).count(
            "checks"
        )
        == 2
    )
    assert not re.search(
        r"^from sgmcmc_verification\.(checks|samplers\.(?!run\b)|targets\.(?!registry\b))\.\S* import",
        code,
        re.MULTILINE,
    )
    script = tmp_path / "tutorial.py"
    script.write_text(code, encoding="utf-8")
    found = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[-2000:]
    assert "PASS  mine" in found.stdout
