"""Attribution of an exception to the innermost frame of the code under test, not of the suite or a library."""

import inspect
import re
import sys
import sysconfig
import traceback
from pathlib import Path

RAISED = (Exception, SystemExit)
"""What code of another author may raise; an interrupt of the user is none of it."""
SUITE = Path(__file__).resolve().parents[2]
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
_MACHINERY = ("jax", "jaxlib", "numpy", "scipy", "_pytest", "pytest", "pluggy", "xdist", "equinox", "jaxtyping")


def one_line(error: BaseException, limit: int = 300) -> str:
    """`TypeError: message` on one line."""
    text = " ".join(str(error).split())
    text = text if len(text) <= limit else text[: limit - 3] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def place(error: BaseException) -> str:
    """` at file.py:12, in step`: the innermost line of the code under test; empty if there is none.

    Preference: a file outside of the suite and of the standard, array and test libraries; then a sampler or a target
    of the suite; then the check itself.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f" at {shown(Path(error.filename))}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    ranked = [(_rank(Path(f.filename)), i, f) for i, f in enumerate(frames)]
    ranked = [r for r in ranked if r[0] > 0]
    if not ranked:
        return ""
    _, _, frame = max(ranked, key=lambda r: (r[0], r[1]))
    return f" at {shown(Path(frame.filename))}:{frame.lineno}, in {frame.name}"


def source_of(function: object) -> str:
    """`file.py:12`: the file and the first line of a Python function, whatever wraps it; empty for anything else."""
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return f"{shown(Path(code.co_filename))}:{code.co_firstlineno}" if code else ""


def places_in(text: str) -> list[tuple[str, int]]:
    """The files and lines that `place` and `source_of` have put into a text, in its order."""
    return [(file, int(line)) for file, line in re.findall(r"(?:^| at )([^\s:]+\.py):(\d+)", text)]


def _rank(path: Path) -> int:
    if not path.is_absolute() or str(path).startswith("<"):
        return 0
    if path.is_relative_to(SUITE):  # before the libraries, among which it may be installed
        rank = {"samplers": 2, "targets": 2, "checks": 1}.get(path.relative_to(SUITE).parts[0])
        if rank is not None:
            return rank
    for library in _LIBRARIES:
        if path.is_relative_to(library):
            parts = path.relative_to(library).parts
            if "site-packages" in parts:
                parts = parts[parts.index("site-packages") + 1 :]
            top = parts[0].removesuffix(".py") if parts else ""
            return 0 if top in _MACHINERY or top in sys.stdlib_module_names else 3
    return 3


def shown(path: Path) -> str:
    """A path from the current folder, the suite or the packages that are installed, where it is below one of them."""
    for base in (Path.cwd(), SUITE):
        if path.is_absolute() and path.is_relative_to(base):
            return str(path.relative_to(base))
    parts = path.parts
    if "site-packages" in parts:  # the same text on every machine
        return "/".join(parts[parts.index("site-packages") + 1 :])
    return str(path)
