"""The site: its links, what it shows, that it is a function of its input, and that a browser likes it."""

import dataclasses
import functools
import http.server
import json
import math
import os
import re
import shutil
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest

from sgmcmc_verification.checks.core.conclusion import Plan
from sgmcmc_verification.checks.core.result import Result, Verdict
from sgmcmc_verification.reports.__main__ import main
from sgmcmc_verification.reports.pages.findings_index import libraries, of_checks
from sgmcmc_verification.reports.records.jsonl import ROOT
from sgmcmc_verification.reports.records.results import ResultsError, load
from sgmcmc_verification.reports.site import workloads
from sgmcmc_verification.reports.site.build import PUBLISHED, build
from sgmcmc_verification.reports.site.chart import Axis, Line, chart, tick
from sgmcmc_verification.reports.site.conformance_matrix import library, samplers, to_csv, to_markdown
from sgmcmc_verification.reports.site.gauge import HIGH, LOW, WIDTH, place
from sgmcmc_verification.reports.site.kill_table import bugs
from sgmcmc_verification.reports.site.papers import FIGURES
from tests.helpers.result_lines import DTYPES, LIMIT, header, result, written

pytestmark = pytest.mark.xdist_group("reports_site")  # what the fixture makes serves one worker

PAGES = (
    "index",
    "matrix",
    "samplers/geoopt-sgrhmc",
    "pages/kill-matrix",
    "findings/index",
    "orders",
    "workloads",
    "papers",
    "kills",
)
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Of all published results."""
    out = tmp_path_factory.mktemp("site") / "site"
    build(PUBLISHED, out)
    return out


class Page(HTMLParser):
    """Links, ids and tags that were opened and closed."""

    EMPTY = frozenset({"meta", "link", "input", "br", "img", "path", "circle", "hr"})

    def __init__(self, path: Path):
        super().__init__()
        self.links, self.ids, self.open = [], set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.links += [given[name] for name in ("href", "src") if given.get(name)]
        if "id" in given:
            assert given["id"] not in self.ids, given["id"]
            self.ids.add(given["id"])
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.EMPTY:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_every_link_of_every_page_leads_somewhere_inside(site):
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) > 50
    for path, page in pages.items():
        assert page.open == []
        for link in page.links:
            if link.startswith(("https:", "http:", "data:")):
                continue
            name, anchor = urldefrag(link)
            target = (path.parent / unquote(name)).resolve() if name else path
            assert target.is_file(), f"{path.relative_to(site)}: {link}"
            if anchor and target in pages and "samplers" in target.parts:
                assert anchor in pages[target].ids, f"{path.relative_to(site)}: {link}"


def test_nothing_is_fetched_from_elsewhere(site):
    for path in site.rglob("*.html"):
        text = path.read_text()
        assert 'src="http' not in text
        assert 'rel="stylesheet" href="http' not in text


def test_the_same_results_make_the_same_bytes_in_another_process(tmp_path):
    """Of every page but those of most libraries, with another order of the elements of sets."""
    folder, here, there = (tmp_path / name for name in ("in", "here", "there"))
    left_out = {path.name for path in of_checks(PUBLISHED) if library(path.stem).split()[0] not in ("optax", "numpyro")}
    shutil.copytree(PUBLISHED, folder, ignore=shutil.ignore_patterns(*left_out))
    build(folder, here)
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    command = [
        sys.executable,
        "-m",
        "sgmcmc_verification.reports",
        "build",
        "--results",
        str(folder),
        "--out",
        str(there),
    ]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": seed}, check=True)
    files = sorted(path.relative_to(here) for path in here.rglob("*") if path.is_file())
    assert {"index", "matrix", "orders", "workloads", "papers", "kills"} <= {name.stem for name in files}
    assert files == sorted(path.relative_to(there) for path in there.rglob("*") if path.is_file())
    for name in files:
        assert (here / name).read_bytes() == (there / name).read_bytes(), name


def small(folder: Path, *results: Result) -> Path:
    folder.mkdir()
    (folder / "lib-1.0.jsonl").write_text("".join(r.to_json() + "\n" for r in results))
    return folder


def found(verdict: Verdict, **rest: Any) -> Result:
    numbers: dict[str, Any] = {"effect": 0.5, "allowance": 1e-3, "detectable": 1e-2} | rest
    return dataclasses.replace(result(verdict, **numbers), reason="<script>alert(1)</script>")


def test_what_a_library_says_is_shown_and_not_run(tmp_path):
    build(small(tmp_path / "in", found("fail")), tmp_path / "out")
    text = (tmp_path / "out/samplers/lib-sgld.html").read_text()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_the_worst_verdict_of_a_check_is_in_the_matrix_and_in_its_exports(tmp_path):
    folder = small(tmp_path / "in", found("pass"), found("fail", options={"friction": 2.0}), found("not-applicable"))
    rows = samplers([folder / "lib-1.0.jsonl"])
    assert to_csv(rows) == ("library,sampler,law,conduct,end_point_ks\nlib 1.0,lib/sgld,violated,not examined,fail\n")
    assert "| end_point_ks | fail |" in to_markdown(rows)


def test_a_page_says_what_holds_of_law_and_conduct_and_what_was_not_examined(tmp_path):
    folder = small(tmp_path / "in")
    plan = header(
        lib_sgld=Plan(2, ("gaussian",), 1, notes=("option gain: text",)), lib_sghmc=Plan(9, part="--tier law")
    )
    whole = (result(statement=LIMIT, meets=["gaussian"]), result("fail", DTYPES))
    (folder / "lib-1.0.jsonl").write_text("\n".join([plan, *(r.to_json() for r in whole)]) + "\n")
    build(folder, tmp_path / "out")
    page = " ".join((tmp_path / "out/samplers/lib-sgld.html").read_text().split())
    assert "law holds to order 1" in page
    assert "<dt>shown for</dt><dd>a correlated Gaussian in two or more dimensions</dd>" in page
    assert "<dt>conduct</dt><dd>major: shapes_and_dtypes</dd>" in page
    assert "<dt>not examined</dt><dd>option gain: text</dd>" in page
    assert "<code>pytest checks</code>, commit abc" in page
    part = " ".join((tmp_path / "out/samplers/lib-sghmc.html").read_text().split())
    assert "<dt>part</dt><dd>--tier law</dd>" in part
    assert "not examined" in part
    rows = samplers([folder / "lib-1.0.jsonl"])
    assert [(row.conclusion.law, row.part) for row in rows] == [("holds", ""), ("not examined", "--tier law")]


def test_the_suites_own_samplers_come_last_on_the_front_page_and_are_no_library_of_the_findings(tmp_path):
    folder = small(tmp_path / "in", found("pass"))
    own = dataclasses.replace(found("fail"), sampler="sgld")
    (folder / "suite-0.1.0.jsonl").write_text(own.to_json() + "\n")
    (folder / "some-page.jsonl").write_text(found("fail").to_json() + "\n")
    assert [path.stem for path in of_checks(folder)] == ["suite-0.1.0", "lib-1.0"]
    assert [path.stem for path in libraries(folder)] == ["lib-1.0"]
    build(folder, tmp_path / "out")
    front = (tmp_path / "out/index.html").read_text()
    assert 0 < front.index("lib 1.0") < front.index("suite 0.1.0")


def test_the_front_page_counts_what_applies_and_says_when_it_was_run(tmp_path):
    folder = small(tmp_path / "in", found("pass"))
    lines = (header(lib_sgld=Plan(1, ())), found("pass"), dataclasses.replace(found("not-applicable"), target="other"))
    written(folder / "lib-1.0.jsonl", *lines)
    build(folder, tmp_path / "out")
    front = (tmp_path / "out/index.html").read_text()
    assert "1 results on 1 samplers of 1 libraries" in front
    run = load(folder / "lib-1.0.jsonl").header
    assert f"<small>{run.date[:10]}, commit {run.commit}</small>" in front


def test_mixed_schemas_and_foreign_folders_are_refused(tmp_path, capsys):
    folder = small(tmp_path / "in", found("pass"))
    (folder / "more-2.0.jsonl").write_text(found("pass", schema=3).to_json() + "\n")
    assert main(["build", "--results", str(folder), "--out", str(tmp_path / "out")]) == 2
    assert "has the schema 3" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    (folder / "more-2.0.jsonl").unlink()
    keep = tmp_path / "precious"
    keep.mkdir()
    (keep / "thesis.tex").touch()
    with pytest.raises(ResultsError, match="holds files that are not a site"):
        build(folder, keep)
    assert (keep / "thesis.tex").exists()
    with pytest.raises(ResultsError, match="holds no file"):
        build(keep, tmp_path / "out")


@pytest.mark.parametrize(
    ("stem", "name"),
    [("blackjax-1.7.1", "blackjax 1.7.1"), ("jax-sgmc-0.1.5", "jax-sgmc 0.1.5"), ("mine", "mine")],
)
def test_library_and_version_are_told_apart(stem, name):
    assert library(stem) == name


def test_the_drawn_axis_is_logarithmic_and_bounded():
    assert place(0.0) == place(1e-30) == 4
    assert place(1e5) == WIDTH - 4
    middle = 10 ** ((LOW + HIGH) / 2)
    assert place(middle) == pytest.approx(WIDTH / 2)


def test_asv_pages_are_linked_where_they_are_given(tmp_path):
    folder, history = small(tmp_path / "in", found("pass")), tmp_path / "html"
    history.mkdir()
    (history / "index.html").write_text("asv")
    (history / "404.html").write_text('<a href="/index.html">')
    build(folder, tmp_path / "out", history, history)
    assert not list((tmp_path / "out").rglob("404.html"))
    assert (tmp_path / "out/asv/index.html").read_text() == "asv"
    assert 'href="../asv/index.html"' in (tmp_path / "out/samplers/lib-sgld.html").read_text()
    build(folder, tmp_path / "plain")
    assert "asv/" not in (tmp_path / "plain/index.html").read_text()
    assert main(["build", "--results", str(folder), "--history", str(tmp_path), "--out", str(tmp_path / "no")]) == 2


def test_a_sampler_page_draws_the_order_of_its_law(tmp_path):
    detail = {"bias": [0.04, 0.01, 0.0025], "step_sizes": [0.2, 0.1, 0.05], "measured_order": 2.0}
    build(small(tmp_path / "in", result(statement=LIMIT, detail=detail)), tmp_path / "out")
    text = (tmp_path / "out/samplers/lib-sgld.html").read_text()
    assert "gaussian, order 2.0" in text
    assert len(markers(text)) == 3 + 1  # its points, and the key of the legend
    assert "lib 1.0: bias of the stationary distribution" in (tmp_path / "out/orders.html").read_text()


def markers(svg: str) -> list[tuple[float, float]]:
    """Places of the markers of the first line, in the order in which they are drawn."""
    found = re.findall(r'<use xlink:href="#\w+" x="([\d.]+)" y="([\d.]+)" style="fill: #0072b2', svg)
    return [(float(x), float(y)) for x, y in found]


def test_a_chart_places_points_by_their_logarithms_and_drops_what_it_cannot_show():
    shown = str(
        chart([Line("a<b", ((1, 1), (10, 100), (100, 1e4), (0, 1), (1, math.inf)))], *(Axis("x", True),) * 2, "t")
    )
    (x0, y0), (x1, y1), (x2, y2), _ = markers(shown)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=1e-5)  # places have six decimals
    assert y0 - y1 == pytest.approx(y1 - y2, abs=1e-5)
    assert x0 < x1
    assert y0 > y1
    assert "a&lt;b" in shown
    assert chart([Line("none", ((0, 1),))], Axis("x", True), Axis("y"), "t") == ""
    with pytest.raises(ValueError, match="at most 8 in a chart"):
        chart([Line(str(i), ((1, 1),)) for i in range(9)], Axis("x"), Axis("y"), "t")


@pytest.mark.parametrize(
    ("log", "low", "high", "texts"),
    [
        (True, 0.0, 3.0, ["1", "10", "100", "1000"]),
        (True, 3.1, 3.6, ["1500", "2000", "3000"]),
        (True, -12.0, 0.0, ["1e-12", "1e-10", "1e-8", "1e-6", "1e-4", "0.01", "1"]),
        (False, 0.0, 9.0, ["0", "2", "4", "6", "8"]),
    ],
)
def test_ticks_are_round(log, low, high, texts):
    if log:
        low, high = 10**low, 10**high
    places = Axis("x", log).locator(low, high).tick_values(low, high)
    assert [tick(place) for place in places if low <= place <= high] == texts


def test_a_chart_says_in_words_what_it_shows_and_takes_the_colour_of_its_page():
    shown = chart([Line("a", ((1, 2), (3, 4)))], Axis("x"), Axis("y"), "Two points")
    assert 'role="img" aria-labelledby="chart-two-points chart-two-points-desc"' in shown
    assert '<title id="chart-two-points">Two points</title>' in shown
    assert "y against x. a: 2 points from (1, 2) to (3, 4).</desc>" in shown
    assert "fill: currentColor" in shown
    assert not re.search("#0{3}|black|<style|<metadata", shown)


def test_a_site_without_matplotlib_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    folder = small(tmp_path / "in", found("pass"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ResultsError, match=r"pip install 'sgmcmc-verification\[reports\]'"):
        build(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_matplotlib_is_loaded_by_drawing_alone():
    code = "import sys; import sgmcmc_verification.reports.site.build; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_bug_is_found_only_where_a_check_failed(tmp_path):
    path = tmp_path / "kill-matrix.jsonl"
    lines = [("a", "law", "pass"), ("a", "order", "fail"), ("b", "law", "error"), ("b", "recipe", "not-applicable")]
    path.write_text(
        "".join(
            json.dumps({"detail": {"defect": name}, "tier": tier, "verdict": verdict, "check": "c"}) + "\n"
            for name, tier, verdict in lines
        )
    )
    a, b = bugs(path)
    assert (a.tiers, a.statements, a.killed) == ({"law": "run", "order": "killed"}, ("c",), True)
    assert (b.tiers, b.statements, b.killed) == ({"law": "run"}, (), False)


def test_every_figure_of_a_paper_leads_to_a_page_or_says_that_it_was_not_run(site):
    for figure in FIGURES:
        assert (figure.page is None) == (figure.found == "Not run.")
        if figure.page:
            assert (site / "pages" / "experiments" / f"{figure.page}.html").is_file()


@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Debian's chromium and chromium-driver, or others on PATH")
def test_a_browser_finds_no_error_and_the_filter_hides_rows(site):
    from selenium import webdriver
    from selenium.webdriver.common.by import By

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in ("headless", "no-sandbox", "disable-gpu", "disable-background-networking", "disable-component-update"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))
    try:
        root = f"http://127.0.0.1:{server.server_port}"
        for width in (1280, 768, 360):  # a window is not made narrower than 500
            screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
            for name in PAGES:
                browser.get(f"{root}/{name}.html")
                assert browser.get_log("browser") == []
                # nothing but what scrolls by itself is wider than the screen
                wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
                assert browser.execute_script(wide) <= 0, (name, width)
        for colours, ground in (("light", "rgba(255, 255, 255, 1)"), ("dark", "rgba(22, 25, 29, 1)")):
            wish = {"features": [{"name": "prefers-color-scheme", "value": colours}]}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wish)
            browser.get(f"{root}/index.html")
            assert browser.find_element(By.TAG_NAME, "html").value_of_css_property("background-color") == ground
        browser.find_element(By.ID, "ask").send_keys("blackjax/sghmc")
        shown = [each for each in browser.find_elements(By.CSS_SELECTOR, "#front [data-name]") if each.is_displayed()]
        assert [each.text.strip(" *") for each in shown] == ["sghmc"]
        assert len([each for each in browser.find_elements(By.CSS_SELECTOR, "#front tr") if each.is_displayed()]) == 1
        assert browser.find_element(By.TAG_NAME, "output").text.startswith("1 of ")
        browser.get(f"{root}/workloads.html")
        drawn = browser.find_elements(By.CSS_SELECTOR, "figure.drawing svg.chart")
        assert len(drawn) == len(workloads.ROWS) + 1
        assert all(0.3 < svg.size["height"] / svg.size["width"] < 1 for svg in drawn)
        browser.get(f"{root}/matrix.html")
        rows = browser.find_elements(By.CSS_SELECTOR, "#matrix tbody tr")
        browser.find_element(By.CSS_SELECTOR, "input[type=search]").send_keys("geoopt sgrhmc")
        assert [row.get_attribute("data-name") for row in rows if row.is_displayed()] == ["geoopt/sgrhmc"]
    finally:
        browser.quit()
        server.shutdown()
        server.server_close()
