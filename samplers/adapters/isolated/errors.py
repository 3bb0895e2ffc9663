"""Errors of the bridge; every message is one line that says what to do."""


class BridgeError(RuntimeError):
    """The other environment cannot be used, or a request to it failed."""


class BridgeMissing(BridgeError, ImportError):
    """The environment is not built; the message has the command that builds it."""


class BridgeTimeout(BridgeError):
    """A request took longer than it may; the worker was ended."""


class BridgeCrash(BridgeError):
    """The worker ended on its own."""
