"""Building the environments: a virtual environment with pinned packages below the cache directory."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from sgmcmc_verification.samplers.adapters.isolated import environments
from sgmcmc_verification.samplers.adapters.isolated.client import Client
from sgmcmc_verification.samplers.adapters.isolated.environments import STAMP, fingerprint, home, interpreter, is_built
from sgmcmc_verification.samplers.adapters.isolated.errors import BridgeError
from sgmcmc_verification.targets.datasets.files import CACHE_VARIABLE


def build(name: str, say: Callable[[str], None] = print, force: bool = False) -> Path:
    """Build an environment unless it is there already; returns its folder.

    `uv` is used where it is installed, else `venv` and `pip` of the running Python.

    Args:
        name: of an environment.
        say: gets one line for each thing that is done.
        force: build it anew.

    Raises:
        ValueError: if there is no such environment.
        BridgeError: if a command fails; the message ends with what it printed last.
    """
    env, folder = environments.environment(name), home(name)
    if is_built(name) and not force:
        say(f"{name}: already built in {folder}")
        return folder
    first, last = env.python
    if not first <= sys.version_info[:2] <= last:
        span = f"{first[0]}.{first[1]} to {last[0]}.{last[1]}"
        raise BridgeError(f"{name}: its pinned packages exist for Python {span}; run the command with one of those")
    if folder.exists():
        shutil.rmtree(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BridgeError(f"{folder.parent}: cannot be made ({error.strerror}); set {CACHE_VARIABLE}") from error
    say(f"{name}: making a virtual environment in {folder}")
    uv = shutil.which("uv")
    try:
        if uv:
            _run(name, [uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
            install = [uv, "pip", "install", "--quiet", "--python", str(interpreter(folder))]
        else:
            _run(name, [sys.executable, "-m", "venv", str(folder)])
            install = [str(interpreter(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        say(f"{name}: installing {', '.join((*env.requirements, *env.alone))}")
        _run(name, [*install, *env.requirements])
        if env.alone:
            _run(name, [*install, "--no-deps", *env.alone])
        say(f"{name}: starting it once")
        with Client(interpreter(folder), env.far, name=name) as client:
            versions = client.versions
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    stamp = {"requirements": fingerprint(env), "versions": versions}
    (folder / STAMP).write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")
    say(f"{name}: ready, " + ", ".join(f"{k} {v}" for k, v in versions.items()))
    return folder


def _run(name: str, arguments: list[str]) -> None:
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    done = subprocess.run(arguments, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        tail = " | ".join(lines[-3:]) or f"exit code {done.returncode}"
        raise BridgeError(f"{name}: `{' '.join(arguments[:4])} ...` failed: {tail}")
