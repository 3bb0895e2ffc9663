"""Whatever is given, a request is met or refused in one line: command lines, files, folders and objects.

The seed stands in the name of each test. SGMCMC_FUZZING_SEED is another one, with other cases; SGMCMC_FUZZING_SHARE=1
runs all 5,000 cases, a tenth of which are run by default.
"""

import json
import os
import types
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.conclusion import Plan
from sgmcmc_verification.checks.core.lookup import resolve_object
from sgmcmc_verification.checks.draws.answers import read_run
from sgmcmc_verification.checks.draws.problems import FILE, problem, read_problem
from sgmcmc_verification.checks.runner.plan import make_plan
from sgmcmc_verification.reports.__main__ import main
from sgmcmc_verification.samplers.simple import simple_sampler
from tests.helpers.result_lines import DTYPES, KS, LIMIT, header, result

SEED = int(os.environ.get("SGMCMC_FUZZING_SEED", "2026"))
SHARE = float(os.environ.get("SGMCMC_FUZZING_SHARE", "0.1"))
named = pytest.mark.parametrize("fuzzing_seed", [SEED], ids=[f"seed-{SEED}"])


def cases(number: int):
    """Decorator for a test of so many cases; folders and outputs are shared by the cases, and each starts anew."""
    shared = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    run = max(1, round(SHARE * number))
    chosen = settings(max_examples=run, deadline=None, database=None, suppress_health_check=shared)
    return lambda test: seed(SEED)(chosen(test))


def one_line(error: BaseException) -> None:
    text = str(error)
    assert text.strip()
    assert "\n" not in text
    assert len(text) < 2_000


NUMBERS = st.one_of(
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(["1e400", "-0", "0x10", "1_000", "٣", "nan", "1e-400", "", " 1", "--1", "1j", "None"]),
)
TEXT = st.text(max_size=12)
# no prefix that starts a program, and no module that does something when it is imported
NAMES = st.one_of(
    st.sampled_from(["sgld", "sghmc-symmetric", "mala", "blackjax/sgld", "lda/sgrld", "torch:", "optax:adam"]),
    st.sampled_from(
        ["json:loads", "json:", ":loads", "json:loads.x", "math:pi", "nowhere.py:x", "a/b", "a:b:c", ".", "/"]
    ),
    TEXT.filter(lambda text: not text.startswith("process") and ":" not in text),
    st.builds("{}:{}".format, st.sampled_from(["json", "math", "sgmcmc_verification.samplers.overdamped.sgld"]), TEXT),
    st.builds("{}.py:{}".format, TEXT, TEXT),
)
TARGETS = st.one_of(st.sampled_from(["gaussian-1d-scaled", "anharmonic", "gamma", "ising-3x3"]), TEXT)
TIERS = st.one_of(st.sampled_from(["law", "deterministic", "statistical", "all", "workload", "proofs"]), TEXT)
OPTIONS = st.one_of(
    st.builds(
        "{}={}".format, st.sampled_from(["temperature", "friction", "refined", "x", ""]), st.one_of(NUMBERS, TEXT)
    ),
    st.sampled_from(["a", "=", "a==1", "temperature=__import__('os')", "a=[" * 50, "friction=" + "(" * 500]),
    TEXT,
)


@named
@cases(2_000)
@given(
    line=st.fixed_dictionaries(
        {
            "samplers": st.lists(NAMES, min_size=1, max_size=2),
            "targets": st.lists(TARGETS, max_size=2),
            "tiers": st.lists(TIERS, max_size=2),
            "seed": st.none() | NUMBERS,
            "step_size": st.none() | NUMBERS,
            "chains": st.none() | NUMBERS,
            "options": st.lists(OPTIONS, max_size=2),
            "check_set": st.none() | st.sampled_from(["2026", "1999"]) | TEXT,
        }
    )
)
def test_a_command_line_is_a_plan_or_one_line(fuzzing_seed, line):
    try:
        plan = make_plan(**line)
    except BadInput as error:
        one_line(error)
    else:
        assert plan.cases


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
VERDICTS = ("pass", "fail", "inconclusive", "not-applicable", "error")


def whole_file() -> list[str]:
    """Lines of a whole run of one sampler."""
    found = [result(v, s) for v, s in zip(VERDICTS, (KS, LIMIT, DTYPES, KS, LIMIT), strict=True)]
    return [header(lib_sgld=Plan(len(found))), *(each.to_json() for each in found)]


@st.composite
def damaged(draw, lines: list[str]) -> bytes:
    """A file of JSON lines with fields that are removed, added or something else, cut, mixed and with other bytes."""
    documents = [json.loads(line) for line in lines]
    for _ in range(draw(st.integers(0, 3))):
        document = draw(st.sampled_from(documents))
        name = draw(st.sampled_from(sorted(document) or [""]) | st.text(max_size=6))
        if draw(st.booleans()):
            document[name] = draw(JSON)
        else:
            document.pop(name, None)
    order = draw(st.permutations(documents)) if draw(st.booleans()) else documents
    data = bytearray("".join(json.dumps(each) + "\n" for each in order).encode())
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(data)))
        data[place : place + draw(st.integers(0, 40))] = draw(st.binary(max_size=6))
    return bytes(data)


@named
@cases(1_500)
@given(data=damaged(whole_file()) | st.binary(max_size=60), command=st.sampled_from(["summary", "compare", "merge"]))
def test_a_file_of_results_is_summarised_or_refused_in_one_line(fuzzing_seed, data, command, tmp_path, capsys):
    path, good = tmp_path / "results.jsonl", tmp_path / "good.jsonl"
    path.write_bytes(data)
    good.write_text("\n".join(whole_file()) + "\n", encoding="utf-8")
    (tmp_path / "whole.jsonl").unlink(missing_ok=True)
    arguments = {
        "summary": [str(path)],
        "compare": [str(good), str(path)],
        "merge": [str(tmp_path / "whole.jsonl"), str(path)],
    }
    code = main([command, *arguments[command]])
    seen = capsys.readouterr()
    assert code in (0, 1, 2)
    assert "Traceback" not in seen.err
    if code == 2:
        assert len(seen.err.strip().splitlines()) == 1
        assert len(seen.err) < 2_000


def whole_problem() -> dict:
    """The document of a problem."""
    asked = problem("gaussian-1d-scaled")
    return {"name": asked.name, "runs": [run._asdict() for run in asked.runs]}


ROWS = st.lists(st.lists(st.one_of(NUMBERS, TEXT), max_size=3).map(",".join), max_size=30).map("\n".join)
TABLE = st.one_of(
    st.builds("x.1\n{}".format, ROWS),
    st.builds("chain,x.1,p.1\n{}".format, ROWS),
    st.builds("{}\n{}".format, TEXT, ROWS),
    ROWS,
)


@named
@cases(1_000)
@given(
    document=damaged([json.dumps(whole_problem())]) | JSON.map(lambda value: json.dumps(value).encode()),
    table=TABLE,
    array=st.binary(max_size=40) | st.just(b"PK\x03\x04" + b"\0" * 30),
    kinds=st.sets(st.sampled_from(["exact.csv", "exact-1.csv", "exact.npz"]), max_size=2),
)
def test_a_folder_of_draws_is_read_or_refused_in_one_line(fuzzing_seed, document, table, array, kinds, tmp_path):
    for old in tmp_path.iterdir():
        old.unlink()
    (tmp_path / FILE).write_bytes(document)
    for name in kinds:
        data = array if name.endswith(".npz") else table.encode("utf-8", "surrogatepass")
        (tmp_path / name).write_bytes(data)
    for read in (lambda: read_problem(tmp_path), lambda: read_run(tmp_path, "exact", 1)):
        try:
            found = read()
        except BadInput as error:
            one_line(error)
        else:
            assert found is None or isinstance(found, tuple)


def _raises(*_):
    raise ZeroDivisionError("a stranger's\nmistake")


def _returns(value):
    return lambda *_: value


PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    TEXT,
    st.binary(max_size=4),
    st.lists(st.integers(), max_size=3),
    st.builds(np.zeros, st.integers(0, 3)),
    st.just(types.SimpleNamespace()),
    st.just(Path("x")),
)
CALLABLES = st.one_of(
    PLAIN.map(_returns), st.just(_raises), st.sampled_from([len, dict, print, np.sin, simple_sampler])
)
PARTS = ("init", "step", "position", "pack", "unpack", "claims", "backend", "options", "build", "estimator")
OBJECTS = st.one_of(
    PLAIN,
    CALLABLES,
    st.dictionaries(st.sampled_from(PARTS), PLAIN | CALLABLES, max_size=5).map(lambda d: types.SimpleNamespace(**d)),
    st.tuples(CALLABLES, CALLABLES),
    CALLABLES.map(simple_sampler),
    st.just(object),
    st.just(type("Class", (), {"step": _raises})),
)


@named
@cases(500)
@given(value=OBJECTS, options=st.dictionaries(TEXT, PLAIN, max_size=1))
def test_an_object_is_a_sampler_or_refused_in_one_line(fuzzing_seed, value, options):
    try:
        subjects = resolve_object("theirs", value, options)
    except BadInput as error:
        one_line(error)
    else:
        assert subjects
