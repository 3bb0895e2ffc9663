"""A process that is spoken to in lines over its standard input and output, under time limits."""

import atexit
import contextlib
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from sgmcmc_verification.samplers.adapters.isolated.errors import BridgeCrash, BridgeError, BridgeTimeout

LONGEST = 1 << 24
"""Bytes of a line: a process that writes more without an end of line is not answering."""


class Lines:
    """A process; what it writes to standard error is kept for messages.

    Args:
        command: the program and its arguments; no shell reads it.
        name: of the process, for messages.
        environ: its environment; None for that of this process.
        folder: where it runs; None for a temporary one of its own.

    Raises:
        BridgeError: if there is no such program.
    """

    def __init__(
        self,
        command: Sequence[str],
        name: str,
        environ: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.name = name
        self._folder = tempfile.TemporaryDirectory(prefix="bridge-")
        self._log = Path(self._folder.name) / "log"
        try:
            with open(self._log, "wb") as log:
                self._process = subprocess.Popen(
                    list(command),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=None if environ is None else dict(environ),
                    cwd=folder or self._folder.name,
                )
        except OSError as error:
            self._folder.cleanup()
            raise BridgeError(f"{name}: {command[0]} cannot be started ({error.strerror})") from None
        self._unread = b""
        atexit.register(self.close)

    @property
    def alive(self) -> bool:
        """True while the process can be asked."""
        return self._process.poll() is None

    def wait(self, seconds: float) -> None:
        """Wait for the process to end by itself, so long at most."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def close(self) -> None:
        """End the process."""
        atexit.unregister(self.close)
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._folder.cleanup()

    def send(self, line: str, what: str) -> None:
        """Write a line.

        Args:
            line: without its end.
            what: is being done, for messages.

        Raises:
            BridgeCrash: if the process has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            self._crashed(what)

    def line(self, seconds: float, what: str) -> str:
        """The next line of the process.

        Raises:
            BridgeTimeout, BridgeCrash: if there is none.
        """
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline = time.monotonic() + seconds
        while b"\n" not in self._unread:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            if not ready or len(self._unread) > LONGEST:
                self.close()
                late = f"{what} took longer than {seconds:g} s" if not ready else f"{what} gave a line without an end"
                raise BridgeTimeout(f"{self.name}: {late}; the process was ended")
            chunk = os.read(descriptor, 65536)
            if not chunk:
                self._crashed(what)
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode(errors="replace")

    def _crashed(self, what: str) -> NoReturn:
        code = self._process.wait()
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        last = f"; it printed last: {lines[-1].strip()[:300]}" if lines else ""
        self.close()
        raise BridgeCrash(f"{self.name}: the process ended with code {code} while {what}{last}")
