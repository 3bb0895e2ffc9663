"""The command `sgmcmc-verify`: the checks of a sampler from any folder.

    sgmcmc-verify my_package.module:sampler [path/to/file.py:object ...] [options of pytest checks]

The same as `pytest --sampler my_package.module:sampler`, without the configuration, conftests, plugins and environment
variables of the pytest of the folder. The exit code is that of `pytest checks`.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
ALONE = (
    *("-p", "sgmcmc-verification", "-p", "xdist", "-p", "no:cacheprovider"),
    *("-c", os.devnull, "--rootdir", os.curdir, str(HERE)),
)
"""Arguments of pytest: no plugins but two, no configuration, and the checks alone."""

ASKING = ("--sampler", "--list", "--explain", "--help", "-h", "--version")
"""Options one of which has to be there: all reference samplers, which `pytest checks` takes, are for its own tests."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks; the leading arguments that are no options are samplers."""
    rest = list(sys.argv[1:] if arguments is None else arguments)
    samplers = []
    while rest and not rest[0].startswith("-"):
        samplers += ["--sampler", rest.pop(0)]
    if not any(word.partition("=")[0] in ASKING for word in [*samplers, *rest]):
        print(
            "ERROR: name a sampler, as in sgmcmc-verify your_package.module:object; --help says more", file=sys.stderr
        )
        return 4
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)
    import pytest

    return int(pytest.main([*ALONE, *samplers, *rest]))


if __name__ == "__main__":
    sys.exit(main())
