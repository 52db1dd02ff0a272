"""Recognises a reason that a judge has copied from the form of the answer: the verdict beside it decides nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from traceweir.scorers.judged.prompt import template_text

MIN_WORDS = 4
"""Number of words from which on a reason that stands in the form of the answer counts as copied."""
_FORM = re.compile(r"^## Your answer\n(.*?)(?=^## |^\[\[session\]\])", re.MULTILINE | re.DOTALL)
"""The form: from its heading to the next one. A reason in the words of the rules is a reason: "The context contradicts it."."""
_DOTS = ". \u2026"
"""The characters of the placeholder in a template."""
_WORD = re.compile(r"\w+")


def is_copied(reason: str, template: str) -> bool:
    """Returns whether a reason is the placeholder of the template of this name, or a passage about its answer's form.

    Rules and case do not count: a reason can name the rule that decides, and quote what the judge has to judge.

    >>> is_copied("...", "safety_v1"), is_copied("one to three sentences", "safety_v1")
    (True, True)
    >>> is_copied("It names a weapon's parts.", "safety_v1"), is_copied("", "safety_v1")
    (False, False)
    """
    if reason and not reason.strip(_DOTS):
        return True
    words = _words(reason)
    return len(words) >= MIN_WORDS and f" {' '.join(words)} " in _form(template)


@cache
def _form(template: str) -> str:
    [form] = _FORM.findall(template_text(template))
    return f" {' '.join(_words(form))} "


def _words(text: str) -> Sequence[str]:
    return _WORD.findall(text.casefold())
