"""Long test runs stay as fast as short ones: what JAX keeps of the functions that it has compiled is forgotten."""

import jax
import pytest

MANY = 1000
"""Lowerings after which all are forgotten. A lowered module keeps its MLIR context alive, and a new context looks
through all that live (the caches of its uniquers): after some ten thousand, near half of the time of a run. What is
needed again is traced again, a few hundred functions."""

NAME = "verification-lowerings"
EVENT = "/jax/core/compile/jaxpr_to_mlir_module_duration"


class Lowerings:
    """A plugin of pytest that clears the caches of JAX after the test in which the `MANY`th lowering was made."""

    def __init__(self) -> None:
        self.count = 0
        jax.monitoring.register_event_duration_secs_listener(self.add)

    def add(self, event: str, duration_secs: float, **details: str | int) -> None:
        """Listener of JAX."""
        del duration_secs, details
        self.count += event == EVENT

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self) -> None:
        """Forget what has been lowered once there is too much of it."""
        if self.count >= MANY:
            self.count = 0
            jax.clear_caches()


def register(config: pytest.Config) -> None:
    """Have the process that runs the tests forget, once; under xdist the controller runs none."""
    runs = hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None)
    if runs and not config.pluginmanager.has_plugin(NAME):
        config.pluginmanager.register(Lowerings(), NAME)
