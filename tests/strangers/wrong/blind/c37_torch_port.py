"""Samplers in PyTorch, called with a numpy Generator (backend = "host")."""

import math

import jax
import numpy as np
import torch

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source


def to_torch(tree):
    leaves, treedef = jax.tree.flatten(tree)
    return [torch.from_numpy(np.array(leaf)) for leaf in leaves], treedef


def to_numpy(tensors, treedef):
    return jax.tree.unflatten(treedef, [t.detach().numpy().copy() for t in tensors])


# --------------------------------------------------------------------------------------------------------------------
class SGLD(torch.optim.Optimizer):
    """SGLD as an optimiser: p <- p - lr grad + sqrt(2 lr) N(0, 1), reproducible from one seed a step."""

    def __init__(self, params, lr, seed):
        super().__init__(params, {"lr": lr, "seed": seed})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                source = torch.Generator().manual_seed(group["seed"])
                noise = torch.randn(p.shape, generator=source, dtype=p.dtype)
                p.add_(p.grad, alpha=-group["lr"]).add_(noise, alpha=math.sqrt(2 * group["lr"]))


def _seeded_step(rng, position, step_size, estimator):
    params, treedef = to_torch(position)
    grads, _ = to_torch(estimator.estimate(rng, (), position)[0].gradient)
    for p, g in zip(params, grads, strict=True):
        p.grad = g
    SGLD(params, lr=float(step_size), seed=int(rng.integers(2**31 - 1))).step()
    return to_numpy(params, treedef)


seeded_sgld = simple_sampler(_seeded_step, backend="host")
"""SGLD by the optimiser above, the state being the parameters.

WRONG: the generator is seeded anew, with the same seed, for every parameter tensor: all leaves of a tree get the same
noise. Right: one generator before the loop over parameters. A position of one array is sampled correctly; for two equal
leaves under N(0, I) the correlation of a[i] with b[i] is 1 for 0, each marginal being right.
"""


# --------------------------------------------------------------------------------------------------------------------
class ClippedLangevin(torch.nn.Module):
    """The parameters as a module; `forward` is one step of SGLD, with the usual clipping of the gradient by value."""

    def __init__(self, tensors, clip=2.5):
        super().__init__()
        self.values = torch.nn.ParameterList([torch.nn.Parameter(t) for t in tensors])
        self.clip = clip

    @torch.no_grad()
    def forward(self, gradients, lr, normal):
        for p, g in zip(self.values, gradients, strict=True):
            p.grad = g
        torch.nn.utils.clip_grad_value_(self.parameters(), self.clip)
        for p in self.values:
            p.sub_(lr * p.grad).add_(math.sqrt(2 * lr) * normal(p))
        return [p.data for p in self.values]


class Clipped:
    """SGLD with `clip_grad_value_(parameters, 2.5)` "for stability", the noise as without it.

    WRONG: where |dU/dx_i| > 2.5 the drift is that of a Huber potential; this does not vanish as h -> 0. Per coordinate:
    N(0, 1) variance +1.9%; precision 25 (limit at 0.5 sd) 8 times the variance; double wells and sums over data in between.
    Right: no clipping, or taming that goes with h, g / (1 + h |g|).
    """

    backend = "host"

    def step(self, rng, position, step_size, estimator):
        params, treedef = to_torch(position)
        grads, _ = to_torch(estimator.estimate(rng, (), position)[0].gradient)
        normal = lambda p: torch.from_numpy(np.asarray(rng.standard_normal(tuple(p.shape)))).to(p.dtype)
        return to_numpy(ClippedLangevin(params)(grads, float(step_size), normal), treedef)


clipped = Clipped()


# --------------------------------------------------------------------------------------------------------------------
def multiple_try(tries=2):
    """Multiple-try Metropolis: `tries` candidates N(x, 2h), one of them chosen with weight pi, then a test of the sums.

    WRONG: the reference set of the test is x with the candidates not chosen; these were drawn around x. Right: draw
    `tries` - 1 new points around the chosen y, and put x beside them. Claimed exact; N(0, 1) by quadrature with 2 tries:
    variance 0.74 at h = 0.1, 0.85 at h = 0.5, 0.91 at h = 1 (2/3 as h -> 0: the drift is 3/2 of
    what it should be); the right test gives 1.000.
    """

    def step(rng, position, step_size, estimator):
        params, treedef = to_torch(position)
        sizes = [p.numel() for p in params]
        x = torch.cat([p.reshape(-1) for p in params])

        def whole(vector):
            parts = torch.split(vector, sizes)
            return to_numpy([v.reshape(p.shape) for v, p in zip(parts, params, strict=True)], treedef)

        def log_density(vector):
            return -float(estimator.estimate(rng, (), whole(vector))[0].potential)

        scale = math.sqrt(2 * float(step_size))
        noise = torch.from_numpy(np.asarray(rng.standard_normal((tries, x.numel())))).to(x.dtype)
        candidates = x + scale * noise
        weights = torch.tensor([log_density(y) for y in candidates], dtype=torch.float64)
        cumulative = torch.cumsum(torch.softmax(weights, 0), 0)
        chosen = min(int(torch.searchsorted(cumulative, torch.tensor(rng.random(), dtype=torch.float64))), tries - 1)
        reference = weights.clone()
        reference[chosen] = log_density(x)
        log_ratio = float(torch.logsumexp(weights, 0) - torch.logsumexp(reference, 0))
        return whole(candidates[chosen] if math.log(rng.random() + 1e-300) < log_ratio else x)

    return simple_sampler(
        step, backend="host", needs=("potential",), claims=Claims(Source("", "liu2000multiple, from memory"), ExactLaw())
    )


multiple_try_metropolis = multiple_try()
