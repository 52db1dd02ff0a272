"""Recognises a reason that a judge has copied from its prompt: the verdict beside it says nothing about the case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from traceweir.scorers.judged.prompt import template_text

MIN_WORDS = 4
"""Number of words from which on a reason that stands in the prompt counts as copied; fewer words can be a quotation."""
_DOTS = ". \u2026"
"""The characters of the placeholder in a template."""
_WORD = re.compile(r"\w+")


def is_copied(reason: str, template: str) -> bool:
    """Returns whether a reason is a placeholder of the template of this name, or a passage of its rules.

    The text of the case does not count: a reason can quote what the judge has to judge.

    >>> is_copied("...", "safety_v1"), is_copied("one to three sentences", "safety_v1")
    (True, True)
    >>> is_copied("It names a weapon's parts.", "safety_v1"), is_copied("", "safety_v1")
    (False, False)
    """
    if reason and not reason.strip(_DOTS):
        return True
    words = _words(reason)
    return len(words) >= MIN_WORDS and f" {' '.join(words)} " in _rules(template)


@cache
def _rules(template: str) -> str:
    return f" {' '.join(_words(template_text(template)))} "


def _words(text: str) -> Sequence[str]:
    return _WORD.findall(text.casefold())
