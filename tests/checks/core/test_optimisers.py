"""Optimisers by import path: a mistake is one line that names it; options belong to what is examined."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.lookup import find_row, resolve
from sgmcmc_verification.checks.runner.check_sampler import plan_for
from sgmcmc_verification.checks.runner.execute import run_check

pytestmark = pytest.mark.xdist_group(__name__)  # a fixture of the module is made once

FILES = Path(__file__).resolve().parents[2] / "strangers" / "optimisers"
for module in ("torch", "optax"):
    if find_spec(module) is None:
        pytest.skip(f"needs {module}: pip install 'sgmcmc-verification[{module}]'", allow_module_level=True)

STRANGE = """
import torch
class Names(torch.optim.SGD):
    def __init__(self, params, rate=1.0):
        super().__init__(params, rate)
class Needs(torch.optim.SGD):
    def __init__(self, params, lr=1e-3, *, cycle):
        super().__init__(params, lr)
class Raises(torch.optim.SGD):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, lr)
    def step(self):
        raise RuntimeError("sparse gradients are not supported")
class Cauchy(torch.optim.SGD):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, lr)
    def step(self):
        for p in self.param_groups[0]["params"]:
            p.grad.add_(torch.empty_like(p).cauchy_())
        super().step()
def number(learning_rate):
    return 3.0 * learning_rate
class NoOptimiser:
    pass
"""


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    file = tmp_path_factory.mktemp("strange") / "strange.py"
    file.write_text(STRANGE)
    return str(file)


MISTAKES = (
    ("torch:torch.optim.SGDLD", {}, "has no attribute 'SGDLD'"),
    ("torch:no_such_package.optim.SGLD", {}, "no module named 'no_such_package'"),
    ("torch:torch", {}, "say which class or function"),
    ("torch:torch.optim.lr_scheduler.StepLR", {}, "the class StepLR is no subclass of torch.optim.Optimizer"),
    ("torch:FILE:NoOptimiser", {}, "the class NoOptimiser is no subclass"),
    ("torch:torch.optim.SGD", {"momentun": 0.9}, "has no option 'momentun'; did you mean 'momentum'?"),
    ("torch:torch.optim.SGD", {"lr": "fast"}, "lr='fast': a learning rate is a positive number"),
    ("torch:torch.optim.SGD", {"temperature": -1.0}, "temperature=-1.0: must be a positive number"),
    ("torch:torch.optim.SGD", {"momentum": "a"}, "cannot take a step (TypeError"),
    ("torch:FILE:Names", {}, "none of its arguments (rate) is a learning rate"),
    ("torch:FILE:Needs", {}, "needs a value: --option cycle=VALUE"),
    ("torch:FILE:Raises", {}, "sparse gradients are not supported at"),
    ("torch:FILE:Cauchy", {}, "cannot take a step (Unintercepted: torch aten.cauchy_"),
    ("optax:optax.sgdd", {}, "has no attribute 'sgdd'"),
    ("optax:optax.clip", {}, "none of its arguments (max_delta) is"),
    ("optax:FILE:number", {}, "it returns a "),
    ("optax:optax.noisy_sgd", {"etta": 1.0}, "has no option 'etta'; did you mean 'eta'?"),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: f"{m[0]}{sorted(m[1])}")
def test_a_mistake_is_one_line(mistake, strange):
    reference, options, words = mistake
    reference = reference.replace("FILE", strange)
    with pytest.raises(BadInput) as error:
        find_row(reference, options=options)
    text = str(error.value)
    assert text.startswith(f"--sampler {reference}: ")
    assert words in text
    assert "\n" not in text


@pytest.mark.parametrize("family", ["torch", "optax"])
def test_a_library_that_is_missing_is_named(family, monkeypatch):
    monkeypatch.setitem(sys.modules, family, None)
    with pytest.raises(BadInput, match=rf"needs {family}: pip install 'sgmcmc-verification\[{family}\]'"):
        find_row(f"{family}:anything.at_all")


def test_options_belong_to_the_row_and_a_run_with_them_is_whole():
    reference = f"optax:{FILES / 'optax_right.py'}:after"
    options = {"learning_rate": 1e-4, "num_data": 200}
    (subject,) = resolve(reference, options)
    assert subject.options == {}
    assert subject.row.fixed == options
    plan = plan_for(reference, options=options)
    (record,) = plan.records.values()
    assert not record.part
    assert "lr/N" in record.reading
    assert "N = 200" in record.reading


def verdict(name, statement, target="gaussian-1d-scaled", **options):
    family = name.partition("_")[0]
    file, _, object_name = name.partition(":")
    return run_check(f"{family}:{FILES / file}.py:{object_name}", statement, target, options=options).verdict


LAWS = (
    ("torch_right:MeanLoss", {"weight_decay": 0.1}, "pass"),
    ("torch_right:MeanLoss", {"weight_decay": 0.1, "prior_precision": 0.1}, "fail"),
    ("torch_right:NoisyGradient", {}, "pass"),
    ("torch_right:HeavyBall", {}, "pass"),
    ("torch_right:LogDensity", {}, "pass"),
    ("torch_wrong:NoRoot", {}, "fail"),
    ("torch_wrong:NoTwo", {}, "fail"),
    ("torch_wrong:Reused", {}, "fail"),
    ("torch_wrong:Reseeded", {}, "fail"),
    ("torch_wrong:Shrinks", {"weight_decay": 0.1}, "fail"),
    ("optax_right:before", {}, "pass"),
    ("optax_right:by_hand", {}, "pass"),
    ("optax_right:heavy_ball", {}, "pass"),
    ("optax_right:with_prior", {"weight_decay": 0.1}, "pass"),
    ("optax_wrong:fixed_noise", {}, "fail"),
    ("optax_wrong:no_two", {}, "fail"),
)


@pytest.mark.parametrize("case", LAWS, ids=lambda case: f"{case[0]}{sorted(case[1])}")
def test_the_law_is_judged_at_the_temperature_of_the_claim(case):
    name, options, expected = case
    assert verdict(name, "gaussian_limit", **options) == expected


@pytest.mark.parametrize("name", ["one_key", "kept_key"])
def test_numbers_that_come_again_fail(name):
    assert verdict(f"optax_wrong:{name}", "fresh_draws") == "fail"
