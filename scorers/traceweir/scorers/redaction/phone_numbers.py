"""Finds telephone numbers by their format.

The matcher of `phonenumbers` was tried and rejected. The matcher reads identifiers of ten digits (orders, products) as
American numbers, misses the fictitious numbers that people write instead of their own ("(555) 123-4567"), and needs 3 ms
for 300 characters. Therefore the patterns here match numbers by their format. The library validates a match only where the
format is ambiguous: numbers after a plus sign, and groups separated by spaces or dots.

A pattern restricts the text before a match only where no other match can end. Otherwise the replacement of a match would
make the next match possible, and a text with n such neighbours would be searched n times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from traceweir.scorers.redaction.hits import Hit

# Few texts need it, and it brings the formats of all countries.
if TYPE_CHECKING:
    import phonenumbers

_MAX_VALIDATED = 1_000
"""Matches of a rule in a text that are validated, at 0.1 ms each; every later match counts as a number."""
_UUID = "-".join(rf"[0-9A-Fa-f]{{{count}}}" for count in (8, 4, 4, 4, 12))


def phone_numbers(text: str, windows: Sequence[tuple[int, int]], rank: int) -> Iterator[Hit]:
    """Yields the telephone numbers of a text.

    Args:
        text: The text.
        windows: The parts of the text around digits; the rest is not searched.
        rank: The rank of the hits.
    """
    for hints, pattern, end_of_number in _RULES:
        if any(hint in text for hint in hints):
            matches = chain.from_iterable(pattern.finditer(text, start, end) for start, end in windows)
            for number, match in enumerate(matches):
                end = end_of_number(match) if number < _MAX_VALIDATED else match.end()
                if end:
                    yield Hit(match.start(), end, rank, "phone")


def _possible_end(match: re.Match[str]) -> int:
    """Returns the end of the longest valid number at the start of a match such as `+82 10 1234 5678 2024`.

    If no prefix is a valid number, the longest prefix with a possible length for its country is the number.
    """
    import phonenumbers

    number = match[0]
    ends = [end for end in range(len(number), 2, -1) if number[end : end + 1] in ("", " ", ".", "-", "(")]
    for suits in (phonenumbers.is_valid_number, _has_possible_length):
        for end in ends:
            try:
                if suits(phonenumbers.parse(number[:end])):
                    return match.start() + end
            except phonenumbers.NumberParseException:
                # No such country, or too short.
                break
    return 0


def _has_possible_length(number: phonenumbers.PhoneNumber) -> bool:
    import phonenumbers

    # `is_possible_number` also accepts numbers that can only be dialled within a city.
    possible = phonenumbers.is_possible_number_with_reason(number) == phonenumbers.ValidationResult.IS_POSSIBLE
    return bool(possible)


def _assigned_end(match: re.Match[str]) -> int:
    """Returns the end of groups of digits separated by spaces or dots, if Korea or North America has assigned the number."""
    import phonenumbers

    number = phonenumbers.parse(match[0], "KR" if match[0].startswith("0") else "US")
    return match.end() if phonenumbers.is_valid_number(number) else 0


def _end_unless_uuid(match: re.Match[str]) -> int:
    """Returns the end of a number, and 0 for a UUID such as `3f2a1010-4068-4295-9319-5d0c6f1b2a77`, which contains a number.

    The pattern matches UUIDs before numbers. Checking the text before a number does not work instead: people write
    `HP010-1234-5678`, and a part of a UUID can be between hyphens.
    """
    return 0 if match["uuid"] else match.end()


def _rule(
    hints: str, end: Callable[[re.Match[str]], int], *alternatives: str
) -> tuple[tuple[str, ...], re.Pattern[str], Callable[[re.Match[str]], int]]:
    return tuple(hints.split("|")), re.compile("|".join(alternatives), re.ASCII), end


_RULES = (
    _rule("+", _possible_end, r"(?<!\+)\+[1-9][\d ().-]{5,22}\d(?!\d)"),
    # Korean; without groups only mobile numbers are recognised.
    _rule(
        "0",
        _end_unless_uuid,
        rf"(?P<uuid>{_UUID})",
        r"(?<![\w.+-])(?:010\d{8}|01[16-9]\d{7,8})(?!\w)",
        r"(?<![\d+])01[016-9][-. ]\d{3,4}[-. ]\d{4}(?!\d)",
        r"(?:\(0\d{1,2}\) ?|(?<![\d+])0(?:2|[3-6]\d|[78]0|50\d)(?:-|\) ?))\d{3,4}[-. ]\d{4}(?!\d)",
    ),
    # North American.
    _rule(
        "-|(",
        re.Match.end,
        r"(?:(?:(?<!\d)\+?1[-. ])?\(\d{3}\)[-. ]?|(?<![\d+-])(?:\+?1[-. ])?\d{3}-)\d{3}[-. ]\d{4}(?!\d)",
    ),
    _rule(
        ".| ",
        _assigned_end,
        r"(?<![\w+.-])(?:0\d{1,2}[. ]\d{3,4}|(?:1[. ])?[2-9]\d\d[. ]\d{3})[. ]\d{4}(?![-.]?\d|\w)",
    ),
)
