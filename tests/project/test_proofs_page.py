"""The page on proofs prints what its code prints."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pages" / "proofs.md"


def test_the_page_shows_what_its_code_prints():
    text = PAGE.read_text(encoding="utf-8")
    code, shown = (re.search(rf"```{kind}\n(.*?)```", text, re.DOTALL) for kind in ("python", "text"))
    assert code
    assert shown
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code.group(1), str(PAGE), "exec"), {"__name__": "page"})
    assert printed.getvalue() == shown.group(1)
