"""Plain NumPy versions of textbook MCMC, from my blog series "no frameworks". All are exact (full potential)."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

exact = Claims(Source("", "own"), ExactLaw())


def U(estimator, rng, x):
    return float(estimator.estimate(rng, (), x)[0].potential)


# Part 1: slice sampling along a random line, stepping out at most M widths (Neal 2003, figures 3 and 5)
M = 6


def slice_step(rng, x, step_size, estimator):
    line = rng.standard_normal(x.shape)
    line = line / np.sqrt(np.sum(line**2))
    level = U(estimator, rng, x) + rng.exponential()  # -log of the height
    w = np.sqrt(2 * step_size)

    def inside(t):
        return U(estimator, rng, x + t * line) <= level

    left = -w * rng.uniform()
    right = left + w
    J = int(np.floor(M * rng.uniform()))
    K = M - 1 - J
    while J > 0 and inside(left):
        left -= w
        J -= 1
    while K > 0 and inside(right):
        right += w
        K -= 1
    while True:
        t = left + (right - left) * rng.uniform()
        if inside(t):
            return (x + t * line).astype(x.dtype)
        if t < 0:
            left = t
        else:
            right = t


slice_on_a_line = simple_sampler(slice_step, claims=exact, backend="host")


# Part 2: elliptical slice. Any target is N(0, s^2) times exp(-Phi) with Phi = U - |x|^2 / (2 s^2).
class EllipticalSlice:
    backend = "host"
    claims = exact

    def __init__(self, prior_sd=1.5):
        self.prior_sd = prior_sd

    def init(self, rng, position, estimator):
        return {"f": np.array(position), "tries": 0}

    def position(self, state):
        return state["f"]

    def Phi(self, rng, f, estimator):
        return U(estimator, rng, f) - np.sum(f**2) / (2 * self.prior_sd**2)

    def step(self, rng, state, step_size, estimator):
        f = state["f"]
        nu = self.prior_sd * rng.standard_normal(f.shape)
        level = self.Phi(rng, f, estimator) + rng.exponential()
        arc = min(2 * np.pi, 4 * np.sqrt(step_size))  # not the whole ellipse: an arc placed at random
        lo = -arc * rng.uniform()
        hi = lo + arc
        tries = 0
        while True:
            tries += 1
            theta = lo + (hi - lo) * rng.uniform()
            proposal = f * np.cos(theta) + nu * np.sin(theta)
            if self.Phi(rng, proposal, estimator) <= level:
                return {"f": proposal.astype(f.dtype), "tries": state["tries"] + tries}
            if theta < 0:
                lo = theta
            else:
                hi = theta


# Part 3: one coordinate after the other, Laplace proposals ("Metropolis within Gibbs")
def sweep(rng, x, step_size, estimator):
    shape = x.shape
    current = np.array(x).reshape(-1)
    energy = U(estimator, rng, current.reshape(shape))
    for i in range(current.size):
        trial = current.copy()
        trial[i] += rng.laplace(0.0, np.sqrt(step_size))
        trial_energy = U(estimator, rng, trial.reshape(shape))
        if np.log(1.0 - rng.uniform()) < energy - trial_energy:
            current, energy = trial, trial_energy
    return current.reshape(shape)


metropolis_within_gibbs = simple_sampler(sweep, claims=exact, backend="host")


# Part 4: MALA with a dense preconditioner, the covariance of an AR(1) process
class PreconditionedMALA:
    backend = "host"
    claims = exact

    def __init__(self, correlation_length=1.0):
        self.correlation_length = correlation_length

    def init(self, rng, position, estimator):
        x = np.array(position)
        e = estimator.estimate(rng, (), x)[0]
        return {"x": x, "U": np.asarray(e.potential), "g": np.asarray(e.gradient)}

    def position(self, state):
        return state["x"]

    def step(self, rng, state, step_size, estimator):
        x, g, h = state["x"], state["g"], step_size
        lag = np.abs(np.subtract.outer(np.arange(x.size), np.arange(x.size)))
        C = np.exp(-lag / self.correlation_length)
        chol = np.linalg.cholesky(C)

        def mean(at, grad):
            return at - h * (C @ grad.reshape(-1)).reshape(at.shape)

        def log_q(to, start, grad):  # without the constant
            r = np.linalg.solve(chol, (to - mean(start, grad)).reshape(-1))
            return -(r @ r) / (4 * h)

        y = mean(x, g) + np.sqrt(2 * h) * (chol @ rng.standard_normal(x.size)).reshape(x.shape)
        y = y.astype(x.dtype)
        e = estimator.estimate(rng, (), y)[0]
        U_y, g_y = np.asarray(e.potential), np.asarray(e.gradient)
        log_alpha = state["U"] - U_y + log_q(x, y, g_y) - log_q(y, x, g)
        if np.log(1.0 - rng.uniform()) < log_alpha:
            return {"x": y, "U": U_y, "g": g_y}
        return state
