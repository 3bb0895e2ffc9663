"""The near end of the bridge: a worker process, asked by files in a temporary folder."""

import functools
import itertools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc_verification.samplers.adapters.isolated import environments
from sgmcmc_verification.samplers.adapters.isolated.errors import BridgeCrash, BridgeError
from sgmcmc_verification.samplers.adapters.isolated.lines import Lines

WORKER = Path(__file__).with_name("worker.py")
SUITE = Path(__file__).resolve().parents[3]
"""The folder that holds the package `targets`."""

START_SECONDS = 120.0
REQUEST_SECONDS = 900.0


class Client(Lines):
    """A worker of another environment.

    Args:
        python: the interpreter of that environment.
        far: the file that knows its library.
        name: of the environment, for messages.
        start_seconds: how long the worker may take to import its library.
        request_seconds: how long a request may take unless it says otherwise.

    Raises:
        BridgeCrash: if the worker does not start.
        BridgeTimeout: if it takes too long to.
    """

    def __init__(
        self,
        python: Path | str,
        far: Path,
        *,
        name: str = "bridge",
        start_seconds: float = START_SECONDS,
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
        # in a folder of its own, so that nothing of the suite shadows a package there
        super().__init__([str(python), "-u", str(WORKER), str(far), str(SUITE)], name, inherited)
        self.request_seconds = request_seconds
        self._numbers = itertools.count()
        hello = json.loads(self.line(start_seconds, "starting"))
        if "error" in hello:
            self.close()
            raise BridgeError(f"{name}: its library cannot be imported in its environment ({hello['error']})")
        self.versions: dict[str, str] = hello["versions"]

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def request(
        self, op: str, arrays: Mapping[str, Any] | None = None, *, seconds: float | None = None, **meta: object
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Ask the worker; returns its arrays and what it says beside them.

        Raises:
            BridgeError: if it answers with an error.
            BridgeTimeout, BridgeCrash: if it does not answer.
        """
        if not self.alive:
            raise BridgeCrash(f"{self.name}: the worker has ended; start another one")
        path = Path(self._folder.name) / f"request-{next(self._numbers)}"
        with open(path, "wb") as file:
            np.savez(file, meta=json.dumps({"op": op, **meta}), **(arrays or {}))
        self.send(str(path), op)
        self.line(self.request_seconds if seconds is None else seconds, op)
        answer = Path(f"{path}.answer.npz")
        with np.load(answer, allow_pickle=False) as file:
            reply = json.loads(str(file["meta"]))
            out = {name: file[name] for name in file.files if name != "meta"}
        path.unlink()
        answer.unlink()
        if "error" in reply:
            raise BridgeError(f"{self.name}: {op} failed in the other environment ({reply['error']})")
        return out, reply


@functools.lru_cache(maxsize=8)
def _started(name: str, process: int) -> Client:
    del process
    env = environments.environment(name)
    return Client(environments.python_of(name), env.far, name=name)


def client(environment: str | Client) -> Client:
    """The worker of an environment, one per process, started at the first request and again if it has ended."""
    if isinstance(environment, Client):
        return environment
    name = environment
    found = _started(name, os.getpid())
    if not found.alive:
        _started.cache_clear()
        found = _started(name, os.getpid())
    return found
