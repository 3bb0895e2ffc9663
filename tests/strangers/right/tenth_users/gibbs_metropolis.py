"""Metropolis within Gibbs, NumPy.

One coordinate at a time is moved by a Laplace increment and tested by Metropolis' rule; the coordinates are visited in an
order that is drawn anew for each sweep. The scales of the increments are tuned in ``init`` only, by a short pilot run with a
Robbins-Monro recursion towards an acceptance of 0.44, and are fixed from then on. The pilot starts at the origin and not at
the position that the run starts from, on which the scales must not depend if a run that starts in the target is to stay there.

    sampler = GibbsMetropolis(pilot_sweeps=8)
    walker = sampler.init(rng, position, estimator)
    walker = sampler.step(rng, walker, step_size, estimator)
"""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

ACCEPTANCE = 0.44


class Walker:
    """Position (an array of any shape), its energy, and the scale of the increments of each coordinate."""

    __slots__ = ("position", "energy", "scales")

    def __init__(self, position, energy, scales):
        self.position = position
        self.energy = energy
        self.scales = scales

    def __repr__(self):
        return f"Walker({self.position!r}, energy={self.energy:.4g})"


class GibbsMetropolis:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, pilot_sweeps=8, start_scale=1.0):
        if pilot_sweeps < 0:
            raise ValueError("pilot_sweeps must not be negative")
        if start_scale <= 0:
            raise ValueError("start_scale must be positive")
        self.pilot_sweeps = pilot_sweeps
        self.start_scale = start_scale

    def init(self, rng, position, estimator):
        if not isinstance(position, np.ndarray):
            raise TypeError("GibbsMetropolis takes one array")
        log_scales = np.full(position.size, np.log(self.start_scale))
        pilot = np.zeros_like(position)
        pilot_energy = self._energy(rng, pilot, estimator)
        for sweep in range(self.pilot_sweeps):
            gain = 2.0 / (sweep + 2.0) ** 0.6
            for site in range(position.size):
                pilot, pilot_energy, accepted = self._visit(
                    rng, pilot, pilot_energy, site, np.exp(log_scales[site]), estimator
                )
                log_scales[site] += gain * (accepted - ACCEPTANCE)
        return Walker(position.copy(), self._energy(rng, position, estimator), np.exp(log_scales))

    def step(self, rng, walker, step_size, estimator):
        x, energy = walker.position, walker.energy
        width = np.sqrt(step_size)
        for site in rng.permutation(x.size):
            x, energy, _ = self._visit(rng, x, energy, site, width * walker.scales[site], estimator)
        return Walker(x, energy, walker.scales)

    def _visit(self, rng, x, energy, site, scale, estimator):
        """One Metropolis test of one coordinate; returns the new position, its energy, and whether it moved."""
        proposal = x.copy()
        proposal.flat[site] += rng.laplace(0.0, scale)
        new_energy = self._energy(rng, proposal, estimator)
        if rng.standard_exponential() > new_energy - energy:
            return proposal, new_energy, True
        return x, energy, False

    @staticmethod
    def _energy(rng, x, estimator):
        return float(estimator.estimate(rng, (), x)[0].potential)
