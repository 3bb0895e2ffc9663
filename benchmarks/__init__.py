"""Benchmarks: suites of asv, whose history shows orders, speed and memory over commits, and speed next to libraries.

asv imports this folder without the clone on the path. The clone is put last, so that an installed version or the one
in `ASV_PYTHONPATH` is what is measured.
"""

import sys
from pathlib import Path

_ROOT = str(Path(__file__).resolve().parents[1] / "docs" / "namespace")
if _ROOT not in sys.path:
    sys.path.append(_ROOT)
