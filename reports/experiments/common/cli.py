"""The command line of an experiment of one stage: cells -> JSON lines -> figure and page."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.runner.execute import versions
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines, append, command_line, load
from sgmcmc_verification.reports.records.jsonl import commit
from sgmcmc_verification.samplers.registry import sampler_row


def publish(
    arguments: Sequence[str] | None,
    file: str,
    name: str,
    plan: Callable[[bool], Sequence[Keyed]],
    evaluate: Callable[[Any], dict[str, Any]],
    text: Callable[[Lines, bool], str],
    draw: Callable[[Lines, bool, Path], None] | None = None,
    duration: str = "a minute",
) -> int:
    """Compute the cells, then write the figure NAME.png and the page NAME.md from all lines of FOLDER/NAME.jsonl.

    With `--resume` the cells that the file has are not computed again.

    Args:
        arguments: of the command line; None for those of the process.
        file: of the module, for the name of the command.
        name: of the experiment.
        plan: quick -> cells.
        evaluate: cell -> result.
        text: (lines by key, quick) -> the page.
        draw: (lines by key, quick, path) -> None, writes the figure; None for an experiment without one.
        duration: of the quick version, for the help text.

    Returns:
        0.
    """
    quick, folder = command_line(arguments, file, name, duration)
    jax.config.update("jax_enable_x64", True)
    path = folder / f"{name}.jsonl"
    append(plan(quick), path, evaluate, commit(), versions(Subject(sampler_row("sggmc"))))
    lines = load(path)
    if draw is not None:
        draw(lines, quick, folder / f"{name}.png")
    page = folder / f"{name}.md"
    page.write_text(text(lines, quick), encoding="utf-8")
    print(page)
    return 0
