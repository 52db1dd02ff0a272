"""Tests every row of the table of secret formats on an example of its own, and the table itself."""

from __future__ import annotations

import json
import random
import re
import string

import pytest
from tests.support.paths import ROOT

from traceweir.scorers.redaction.format_rules import format_hits, rows_to_try
from traceweir.scorers.redaction.redaction import redact_text
from traceweir.scorers.redaction.secret_formats import read_row, secret_formats

ALPHABETS = {
    "h": "0123456789abcdef",
    "d": string.digits,
    "z": string.ascii_lowercase,
    "u": string.ascii_uppercase,
    "l": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "A": string.ascii_letters + string.digits,
    "w": string.ascii_letters + string.digits + "-_",
}
EXAMPLES: dict[str, str] = json.loads((ROOT / "tests/support/redaction/format_examples.json").read_text("utf-8"))
"""A text for every row: `{A36}` stands for 36 characters of the alphabet `A`."""


def example(name: str) -> str:
    """Returns a text with a secret of the format, the same at each call."""
    rng = random.Random(name)
    return re.sub(
        r"\{([a-zA-Z])(\d+)\}", lambda match: "".join(rng.choices(ALPHABETS[match[1]], k=int(match[2]))), EXAMPLES[name]
    )


def test_every_row_has_an_example() -> None:
    assert list(EXAMPLES) == [row.name for row in secret_formats()]


def test_a_secret_of_every_format_is_found_by_its_own_row_and_redacted() -> None:
    for number, row in enumerate(secret_formats()):
        text = f"Then {example(row.name)} was there."
        ascii_text = text.encode()
        assert number in rows_to_try(ascii_text), row.name
        (hit, *_) = format_hits(ascii_text, [number])
        assert text[hit.start : hit.end] not in redact_text(text), row.name


def test_every_row_names_its_source_a_kind_and_lower_case_keywords() -> None:
    for row in secret_formats():
        assert re.fullmatch(r"https://[\w.-]+/.*", row.source), row.name
        assert re.fullmatch(r"[a-z][a-z0-9_]{0,39}", row.kind), row.name
        assert all(keyword == keyword.lower() and keyword.isascii() for keyword in row.keywords), row.name


def test_names_of_rows_differ() -> None:
    names = [row.name for row in secret_formats()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("line", ["one\ttwo", "n\tapi_key\tk\t3\tunknown\tp\thttps://x.example/"])
def test_a_row_with_other_columns_is_refused_with_its_name(line: str) -> None:
    with pytest.raises(ValueError, match="must have 7 columns"):
        read_row(line)


@pytest.mark.parametrize("text", ["ghp_" + "x" * 36, "AKIA" + "X" * 16, "sk-" + "0" * 40, "npm_" + "a" * 36])
def test_a_placeholder_in_the_form_of_a_secret_stays(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    "secret",
    [
        "h" + "f_MTIuscvHfsRTjbOjtfqeACXozzfbXnkktH",
        "sk" + "_test_BQokikJOvB",
        "k" + "p_QwXzPlMkNbVcTrSd",
        "gl" + "pat-XkQwrTzPlMnBvCxZdFgh",
        "gl" + "pat-kQ_zXwPt-LmNbVcXsDfG",
    ],
)
def test_a_key_without_digits_is_no_word(secret: str) -> None:
    assert redact_text(f"I use {secret} here") == "I use [REDACTED:api_key] here"


@pytest.mark.parametrize("text", ["REDIS_URL=redis://s3cretpw@cache:6379/0", "see redis://s3cretpw@cache:6379/0 here"])
def test_a_made_up_user_of_an_address_is_a_secret(text: str) -> None:
    assert "s3cretpw" not in redact_text(text)
