"""Stored results -> a static site.

    python -m sgmcmc_verification.reports build [--results FOLDER] [--out FOLDER]

The site is a function of the files alone: the same files give the same bytes. It needs no network and no server, and no
script to be read; a script only filters and sorts tables.
"""

import importlib.util
import shutil
import tempfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

from sgmcmc_verification.checks.core.conclusion import Law
from sgmcmc_verification.reports.pages.findings_index import of_checks
from sgmcmc_verification.reports.records.jsonl import ROOT
from sgmcmc_verification.reports.records.results import ResultsError
from sgmcmc_verification.reports.site import conformance_matrix, documents, kill_table, orders, workloads
from sgmcmc_verification.reports.site.conformance_matrix import Sampler
from sgmcmc_verification.reports.site.documents import Document
from sgmcmc_verification.reports.site.gauge import gauge
from sgmcmc_verification.reports.site.papers import FIGURES, OTHERS, Figure
from sgmcmc_verification.reports.templates import render

PUBLISHED = ROOT / "reports" / "published"
FINDINGS = ROOT / "reports" / "findings"
LAWS: dict[Law, tuple[str, str]] = {
    "holds": ("✓", "the stationary distribution is the one that it claims, at the order that it claims"),
    "violated": ("✗", "a statement about it fails; the page of its library says if that is an error or documented"),
    "undecided": ("?", "something that has to be shown was not"),
    "not examined": ("–", "the run was a part of all statements, and nothing in it violates the law"),
}
"""Conclusions about a law: the mark of each, and its meaning; in the order of the front page."""
EVIDENCE = ("kill-matrix", "mutation", "calibration", "strangers", "diagnoses", "usability", "proofs", "manifolds")
"""Published pages about the suite itself, in the order of the front page."""
CAUSES = ("three-biases", "cost-of-accuracy")
"""Experiments that the page of orders leads to."""


def build(results: Path, out: Path, history: Path | None = None, documentation: Path | None = None) -> int:
    """Write the site of a folder of results; returns the number of pages. An old site is replaced as a whole.

    Args:
        results: the folder.
        out: where the site is to be.
        history: pages that `asv publish` wrote, which become the folder `asv` of the site; None for none.
        documentation: pages that `mkdocs build` wrote, which become the folder `documentation`; None for none.

    Raises:
        ResultsError: if the folder holds no results, a file cannot be used, `out` is a folder of something else, or
            matplotlib is missing.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ResultsError("the charts need matplotlib: pip install 'sgmcmc-verification[reports]'")
    if out.exists() and any(out.iterdir()) and not (out / ".reports-site").exists():
        raise ResultsError(f"--out {out}: holds files that are not a site; give an empty folder")
    files = of_checks(results)
    if not files:
        raise ResultsError(f"--results {results}: holds no file LIBRARY-VERSION.jsonl with results of checks")
    rows = conformance_matrix.samplers(files)
    texts = collect(results)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as work:
        new = Path(work) / "site"
        attached = {"asv": history, "documentation": documentation}
        count = _write(new, rows, texts, results, {name for name, pages in attached.items() if pages})
        for name, pages in attached.items():
            if pages is not None:
                # the links of its page for what is not found start at the root of a server, where it is not
                shutil.copytree(pages, new / name, ignore=shutil.ignore_patterns("404.html"))
        shutil.rmtree(out, ignore_errors=True)
        shutil.move(new, out)
    return count


def collect(results: Path) -> list[Document]:
    """Every Markdown page of the folder, and the findings of the repository."""
    found = [
        documents.read(path, PurePosixPath("pages", *path.relative_to(results).parent.parts, f"{path.stem}.html"))
        for path in sorted(results.rglob("*.md"))
    ]
    if results.resolve() == PUBLISHED:
        for path in sorted(FINDINGS.glob("*.md")):
            name = "index" if path.stem == "README" else path.stem
            found.append(documents.read(path, PurePosixPath("findings", f"{name}.html")))
    return found


class _Site:
    """Folder of pages that is being written.

    Attributes:
        out: the folder.
        shared: values that every template may use.
        count: pages so far.
    """

    def __init__(self, out: Path, **shared: Any) -> None:
        self.out, self.shared, self.count = out, shared, 0

    def page(self, path: PurePosixPath | str, template: str, **values: Any) -> None:
        """Fill a template into the page `path`, below the root of the site."""
        path = PurePosixPath(path)
        up = "../" * (len(path.parts) - 1)
        text = render(f"{template}.html.j2", up=up, here=str(path), **self.shared, **values)
        self.write(path, text)
        self.count += 1

    def write(self, path: PurePosixPath | str, text: str) -> None:
        """Write a file, with the folders that it needs."""
        target = self.out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def _write(out: Path, rows: Sequence[Sampler], texts: Sequence[Document], results: Path, attached: set[str]) -> int:
    """Write all files of the site; returns the number of pages."""
    present = {
        "workloads": any((results / "experiments" / f"{row.page}.jsonl").is_file() for row in workloads.ROWS),
        "papers": (results / "experiments").is_dir(),
        "kills": (results / "kill-matrix.jsonl").is_file(),
    }
    site = _Site(
        out,
        attached=attached,
        present=present,
        laws=LAWS,
        symbols=conformance_matrix.SYMBOLS,
        gauge=gauge,
    )
    named = {text.path.stem: text for text in texts if text.path.parts[0] == "pages"}
    _write_samplers(site, rows, texts, named)
    if present["workloads"]:
        site.page("workloads.html", "workloads", workloads=workloads.workloads(results), pages=named)
    if present["papers"]:
        site.page("papers.html", "papers", papers=_by_title(), pages=named, images=_images(named), others=OTHERS)
    if present["kills"]:
        bugs = kill_table.bugs(results / "kill-matrix.jsonl")
        evidence = {"page": named.get("kill-matrix"), "calibration": named.get("calibration")}
        site.page("kills.html", "kills", bugs=bugs, tiers=kill_table.tiers_of(bugs), **evidence)
    _write_documents(site, texts)
    for name in ("style.css", "tables.js"):
        site.write(
            name,
            resources.files("sgmcmc_verification.reports.site").joinpath("static", name).read_text(encoding="utf-8"),
        )
    site.write(".reports-site", "")
    return site.count


def _write_samplers(
    site: _Site, rows: Sequence[Sampler], texts: Sequence[Document], named: dict[str, Document]
) -> None:
    """Write the front page, the matrix with its exports, a page per sampler and the page of orders."""
    groups: dict[str, list[Sampler]] = {}
    for row in sorted(rows, key=lambda row: "/" not in row.name):  # the suite's own samplers come last
        groups.setdefault(row.library, []).append(row)
    findings = {text.path.stem: text for text in texts if text.path.parts[0] == "findings"}
    results = sum(result.verdict != "not-applicable" for row in rows for result in row.results)
    front = {"groups": groups, "findings": findings, "runs": {name: _runs(own) for name, own in groups.items()}}
    site.page("index.html", "index", results=results, **front, **_shelves(texts))
    site.page("matrix.html", "matrix", rows=rows, columns=conformance_matrix.columns(rows))
    site.write("matrix.csv", conformance_matrix.to_csv(rows))
    site.write("matrix.md", conformance_matrix.to_markdown(rows))
    for row in rows:
        finding, drawn = findings.get(_stem(row.library)), orders.of_sampler(row.results)
        site.page(f"samplers/{row.slug}.html", "sampler", row=row, finding=finding, orders=drawn)
    libraries = {name: orders.of_library([(r.name, r.results) for r in own], name) for name, own in groups.items()}
    causes = [named[name] for name in CAUSES if name in named]
    fits = {name: orders.fits_of_library([(r.name, r.results) for r in own]) for name, own in groups.items()}
    drawn = {name: figures for name, figures in libraries.items() if figures}
    site.page("orders.html", "orders", libraries=drawn, fits=fits, experiments=causes)


def _runs(rows: Sequence[Sampler]) -> str:
    """When, and at which commit of the suite, the samplers of a library were run."""
    found = sorted({f"{row.header.date[:10]}, commit {row.header.commit}" for row in rows if row.header is not None})
    return "; ".join(found) or "by a version of the suite that did not say when"


def _shelves(texts: Sequence[Document]) -> dict[str, list[Document]]:
    """Pages of the front page by heading: claims of papers, experiments of our own, evidence, others."""
    pages = [text for text in texts if text.path.parts[0] == "pages"]
    of_papers = {figure.page for figure in FIGURES}
    evidence = [text for name in EVIDENCE for text in pages if text.path.stem == name]
    shelves: dict[str, list[Document]] = {"claims": [], "own": [], "evidence": evidence, "others": []}
    for text in pages:
        if text.path.parts[1] == "experiments":
            shelves["claims" if text.path.stem in of_papers else "own"].append(text)
        elif text not in evidence:
            shelves["others"].append(text)
    return shelves


def _write_documents(site: _Site, texts: Sequence[Document]) -> None:
    """Write a page per document, with copies of its figures beside it."""
    pages = {text.source.resolve(): text.path for text in texts}
    for text in texts:
        site.page(text.path, "document", document=text, body=documents.render(text, pages))
        for figure in documents.figures(text):
            shutil.copyfile(figure, site.out / text.path.parent / figure.name)


def _by_title() -> dict[str, list[Figure]]:
    """Title of a paper -> its figures."""
    found: dict[str, list[Figure]] = {}
    for figure in FIGURES:
        found.setdefault(figure.title, []).append(figure)
    return found


def _images(pages: dict[str, Document]) -> dict[str, list[str]]:
    """Name of a page -> its images, from the root of the site."""
    return {
        name: [str(text.path.parent / image.name) for image in documents.figures(text)]
        for name, text in pages.items()
        if text.path.parts[:2] == ("pages", "experiments")
    }


def _stem(library: str) -> str:
    """`blackjax 1.7.1` -> `blackjax-1.7.1`, the name of its page of findings; undoes `matrix.library`."""
    return library.replace(" ", "-")
