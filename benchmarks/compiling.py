"""Cost of compiling the steps of every sampler."""

from benchmarks.checks_cost import compiling
from benchmarks.subjects import ALL
from benchmarks.workload import stepper
from sgmcmc_verification.samplers.registry import sampler_row

LEAST = 1e-3
"""Seconds; less is reported as this, since asv compares ratios. Host samplers may compile nothing with JAX."""


def compile_seconds(sampler: str, steps: int = 10) -> float:
    """Seconds of tracing, lowering and compiling a loop over the steps of one chain, nothing compiled before used."""
    with compiling() as compilation:
        stepper(sampler_row(sampler), steps, chains=1)()
    return max(LEAST, compilation.seconds)


class Compiling:
    """Of a process of its own, as asv makes one: what JAX compiles once a process is in it."""

    params = ALL
    param_names = ("sampler",)
    timeout = 300.0
    version = "1"
    unit = "seconds"

    def track_compile_seconds(self, sampler):
        return compile_seconds(sampler)
