"""Langevin dynamics with a Kronecker preconditioner that is fixed when the optimiser is made.

Weights of neighbouring taps of a filter move together: with R[i, j] = rho^|i - j| over rows and C alike over columns,

    W <- W - lr R (N grad + prior_precision W) C + sqrt(2 lr) L_R Xi L_C^T,   R = L_R L_R^T, C = L_C L_C^T

A constant preconditioner in drift and noise leaves exp(-U) as it is. The loss is the mean over `num_data` points. Noise comes
from a generator of the optimiser, which the constructor seeds.
"""

import torch


def _correlation(n, rho, like):
    at = torch.arange(n, dtype=like.dtype, device=like.device)
    return rho ** (at[:, None] - at[None, :]).abs()


class SmoothLangevin(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, num_data=500, prior_precision=1.0, rho_rows=0.3, rho_columns=0.4, seed=0):
        if lr < 0:
            raise ValueError("lr must not be negative")
        if num_data <= 0:
            raise ValueError("num_data must be positive")
        if prior_precision < 0:
            raise ValueError("prior_precision must not be negative")
        for rho in (rho_rows, rho_columns):
            if not 0 < rho < 1:
                raise ValueError("a correlation is between 0 and 1")
        defaults = {
            "lr": lr,
            "num_data": num_data,
            "prior_precision": prior_precision,
            "rho_rows": rho_rows,
            "rho_columns": rho_columns,
        }
        super().__init__(params, defaults)
        self.generator = torch.Generator()
        self.generator.manual_seed(seed)

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        for p in self.param_groups[-1]["params"]:
            self._freeze(p, self.param_groups[-1])

    @torch.no_grad()
    def _freeze(self, p, group):
        rows, columns = self._as_matrix(p).shape
        self.state[p]["rows"] = torch.linalg.cholesky(_correlation(rows, group["rho_rows"], p))
        self.state[p]["columns"] = torch.linalg.cholesky(_correlation(columns, group["rho_columns"], p))

    @staticmethod
    def _as_matrix(tensor):
        """A matrix as it is, a vector as one column, what has more axes with all but the first in one."""
        return tensor.reshape(tensor.shape[0], -1) if tensor.ndim else tensor.reshape(1, 1)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr = group["lr"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                left, right = self.state[p]["rows"], self.state[p]["columns"]
                slope = self._as_matrix(group["num_data"] * p.grad + group["prior_precision"] * p)
                noise = torch.empty(slope.shape, dtype=p.dtype).normal_(generator=self.generator).to(p.device)
                inner = (2 * lr) ** 0.5 * noise - lr * (left.mT @ slope @ right)
                p.add_((left @ inner @ right.mT).reshape(p.shape))
        return loss
