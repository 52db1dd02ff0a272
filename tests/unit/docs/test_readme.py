"""The README is short, and says what Faust does as the architecture does."""

from __future__ import annotations

import re

from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text("utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def about_faust(page: str) -> list[str]:
    """Returns the sentences about Faust's part in a page, without line breaks and targets of links."""
    (paragraph,) = re.findall(r"^(Faust runs the process, .*?)\n\n", page, re.MULTILINE | re.DOTALL)
    text = re.sub(r"\]\([^)]+\)", "]", " ".join(paragraph.split()))
    return re.split(r"(?<=\.) (?=[A-Z])", text)


def test_the_readme_has_two_screens() -> None:
    assert len(README.splitlines()) <= 90


def test_readme_and_architecture_say_in_the_same_three_sentences_what_faust_does() -> None:
    assert about_faust(README) == about_faust(ARCHITECTURE)
    assert len(about_faust(README)) == 3
