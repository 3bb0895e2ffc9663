"""Experiments of papers, run again: one module a figure or table."""

EXPERIMENTS = (
    "baker2018.figure3a",
    "baker2018.figure3b",
    "baker2018.figures1_2",
    "liu2016.figure3",
    "liu2016.figure4",
    "liu2016.figure5a",
    "liu2016.figure5a_seeds",
    "liu2016.figure5b",
    "liu2016.table1",
    "liu2018.figure1",
    "liu2018.figure2",
    "liu2018.minibatch",
    "liu2019.banana",
    "liu2019.lda",
    "liu2019.robustness",
    "ma2015.figure2",
    "ma2015.figure3",
    "original.batch_orders",
    "original.cost_of_accuracy",
    "original.dirichlet_faces",
    "original.dp_bias",
    "original.sam_calibration",
    "original.three_biases",
    "original.weak_scaling",
)
"""Modules that are run by name: `liu2016.figure3` is `liu2016_figure3`; of `original` the last part is the name."""


def names() -> dict[str, str]:
    """Name of each experiment -> its module."""
    short = {module: module.removeprefix("original.").replace(".", "_") for module in EXPERIMENTS}
    return {name: f"{__name__}.{module}" for module, name in short.items()}
