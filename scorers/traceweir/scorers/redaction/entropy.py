"""Measures how random a text looks."""

from __future__ import annotations

import math
import re
from collections import Counter

import re2

_WORD = r"(?:[A-Z]{0,4}[a-z]{3,24}(?:[A-Z]{1,5}[a-z]{2,24}){0,8}[A-Z]{0,4}|[A-Z]{1,24}|[A-Z]?[a-z]{1,3})"
# RE2, because words can be divided in many ways and a backtracking engine would try all of them.
_WORDS = re2.compile(rf"_{{0,2}}{_WORD}(?:[-_./ ]{{1,3}}{_WORD})*_{{0,2}}".encode())
_MEASURED = 512
_RUN = re.compile(r"[A-Za-z0-9]{10,}")
_CASES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_TIME = re.compile(r"\d{8}T\d{4,6}Z?")
_MAX_MEAN_CASE = 3
_MIN_MEAN_WORD = 4
_JOINT = re.compile(r"[-_.]+")
_VOWEL = re.compile(r"[aeiouAEIOU]")


def shannon_entropy(text: str) -> float:
    """Returns the Shannon entropy of the first 512 characters, in bits per character; 0 for the empty text.

    >>> shannon_entropy("aaaa"), shannon_entropy("abcd")
    (0.0, 2.0)
    """
    text = text[:_MEASURED]
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values()) + 0.0


def has_digit(text: str) -> bool:
    """Returns whether the text contains an ASCII digit.

    >>> has_digit("a1"), has_digit("a")
    (True, False)
    """
    return any("0" <= character <= "9" for character in text)


def is_wordy(text: str) -> bool:
    """Returns whether the text consists of words only: lower case, upper case or camel case, without digits.

    >>> [is_wordy(text) for text in ("required", "getUserName", "THE_NAME", "see-below", "hunter2", "kQzXwPtL")]
    [True, True, True, True, False, False]
    """
    return _WORDS.fullmatch(text[:_MEASURED].encode("ascii", "replace")) is not None


def is_mixed(text: str) -> bool:
    """Returns whether the text has upper case, lower case and digits, and is neither a path nor made of long words."""
    has_upper = text.lower() != text
    has_lower = text.upper() != text
    return has_upper and has_lower and has_digit(text) and text.count("/") < 3 and re.search("[a-z]{8}", text) is None


def is_jumbled(text: str) -> bool:
    """Returns whether a part of the text mixes upper case, lower case and digits, in shorter parts than words have.

    >>> [is_jumbled(text) for text in ("sk-9fQ2xKd7Lm3RtYw8", "sk-20240615T101500Z7f", "sk-Planning2025Offsite")]
    [True, False, False]
    """
    runs = _RUN.findall(_TIME.sub("", text[:_MEASURED]))
    return any(is_mixed(run) and len(_CASES.findall(run)) * _MAX_MEAN_CASE > len(run) for run in runs)


def has_words_only(text: str) -> bool:
    """Returns whether the text consists of words that `_`, `-`, `.` or capitals join, and not of random letters.

    Words of camel case have a vowel each, or at least four letters on average; random letters change case more often.

    >>> [has_words_only(text) for text in ("sk_test_placeholder", "hf_downloadAllFiles", "hf_MTIuscvHfsRTjbOjtfqe")]
    [True, True, False]
    """
    return all(_is_of_words(piece) for piece in _JOINT.split(text[:_MEASURED]) if piece)


def _is_of_words(piece: str) -> bool:
    if not piece.isalpha() or piece.islower() or piece.isupper():
        return piece.isalpha()
    words = _CASES.findall(piece)
    return len(piece) >= _MIN_MEAN_WORD * len(words) or all(map(_VOWEL.search, words))
