"""Problems as folders of plain files, which a sampler in any language is run on."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.catalogue import closest, find_target
from sgmcmc_verification.checks.draws.densities import DENSITIES, Density
from sgmcmc_verification.targets.target import Target

FILE = "problem.json"
LARGEST = 1 << 20
"""Bytes of a `problem.json` that is read at all."""
HOT = 2.0
"""The second temperature."""
SIZES = {"without a step size": 4_000, "each of three step sizes": 15_000, "temperatures, in one dimension": 15_000}
"""Effective draws that are asked for, over all chains: as many as decide the statements of `checks.draws.judge`."""


class Run(NamedTuple):
    """A run that is asked for.

    Attributes:
        file: stem of the file of its draws.
        step_size: in the unit of the sampler; None if its law has no error from a step size.
        temperature: T of exp(-U / T).
    """

    file: str
    step_size: float | None
    temperature: float


class Problem(NamedTuple):
    """A target of this suite, and what is to be run on it.

    Attributes:
        name: of the target, which alone decides what is exact.
        runs: those that may be answered.
    """

    name: str
    runs: tuple[Run, ...]


def problem(name: str) -> Problem:
    """The problem of a name as it is written.

    Raises:
        BadInput: if there is none.
    """
    if name not in DENSITIES:
        raise BadInput(f"problem {name!r}: there is none; {closest(name, tuple(DENSITIES))}")
    target = find_target(name)
    h = float(f"{0.4 / target.curvature:.2g}")
    temperatures = {"": 1.0, "hot_": HOT} if has_temperatures(target) else {"": 1.0}
    runs = [
        Run(f"{prefix}{file}", step, temperature)
        for prefix, temperature in temperatures.items()
        for file, step in (("exact", None), ("h1", h), ("h2", h / 2), ("h4", h / 4))
    ]
    return Problem(name, tuple(runs))


def has_temperatures(target: Target) -> bool:
    """True if exp(-U / T) is known for other temperatures than one."""
    return target.gaussian is not None or target.interval is not None or target.tempered is not None


def write_problems(folder: str | Path, names: Sequence[str] = ()) -> list[Path]:
    """Write problems, each into a folder of its own; what is there already is left alone.

    A folder has `problem.json` (dimension, formula, constants, what to run), `density.txt` (words), `density.py`
    (NumPy), `density.stan`, `data.json` (constants and data for both), and `data.csv` where there are data.

    Args:
        folder: which will hold them; made if it is not there.
        names: of problems; () for all.

    Returns:
        The folders.

    Raises:
        BadInput: for an unknown name, or a folder that cannot be written.
    """
    problems = [problem(name) for name in names or DENSITIES]
    written = []
    for each in problems:
        place = Path(folder) / each.name
        try:
            place.mkdir(parents=True, exist_ok=True)
            for file, text in _files(each).items():
                if not (place / file).exists():
                    (place / file).write_text(text, encoding="utf-8")
        except OSError as error:
            raise BadInput(f"{place}: cannot be written ({error.strerror}); name a folder that can be") from None
        written.append(place)
    return written


def read_problem(folder: Path) -> Problem:
    """The problem of a folder; nothing but the name and the runs is taken from it, and no code of it is run.

    Raises:
        BadInput: if the file is missing, large, no JSON, or asks for what there is not.
    """
    path = folder / FILE
    try:
        if path.stat().st_size > LARGEST:
            raise BadInput(f"{path}: has more than {LARGEST} bytes; write the problem anew")
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: is no JSON ({error})") from None
    if not isinstance(document, dict) or not isinstance(document.get("name"), str):
        raise BadInput(f"{path}: has no name of a problem; write the problem anew")
    default = problem(document["name"])
    runs = document.get("runs")
    if not isinstance(runs, list) or not 1 <= len(runs) <= len(default.runs):
        raise BadInput(f"{path}: runs is to be a list of 1 to {len(default.runs)} runs")
    found = tuple(_run(path, run) for run in runs)
    if len({run.file for run in found}) < len(found):
        raise BadInput(f"{path}: two runs have one file")
    hot = [run.file for run in found if run.temperature != 1]
    if hot and not has_temperatures(find_target(default.name)):
        raise BadInput(f"{path}: {default.name} is known at temperature 1 only; remove {', '.join(hot)}")
    return Problem(default.name, found)


def _run(path: Path, run: Any) -> Run:
    if not isinstance(run, dict):
        raise BadInput(f"{path}: a run is an object with file, step_size and temperature; got {run!r:.80}")
    file, step, temperature = run.get("file"), run.get("step_size"), run.get("temperature", 1.0)
    if not (isinstance(file, str) and file.isascii() and file.replace("_", "").isalnum() and len(file) <= 40):
        raise BadInput(f"{path}: the file of a run is a name of letters, digits and underscores; got {file!r:.80}")
    for name, value in (("step_size", 1.0 if step is None else step), ("temperature", temperature)):
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
            raise BadInput(f"{path}: {name} of {file} is {value!r:.80}; give a positive number")
    return Run(file, None if step is None else float(step), float(temperature))


def _files(each: Problem) -> dict[str, str]:
    """Name -> text of the files of a problem."""
    target, density = find_target(each.name), DENSITIES[each.name]
    constants = {"d": target.size, **density.constants(target)}
    document = {
        "name": each.name,
        "dimension": target.size,
        "law": "density exp(-U(x) / T) on R^d, d = dimension; T is the temperature of the run",
        "formula": density.formula,
        "constants": {name: value for name, value in constants.items() if name not in density.rows},
        "momenta": "if there are any: mass 1, p ~ N(0, T I), independent of x",
        "chains": 4,
        "effective_draws": SIZES,
        "runs": [run._asdict() for run in each.runs],
        "answers": "FILE.npz with x (chains, draws, d), or FILE.csv, or a file a chain: FILE-1.csv, FILE-2.csv, ...; "
        "columns x.1, ..., x.d, if you have them p.1, ..., p.d and work, and chain where one file has several",
    }
    files = {
        FILE: json.dumps(document, indent=1) + "\n",
        "data.json": json.dumps({**constants, "temperature": 1.0}, indent=1) + "\n",
        "density.txt": _words(each.name, target.size, density),
        "density.py": _numpy(density),
        "density.stan": _stan(density),
    }
    if density.rows:
        columns = [np.atleast_2d(np.asarray(constants[name]).T).T for name in density.rows]
        names = [
            f"{name}.{i + 1}" if block.shape[1] > 1 else name
            for name, block in zip(density.rows, columns, strict=True)
            for i in range(block.shape[1])
        ]
        rows = [",".join(map(repr, row)) for row in np.hstack(columns).tolist()]
        files["data.csv"] = "\n".join([",".join(names), *rows]) + "\n"
    return files


def _words(name: str, dimension: int, density: Density) -> str:
    return f"""{name}: d = {dimension}, density exp(-U(x) / T), T = 1 unless a run says otherwise.

{density.words}

    {density.formula}

The constants are in problem.json, with the data in data.json{", and the data in data.csv" if density.rows else ""}.

What to run: every run of problem.json that your sampler can do, with at least four chains from different starts, the
beginning discarded, and the same number of draws in each run of a temperature: as many as have the effective sizes of
problem.json. Draws may be thinned.

    exact           if the law of your sampler has no error from a step size (HMC, NUTS, MALA, slice sampling)
    h1, h2, h4      if it has one: at a step size h of your choice, h / 2 and h / 4 (or only h and h / 2). The numbers
                    of problem.json may be replaced; their ratio has to be 2
    hot_...         the same at the temperature T = {HOT:g}, where problem.json has it

With momenta (velocities of particles of mass 1) return p beside x, both at the same time of the trajectory. If your
integrator counts the energy error of its steps, return it as work, one number a draw: that of the step that led there.
"""


def _numpy(density: Density) -> str:
    body = "\n".join(f"    {line}" for line in density.numpy.split("\n"))
    return f'''"""{density.formula}"""

import json
from pathlib import Path

import numpy as np

c = {{k: np.array(v) for k, v in json.loads(Path(__file__).with_name("data.json").read_text()).items()}}


def potential(x):
    """U at x, an array (d,), up to a constant; the density is exp(-U / c["temperature"])."""
    x = np.asarray(x)
{body}
'''


def _stan(density: Density) -> str:
    declarations, potential = density.stan
    return f"""// {density.formula}
data {{
  int d;
{declarations}  real temperature;
}}
parameters {{
  vector[d] x;
}}
model {{
  target += -({potential}) / temperature;
}}
"""
