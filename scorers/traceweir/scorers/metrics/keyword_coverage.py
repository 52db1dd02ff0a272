"""Measures keyword coverage: the share of the question's keywords that the answer repeats."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import ClassVar

from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject
from traceweir.scorers.text.folding import folded
from traceweir.scorers.text.javascript import WHITE_SPACE, utf16_units
from traceweir.scorers.text.messages import Compat, question_and_answer, shown
from traceweir.scorers.text.scripts import script_details
from traceweir.scorers.text.segments import segments


class KeywordCoverage(Scorer):
    """Returns the share of the question's keywords that the final response repeats, from 0 to 1.

    Keywords are the distinct words of a text, in any script, except numbers and English stop words (the list of the
    SMART system); accents and vowel signs do not count. A question without keywords has no value.

    With `compat: "mastra"` this metric is `createKeywordCoverageScorer` of @mastra/evals 1.10: words are separated by
    white space, some punctuation is removed, and a question without keywords has the value 1.

    >>> from traceweir.schemas.invocation import Content, Invocation
    >>> question, answer = Content.of("Where is my bag?"), Content.of("Your bag is in Seoul.")
    >>> turn = Invocation(user_content=question, final_response=answer)
    >>> KeywordCoverage().score(Subject(invocation=turn)).value
    1.0
    """

    version: ClassVar[str] = "2"

    compat: Compat = None
    """The implementation whose values this metric reproduces: Mastra's, or Traceweir's own if None."""

    def score(self, subject: Subject) -> Measurement:
        """Compares the keywords of the invocation's question with those of its answer."""
        keywords_of = keywords if self.compat is None else keywords_as_mastra
        question, answer = question_and_answer(subject, self.compat)
        expected = keywords_of(question)
        found = keywords_of(answer)
        if not expected:
            if self.compat is None:
                raise MissingInput("the user content has no keywords that a response could repeat")
            return Measurement(value=1.0, rationale="the input has no keywords")
        missing = [word for word in expected if word not in found]
        common = len(expected) - len(missing)
        return Measurement(
            value=common / len(expected),
            rationale=f"{common} of {len(expected)} keywords of the input are in the response",
            details={
                "missing_keywords": shown(missing),
                "keyword_counts": {"input": len(expected), "output": len(found)},
                **script_details(self.compat, question, answer),
            },
        )


def keywords(text: str) -> dict[str, None]:
    """Returns the keywords of a text in any script, in the order of their first occurrence.

    >>> list(keywords("What’s the price of 침실의 device_2?"))
    ['price', '침실', 'device']

    Raises:
        TextGrowsTooMuchError: the text consists of ligatures that stand for many letters each.
    """
    excluded = _stop_words() | _stop_word_parts()
    return dict.fromkeys(word for word in segments(folded(text)) if word not in excluded and not word.isdecimal())


def keywords_as_mastra(text: str) -> dict[str, None]:
    """Returns the keywords that keyword-extractor 0.0.28 finds in an English text.

    >>> list(keywords_as_mastra("<b>What's</b> the price, in EUR? See https://a.example/X."))
    ['price', 'eur', 'https://a.example/X.']
    """
    found: dict[str, None] = {}
    for chunk in WHITE_SPACE.split(_without_tags(text)):
        link = _LINK.search(chunk)
        word = chunk if link else _PUNCTUATION.sub("", chunk)
        if len(utf16_units(word)) == 1:
            word = _SYMBOLS.sub("", word)
        low = word.lower()
        if word and not _DIGITS.fullmatch(word) and low not in _stop_words():
            found[word if link else low] = None
    return found


_LINK = re.compile("https?://")
_PUNCTUATION = re.compile("[.,;!?():\"“”\u2018’]|^'|'\\Z")
_SYMBOLS = re.compile("[_@&#]")
_DIGITS = re.compile("[0-9]+")


def _without_tags(text: str) -> str:
    """Returns the text without tags: each `<`, the next `>` and all characters between them.

    The time is linear in the length of the text, also if many `<` have no `>`.
    """
    kept: list[str] = []
    position = 0
    while (begin := text.find("<", position)) >= 0 and (end := text.find(">", begin)) >= 0:
        kept.append(text[position : begin + 1] if end == begin + 1 else text[position:begin])
        position = begin + 1 if end == begin + 1 else end + 1
    return "".join([*kept, text[position:]])


@cache
def _stop_words() -> frozenset[str]:
    """Returns the stop words of the SMART system, 1971, as published by the JMLR with Lewis et al., 2004."""
    return frozenset((files(__package__) / "words" / "smart_english.txt").read_text("utf-8").split())


@cache
def _stop_word_parts() -> frozenset[str]:
    """Returns both parts of every stop word with an apostrophe, because segments are split there: "don" and "t"."""
    return frozenset(part for word in _stop_words() if "'" in word for part in word.split("'"))
