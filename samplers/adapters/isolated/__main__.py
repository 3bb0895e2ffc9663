"""The command line of the bridge.

python -m sgmcmc_verification.samplers.adapters.isolated build NAME ...  build environments (all of them: `build all`)
python -m sgmcmc_verification.samplers.adapters.isolated list            which there are
"""

import argparse
import sys
from collections.abc import Sequence

from sgmcmc_verification.samplers.adapters.isolated.build import build
from sgmcmc_verification.samplers.adapters.isolated.environments import ENVIRONMENTS, home, is_built
from sgmcmc_verification.samplers.adapters.isolated.errors import BridgeError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m sgmcmc_verification.samplers.adapters.isolated", description=__doc__
    )
    commands = parser.add_subparsers(dest="command", required=True)
    builder = commands.add_parser("build", help="build environments")
    builder.add_argument("names", nargs="+", metavar="NAME")
    builder.add_argument("--force", action="store_true", help="build anew what is there")
    commands.add_parser("list", help="list environments")
    given = parser.parse_args(arguments)
    if given.command == "list":
        for env in ENVIRONMENTS:
            print(f"{env.name:12s} {'built' if is_built(env.name) else 'not built':10s} {home(env.name)}")
        return 0
    names = [env.name for env in ENVIRONMENTS] if given.names == ["all"] else given.names
    try:
        for name in names:
            build(name, say=lambda line: print(line, flush=True), force=given.force)
    except (BridgeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
