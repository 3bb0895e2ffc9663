"""Time of the steps of every sampler, compiled and warmed up."""

from benchmarks.subjects import ALL, PARTICLES
from benchmarks.workload import stepper
from sgmcmc_verification.samplers.registry import sampler_row

STEPS = 1000

SLOW = {**dict.fromkeys(PARTICLES, 50), "host-sgld": 50}
"""Numbers of steps of the rows whose steps take milliseconds."""


class Steps:
    """`STEPS` (or `SLOW`) steps of one chain, or 100 particles, on a small Gaussian, float32."""

    params = ALL
    param_names = ("sampler",)
    timeout = 300.0
    version = "1"
    unit = "seconds"
    repeat = (3, 10, 5.0)
    sample_time = 0.05

    def setup(self, sampler):
        self.run = stepper(sampler_row(sampler), SLOW.get(sampler, STEPS), chains=1)
        self.run()

    def time_step(self, sampler):
        self.run()
