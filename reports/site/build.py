"""Stored results -> a static site.

    python -m reports build [--results FOLDER] [--out FOLDER]

The site is a function of the files alone: the same files give the same bytes. It needs no network and no server, and no
script to be read; a script only filters and sorts tables.
"""

import shutil
import tempfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

import jinja2

from reports.pages.conclusion import STANDINGS
from reports.pages.findings_index import of_checks
from reports.records.jsonl import ROOT
from reports.records.results import ResultsError
from reports.site import conformance_matrix, documents, kill_table, orders, workloads
from reports.site.documents import Document
from reports.site.gauge import gauge
from reports.site.papers import FIGURES, OTHERS, Figure

PUBLISHED = ROOT / "reports" / "published"
FINDINGS = ROOT / "reports" / "findings"
MARKS = {"confirmed": "✓", "in part": "◐", "fails": "✗", "undecided": "?"}
EVIDENCE = ("kill-matrix", "mutation", "calibration", "manifolds")
"""Published pages about the suite itself, in the order of the front page."""
CAUSES = ("three-biases", "cost-of-accuracy")
"""Experiments that the page of orders leads to."""


def build(results: Path, out: Path, history: Path | None = None) -> int:
    """Write the site of a folder of results; returns the number of pages. An old site is replaced as a whole.

    Args:
        results: the folder.
        out: where the site is to be.
        history: pages that `asv publish` wrote, which become the folder `asv` of the site; None for none.

    Raises:
        ResultsError: if the folder holds no results, a file cannot be used, or `out` is a folder of something else.
    """
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
        count = _write(new, rows, texts, results, history is not None)
        if history is not None:
            shutil.copytree(history, new / "asv")
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


def environment() -> jinja2.Environment:
    """Of the templates; everything that is filled in is escaped."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("reports.site"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _write(
    out: Path, rows: Sequence[conformance_matrix.Sampler], texts: Sequence[Document], results: Path, history: bool
) -> int:
    templates, count = environment(), 0
    pages = {text.source.resolve(): text.path for text in texts}
    findings = {text.path.stem: text for text in texts if text.path.parts[0] == "findings"}
    present = {
        "workloads": any((results / "experiments" / f"{row[1]}.jsonl").is_file() for row in workloads.ROWS),
        "papers": (results / "experiments").is_dir(),
        "kills": (results / "kill-matrix.jsonl").is_file(),
    }
    shared: dict[str, Any] = {
        "history": history,
        "present": present,
        "marks": MARKS,
        "standings": STANDINGS,
        "symbols": conformance_matrix.SYMBOLS,
        "gauge": gauge,
    }

    def page(path: PurePosixPath | str, template: str, **values: Any) -> None:
        nonlocal count
        path = PurePosixPath(path)
        up = "../" * (len(path.parts) - 1)
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        text = templates.get_template(template).render(up=up, here=str(path), **shared, **values)
        target.write_text(text, encoding="utf-8")
        count += 1

    groups: dict[str, list[conformance_matrix.Sampler]] = {}
    for row in rows:
        groups.setdefault(row.library, []).append(row)
    experiments = [t for t in texts if t.path.parts[:2] == ("pages", "experiments")]
    of_papers = {figure.page for figure in FIGURES}
    claims = [t for t in experiments if t.path.stem in of_papers]
    own = [t for t in experiments if t.path.stem not in of_papers]
    evidence = [t for name in EVIDENCE for t in texts if t.path.parts[0] == "pages" and t.path.stem == name]
    others = [t for t in texts if t.path.parts[0] == "pages" and t not in experiments and t not in evidence]
    page(
        "index.html", "index.html",
        groups=groups, evidence=evidence, claims=claims, own=own, others=others, findings=findings,
        results=sum(len(row.results) for row in rows),
    )  # fmt: skip
    page("matrix.html", "matrix.html", rows=rows, columns=conformance_matrix.columns(rows))
    for row in rows:
        finding, drawn = findings.get(_stem(row.library)), orders.of_sampler(row.results)
        page(f"samplers/{row.slug}.html", "sampler.html", row=row, finding=finding, orders=drawn)
    named = {t.path.stem: t for t in texts if t.path.parts[0] == "pages"}
    libraries_drawn = {
        name: orders.of_library([(row.name, row.results) for row in own], name) for name, own in groups.items()
    }
    causes = [named[name] for name in CAUSES if name in named]
    page("orders.html", "orders.html", libraries={k: v for k, v in libraries_drawn.items() if v}, experiments=causes)
    if present["workloads"]:
        page("workloads.html", "workloads.html", workloads=workloads.workloads(results), pages=named)
    if present["papers"]:
        page("papers.html", "papers.html", papers=_by_title(), pages=named, images=_images(named), others=OTHERS)
    if present["kills"]:
        bugs = kill_table.bugs(results / "kill-matrix.jsonl")
        page(
            "kills.html", "kills.html",
            bugs=bugs,
            tiers=kill_table.tiers_of(bugs),
            page=named.get("kill-matrix"),
            calibration=named.get("calibration"),
        )  # fmt: skip
    for text in texts:
        page(text.path, "document.html", document=text, body=documents.render(text, pages))
        for figure in documents.figures(text):
            shutil.copyfile(figure, out / text.path.parent / figure.name)
    (out / "matrix.csv").write_text(conformance_matrix.to_csv(rows), encoding="utf-8")
    (out / "matrix.md").write_text(conformance_matrix.to_markdown(rows), encoding="utf-8")
    for name in ("style.css", "tables.js"):
        static = resources.files("reports.site").joinpath("static", name)
        (out / name).write_text(static.read_text(encoding="utf-8"), encoding="utf-8")
    (out / ".reports-site").touch()
    return count


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
