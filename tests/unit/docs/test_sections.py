"""Every page of the documentation is in one of eight sections, which nav, list of pages and README have in common."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.paths import ROOT

DOCS = ROOT / "docs"
SECTIONS = ["Start", "Connect", "Score", "See", "Operate", "Change safely", "Extend", "How it works"]
CONTENTS = "contents.md"
"""The page with a link to every page."""


def pages_of(entry: Any) -> Iterator[str]:
    """Yields the pages that an entry of the nav stands for, relative to `docs/`: a folder stands for all of its own."""
    match entry:
        case dict():
            for inner in entry.values():
                yield from pages_of(inner)
        case list():
            for inner in entry:
                yield from pages_of(inner)
        case str() if (DOCS / entry).is_dir():
            yield from (path.relative_to(DOCS).as_posix() for path in (DOCS / entry).glob("*.md"))
        case _:
            yield entry


NAV: dict[str, Counter[str]] = {
    title: Counter(pages_of(entries))
    for section in yaml.safe_load((DOCS / ".nav.yml").read_text("utf-8"))["nav"]
    for title, entries in section.items()
}
"""The pages of each section, with how often the section names them."""


def anchor(section: str) -> str:
    return section.lower().replace(" ", "-")


def links_of(page: str, section: str) -> set[str]:
    """Returns the pages to which a section of a page of `docs/` leads, relative to `docs/`.

    A link to a heading does not count: the page of the heading can belong to another section.
    """
    text = (DOCS / page).read_text("utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"\]\(([^)#\s]+)\)", text))


def test_the_nav_has_the_eight_sections() -> None:
    assert list(NAV) == SECTIONS


def test_every_page_is_in_the_nav_once() -> None:
    named = sum(NAV.values(), Counter())
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert {page: named[page] for page in pages if named[page] != 1} == {}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_list_of_pages_has_the_pages_of_the_section(section: str) -> None:
    listed = links_of(CONTENTS, section)
    folders = {Path(page).parent.as_posix() for page in listed if Path(page).name in {"index.md", "README.md"}}
    pages = {page for page in NAV[section] if (DOCS / page).exists() and page != CONTENTS}
    assert {page for page in pages - listed if Path(page).parent.as_posix() not in folders} == set()
    assert {page for page in listed - pages if not page.startswith("../")} == set()


def test_the_readme_leads_to_the_eight_sections() -> None:
    links = re.findall(r"^\| \[([^]]+)\]\(([^)]+)\) \|", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert links == [(section, f"docs/{CONTENTS}#{anchor(section)}") for section in SECTIONS]


def test_the_list_of_pages_has_the_sections_in_order() -> None:
    headings = re.findall(r"^## (.+)$", (DOCS / CONTENTS).read_text("utf-8"), re.MULTILINE)
    assert headings == SECTIONS
