"""references.bib and the code hold each other: what is cited is there, and what is there is cited."""

import re
from collections import Counter
from pathlib import Path

import pytest

from sgmcmc_verification.samplers.adapters.registry import ADAPTERS
from sgmcmc_verification.samplers.registry import SAMPLERS
from sgmcmc_verification.targets.registry import target

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("targets", "samplers", "checks", "reports", "benchmarks", "tests")
KEY = re.compile(r"(?<![\w/.-])[a-z]{2,}(?:1[89]|20)\d{2}[a-z]+(?![\w-])")
"""Author, year, first word of the title, in lower case: `ma2015complete`."""
ENTRY = re.compile(r"^@(\w+)\{([^,\s]+),$(.*?)^\}$", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^  (\w+)\s*=\s*\{(.*?)\},$", re.MULTILINE | re.DOTALL)
VENUE = {"article": "journal", "book": "publisher", "inproceedings": "booktitle", "incollection": "booktitle"}


def entries() -> list[tuple[str, str, dict[str, str]]]:
    """(kind, key, fields) of every entry."""
    text = (ROOT / "references.bib").read_text(encoding="utf-8")
    found = [(kind, key, dict(FIELD.findall(body))) for kind, key, body in ENTRY.findall(text)]
    assert len(found) == text.count("\n@"), "an entry is not written as the others are"
    return found


def cited() -> dict[str, list[str]]:
    """Key -> the files that name it."""
    places: dict[str, list[str]] = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            foreign = path == Path(__file__).resolve() or path.is_relative_to(ROOT / "tests" / "strangers")
            if path.suffix in (".py", ".md") and not foreign:
                for key in set(KEY.findall(path.read_text(encoding="utf-8"))):
                    places.setdefault(key, []).append(str(path.relative_to(ROOT)))
    return places


KEYS = {key for _, key, _ in entries()}


def test_every_key_cited_in_the_code_has_an_entry():
    assert {key: files for key, files in cited().items() if key not in KEYS} == {}


def test_every_entry_is_cited():
    assert KEYS - set(cited()) == set()


@pytest.mark.parametrize("row", [*SAMPLERS, *ADAPTERS], ids=lambda row: row.name)
def test_the_source_that_a_sampler_claims_has_an_entry_and_a_place(row):
    source = row.build(target(row.targets[0])).claims.source
    assert source.key in KEYS
    assert source.where.strip()


def test_keys_are_unique_and_follow_the_pattern():
    counts = Counter(key for _, key, _ in entries())
    assert [key for key, n in counts.items() if n > 1] == []
    assert [key for key in counts if not KEY.fullmatch(key)] == []


@pytest.mark.parametrize(
    ("kind", "key", "fields"), entries(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_an_entry_names_author_title_venue_and_the_year_of_its_key(kind, key, fields):
    assert {"author", "title", "year", VENUE[kind]} <= set(fields)
    assert fields["year"] in key
    surname = re.sub(r"[^a-z]", "", fields["author"].split(",")[0].lower())
    assert key.startswith(surname)


def test_a_citation_is_seen_in_running_text_and_a_checksum_is_not():
    assert KEY.findall("Source: ma2015complete, equation (9); (neal2011mcmc)") == ["ma2015complete", "neal2011mcmc"]
    assert KEY.findall("commit ab2015cd9 and a url/chen2014x and 1e2014abc") == []
