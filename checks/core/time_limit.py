"""A limit to the time that code of another author may take."""

import contextlib
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Generator

BUDGET = 100.0
"""Seconds of CPU that the runs of one sampler may take, if nothing else is said."""
AGAIN = 5.0
"""Seconds after which an interrupt is repeated that the code has caught and gone on from."""
GRACE = 60.0
"""Seconds that compiled code, which no interrupt reaches, is given beside the limit before the process ends."""


class OutOfTime(BaseException):
    """Raised in the code that runs when its time is over; no handler of the mistakes of that code takes it for one."""


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Generator[None]:
    """Raise `OutOfTime` where the code is after some seconds; the place is that of its traceback.

    A loop of a compiled program is reached by no interrupt: `GRACE` seconds later the process ends with exit code 1,
    after it has written where it was to standard error. What was written to a file of results by then stays.

    Only in the main thread of a system with interval timers, and no limit elsewhere or for None.
    """
    possible = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if seconds is None or not possible:
        yield
        return

    def expire(number: int, frame: object) -> None:
        del number, frame
        raise OutOfTime(f"it took more than {seconds:g} s (--time-limit)")

    def end() -> None:
        print(f"ERROR: no interrupt ends what took more than {seconds:g} s (--time-limit)", file=sys.__stderr__)
        faulthandler.dump_traceback(2)  # standard error, whatever has been put in its place
        os._exit(1)

    watch = threading.Timer(seconds + GRACE, end)
    watch.daemon = True
    before = signal.signal(signal.SIGALRM, expire)
    watch.start()
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        watch.cancel()
