"""Peak memory of many chains of every sampler."""

from benchmarks.subjects import ALL
from benchmarks.workload import stepper
from sgmcmc_verification.samplers.registry import sampler_row

CHAINS = 1_000_000
"""So many that the state (8 MB a vector of two numbers) shows beside some 300 MB of interpreter and libraries."""

PARTICLES = 3_000
"""9 million entries of a kernel matrix."""


class Memory:
    """Peak resident memory of a process that takes 3 steps of `CHAINS` chains on a small Gaussian, float32."""

    params = ALL
    param_names = ("sampler",)
    timeout = 300.0
    version = "1"
    unit = "bytes"

    def peakmem_step(self, sampler):
        stepper(sampler_row(sampler), 3, CHAINS, PARTICLES)()
