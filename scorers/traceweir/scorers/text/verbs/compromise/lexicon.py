"""Classifies an English word as compromise 14 reads it in neutral sentences."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.resources import files

from traceweir.scorers.text.verbs.lexicon import CACHED_WORDS, Word, look_up, unless_long


def look_up_as_mastra(word: str) -> Word:
    """Returns the classification as `look_up` does, with the `form` of verb forms.

    A form in -s that compromise only reads as a plural is a plural.
    """
    return unless_long(_classify_as_mastra, word)


@lru_cache(CACHED_WORDS)
def _classify_as_mastra(word: str) -> Word:
    found = look_up(word)
    if found.kind in ("verb", "base", "s", "ed", "ing"):
        found = found._replace(infinitive=_infinitives().get(word, found.infinitive))
    if found.kind not in ("s", "ed", "ing"):
        return found
    form = _forms().get(word, "")
    if form == _PLURAL:
        return Word("plural", word, noun=True)
    return found._replace(form=form, adjective=found.adjective and found.kind != "ed")


_PLURAL = "PPPP"


@cache
def _forms() -> dict[str, str]:
    return _recorded("forms")


@cache
def _infinitives() -> dict[str, str]:
    return _recorded("infinitives")


def _recorded(name: str) -> dict[str, str]:
    """Returns the first word of each line by the other words of that line.

    `tests/parity/record_mastra_words.mjs` recorded the file.
    """
    found = {}
    for line in (files(__package__) / "words" / f"{name}.txt").read_text("utf-8").splitlines():
        first, *listed = line.split()
        found.update(dict.fromkeys(listed, first))
    return found
