"""Compare the skipped tests of a run with the list of those that may be skipped, `skips.txt` beside this file.

    python .ci/skips.py TESTS.xml

TESTS.xml is what `pytest --junit-xml` wrote. The exit code is 1 if more tests of a file were skipped than it allows.
"""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ALLOWED = Path(__file__).with_name("skips.txt")


def allowed() -> dict[str, int]:
    """Most skips of each file."""
    lines = (line.split(maxsplit=2) for line in ALLOWED.read_text(encoding="utf-8").splitlines() if line[:1] != "#")
    return {name: int(most) for name, most, _ in lines}


def skipped(path: str) -> list[tuple[str, str]]:
    """Test file and reason of every skip; a module that skips itself is named by its test case."""
    found = []
    for case in ElementTree.parse(path).iter("testcase"):
        reason = case.find("skipped")
        if reason is not None and reason.get("type") != "pytest.xfail":
            module = case.get("classname") or case.get("name") or ""
            found.append((module.replace(".", "/") + ".py", reason.get("message") or ""))
    return found


def main(path: str) -> int:
    """Print what was skipped; 1 if something was that may not be."""
    found, most, bad = skipped(path), allowed(), 0
    for name, count in sorted(Counter(name for name, _ in found).items()):
        reasons = sorted({reason for file, reason in found if file == name})
        too_many = count > most.get(name, 0)
        bad += too_many
        print(f"{name}: {count} skipped, {most.get(name, 0)} allowed{': TOO MANY' if too_many else ''}")
        for reason in reasons:
            print(f"    {reason}")
    print(f"{len(found)} skipped")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
