"""The runner, as users import it; defined in `samplers.runner.run`."""

from samplers.runner.run import NonFiniteError, Run, run

__all__ = ["NonFiniteError", "Run", "run"]
