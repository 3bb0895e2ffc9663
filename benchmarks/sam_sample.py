"""Seconds of a sample of SAM at the size of 20News-different, as `python -m benchmarks.sam` has it."""

import jax

from benchmarks.sam import problem

SAMPLES = 5


class Sample:
    """`SAMPLES` samples of one chain in single precision: batch, weights, ten steps; K = 20, V = 5,000."""

    params = ("sggmc", "gsgnht")
    param_names = ("sampler",)
    timeout = 300.0
    version = "1"
    unit = "seconds"
    repeat = (3, 10, 10.0)
    number = 1

    def setup(self, sampler):
        self.method, self.generator = problem(sampler)
        self.state = self.method.sample(self.generator, self.method.start(self.generator))  # compiles

    def time_samples(self, sampler):
        del sampler
        for _ in range(SAMPLES):
            self.state = self.method.sample(self.generator, self.state)
        jax.block_until_ready(self.state)
