"""Samplers of torch, followed below autograd: libraries, optimisers of strangers, reasons, and planted errors."""

import ctypes
import dataclasses
import math
import struct
from typing import Any

import numpy as np
import pytest

from sgmcmc_verification.checks.core.lookup import find_row
from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.simple import default_claims

torch = pytest.importorskip("torch", reason="needs torch: pip install 'sgmcmc-verification[torch]'")

from sgmcmc_verification.checks.proof.hosts import scales  # noqa: E402
from sgmcmc_verification.samplers.adapters.optimisers.adapt import of_torch  # noqa: E402
from sgmcmc_verification.samplers.adapters.torch import recorder  # noqa: E402

LIBRARIES = ("posteriors/sgld", "posteriors/sghmc", "posteriors/sgnht", "posteriors/baoa", "geoopt/rsgld")
MORE = ("devinterp/sgmcmc-sgld", "devinterp/sgld-localised", "devinterp/sgnht")
SEEN = "is not the one that runs"


class Base(torch.optim.Optimizer):
    """A loop over parameters."""

    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                self.move(p, group["lr"])


class Plain(Base):
    def move(self, p, lr):
        p.add_(p.grad, alpha=-lr).add_(torch.randn_like(p), alpha=math.sqrt(2 * lr))


class Preconditioned(Base):
    """A constant for each coordinate, by views of one tensor of noise and foreach operations."""

    def move(self, p, lr):
        scale = torch.arange(1, p.numel() + 1, dtype=p.dtype).reshape(p.shape)
        noise = torch.empty_like(p).normal_(0.0, 1.0)
        noise.view(-1)[:1].mul_(-1.0)
        torch._foreach_addcmul_([p], [scale], [p.grad], value=-lr)
        p.addcmul_(scale.sqrt(), noise, value=(2 * lr) ** 0.5)


class Branches(Base):
    """The sign of the noise by a branch of Python: the law of the step is the same on both sides."""

    def move(self, p, lr):
        sign = 1.0 if p.grad.sum().item() > 0 else -1.0
        p.add_(p.grad, alpha=-lr).add_(torch.randn_like(p), alpha=sign * (2 * lr) ** 0.5)


RIGHT = (Plain, Preconditioned, Branches)


class HalfNoise(Base):
    def move(self, p, lr):
        p.add_(p.grad, alpha=-lr).add_(torch.randn_like(p), alpha=lr**0.5)


class OneDraw(Base):
    def move(self, p, lr):
        p.add_(p.grad, alpha=-lr).add_(torch.randn(1), alpha=(2 * lr) ** 0.5)


class OwnBuffer(Base):
    """A running mean of gradients in an attribute of the optimiser, out of sight."""

    def move(self, p, lr):
        kept = self.__dict__.get("mean", torch.zeros_like(p))
        self.mean = 0.9 * kept + 0.1 * p.grad
        p.add_(self.mean, alpha=-lr).add_(torch.randn_like(p), alpha=(2 * lr) ** 0.5)


class Clipped(Base):
    def move(self, p, lr):
        p.add_(p.grad.clamp(-1, 1), alpha=-lr).add_(torch.randn_like(p), alpha=(2 * lr) ** 0.5)


class BySign(Base):
    """Colder on one side, by a branch of Python."""

    def move(self, p, lr):
        T = 1.0 if p[0] > 0 else 0.5
        p.add_(p.grad, alpha=-lr).add_(torch.randn_like(p), alpha=(2 * lr * T) ** 0.5)


WRONG = {HalfNoise: "fail", OneDraw: "fail", OwnBuffer: "undecided", Clipped: "undecided", BySign: "undecided"}


def adapted(kind):
    """The step with a given learning rate lr = h and the loss U, whatever a convention would make of it."""
    found = of_torch(kind.__name__, Plain, {})
    kind([torch.nn.Parameter(torch.zeros(1))])  # the first one of a class lets torch change its `step`

    def build(target):
        sampler: Any = found.build(target)
        optimiser = dataclasses.replace(sampler.optimiser, kind=kind)
        return dataclasses.replace(sampler, optimiser=optimiser, claims=default_claims())

    return build


def proof_of(kind, dimension=2):
    return prove(adapted(kind), dimension, HostExact)


@pytest.mark.parametrize("name", [*LIBRARIES, *MORE])
def test_a_library_is_verified(name):
    pytest.importorskip(name.partition("/")[0], reason="needs the library: pip install 'sgmcmc-verification[peers]'")
    row = find_row(name)
    proof = prove(row.build, 1, row.estimator)
    assert proof.verdict == "pass", str(proof)


def test_the_momentum_before_the_last_half_kick_leaves_the_positions_of_order_two():
    """Cov(q, p) = h T / 2 for a Gaussian target, which is h a T for the density 1 + h a p . grad H: a = 1/2."""
    pytest.importorskip("posteriors", reason="needs posteriors: pip install 'sgmcmc-verification[posteriors]'")
    row = find_row("posteriors/baoa")
    (order,) = [r for r in prove(row.build, 1, row.estimator).results if r.statement == "invariant order 2"]
    assert order.outcome == "proved"
    assert "rho = 1/2 p" in order.equation


@pytest.mark.parametrize("kind", RIGHT)
def test_a_right_optimiser_passes(kind):
    proof = proof_of(kind)
    assert proof.verdict == "pass", str(proof)


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_optimiser_does_not_pass(kind):
    proof = proof_of(kind)
    assert proof.verdict == WRONG[kind], str(proof)


def test_that_the_state_is_z_is_verified_by_steps_and_not_proved():
    (state,) = [r for r in proof_of(Plain, 1).results if r.statement == "closed state"]
    assert state.outcome == "verified"


def reason_of(line):
    class Reading(Base):
        def move(self, p, lr):
            line(p)
            p.add_(p.grad, alpha=-lr).add_(torch.randn_like(p), alpha=(2 * lr) ** 0.5)

    return proof_of(Reading).reason


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (lambda p: int(p[0]), "Python"),
        (lambda p: torch.cumsum(p, 0), "torch.cumsum"),
        (lambda p: p.view(torch.int64) + 1, "as torch.int64"),
        (lambda p: p.add_(torch.randn_like(p).to(torch.float32)), "in the record"),
    ],
)
def test_what_cannot_be_followed_is_a_reason(line, word):
    assert word in reason_of(line)


def test_the_place_of_an_operation_that_is_not_known_is_told():
    assert "test_torch.py:" in reason_of(lambda p: torch.cumsum(p, 0))


def test_numbers_that_leave_torch_unseen_are_seen_by_real_steps():
    """The memory of a tensor, read as bytes, is no operation of torch."""
    first = lambda p: struct.unpack("d", ctypes.string_at(p.data_ptr(), 8))[0]
    assert SEEN in reason_of(lambda p: p.add_(first(p.detach()) * 1e-3))


def test_numbers_that_leave_torch_for_numpy_are_symbols_there():
    assert reason_of(lambda p: p.add_(torch.tensor(p.detach().numpy() * 0.0))) == ""


def test_a_lost_factor_is_seen(monkeypatch):
    monkeypatch.setitem(recorder.RULES, "add", lambda algebra, a, b, alpha=1: algebra.apply("add", a, b))
    assert SEEN in proof_of(Plain).reason


def test_a_view_that_is_read_as_a_copy_is_seen(monkeypatch):
    right = recorder.Recorder.objects

    def copied(self, tensor):
        found = right(self, tensor)
        return found.copy() if tensor._is_view() else found

    monkeypatch.setattr(recorder.Recorder, "objects", copied)
    assert SEEN in proof_of(Preconditioned).reason


def test_a_step_size_that_is_forgotten_is_seen(monkeypatch):
    monkeypatch.setattr(scales.Scales, "symbol_of", lambda self, value: None)
    assert SEEN in proof_of(Plain).reason


def test_a_scale_keeps_value_and_symbol_through_arithmetic():
    known = scales.Scales()
    h = known.step_size(scales.Symbol(np.float64(2.0), positive=True))
    twice = 1 - (2 * h) ** 0.5 / 4
    assert twice == 1 - (2 * scales.AT) ** 0.5 / 4 or isinstance(twice, scales.Scale)
    assert float(twice) == 1 - (2 * scales.AT) ** 0.5 / 4
    assert float(twice.symbol) == 1 - 2.0 / 4
    assert known.symbol_of(float(twice)) is twice.symbol
    assert known.symbol_of(1.0) is None
