"""Classifies an English word, as far as recognising verbs needs it.

This module lists the words of closed classes; lemminflect classifies all other words.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from traceweir.scorers.text.verbs.lemmas import lemmas_of

Kind = Literal[
    "be", "have", "do", "modal", "to", "not", "pronoun", "object", "determiner", "preposition", "conjunction", "question", "adverb",
    "adjective", "noun", "plural", "verb", "base", "s", "ed", "ing", "other", "stop", "comma",
]  # fmt: skip


class Word(NamedTuple):
    """Holds the classification of a word without its context.

    `s`, `ed` and `ing` are inflected verbs, including irregular verbs ("went" is an `ed`). `base` is the infinitive of
    a verb that can also be a noun or an adjective; `verb` is an infinitive that can only be a verb.
    """

    kind: Kind
    infinitive: str
    """The infinitive if the word can be an inflected verb, else the word itself."""
    noun: bool = False
    """Whether the word can be a noun."""
    adjective: bool = False
    """Whether the word can be an adjective."""
    form: str = ""
    """How compromise reads an unusual verb form in neutral sentences, else empty; see `compromise.lexicon`."""


class Token(NamedTuple):
    """Holds a word of a text, or a mark that ends a clause or a sentence (`comma`, `stop`)."""

    text: str
    """The word in lower case; empty for a mark."""
    word: Word
    fixed: bool = False
    """Whether the word stays unchanged: it is capitalised within a sentence, or part of a hyphenated compound."""


_CLOSED: dict[Kind, str] = {
    "be": "is are was were am be been being",
    "have": "have has had having",
    "do": "do does did",
    "modal": "can could will would shall should may might must",
    "to": "to",
    "not": "not never",
    "pronoun": "i you he she it we they who",
    "object": "me him them us himself herself itself themselves myself yourself yourselves ourselves",
    "determiner": "the a an this that these those each every some any no another all both either neither its his her their our my "
    "your whose several many few most more two three four five six seven eight nine ten",
    "preposition": "of in for on with at by from as into about like through after over between out against during without before under "
    "around among per via within upon than onto toward towards since except despite near off such inside outside beyond across behind",
    "conjunction": "and or but nor &",
    "question": "if when while because although though unless until whether where how why so what which whenever wherever whichever",
    "adverb": "also then there here now just only still already yet even always often again once too very not soon ever currently",
    "other": "rose etc eg ie vs yes ok okay please thing things lot lots",
}
_INFINITIVES_OF_AUXILIARIES = {"be": "be", "have": "have", "do": "do"}


CACHED_WORDS = 1 << 14
"""Number of words whose classification is cached. Threads can share the cache because a `Word` is immutable."""


def look_up(word: str) -> Word:
    """Returns the classification of a word, which must be in lower case and consist of ASCII letters."""
    return _closed().get(word) or unless_long(_classify, word)


def unless_long(classify: Callable[[str], Word], word: str) -> Word:
    """Returns the classification of a word, which is `other` for a word that is too long to be English."""
    # The length is checked before the cache: words of a megabyte would fill the memory.
    return classify(word) if len(word) <= LONGEST else Word("other", word)


@cache
def _closed() -> dict[str, Word]:
    return {
        word: Word(kind, _INFINITIVES_OF_AUXILIARIES.get(kind, word))
        for kind, listed in reversed(_CLOSED.items())
        for word in listed.split()
    }


_RARE = "goes says gets lets makes takes gives knows sees finds keeps wants thinks"
_RARE_NOUNS = frozenset(_RARE.split())
"""Verb forms that the dictionary also lists as plurals of nouns, but that are rarely nouns."""

_ENDINGS = ("ed", "ing")
"""Endings of unknown words that count as verbs; known words in un- and up- ("unused", "upcoming") count too."""

LONGEST = 32
"""Letters. A longer word is not looked up, because it is not an English word."""


@lru_cache(CACHED_WORDS)
def _classify(word: str) -> Word:
    lemmas = lemmas_of(word)
    verbs = lemmas.get("VERB", ())
    noun = "NOUN" in lemmas
    adjective = "ADJ" in lemmas
    if (
        not verbs
        and not noun
        and len(word) > 4
        and word.endswith(_ENDINGS)
        and (not lemmas or word[:2] in ("un", "up"))
    ):
        # Here, because lemminflect imports numpy.
        from lemminflect import getAllLemmasOOV

        verbs = getAllLemmasOOV(word, "VERB")["VERB"]
    if verbs and verbs[0] != word:
        kind: Kind = "s" if word.endswith("s") else "ing" if word.endswith("ing") else "ed"
        noun = noun and word not in _RARE_NOUNS
        longer = verbs[0] + "e"
        return Word(kind, longer if longer in verbs else verbs[0], noun, adjective)
    if verbs:
        return Word("base" if noun or adjective else "verb", word, noun, adjective)
    if noun:
        return Word("noun" if word in lemmas["NOUN"] else "plural", word, noun, adjective)
    if adjective:
        return Word("adjective", word, noun, adjective)
    return Word("adverb" if lemmas or word.endswith("ly") else "plural" if word.endswith("s") else "other", word)
