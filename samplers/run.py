"""The runner, as users import it; defined in `samplers.runner.run`."""

from sgmcmc_verification.samplers.runner.run import NonFiniteError, Run, run

__all__ = ["NonFiniteError", "Run", "run"]
