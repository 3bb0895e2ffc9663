"""MuonLangevin: Langevin dynamics with orthogonalised updates for weight matrices.

Vectors (biases, norms) follow plain SGLD. For matrices the gradient is replaced by its orthogonal polar factor by Newton
and Schulz, scaled to the Frobenius norm of the gradient, as in Muon; the noise is isotropic. The loss is a mean over
`num_data`; weight_decay is the precision of the prior divided by num_data.
"""
import torch
from torch.optim import Optimizer


def polar(matrix, steps=12):
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-30)
    for _ in range(steps):
        x = 1.5 * x - 0.5 * x @ x.T @ x
    return x.T if tall else x


class MuonLangevin(Optimizer):
    def __init__(self, params, lr=1e-3, num_data=1000, weight_decay=0.0):
        if lr < 0:
            raise ValueError("lr")
        super().__init__(params, dict(lr=lr, num_data=num_data, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr = group["lr"]
            for w in group["params"]:
                if w.grad is None:
                    continue
                update = w.grad
                if group["weight_decay"]:
                    update = update.add(w, alpha=group["weight_decay"])
                if update.ndim == 2 and min(update.shape) > 1:
                    factor = polar(update)
                    update = factor * (update.norm() / factor.norm().clamp_min(1e-30))
                w.add_(update, alpha=-lr)
                w.add_(torch.randn_like(w), alpha=(2 * lr / group["num_data"]) ** 0.5)
        return loss


# wrong: for matrices the drift is no gradient of the potential: a matrix with more than one row and column does not
# wrong: have the law of the target; vectors, rows and columns do.
# wrong: On independent N(0, s), s = [[1, 4], [.25, 1]]: variances 1.23, 0.50, 1.44 and 1.15 times s.
