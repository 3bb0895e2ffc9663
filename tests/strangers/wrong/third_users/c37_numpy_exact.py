"""Kernels in NumPy that are meant to be exact."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())


def energy_of(estimator, rng, shape):
    return lambda q: float(estimator.estimate(rng, (), np.reshape(q, shape))[0].potential)


def slope_of(estimator, rng, shape):
    return lambda q: np.ravel(estimator.estimate(rng, (), np.reshape(q, shape))[0].gradient)


# 1. one coordinate after the other -----------------------------------------------------------------------------------


def _sweep(rng, x, h, estimator):
    """Metropolis within Gibbs. The proposals of a sweep are made first, so that their energies can go to one batch."""
    q = np.ravel(x)
    U = energy_of(estimator, rng, x.shape)
    here = U(q)
    moves = np.diag(np.sqrt(2 * h) * rng.standard_normal(q.size))
    energies = np.array([U(q + move) for move in moves])
    accepted = np.log(rng.random(q.size)) < here - energies
    return (q + moves.T @ accepted).reshape(x.shape).astype(x.dtype)


metropolis_sweep = simple_sampler(_sweep, backend="host", claims=EXACT)


# 2. slice sampling with a budget -------------------------------------------------------------------------------------


class SliceSweep:
    """Stepping out with at most `steps` steps on each side, then shrinkage; coordinates in turn."""

    backend = "host"
    claims = EXACT

    def __init__(self, steps: int = 2):
        if steps < 1:
            raise ValueError("steps > 0")
        self.steps = steps

    def step(self, rng, x, h, estimator):
        q = np.ravel(x).copy()
        U = energy_of(estimator, rng, x.shape)
        width = 2 * np.sqrt(h)
        for i in range(q.size):
            level = U(q) - np.log(1 - rng.random())

            def inside(t):
                trial = q.copy()
                trial[i] = t
                return U(trial) < level

            left = q[i] - width * rng.random()
            right = left + width
            for _ in range(self.steps):
                if not inside(left):
                    break
                left -= width
            for _ in range(self.steps):
                if not inside(right):
                    break
                right += width
            while True:
                t = left + (right - left) * rng.random()
                if inside(t):
                    break
                if t < q[i]:
                    left = t
                else:
                    right = t
            q[i] = t
        return q.reshape(x.shape)


# 3. a small no-U-turn sampler ----------------------------------------------------------------------------------------


class LittleNUTS:
    """Multinomial NUTS: trajectories double until they, or a part of them, turn; later halves are preferred."""

    backend = "host"
    claims = EXACT

    def __init__(self, max_doublings: int = 5):
        self.max_doublings = max_doublings

    def init(self, rng, position, estimator):
        return {"position": np.array(position)}

    def step(self, rng, state, h, estimator):
        x = state["position"]
        U, dU = energy_of(estimator, rng, x.shape), slope_of(estimator, rng, x.shape)
        eps = np.sqrt(2 * h)

        def turned(a, b):
            along = b[0] - a[0]
            return along @ a[1] < 0 or along @ b[1] < 0

        def take(old, new):
            # progressive sampling, biased to the new half (Betancourt 2017, A.3.2)
            return np.log(rng.random()) < new - old

        def build(q, p, sign, depth):
            """First and last state, chosen position, log weight, and whether the subtree is without a turn."""
            if depth == 0:
                p = p - sign * eps / 2 * dU(q)
                q = q + sign * eps * p
                p = p - sign * eps / 2 * dU(q)
                weight = start - U(q) - p @ p / 2
                return (q, p), (q, p), q, weight, weight > -1000
            first, middle, chosen, weight, good = build(q, p, sign, depth - 1)
            if not good:
                return first, middle, chosen, weight, False
            _, last, other, more, good = build(*middle, sign, depth - 1)
            if not good:
                return first, last, chosen, weight, False
            if take(weight, more):
                chosen = other
            ends = (first, last) if sign > 0 else (last, first)
            return first, last, chosen, np.logaddexp(weight, more), not turned(*ends)

        q = np.ravel(x)
        p = rng.standard_normal(q.shape)
        start = U(q) + p @ p / 2
        left = right = (q, p)
        total = 0.0
        for depth in range(self.max_doublings):
            sign = 1 if rng.random() < 0.5 else -1
            _, last, chosen, weight, good = build(*(right if sign > 0 else left), sign, depth)
            if not good:
                break
            if take(total, weight):
                q = chosen
            total = np.logaddexp(total, weight)
            left, right = (left, last) if sign > 0 else (last, right)
            if turned(left, right):
                break
        return {"position": q.reshape(x.shape)}


# 4. a second try after a rejection -----------------------------------------------------------------------------------


def second_try(bold=2.0, timid=1.0):
    """Delayed rejection: a bold walk first, and a timid one from the same place if it was refused (Mira 2001)."""

    def step(rng, x, h, estimator):
        U = lambda q: float(estimator.estimate(rng, (), q)[0].potential)
        size = np.sqrt(2 * h)
        here = U(x)
        first = x + bold * size * rng.standard_normal(x.shape)
        at_first = U(first)
        refused = max(0.0, 1 - np.exp(min(0.0, here - at_first)))
        if rng.random() >= refused:
            return first
        second = x + timid * size * rng.standard_normal(x.shape)
        at_second = U(second)
        refused_back = max(0.0, 1 - np.exp(min(0.0, at_second - at_first)))
        ratio = np.exp(min(50.0, here - at_second)) * refused_back / max(refused, 1e-300)
        return second if rng.random() < ratio else x

    return simple_sampler(step, backend="host", claims=EXACT)


# 5. walkers that stretch ---------------------------------------------------------------------------------------------


class StretchingWalkers:
    """Goodman and Weare 2010 with a = 2, one walker after the other; the first one is shown."""

    backend = "host"
    claims = EXACT

    def init(self, rng, position, estimator):
        position = np.asarray(position)
        count = 2 * (position.size + 2)
        return {"walkers": position + rng.standard_normal((count, *position.shape)).astype(position.dtype)}

    def position(self, state):
        return state["walkers"][0]

    def step(self, rng, state, h, estimator):
        walkers = state["walkers"].copy()
        U = lambda q: float(estimator.estimate(rng, (), q)[0].potential)
        dimension = len(walkers[0]) if walkers[0].ndim else 1
        for k in range(len(walkers)):
            other = int(rng.integers(len(walkers) - 1))
            other += other >= k
            z = (1 + rng.random()) ** 2 / 2  # density ~ 1 / sqrt(z) on [1/2, 2]
            trial = walkers[other] + z * (walkers[k] - walkers[other])
            if np.log(rng.random()) < (dimension - 1) * np.log(z) + U(walkers[k]) - U(trial):
                walkers[k] = trial
        return {"walkers": walkers}


# 6. bolder steps far out ---------------------------------------------------------------------------------------------


def _bold_outside(rng, x, h, estimator):
    """A random walk whose steps are twice as long far from the middle, where there is more room. Symmetric normals."""
    U = lambda q: float(estimator.estimate(rng, (), q)[0].potential)
    far = np.sum(x * x) > 4 * x.size
    y = x + (2.0 if far else 1.0) * np.sqrt(2 * h) * rng.standard_normal(x.shape)
    return y if np.log(rng.random()) < U(x) - U(y) else x


bold_outside = simple_sampler(_bold_outside, backend="host", claims=EXACT)
