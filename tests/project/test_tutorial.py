"""The code of the tutorial runs as it is printed, from its first line to its last."""

import re
from pathlib import Path

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "pages" / "tutorial.md"


def test_the_code_of_the_tutorial_runs():
    source = TUTORIAL.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", source, re.MULTILINE | re.DOTALL))
    assert len(blocks) > 4
    assert sum(block.group(1).count("assert") for block in blocks) > 4
    space: dict[str, object] = {"__name__": "tutorial"}
    for block in blocks:
        lines = source[: block.start(1)].count("\n")  # so that a traceback names the line of the page
        exec(compile("\n" * lines + block.group(1), str(TUTORIAL), "exec"), space)
