"""Hooks and options of `pytest checks` and of `pytest --sampler NAME` in any folder; the rest of pytest is left alone.

Every pytest of an environment with the suite loads this module. Imports of the suite are inside the hooks: a run of
other tests must not pay for them, and JAX must be told to use float64 before anything makes an array. Of the options
`--sampler` alone is always there, lest they collide with those of other plugins and conftests.
"""

import argparse
import contextlib
import dataclasses
import functools
import importlib
import json
import sys
import warnings
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import IO, Any

import pytest

HERE = Path(__file__).resolve().parents[1]
PACKAGE = __name__.removesuffix(".pytest_plugin.plugin")
PLAN = pytest.StashKey[Any]()
OUTCOMES = pytest.StashKey[list]()
STREAM = pytest.StashKey[Any]()
DOCUMENT = pytest.StashKey[Any]()
STDOUT = pytest.StashKey[IO[str]]()
SO_FAR = pytest.StashKey[dict]()
TIMEOUT = 900.0
"""Seconds for one statement: ten times what the longest takes on a machine that does nothing else."""
BROKEN = pytest.StashKey[list]()
"""Items that ended without a result: an error of the suite."""
NAME = "verification"
"""Key of the results of an item in the user properties of a report."""

LETTERS = {
    "pass": ("passed", ".", "PASS"),
    "fail": ("fail", "F", ("FAIL", {"red": True})),
    "inconclusive": ("inconclusive", "?", ("INCONCLUSIVE", {"red": True})),
    "out-of-reach": ("out of reach", "o", ("OUT-OF-REACH", {"yellow": True})),
    "not-applicable": ("not applicable", "n", ("NOT-APPLICABLE", {"yellow": True})),
    "error": ("sampler error", "E", ("ERROR", {"red": True})),
    "known": ("known", "k", ("KNOWN", {"yellow": True})),
    "minor fault": ("minor fault", "m", ("MINOR FAULT", {"yellow": True})),
    "unexpected pass": ("unexpected pass", "U", ("UNEXPECTED-PASS", {"red": True})),
}
ONLY_CHECKS = (
    *("sampler", "target", "tier", "seed", "step_size", "chains", "option", "law_only", "numerics", "time_limit"),
    *("budget", "report", "json", "expected_failures", "check_set", "shard", "draws", "problems"),
)
"""Options that mean nothing to other tests."""


GROUP = ("verification", "verification of samplers (pytest checks; sgmcmc-verify)")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that asks for the checks."""
    parser.getgroup(*GROUP).addoption(
        "--sampler",
        action="append",
        default=[],
        metavar="NAME",
        help="registry name, LIBRARY/NAME, package.module:object or path/to/file.py:object; repeatable (default: all "
        "reference samplers); further options: sgmcmc-verify --help",
    )


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, None, None]:
    """One thread before a conftest loads NumPy; the other options after all conftests have theirs.

    They are there in the clone, and where the checks are asked for.
    """
    folder = Path(early_config.invocation_params.dir)
    asked = early_config.known_args_namespace.sampler or _name_checks(args, folder)
    if asked or early_config.rootpath == HERE.parent:
        from sgmcmc_verification.checks.core.compilation import limit_threads

        limit_threads()
        yield
        try:
            _add_options(parser)
            parser.parse_known_args([])
        except (ValueError, argparse.ArgumentError) as error:
            raise pytest.UsageError(
                f"an option of the checks has the name of one of this repository or of a plugin ({error}); run "
                "`sgmcmc-verify SAMPLER`, which loads neither"
            ) from None
    else:
        yield


def _add_options(parser: pytest.Parser) -> None:
    from sgmcmc_verification.checks.core.time_limit import BUDGET

    add = parser.getgroup(*GROUP).addoption
    add("--target", action="append", default=[], metavar="NAME", help="only this target; repeatable")
    add(
        "--tier",
        action="append",
        default=[],
        metavar="TIER",
        help="a tier, deterministic (default), statistical or all; repeatable",
    )
    add(
        "--seed",
        default=None,
        metavar="N",
        help="seed (default: a hash of the version of the suite and the sampler's name)",
    )
    add(
        "--step-size",
        default=None,
        metavar="H",
        help="usual step size on a target of unit curvature, instead of the row's",
    )
    add(
        "--chains",
        default=None,
        metavar="F",
        help="fraction of the chains of checks that sample; they then see effects larger by 1 / sqrt(F) only",
    )
    add(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the sampler, a Python literal; repeatable",
    )
    add(
        "--compilation-cache",
        default=None,
        metavar="FOLDER",
        help="where compiled programs are kept, or off (default: SGMCMC_COMPILATION_CACHE, or the user's cache folder)",
    )
    add("--law-only", action="store_true", help="faults of conduct (keys, options) do not fail the run")
    add(
        "--time-limit",
        default=None,
        metavar="SECONDS",
        help=f"for one statement, or the plan; what takes longer is in error, with its place (default: {TIMEOUT:g})",
    )
    add(
        "--budget",
        default=None,
        metavar="SECONDS",
        help="CPU time for runs of a sampler whose law its statements leave open; what is not decided by then stays "
        f"undecided, with what was seen (default: {BUDGET:g})",
    )
    add(
        "--numerics",
        action="store_true",
        help="run the numerical statements for which a proof stands as well, not its witnesses alone",
    )
    add(
        "--list",
        dest="list_of",
        default=None,
        metavar="KIND",
        help="print the names of all samplers, checks, statements, targets, tiers or claims, and stop",
    )
    add(
        "--problems",
        default=None,
        metavar="FOLDER",
        help="write problems for samplers in any language, a folder of plain files each, and stop",
    )
    add(
        "--draws",
        default=None,
        metavar="FOLDER",
        help="judge the draws that any program made of such a problem, or of all in a folder, and stop",
    )
    add("--explain", default=None, metavar="NAME", help="print what a check, statement, claim or tier is, and stop")
    add(
        "--json",
        action=Once,
        default=None,
        metavar="FILE",
        help="write plan, conclusions and results as one JSON document at the end, the same text whenever the same is "
        "run again; - for standard output, all else going to standard error",
    )
    add(
        "--report",
        action=Once,
        default=None,
        metavar="FILE.jsonl",
        help="write every result as a JSON line, as it finishes",
    )
    add(
        "--expected-failures",
        default=None,
        metavar="FILE.toml",
        help="failures that are known, with reason and issue: they still run, and one that passes is an error; off for "
        "none (default: expected_failures.toml of the repository, if it is there)",
    )
    add(
        "--shard",
        default=None,
        metavar="I/N",
        help="the I-th of N parts of the samplers of this run, for as many machines; python -m "
        "sgmcmc_verification.reports merge joins their files",
    )
    add(
        "--check-set",
        default=None,
        metavar="YEAR",
        help="the statements by which samplers are judged, frozen under the name of a year (default: the newest)",
    )


class Once(argparse.Action):
    """Stores a value, and refuses a second one: of two files the first would be left as it was."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Store the value."""
        del parser
        before = getattr(namespace, self.dest, None)
        if before is not None and before != values:
            raise pytest.UsageError(f"{option_string} {values}: given twice, as {before} before; give one")
        setattr(namespace, self.dest, values)


def _name_checks(arguments: Sequence[str], folder: Path) -> bool:
    """True if the folder of the checks, a file of it or the folder that holds it is among the arguments."""
    paths = [(folder / str(argument).split("::")[0]).resolve() for argument in arguments]
    return any(path in (HERE, HERE.parent) or HERE in path.parents for path in paths)


def _selected(config: pytest.Config) -> bool:
    """True if this run collects the checks."""
    return _name_checks(config.args, Path(config.invocation_params.dir))


def _given(config: pytest.Config) -> list[str]:
    return [f"--{flag.replace('_', '-')}" for flag in ONLY_CHECKS if getattr(config.option, flag, None)]


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Answer what needs no run, and find the checks and where the document goes."""
    if any(getattr(config.option, name, None) for name in ANSWERS):
        return _answer(config)
    if config.option.sampler and config.args_source != pytest.Config.ArgsSource.ARGS:
        config.args = [str(HERE)]  # no folder was named: the checks, wherever they are installed, and nothing else
    if getattr(config.option, "json", None) == "-" and _selected(config):
        config.stash[STDOUT] = sys.stdout
        config.pluginmanager.register(OnStandardError(), "verification-stderr")
    return None


class OnStandardError:
    """Has all that prints write to standard error, where standard output is for the document alone."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Before the reporter of the terminal, which takes the standard output that it finds."""
        redirected = contextlib.redirect_stdout(sys.stderr)
        redirected.__enter__()
        config.add_cleanup(lambda: redirected.__exit__(None, None, None))


def _answer(config: pytest.Config) -> int:
    """Print a list, an explanation, what was written or what is to be said of draws; the exit code."""
    from sgmcmc_verification.checks.core.bad_input import BadInput

    name = next(name for name in ANSWERS if getattr(config.option, name, None))
    try:
        lines, good = ANSWERS[name](getattr(config.option, name), config)
    except BadInput as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return pytest.ExitCode.USAGE_ERROR
    print("\n".join(lines))
    return pytest.ExitCode.OK if good else pytest.ExitCode.TESTS_FAILED


Answer = tuple[list[str], bool]
"""Lines, and whether all is good."""


def _list(kind: str, config: pytest.Config) -> Answer:
    from sgmcmc_verification.checks.runner.listing import listing

    del config
    return listing(kind), True


def _explain(name: str, config: pytest.Config) -> Answer:
    from sgmcmc_verification.checks.runner.listing import explanation

    del config
    return explanation(name), True


def _problems(folder: str, config: pytest.Config) -> Answer:
    from sgmcmc_verification.checks.draws.problems import write_problems

    del config
    return [str(path) for path in write_problems(folder)], True


def _draws(folder: str, config: pytest.Config) -> Answer:
    from sgmcmc_verification.checks.draws.check_draws import check_draws_folder, documents

    file = config.option.json
    stream = None if file in (None, "-") else _File("--json", file)
    reports = check_draws_folder(folder)
    good = all(report.good for report in reports)
    if stream is not None:
        stream.write(documents(reports))
        stream.close()
    if file == "-":
        return [documents(reports).rstrip("\n")], good
    return "\n\n".join(str(report) for report in reports).split("\n"), good


ANSWERS: dict[str, Callable[[str, pytest.Config], Answer]] = {
    "list_of": _list,
    "explain": _explain,
    "problems": _problems,
    "draws": _draws,
}
"""Option -> what answers it without a run."""


@contextlib.contextmanager
def _warned_as_in_python(config: pytest.Config) -> Generator[None]:
    """Leave out what libraries that a sampler imports will no longer support, one line each, as Python itself does."""
    with warnings.catch_warnings():
        if not (sys.warnoptions or config.getoption("pythonwarnings", None)):
            warnings.filterwarnings("ignore", category=DeprecationWarning)
        yield


def pytest_configure(config: pytest.Config) -> None:
    """Float64, the plan of the run, and one step of each third-party sampler, before anything is collected."""
    if not _selected(config):
        if config.option.sampler or (config.rootpath == HERE.parent and _given(config)):
            flag = _given(config)[0]
            raise pytest.UsageError(f"{flag}: only for the checks; run `pytest {flag} ...` without other folders")
        return
    import jax

    from sgmcmc_verification.checks.core.compilation import configure
    from sgmcmc_verification.checks.pytest_plugin.jax_cache import register

    register(config)
    config.add_cleanup(functools.partial(jax.config.update, "jax_enable_x64", jax.config.values["jax_enable_x64"]))
    jax.config.update("jax_enable_x64", True)
    configure(config.option.compilation_cache, first=not _is_worker(config))
    from sgmcmc_verification.checks.core.bad_input import BadInput
    from sgmcmc_verification.checks.core.error_origin import one_line, place
    from sgmcmc_verification.checks.core.time_limit import BUDGET, OutOfTime, time_limit
    from sgmcmc_verification.checks.runner.expected_failures import chosen
    from sgmcmc_verification.checks.runner.plan import make_plan
    from sgmcmc_verification.checks.runner.shard import cut, parse_shard

    given = config.option
    try:
        timeout = _seconds("--time-limit", given.time_limit, TIMEOUT)
        budget = _seconds("--budget", given.budget, BUDGET)
        with time_limit(timeout), _warned_as_in_python(config):
            plan = make_plan(
                given.sampler,
                given.target,
                given.tier,
                given.seed,
                given.step_size,
                given.option,
                chosen(given.expected_failures, config.rootpath),
                given.chains,
                check_set=given.check_set,
            )
            options = {"law_only": given.law_only, "numerics": given.numerics, "timeout": timeout, "budget": budget}
            plan = dataclasses.replace(plan, **options)
            plan = cut(plan, parse_shard(given.shard)) if given.shard is not None else plan
            if not _is_worker(config):
                plan.preflight()
    except BadInput as error:
        raise pytest.UsageError(str(error)) from None
    except OutOfTime as error:
        raise pytest.UsageError(one_line(error) + place(error)) from None
    config.stash[PLAN] = plan
    config.stash[OUTCOMES] = []
    config.stash[SO_FAR] = {}
    config.stash[BROKEN] = []
    if not _is_worker(config):
        config.pluginmanager.register(Collector(config), "verification-collector")
    if given.report and not _is_worker(config):
        from sgmcmc_verification.checks.runner.record import record_of

        stream = config.stash[STREAM] = _File("--report", given.report)
        stream.write(json.dumps(record_of(plan, _command(config))) + "\n")
    if given.json and not _is_worker(config):
        config.stash[DOCUMENT] = config.stash[STDOUT] if given.json == "-" else _File("--json", given.json)


def _seconds(flag: str, given: str | None, default: float) -> float:
    """A time above 0 in seconds. Raises BadInput for anything else."""
    from sgmcmc_verification.checks.core.bad_input import BadInput
    from sgmcmc_verification.checks.runner.plan import parse_number

    found = parse_number(flag, given, float) if given else default
    if not found > 0:
        raise BadInput(f"{flag} {given}: must be positive")
    return found


class _File:
    """A file of results, opened before any work starts, that holds at each time what was written to it.

    What cannot be written, as on a full disk, is a mistake on the command line; what is written later is dropped then.
    """

    def __init__(self, flag: str, file: str) -> None:
        self._name = f"{flag} {file}"
        try:
            self._stream: IO[str] | None = _emptied(file)
        except OSError as error:
            raise self._refusal(error) from None

    def write(self, text: str) -> None:
        """Write a text. Raises pytest.UsageError, once, if it cannot be written."""
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError as error:
            with contextlib.suppress(OSError):
                self._stream.close()
            self._stream = None
            raise self._refusal(error) from None

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()

    def _refusal(self, error: OSError) -> pytest.UsageError:
        return pytest.UsageError(f"{self._name}: cannot be written ({error.strerror})")


def _emptied(file: str) -> IO[str]:
    return Path(file).open("w", encoding="utf-8")


def _command(config: pytest.Config) -> str:
    from sgmcmc_verification.checks.pytest_plugin.command_line import ALONE

    given = [str(argument) for argument in config.invocation_params.args]
    if given[: len(ALONE)] == list(ALONE):
        return " ".join(["sgmcmc-verify", *given[len(ALONE) :]])
    return " ".join(["pytest", *given])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the files of results."""
    for key in (STREAM, DOCUMENT):
        stream = config.stash.get(key, None)
        if stream is not None and stream is not config.stash.get(STDOUT, None):
            stream.close()


def _plan(config: pytest.Config) -> Any:
    return config.stash.get(PLAN, None)


def _tier_of(path: Path) -> str | None:
    return path.stem.removeprefix("test_") if path.parent == HERE and path.stem.startswith("test_") else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A tier without cases in this run is not collected at all, and no tier where the checks were not asked for."""
    if _plan(config) is None and collection_path == HERE:
        return True
    tier = _tier_of(Path(collection_path))
    if _plan(config) is not None and tier is not None and not _plan(config).of_tier(tier):
        return True
    return None


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A plain folder for the package and its checks: pytest would import the package under a second name."""
    return pytest.Dir.from_parent(parent, path=path) if path in (HERE, HERE.parent) else None


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """A file of the checks is the module that all others import."""
    return CheckModule.from_parent(parent, path=module_path) if module_path.parent == HERE else None


class CheckModule(pytest.Module):
    """A file of the checks, imported by its own name."""

    def _getobj(self) -> Any:
        return importlib.import_module(f"{PACKAGE}.{self.path.stem}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item for each case of the plan."""
    plan, tier = _plan(metafunc.config), _tier_of(Path(metafunc.definition.path))
    if plan is None or tier is None or "case" not in metafunc.fixturenames:
        return
    metafunc.parametrize("case", [pytest.param(case, id=case.id) for case in plan.of_tier(tier)])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One process for all items of a sampler, however others are distributed."""
    plan = _plan(config)
    if plan is None:
        return None
    from sgmcmc_verification.checks.pytest_plugin.scheduler import BySampler, samplers_of

    return BySampler(config, log, samplers_of(plan.checks))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """One subject's items side by side, in the order of the plan, whatever file they come from."""
    plan = _plan(config)
    if plan is None:
        return
    order = {id(check): i for i, check in enumerate(plan.checks)}
    for item in items:
        check: Any = item.callspec.params.get("case") if isinstance(item, pytest.Function) and item.callspec else None
        if check is not None:  # -k finds an item by the names of its statements too
            item.extra_keyword_matches.update(case.statement.name for case in check.cases)
    place = lambda item: order.get(id(item.callspec.params.get("case")), -1) if hasattr(item, "callspec") else -1
    items.sort(key=place)


@pytest.fixture
def run_case(request: pytest.FixtureRequest) -> Callable[[Any], None]:
    """Runs a case, hands its result to the report, and fails on a verdict that is not good."""

    def run(case: Any) -> None:
        from sgmcmc_verification.checks.pytest_plugin.terminal import worst
        from sgmcmc_verification.checks.runner.check_sampler import decided, sampled

        plan, row = _plan(request.config), case.subject.row.name
        so_far = request.config.stash[SO_FAR].setdefault(row, [])
        outcomes = [decided(plan, each) for each in case.cases]
        if not case.cases:
            outcomes = sampled(plan, case.subject, so_far, case.seed, shown_on(request.config))
        results = [each.result for each in outcomes]
        if not results:
            pytest.skip("nothing is left open")
        so_far += [o.judged for o in outcomes]
        shown = worst([o.result for o in outcomes if not o.ok] or results)
        kind = next(o.label for o in outcomes if o.result is shown)
        record = {"row": row, "lines": [r.to_json() for r in results], "kind": kind}
        request.node.user_properties.append((NAME, record))
        if not all(o.ok for o in outcomes):
            pytest.fail(f"{shown.statement}: {shown.reason}", pytrace=False)

    return run


def shown_on(config: pytest.Config) -> Callable[[str], None] | None:
    """A function that writes a line over the last one on a terminal; None where nobody looks at one."""
    out = config.pluginmanager.get_plugin("terminalreporter")
    if out is None or not out.isatty or _is_worker(config):
        return None

    def show(line: str) -> None:
        out.rewrite(line, erase=True)
        out.flush()

    return show


def _record(report: pytest.TestReport) -> dict | None:
    return next((value for name, value in getattr(report, "user_properties", ()) if name == NAME), None)


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> Any:
    """The verdict in place of passed and failed."""
    if report.when != "call" or _plan(config) is None:
        return None
    record = _record(report)
    return LETTERS[record["kind"]] if record else None


class Collector:
    """Collects the results on the controller as they finish; under xdist the workers only send them."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the results of an item, and write them to the file of results."""
        record = _record(report) if report.when == "call" else None
        if record is None:
            if report.failed:
                self.config.stash[BROKEN].append(report.nodeid)
            return
        from sgmcmc_verification.checks.core.result import Result
        from sgmcmc_verification.checks.runner.check_sampler import outcome

        stream = self.config.stash.get(STREAM, None)
        for line in record["lines"]:
            result = Result(**json.loads(line))
            self.config.stash[OUTCOMES].append(outcome(_plan(self.config), record["row"], result))
            if stream is not None:
                stream.write(line + "\n")


def pytest_report_header(config: pytest.Config) -> Any:
    """Version, samplers, seed and platform."""
    plan = _plan(config)
    if plan is None:
        return None
    from sgmcmc_verification.checks.pytest_plugin.terminal import header

    return header(plan, int(getattr(config.option, "numprocesses", None) or 1))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """The conclusions decide: 1 unless all of them are good, whatever single items say."""
    plan = _plan(session.config)
    if plan is None or _is_worker(session.config) or session.config.option.collectonly:
        return
    from sgmcmc_verification.checks.runner.text import conclusions

    outcomes = session.config.stash[OUTCOMES]
    if exitstatus in (0, 1):
        good = all(c.good for c in conclusions(plan, outcomes)) and not session.config.stash[BROKEN]
        session.exitstatus = 0 if good else 1
    if session.config.option.json:
        from sgmcmc_verification.checks.runner.document import document, to_json

        try:
            session.config.stash[DOCUMENT].write(to_json(document(plan, outcomes, _command(session.config))))
        except pytest.UsageError as error:  # the verdicts are printed all the same
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
            sys.stderr.write(f"ERROR: {error}\n")


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The conclusions, sampler by sampler."""
    plan = _plan(config)
    outcomes = config.stash.get(OUTCOMES, [])
    if plan is None or not outcomes:
        return
    from sgmcmc_verification.checks.pytest_plugin.terminal import table
    from sgmcmc_verification.checks.runner.text import conclusions, report

    out = terminalreporter
    out.section("verdicts")
    for line in table(plan, outcomes):
        out.write_line(line)
    for conclusion in conclusions(plan, outcomes):
        first, *rest = report(conclusion, plan, [o for o in outcomes if o.row == conclusion.sampler])
        out.write_line("")
        out.write_line(first, bold=True, green=conclusion.good, red=not conclusion.good)
        for line in rest:
            out.write_line(line)
    if any(not o.ok for o in outcomes):
        out.stats.setdefault("failed", [])  # colours the last line


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Any:
    """No block of pytest for an item that is not good: the conclusion says all, once."""
    report = (yield).get_result()
    if _record(report) is not None and report.failed:
        report.longrepr = ""
