"""Figures of the papers beside ours: what a paper's figure claims, in our words, and what was found.

The figures of the papers are theirs and are not shown: each row says where to look.
"""

from typing import NamedTuple


class Figure(NamedTuple):
    """A figure or table of a paper.

    Attributes:
        paper: key of references.bib.
        title: of the paper, short.
        where: figure or table of the paper.
        url: of the paper.
        claim: what it is meant to show, in our words.
        page: name of our experiment; None where none was run.
        found: what we found, in a sentence.
    """

    paper: str
    title: str
    where: str
    url: str
    claim: str
    page: str | None
    found: str


RECIPE = ("ma2015complete", "A complete recipe", "https://arxiv.org/abs/1506.04696")
GEODESIC = (
    "liu2016stochastic",
    "Stochastic gradient geodesic MCMC",
    "http://papers.nips.cc/paper/6281-stochastic-gradient-geodesic-mcmc-methods",
)
SIMPLEX = ("baker2018large", "Sampling from the simplex (SCIR)", "https://arxiv.org/abs/1806.07137")

STEIN = ("liu2018riemannian", "Riemannian Stein variational gradient descent", "https://arxiv.org/abs/1711.11216")
FLOWS = ("liu2019understanding", "MCMC dynamics as flows", "https://arxiv.org/abs/1902.00282")


def _figure(source: tuple[str, str, str], where: str, claim: str, page: str | None, found: str) -> Figure:
    paper, title, url = source
    return Figure(paper, title, where, url, claim, page, found)


FIGURES: tuple[Figure, ...] = (
    _figure(
        RECIPE,
        "figure 2",
        "SGRHMC with its correction term has the target as its law on one and two peaks; without it the law is another "
        "one; SGHMC and SGLD are compared in distance from the target.",
        "ma2015-figure2",
        "Reproduced with exact laws; the claims one by one are on the page.",
    ),
    _figure(
        RECIPE,
        "figure 3",
        "On a stream of Wikipedia articles the perplexity of LDA falls fastest with SGRHMC, then SGRLD, then SGHMC, "
        "then "
        "SGLD.",
        "ma2015-figure3",
        "Reduced, on two corpora: Riemannian methods before the others, as in the paper; SGRLD before SGRHMC, unlike "
        "it, because of the friction: with another one the two end alike.",
    ),
    _figure(
        GEODESIC,
        "table 1",
        "Which methods take stochastic gradients, need no inner iteration and no global coordinates, and their order.",
        "liu2016-table1",
        "Every entry measured, and as printed.",
    ),
    _figure(
        GEODESIC,
        "figure 3",
        "Stochastic gradients leave the law on a sphere unharmed where their noise is accounted for.",
        "liu2016-figure3",
        "Holds; without the account the law has the predicted higher temperature.",
    ),
    _figure(
        GEODESIC,
        "figure 4",
        "On a posterior on two circles with two modes, minibatches do no visible harm.",
        "liu2016-figure4",
        "Holds at the paper's settings.",
    ),
    _figure(
        GEODESIC,
        "figure 5(a)",
        "On a spherical admixture model the log-perplexity falls faster with SGGMC and gSGNHT than with full-batch, "
        "Metropolis and variational methods.",
        "liu2016-figure5-seeds",
        "Reduced, three seeds, at other step sizes than the released program's: every sampler ends below variational "
        "methods, minibatches are the fastest by far; after two minutes they and full batches are not told apart.",
    ),
    _figure(
        GEODESIC,
        "figure 5(b)",
        "The same on 150,000 Wikipedia articles, where only scalable methods are run.",
        "liu2016-figure5b",
        "Reduced, one seed, four minutes: both samplers end below stochastic variational inference, at other step "
        "sizes than the paper's.",
    ),
    _figure(
        SIMPLEX,
        "figures 1 and 2",
        "SCIR has a smaller distance from sparse Dirichlet posteriors than SGRLD at every size of batch, and a like "
        "one "
        "on dense ones.",
        "baker2018-figures-1-2",
        "Holds against every fair baseline of ours.",
    ),
    _figure(
        SIMPLEX,
        "figure 3a",
        "With SCIR the perplexity of LDA falls further than with SGRLD.",
        "baker2018-figure3a",
        "Reduced, two seeds: on Wikipedia SCIR is ahead by 1 percent, on 20 Newsgroups SGRLD by 3; with the same prior "
        "SCIR is ahead on both.",
    ),
    _figure(
        SIMPLEX,
        "figure 3b",
        "With SCIR a Dirichlet-process mixture predicts better than with SGRLD.",
        "baker2018-figure3b",
        "Holds at the published settings; not at every seed against a tuned SGRLD.",
    ),
    _figure(
        STEIN,
        "figure 1",
        "In logistic regression on Splice and Covertype RSVGD makes better use of an iteration than SVGD, with more "
        "precise results.",
        "liu2018-figure1",
        "Reduced, one start: a fifth and a third of the iterations, more precise on Covertype only; by seconds SVGD is "
        "ahead.",
    ),
    _figure(
        STEIN,
        "figure 2",
        "On a spherical admixture model RSVGD makes the most progress by epoch, and gains the most from particles.",
        "liu2018-figure2",
        "Reduced, one seed: it ends lowest, after 23 epochs behind SGGMC with batches, which has 330 steps in one; "
        "more particles help it most from 2 to 4, and not from 4 to 8.",
    ),
    _figure(
        STEIN,
        "section 5, minibatches",
        "A naive minibatch implementation of RSVGD does not perform well; why is left open.",
        "liu2018-minibatch",
        "Reduced, one seed: so it is, because the metric of a batch biases the velocity; with that of all rows "
        "only noise is left.",
    ),
    _figure(
        FLOWS,
        "the three types of dynamics",
        "Dynamics with diffusion in all coordinates, or in the fibres, are robust to stochastic gradients; those "
        "without are fragile.",
        "liu2019-robustness",
        "As stated, against exact recursions; robust means a bias that settles and vanishes with the step size.",
    ),
    _figure(
        FLOWS,
        "the experiment on LDA",
        "On LDA pSGHMC-det and pSGHMC-fGH converge faster than Blob, and as fast as SGHMC or faster.",
        "liu2019-lda",
        "Reduced, two seeds: far ahead of Blob at the released step sizes and level with SGHMC at the right "
        "temperature; Blob with a step as long as theirs is level too.",
    ),
)
OTHERS = (
    "Of MCMC as flows (liu2019understanding) the particles on its banana are among the pages of experiments; its text "
    "makes no claim on them."
)
