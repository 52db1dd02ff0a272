"""Keyword coverage: how many of the question's keywords does the answer repeat?"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject
from traceweir.scorers.text.javascript import WHITE_SPACE, utf16_units
from traceweir.scorers.text.messages import Compat, question_and_answer, shown
from traceweir.scorers.text.segments import segments


class KeywordCoverage(Scorer):
    """The share of the question's keywords that the final response repeats, from 0 to 1.

    Keywords are words of any script, each once, without English stop words (the list of the SMART system) and numbers.
    With `compat: "mastra"` it is `createKeywordCoverageScorer` of @mastra/evals 1.10: words are what stands between blanks, less some
    punctuation, and a question without keywords gives 1. Without it, such a question gives no value.

    >>> from traceweir.schemas.invocation import Content, Invocation
    >>> turn = Invocation(user_content=Content.of("Where is my bag?"), final_response=Content.of("Your bag is in Seoul."))
    >>> KeywordCoverage().score(Subject(invocation=turn)).value
    1.0
    """

    compat: Compat = None
    """Whose numbers to give."""

    def score(self, subject: Subject) -> Measurement:
        """Compare the keywords of the invocation's question with those of its answer."""
        cut = keywords if self.compat is None else keywords_as_mastra
        wanted, found = map(cut, question_and_answer(subject, self.compat))
        if not wanted:
            if self.compat is None:
                raise MissingInput("the user content has no keywords that a response could repeat")
            return Measurement(value=1.0, rationale="the input has no keywords")
        missing = [word for word in wanted if word not in found]
        common = len(wanted) - len(missing)
        return Measurement(
            value=common / len(wanted),
            rationale=f"{common} of {len(wanted)} keywords of the input are in the response",
            details={
                "missing_keywords": shown(missing),
                "keyword_counts": {"input": len(wanted), "output": len(found)},
            },
        )


def keywords(text: str) -> dict[str, None]:
    """The keywords of a text of any script, in the order of their first places.

    >>> list(keywords("What’s the price of 침실의 device_2?"))
    ['price', '침실', 'device']
    """
    listed = _stop_words() | _halves()
    return dict.fromkeys(word for word in segments(text) if word not in listed and not word.isdecimal())


def keywords_as_mastra(text: str) -> dict[str, None]:
    """The keywords of a text as keyword-extractor 0.0.28 has them for English.

    >>> list(keywords_as_mastra("<b>What's</b> the price, in EUR? See https://a.example/X."))
    ['price', 'eur', 'https://a.example/X.']
    """
    found: dict[str, None] = {}
    for chunk in WHITE_SPACE.split(_without_tags(text)):
        link = _LINK.search(chunk)
        word = chunk if link else _UNWANTED.sub("", chunk)
        if len(utf16_units(word)) == 1:
            word = _ODD.sub("", word)
        low = word.lower()
        if word and not _DIGITS.fullmatch(word) and low not in _stop_words():
            found[word if link else low] = None
    return found


_LINK = re.compile("https?://")
_UNWANTED = re.compile("[.,;!?():\"“”\u2018’]|^'|'\\Z")
_ODD = re.compile("[_@&#]")
_DIGITS = re.compile("[0-9]+")


def _without_tags(text: str) -> str:
    """Without what stands between < and the next >, in linear time however many < have none."""
    kept: list[str] = []
    at = 0
    while (begin := text.find("<", at)) >= 0 and (end := text.find(">", begin)) >= 0:
        kept.append(text[at : begin + 1] if end == begin + 1 else text[at:begin])
        at = begin + 1 if end == begin + 1 else end + 1
    return "".join([*kept, text[at:]])


@cache
def _stop_words() -> frozenset[str]:
    """The stop words of the SMART system, 1971, as the JMLR has published them with Lewis et al., 2004."""
    return frozenset((files(__package__) / "words" / "smart_english.txt").read_text("utf-8").split())


@cache
def _halves() -> frozenset[str]:
    """What is left of stop words that are cut at their apostrophe: "don" and "t"."""
    return frozenset(half for word in _stop_words() if "'" in word for half in word.split("'"))
