"""Markdown pages of the repository as pages of the site."""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from markdown_it import MarkdownIt

LINK = re.compile(r'(href|src)="([^"]+)"')


@dataclass(frozen=True)
class Document:
    """A page of prose with its figures.

    Attributes:
        source: the Markdown file.
        path: of the page, below the root of the site.
        title: its first heading.
        text: the Markdown.
    """

    source: Path
    path: PurePosixPath
    title: str
    text: str

    @property
    def headline(self) -> str | None:
        """First sentence that begins in bold, as plain text: the page in one line."""
        found = re.search(r"^\*\*(.+?)\*\*([^\n|]*)", self.text, re.MULTILINE)
        if not found:
            return None
        rest = "" if found[1][-1] in ".:" else re.split(r"[.:](?: |$)", found[2])[0]
        return re.sub(r"[`*]", "", found[1] + rest).rstrip(".:")


def read(source: Path, path: PurePosixPath) -> Document:
    """Document of a Markdown file, whose page is to be `path`."""
    text = source.read_text(encoding="utf-8")
    heading = re.search(r"^# (.+)$", text, re.MULTILINE)
    return Document(source, path, heading[1] if heading else source.stem, text)


def figures(document: Document) -> list[Path]:
    """Files of the images of a document, as far as they exist."""
    found = [document.source.parent / name for name in re.findall(r"!\[[^]]*\]\(([^):]+)\)", document.text)]
    return [path for path in found if path.is_file()]


def render(document: Document, pages: dict[Path, PurePosixPath]) -> str:
    """HTML of a document: links to other documents lead to their pages, links to other files nowhere.

    Args:
        document: what to render.
        pages: source -> page of all documents of the site.
    """
    # HTML in the Markdown is shown, not obeyed
    html = MarkdownIt("commonmark", {"html": False}).enable("table").render(_without_comments(document.text))
    up = "../" * (len(document.path.parts) - 1)

    def aim(match: re.Match[str]) -> str:
        attribute, url = match[1], match[2]
        if re.match(r"[a-z]+:|#", url):
            return match[0]
        target, _, anchor = url.partition("#")
        path = (document.source.parent / target).resolve()
        anchor = f"#{anchor}" if anchor else ""
        if path in pages:
            return f'{attribute}="{up}{pages[path]}{anchor}"'
        if attribute == "src":
            return f'src="{path.name}" loading="lazy"'
        return "data-file"

    return LINK.sub(aim, html).replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")


def _without_comments(text: str) -> str:
    return re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
