"""Applies the table of secret formats: keywords first, then the patterns of the rows whose keyword the text contains."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import re2

from traceweir.scorers.redaction.assignments import KEYWORDS as ASSIGNMENT_KEYWORDS
from traceweir.scorers.redaction.entropy import (
    has_digit,
    has_words_only,
    is_jumbled,
    is_mixed,
    is_wordy,
    shannon_entropy,
)
from traceweir.scorers.redaction.hits import Hit
from traceweir.scorers.redaction.secret_formats import SecretFormat, secret_formats
from traceweir.scorers.redaction.secret_names import is_address_with_secret

_MEMORY = 64 << 20
_LONG_RUN = re2.compile(rb"[A-Za-z0-9+/_.-]{40}")
_PART = re.compile(r"[A-Za-z0-9]{6,}")
_WORD_AND_NUMBER = re.compile(r"[A-Za-z][a-z]*\d{1,4}|\d+")
_GLUE = re.compile(rb"[\w-]")
_OPENAI = "T3BlbkFJ"
"""What all older keys of OpenAI contain: `OpenAI` in base64."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_NO_SECRET_BETWEEN = re.compile(
    r"\b(?:trace|span|commit|sha\d*|md5|hash|digest|checksum|etag|version|request|order|user|account|session|build|image|host"
    r"|run|job|issue|ticket|page|https?|www|com|id)s?\b(?!.*\b(?:key|token|secret|password)\b)",
    re.IGNORECASE,
)


class Rules(NamedTuple):
    """The compiled table."""

    keywords: Any
    """A set of all keywords, as one automaton."""
    rules_of: tuple[tuple[int, ...], ...]
    """The rows of each keyword; -1 stands for the rules of assignments."""
    patterns: tuple[Any, ...]
    formats: tuple[SecretFormat, ...]
    without_keyword: tuple[int, ...]


ASSIGNMENTS = -1


@cache
def compiled_rules() -> Rules:
    """Returns the compiled table. Compiling takes about 20 ms, once per process."""
    formats = secret_formats()
    rows: dict[str, list[int]] = {keyword: [ASSIGNMENTS] for keyword in ASSIGNMENT_KEYWORDS}
    for number, row in enumerate(formats):
        for keyword in row.keywords:
            rows.setdefault(keyword, []).append(number)
    options = re2.Options()
    options.case_sensitive = False
    options.literal = True
    options.max_mem = _MEMORY
    options.log_errors = False
    keywords = re2.Set.SearchSet(options)
    for keyword in rows:
        keywords.Add(keyword)
    keywords.Compile()
    patterns = tuple(re2.compile(row.pattern.encode()) for row in formats)
    without = tuple(number for number, row in enumerate(formats) if not row.keywords)
    return Rules(keywords, tuple(map(tuple, rows.values())), patterns, formats, without)


def rows_to_try(ascii_text: bytes) -> list[int]:
    """Returns the numbers of the rows whose keyword the text contains, in order; `ASSIGNMENTS` first where a name occurs."""
    rules = compiled_rules()
    found = {row for keyword in rules.keywords.Match(ascii_text) or () for row in rules.rules_of[keyword]}
    if _LONG_RUN.search(ascii_text) is not None:
        found.update(rules.without_keyword)
    return sorted(found)


def format_hits(ascii_text: bytes, rows: list[int]) -> Iterator[Hit]:
    """Yields the secrets of the given rows."""
    rules = compiled_rules()
    for number in rows:
        row = rules.formats[number]
        group = 2 if "service" in row.checks else None
        checks = [_CHECKS[check] for check in row.checks if check in _CHECKS]
        for match in rules.patterns[number].finditer(ascii_text):
            start, end = match.span(group if group is not None else _first_group(match))
            secret = ascii_text[start:end].decode()
            if row.min_entropy and shannon_entropy(secret) < row.min_entropy:
                continue
            if group == 2 and _NO_SECRET_BETWEEN.search(match.group(1).decode()):
                continue
            is_glued = "apart" in row.checks and _GLUE.match(ascii_text, start - 1, start)
            if is_glued and _OPENAI not in secret and not is_jumbled(secret):
                continue
            if all(check(secret) for check in checks):
                yield Hit(start, end, number, row.kind)


def _first_group(match: Any) -> int:
    return 1 if len(match.groups()) and match.span(1) != (-1, -1) else 0


def _is_basic(secret: str) -> bool:
    """Returns whether the text is `user:password` in base64."""
    try:
        decoded = base64.b64decode(secret.replace("-", "+").replace("_", "/") + "===")
    except binascii.Error:
        return False
    return b":" in decoded and decoded.isascii() and decoded.decode().isprintable()


def _is_random_part(part: str) -> bool:
    """Returns whether a part between hyphens is neither a word, nor a number, nor a word with a number (`layer12`)."""
    return has_digit(part) and _WORD_AND_NUMBER.fullmatch(part) is None


def _is_session_id(secret: str) -> bool:
    return has_digit(secret) and _UUID.search(secret) is None


_CHECKS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        "digit": has_digit,
        "mixed": is_mixed,
        "basic": _is_basic,
        "cookie": _is_session_id,
        "random": lambda secret: any(_is_random_part(part) for part in _PART.findall(secret)),
        "unwordy": lambda secret: not (is_wordy(secret) and has_words_only(secret)),
        "database": lambda secret: "{" not in secret and is_address_with_secret(secret),
        # `postgresql://{user}:{password}@{host}` is a template.
        "address": lambda secret: "{" not in secret,
    }
)
