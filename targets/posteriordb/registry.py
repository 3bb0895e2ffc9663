"""The densities by the names of the models, and the posteriors whose files are pinned."""

import difflib
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from sgmcmc_verification.targets.datasets.files import DataError
from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.posteriordb import eight_schools, gaussian_mixture, regression
from sgmcmc_verification.targets.posteriordb.build import posterior_target
from sgmcmc_verification.targets.posteriordb.checksums import SHA256
from sgmcmc_verification.targets.posteriordb.files import Fields, Folder, Pinned, Posterior, load
from sgmcmc_verification.targets.posteriordb.model import Model
from sgmcmc_verification.targets.target import Target


class ModelRow(NamedTuple):
    """A density.

    Attributes:
        name: the `model_name` of posteriordb.
        build: data -> the model; raises DataError for data that do not fit.
    """

    name: str
    build: Callable[[Fields], Model]


MODELS: tuple[ModelRow, ...] = (
    ModelRow("eight_schools_centered", eight_schools.centered),
    ModelRow("eight_schools_noncentered", eight_schools.noncentered),
    ModelRow("kidscore_momiq", regression.kidscore_momiq),
    ModelRow("kidscore_momhsiq", regression.kidscore_momhsiq),
    ModelRow("kidscore_interaction", regression.kidscore_interaction),
    ModelRow("logearn_interaction", regression.logearn_interaction),
    ModelRow("nes", regression.nes),
    ModelRow("blr", regression.blr),
    ModelRow("kilpisjarvi", regression.kilpisjarvi),
    ModelRow("arK", regression.ar_k),
    ModelRow("low_dim_gauss_mix", gaussian_mixture.low_dim_gauss_mix),
)

PINNED = Pinned(
    "posteriordb",
    "https://raw.githubusercontent.com/stan-dev/posteriordb/28f8d3d6e975315f42aa274a8399f21e07a43b30/posterior_database",
    SHA256,
    "posteriordb, BSD-3-Clause for the database; the sources of the data are in data_info",
)
NAMES: tuple[str, ...] = tuple(SHA256["posterior"])
"""Posteriors whose files have checksums here; the target of each is `posteriordb/NAME`."""


def posteriordb_target(folder: str | os.PathLike, name: str, model: Callable[[Fields], Model] | None = None) -> Target:
    """A posterior of a folder in the layout of posteriordb; on the command line `--target FOLDER:NAME`.

    Args:
        folder: a clone of posteriordb, its `posterior_database`, or a folder with the flat layout of
            `targets.posteriordb.files`.
        name: of the posterior.
        model: data -> density, for a model that has no row here.

    Returns:
        See `targets.posteriordb.build.posterior_target`; the name of the target is `FOLDER:NAME`.

    Raises:
        DataError: if a file is missing, damaged or refused, or the model has no density.
    """
    posterior = load(Folder(Path(folder)), name)
    return _target(posterior, f"{os.fspath(folder)}:{name}", model)


def pinned_target(name: str) -> Target:
    """The target `posteriordb/NAME` of a published posterior, its files compared with their checksums.

    Raises:
        DataError: if the data cannot be had.
    """
    return _target(load(PINNED, name), f"posteriordb/{name}", None)


def density(posterior: Posterior) -> Model:
    """The density of a posterior.

    Raises:
        DataError: if its model has none here, or its data do not fit.
    """
    for row in MODELS:
        if row.name == posterior.model:
            return row.build(posterior.data)
    known = [row.name for row in MODELS]
    close = difflib.get_close_matches(posterior.model, known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise DataError(
        f"{posterior.where}: model_name: no density for {posterior.model!r}; {hint}known: {', '.join(known)}. Add one: "
        "a file in targets/posteriordb/ and a row in its registry, or pass `model`"
    )


def _target(posterior: Posterior, name: str, model: Callable[[Fields], Model] | None) -> Target:
    return posterior_target(posterior, density(posterior) if model is None else model(posterior.data), name)


ENTRIES: tuple[TargetRow, ...] = tuple(
    TargetRow(f"posteriordb/{name}", functools.partial(pinned_target, name)) for name in NAMES
)
