"""The near end of the bridge: a worker process, asked by files in a temporary folder."""

import atexit
import functools
import itertools
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from sgmcmc_verification.samplers.adapters.isolated import environments
from sgmcmc_verification.samplers.adapters.isolated.errors import BridgeCrash, BridgeError, BridgeTimeout

WORKER = Path(__file__).with_name("worker.py")
SUITE = Path(__file__).resolve().parents[3]
"""The folder that holds the package `targets`."""

START_SECONDS = 120.0
REQUEST_SECONDS = 900.0


class Client:
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
        self.name, self.request_seconds = name, request_seconds
        self._folder = tempfile.TemporaryDirectory(prefix="bridge-")
        self._numbers = itertools.count()
        self._log = Path(self._folder.name) / "log"
        inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [str(python), "-u", str(WORKER), str(far), str(SUITE)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=inherited,
                cwd=self._folder.name,  # so that nothing of the suite shadows a package there
            )
        self._unread = b""
        hello = json.loads(self._line(start_seconds, "starting"))
        if "error" in hello:
            self.close()
            raise BridgeError(f"{name}: its library cannot be imported in its environment ({hello['error']})")
        self.versions: dict[str, str] = hello["versions"]
        atexit.register(self.close)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """True while the worker can be asked."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the worker."""
        atexit.unregister(self.close)
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._folder.cleanup()

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
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{path}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            self._crashed(op)
        self._line(self.request_seconds if seconds is None else seconds, op)
        answer = Path(f"{path}.answer.npz")
        with np.load(answer, allow_pickle=False) as file:
            reply = json.loads(str(file["meta"]))
            out = {name: file[name] for name in file.files if name != "meta"}
        path.unlink()
        answer.unlink()
        if "error" in reply:
            raise BridgeError(f"{self.name}: {op} failed in the other environment ({reply['error']})")
        return out, reply

    def _line(self, seconds: float, what: str) -> str:
        """The next line of the worker."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline = time.monotonic() + seconds
        while b"\n" not in self._unread:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self.close()
                raise BridgeTimeout(f"{self.name}: {what} took longer than {seconds:g} s; the worker was ended")
            chunk = os.read(descriptor, 65536)
            if not chunk:
                self._crashed(what)
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def _crashed(self, what: str) -> NoReturn:
        code = self._process.wait()
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        last = f"; it printed last: {lines[-1].strip()[:300]}" if lines else ""
        self.close()
        raise BridgeCrash(f"{self.name}: the worker ended with code {code} while {what}{last}")


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
