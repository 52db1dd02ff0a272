"""Finds the secrets and identifiers of a text, also where they are encoded, escaped or broken over lines.

The work is bounded: every rule takes time proportional to the text, escapes are decoded at most `MAX_LEVELS` times, encoded
runs at most `MAX_DEPTH` deep, and at most `MAX_DECODED_CHARS` characters are decoded for one text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import re2

from traceweir.scorers.redaction.assignments import assigned_secrets, foreign_secrets, spoken_secrets
from traceweir.scorers.redaction.encodings import View, decoded_runs, unescaped, unwrapped
from traceweir.scorers.redaction.entropy import is_wordy
from traceweir.scorers.redaction.format_rules import ASSIGNMENTS, format_hits, rows_to_try
from traceweir.scorers.redaction.hits import Hit
from traceweir.scorers.redaction.identifiers import identifiers
from traceweir.scorers.redaction.plain_text import plain

MAX_LEVELS = 4
MAX_DEPTH = 3
MAX_DECODED_CHARS = 4_000_000
_CAN_HIDE_A_SECRET = re2.compile(rb"[0-9@:=%&\\>|]|--|/home/|/Users/|[A-Za-z0-9+/_-]{16}")
"""Every rule needs one of these; about half of the strings of a document, its keys among them, have none."""
_ASSIGNED, _SPOKEN, _IDENTIFIER = 1_000, 1_001, 1_002
"""Ranks of kinds; the ranks below are the rows of the table of formats."""


@dataclass
class DecodingBudget:
    """What may still be decoded for a text, in characters."""

    chars: int = MAX_DECODED_CHARS

    def pays(self, chars: int) -> bool:
        """Subtracts the characters; returns False once the budget is spent."""
        self.chars -= chars
        return self.chars >= 0


def find_hits(text: str, budget: DecodingBudget | None = None, depth: int = MAX_DEPTH) -> list[Hit]:
    """Returns the secrets and identifiers of a text. Hits can overlap.

    Args:
        text: Any text.
        budget: The characters that may be decoded; shared by all texts decoded from one text.
        depth: How often an encoded run within an encoded run is decoded.
    """
    view = plain(text)
    if not any(_can_hide_a_secret(each) for each in ([text] if view is None else [text, view.text])):
        return []
    budget = budget or DecodingBudget()
    hits: list[Hit] = []
    views: list[View] = []
    for level in range(MAX_LEVELS + 1):
        ascii_text = text.encode("ascii", "replace")
        found = list(_level_hits(text, ascii_text, budget, depth))
        hits += [_mapped(hit, views) for hit in found]
        if view is not None and budget.pays(len(view.text)):
            views.append(view)
            text = view.text
            ascii_text = text.encode("ascii", "replace")
            hits += [_mapped(hit, views) for hit in _level_hits(text, ascii_text, budget, depth)]
        if level == MAX_LEVELS:
            break
        view = unescaped(text, ascii_text)
        if view is None or not budget.pays(len(text)):
            break
        views.append(view)
        text = view.text
        view = plain(text)
    return hits


def _can_hide_a_secret(text: str) -> bool:
    return _CAN_HIDE_A_SECRET.search(text.encode("ascii", "replace")) is not None


def _mapped(hit: Hit, views: list[View]) -> Hit:
    start = hit.start
    end = hit.end
    for view in reversed(views):
        start, end = view.source(start, end)
    return hit._replace(start=start, end=end)


def _level_hits(text: str, ascii_text: bytes, budget: DecodingBudget, depth: int) -> Iterator[Hit]:
    plain = list(_plain_hits(text, ascii_text))
    yield from plain
    yield from _run_hits(ascii_text, budget, depth)
    view = unwrapped(text)
    if view is None or not budget.pays(len(text)):
        return
    joined = view.text.encode("ascii", "replace")
    joints = view.joints()
    ends = {hit.end for hit in plain}
    for hit in [*_plain_hits(view.text, joined), *_run_hits(joined, budget, depth)]:
        end = _end_within_secret(view, hit, joints, ends)
        if end > hit.start:
            start, stop = view.source(hit.start, end)
            yield hit._replace(start=start, end=stop)


def _end_within_secret(view: View, hit: Hit, joints: list[int], ends: set[int]) -> int:
    """Returns the end of a hit that crosses line breaks: before the first line that is a word and no part of the secret.

    Returns 0 for a hit within one line, which was found before.
    """
    crossed = joints[bisect_right(joints, hit.start) : bisect_left(joints, hit.end)]
    if not crossed:
        return 0
    for number, joint in enumerate(crossed):
        next_joint = crossed[number + 1] if number + 1 < len(crossed) else hit.end
        if view.source(joint - 1, joint)[1] in ends and is_wordy(view.text[joint:next_joint]):
            return joint if number else 0
    return hit.end


def _run_hits(ascii_text: bytes, budget: DecodingBudget, depth: int) -> Iterator[Hit]:
    if not depth:
        return
    for start, end, text in decoded_runs(ascii_text):
        if not budget.pays(len(text)):
            return
        inner = find_hits(text, budget, depth - 1)
        if inner:
            best = min(inner, key=lambda hit: hit.rank)
            yield Hit(start, end, best.rank, best.kind)


def _plain_hits(text: str, ascii_text: bytes) -> Iterator[Hit]:
    rows = rows_to_try(ascii_text)
    if rows and rows[0] == ASSIGNMENTS:
        rows = rows[1:]
        yield from assigned_secrets(text, ascii_text, _ASSIGNED)
        yield from spoken_secrets(ascii_text, _SPOKEN)
    yield from format_hits(ascii_text, rows)
    if not text.isascii():
        yield from foreign_secrets(text, _ASSIGNED)
    yield from identifiers(text, ascii_text, _IDENTIFIER)
