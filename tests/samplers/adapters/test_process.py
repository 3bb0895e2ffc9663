"""Samplers in other languages behind a protocol of lines: what crosses, what is decided, what can go wrong there."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from sgmcmc_verification.checks import BadInput, check_sampler, run_check
from sgmcmc_verification.checks.core.lookup import resolve
from sgmcmc_verification.samplers.adapters import process
from sgmcmc_verification.samplers.adapters.isolated.errors import BridgeError
from sgmcmc_verification.samplers.adapters.process import builder, running, to_line
from sgmcmc_verification.samplers.estimators.basic import KnownNoise
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.overdamped.host_sgld import HostSGLD
from sgmcmc_verification.targets.registry import target

HARNESS = Path(__file__).parents[3] / "docs" / "pages" / "harness"
PLANE, TREE = target("gaussian-correlated-2d"), target("gaussian-pytree")
OWN = """
import json, sys
import numpy as np

def ask(**what):
    print(json.dumps(what), flush=True)
    return np.array(json.loads(sys.stdin.readline())["values"])

for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "describe":
        answer = {"protocol": 1, "draws": "own"}
    elif request["op"] == "init":
        answer = {"z": request["x"]}
    elif request["op"] == "step":
        x, h = np.array(request["z"]), request["h"]
        noise = np.random.default_rng(request["seed"]).standard_normal(len(x))
        answer = {"z": (x - h * ask(ask="gradient", x=x.tolist()) + np.sqrt(2 * h) * noise).tolist()}
    else:
        break
    print(json.dumps(answer), flush=True)
"""


def python(path):
    """Value of `--sampler` for a script."""
    return f"{process.PREFIX}{sys.executable} {path}"


SGLD = python(HARNESS / "sampler.py")


@pytest.fixture
def script(tmp_path):
    """A function that writes a script of this text, after replacements, and returns the value of `--sampler`."""

    def write(text, *replacements):
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / f"mine_{len(list(tmp_path.iterdir()))}.py"
        path.write_text(text, encoding="utf-8")
        return python(path)

    return write


def sampler(reference, law=PLANE):
    return builder(reference.removeprefix(process.PREFIX))(law)


# What crosses.


def test_a_step_is_that_of_the_same_sampler_in_this_process_with_the_same_draws():
    """Floats cross to the last bit, draws come in the order in which they are asked for, trees keep their shape."""
    estimator, ours, theirs = HostExact(TREE), HostSGLD(), sampler(SGLD, TREE)
    first, second = np.random.default_rng(1), np.random.default_rng(1)
    a, b = ours.init(first, TREE.example, estimator), theirs.init(second, TREE.example, estimator)
    for _ in range(3):
        a, b = ours.step(first, a, 0.01, estimator), theirs.step(second, b, 0.01, estimator)
    assert jax.tree.structure(a.position) == jax.tree.structure(b.position)
    for x, y in zip(jax.tree.leaves(a.position), jax.tree.leaves(b.position), strict=True):
        np.testing.assert_allclose(x, y, rtol=4 * np.finfo(float).eps)  # the order of two sums
    assert first.bit_generator.state == second.bit_generator.state


def test_lines_hold_numbers_to_the_last_bit_and_infinity_as_every_language_reads_it():
    values = np.array([0.1 + 0.2, -1e-310, np.inf, np.nan])
    assert to_line({"values": values}) == '{"values": [0.30000000000000004, -1e-310, 1e999, 1e999]}'
    assert float("1e999") == np.inf


def test_what_is_asked_at_one_place_is_of_one_estimate_and_elsewhere_of_another(script):
    """2 g - g at one place is g, whatever the noise of the gradient; g(x) + g(y) - g(y) is not, with noise, at two."""
    text = (HARNESS / "sampler.py").read_text()
    once, asked = 'gradient = ask("gradient", x=x.tolist())', 'ask("gradient", x={})'.format
    there = asked("(x + 1).tolist()")
    twice = script(text, (once, f"gradient = 2 * {asked('x.tolist()')} - {asked('x.tolist()')}"))
    sums = f"gradient = {asked('x.tolist()')} + {there} - {asked('x.tolist()')} - {there}"
    apart = script(text, (once, sums), ("+ np.sqrt(2 * h)", "+ 0 * h"))
    estimator = KnownNoise(PLANE, np.array([[0.5, 0.2], [0.2, 0.3]]))

    def stepped(reference, estimator):
        generator, theirs = np.random.default_rng(3), sampler(reference)
        state = theirs.init(generator, PLANE.example, estimator)
        return np.asarray(theirs.step(generator, state, 0.1, estimator).position)

    np.testing.assert_allclose(stepped(twice, estimator), stepped(SGLD, estimator), rtol=1e-14)
    assert np.all(np.abs(stepped(SGLD, estimator) - stepped(SGLD, HostExact(PLANE))) > 1e-6)
    np.testing.assert_allclose(stepped(apart, HostExact(PLANE)), PLANE.example, rtol=1e-12)
    assert np.all(np.abs(stepped(apart, estimator) - np.asarray(PLANE.example)) > 1e-6)


def test_a_chain_that_left_the_numbers_is_asked_nothing():
    theirs, exact = sampler(SGLD), HostExact(PLANE)
    state = theirs.init(np.random.default_rng(0), PLANE.example, exact)
    lost = state._replace(position=np.array([np.nan, 1.0]))
    kept = theirs.step(np.random.default_rng(0), lost, 0.1, exact)
    np.testing.assert_array_equal(kept.position, lost.position)


def test_a_draw_that_cannot_be_given_is_raised_and_the_process_goes_on(script):
    reference = script((HARNESS / "sampler.py").read_text(), ('ask("normal"', 'ask("uniform"'))
    theirs, exact = sampler(reference), HostExact(PLANE)

    class OnlyNormals:
        def standard_normal(self, size):
            return np.zeros(size)

    state = theirs.init(OnlyNormals(), PLANE.example, exact)
    with pytest.raises(AttributeError, match="random"):
        theirs.step(OnlyNormals(), state, 0.1, exact)
    after = theirs.step(np.random.default_rng(0), state, 0.1, exact)
    expected = np.random.default_rng(0).random(2)
    gradient = np.asarray(jax.grad(PLANE.potential)(PLANE.example))
    np.testing.assert_allclose(after.position, np.asarray(PLANE.example) - 0.1 * gradient + np.sqrt(0.2) * expected)


def test_the_page_shows_the_example_in_r_as_it_is():
    page = (HARNESS.parent / "other-languages.md").read_text(encoding="utf-8")
    assert page.partition("```r\n")[2].partition("```")[0] == (HARNESS / "sampler.R").read_text(encoding="utf-8")
    assert len((HARNESS / "sampler.R").read_text().splitlines()) <= 40
    assert len((HARNESS / "sampler.py").read_text().splitlines()) <= 40


# What is decided.


def law(reference, statement, name="gaussian-correlated-2d"):
    """A result under a seed of its own: that of a case follows from the command, which has a folder of this run."""
    return run_check(reference, statement, name, seed=0)


def test_numpy_is_judged_without_sampling_and_a_planted_bug_is_found(script):
    right = law(SGLD, "gaussian_limit")
    assert right.verdict == "pass", right.reason
    assert right.p_value is None
    assert "'process:" in right.reproduction
    wrong = law(script((HARNESS / "sampler.py").read_text(), ("np.sqrt(2 * h)", "np.sqrt(h)")), "gaussian_limit")
    assert wrong.verdict == "fail"


def other_language(name, tmp_path, replacement=None):
    """Value of `--sampler` for the example in a language."""
    text = (HARNESS / f"sampler.{name}").read_text()
    if replacement is not None:
        assert replacement[0] in text
        text = text.replace(*replacement)
    source = tmp_path / f"sampler.{name}"
    source.write_text(text)
    if name == "R":
        return f"{process.PREFIX}Rscript {source}"
    binary = tmp_path / "sampler"
    subprocess.run(["g++", "-O2", "-o", str(binary), str(source)], check=True)
    return f"{process.PREFIX}{binary}"


@pytest.mark.parametrize(
    ("language", "program", "bug"),
    [("cpp", "g++", ("sqrt(1 - c * c)", "sqrt(1 - c)")), ("R", "Rscript", ("sqrt(2 * h)", "sqrt(h)"))],
)
def test_another_language_is_judged_without_sampling_or_is_not_installed(language, program, bug, tmp_path):
    """Where the language is there, the right example passes and the planted bug fails; else one error says so."""
    if shutil.which(program) is None:
        with pytest.raises(BadInput, match=f"{re.escape(program)} cannot be started"):
            resolve(f"{process.PREFIX}{program} sampler.{language}")
        return
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.mkdir()
    wrong.mkdir()
    found = law(other_language(language, right), "gaussian_limit")
    assert found.verdict == "pass", found.reason
    assert found.p_value is None
    assert law(other_language(language, wrong, bug), "gaussian_limit").verdict == "fail"


@pytest.mark.parametrize(("factor", "verdict"), [("2 * h", "pass"), ("h", "fail")])
def test_draws_of_its_own_are_judged_by_sampling(script, factor, verdict):
    reference = script(OWN, ("np.sqrt(2 * h)", f"np.sqrt({factor})"))
    noise_free = law(reference, "gaussian_limit")
    assert noise_free.verdict in ("out-of-reach", "inconclusive"), noise_free.reason
    sampled = law(reference, "law_of_steps")
    assert sampled.verdict == verdict, sampled.reason


def test_a_temperature_and_an_order_may_be_described(script):
    text = (HARNESS / "sampler.py").read_text()
    hot = ('"draws": "given"', '"draws": "given", "temperature": 2.0'), ("np.sqrt(2 * h)", "np.sqrt(4 * h)")
    assert law(script(text, *hot), "gaussian_limit").verdict == "pass"
    second = sampler(script(text, ('"draws": "given"', '"draws": "given", "order": 2')))
    assert second.claims.law.order == 2
    exact = sampler(script(text, ('"draws": "given"', '"draws": "given", "exact": True')))
    assert exact.claims.law.kind == "exact"


# What goes wrong there.


ANSWERS = """
import json, sys, time
for line in sys.stdin:
    op = json.loads(line)["op"]
    if op == "describe":
        print(json.dumps({"protocol": 1, "draws": "given"}), flush=True)
    elif op == "init":
        print(json.dumps({"z": [0.0] * len(json.loads(line)["x"])}), flush=True)
    else:
        STEP
"""


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("sys.exit('out of cheese')", "the process ended with code 1 while step; it printed last: out of cheese"),
        ("print('hello', flush=True)", "step is answered by 'hello'; the protocol wants one JSON object"),
        ("print('{\"z\": [null]}', flush=True)", "the protocol wants"),
        ('print(\'{"z": "x"}\', flush=True)', "the protocol wants"),
        ("print('{\"y\": [1]}', flush=True)", "the protocol wants"),
        ("print('{\"z\": [1]}', flush=True)", "step gave 1 numbers for 2 of the position"),
        ('print(\'{"ask": "poisson", "n": 1}\', flush=True)', "the protocol wants gradient or potential"),
        ('print(\'{"ask": "normal", "n": -1}\', flush=True)', "the protocol wants gradient or potential"),
        ('print(\'{"ask": "normal", "n": 1e9}\', flush=True)', "the protocol wants gradient or potential"),
        ('print(\'{"ask": "integer", "n": 1}\', flush=True)', "the protocol wants gradient or potential"),
        ('print(\'{"ask": "gradient", "x": ["a"]}\', flush=True)', "the protocol wants numbers in x"),
        ("time.sleep(60)", "step took longer than 1 s; the process was ended"),
    ],
)
def test_a_process_that_dies_or_talks_nonsense_is_one_error(script, monkeypatch, step, message):
    monkeypatch.setattr(process, "SECONDS", 1.0)
    reference = script(ANSWERS, ("STEP", step))
    theirs, exact = sampler(reference), HostExact(PLANE)
    with pytest.raises(BridgeError) as error:
        theirs.step(np.random.default_rng(0), theirs.init(np.random.default_rng(0), PLANE.example, exact), 0.1, exact)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_step_that_asks_without_end_is_ended(script, monkeypatch):
    monkeypatch.setattr(process, "MOST_ASKED", 50)
    ask = 'while True:\n            print(\'{"ask": "normal", "n": 1}\', flush=True); sys.stdin.readline()'
    theirs, exact = sampler(script(ANSWERS, ("STEP", ask))), HostExact(PLANE)
    state = theirs.init(np.random.default_rng(0), PLANE.example, exact)
    with pytest.raises(BridgeError, match="asked for more than 50 things in one step"):
        theirs.step(np.random.default_rng(0), state, 0.1, exact)


def test_a_late_process_is_not_waited_for_twice(script, monkeypatch):
    monkeypatch.setattr(process, "SECONDS", 1.0)
    reference = script(ANSWERS, ("STEP", "time.sleep(60)"))
    with pytest.raises(BadInput, match="took longer than 1 s"):
        check_sampler(reference)
    with pytest.raises(BridgeError, match="took longer than 1 s"):
        running(reference.removeprefix(process.PREFIX))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("no-such-program-at-all", "no-such-program-at-all cannot be started"),
        ("", "empty; name a command"),
        (f"{sys.executable} -c 'print(1)'", "describe is answered by '1'"),
        (f"{sys.executable} -c 'print(\"{{}}\")'", "describe is answered by"),
        (f"{sys.executable} -c pass", "the process ended with code 0 while describe"),
        ("'unfinished", "No closing quotation"),
    ],
)
def test_a_command_that_is_no_sampler_is_one_error_before_any_work(command, message):
    with pytest.raises(BadInput) as error:
        resolve(process.PREFIX + command)
    assert str(error.value).startswith("--sampler process:")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_script_that_was_changed_is_started_anew_and_the_old_one_was_told_to_stop(script, tmp_path):
    text = (HARNESS / "sampler.py").read_text()
    stopped = ("        break", f"        open({str(tmp_path / 'stopped')!r}, 'w').close()\n        break")
    reference = script(text, stopped)
    assert law(reference, "gaussian_limit").verdict == "pass"
    Path(reference.split()[-1]).write_text(text.replace("np.sqrt(2 * h)", "np.sqrt(h)"))
    assert law(reference, "gaussian_limit").verdict == "fail"
    assert (tmp_path / "stopped").exists()


def test_no_shell_reads_the_command(tmp_path):
    with pytest.raises(BadInput):
        resolve(f"{process.PREFIX}{sys.executable} -c pass; touch {tmp_path / 'ran'}")
    assert not (tmp_path / "ran").exists()
