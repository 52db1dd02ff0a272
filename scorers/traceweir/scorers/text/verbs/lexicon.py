"""What an English word may be, as far as telling verbs from other words needs it: closed classes here, all others by lemminflect."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal, NamedTuple

Kind = Literal[
    "be", "have", "do", "modal", "to", "not", "pronoun", "object", "determiner", "preposition", "conjunction", "question", "adverb",
    "adjective", "noun", "plural", "verb", "base", "s", "ed", "ing", "other", "stop", "comma",
]  # fmt: skip


class Word(NamedTuple):
    """A word without its context.

    `s`, `ed` and `ing` are inflected verbs, irregular ones among them ("went" is an `ed`). `base` is a verb's infinitive that is a noun
    or an adjective, too; `verb` one that is nothing else.
    """

    kind: Kind
    infinitive: str
    """What the word is, if it is a verb; the word itself, if it cannot be one or is one already."""
    noun: bool = False
    """Whether it may be a noun."""
    adjective: bool = False
    form: str = ""
    """What compromise takes it for in neutral sentences, of a verb form that is no usual one; see `known_as_mastra`."""


class Token(NamedTuple):
    """A word of a text, or a mark that ends a clause or a sentence (`comma`, `stop`)."""

    text: str
    """In lower case."""
    word: Word
    fixed: bool = False
    """Whether it stays as it is: a word with a capital that its place does not ask for, or a part of a compound with a hyphen."""


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
_PARTS_OF = {"be": "be", "have": "have", "do": "do"}


REMEMBERED = 1 << 14
"""Words whose look-ups are kept, which threads share: only what is final is ever among them."""


def known(word: str) -> Word:
    """What a word in lower case, ASCII letters only, may be."""
    return _closed().get(word) or _unless_long(_looked_up, word)


def known_as_mastra(word: str) -> Word:
    """As `known`, with the `form` of verb forms; a form in -s that compromise takes for a plural only is a plural."""
    return _unless_long(_known_as_mastra, word)


def _unless_long(look_up: Callable[[str], Word], word: str) -> Word:
    # Asked before anything is kept: words of a megabyte would fill the memory.
    return look_up(word) if len(word) <= LONGEST else Word("other", word)


@lru_cache(REMEMBERED)
def _known_as_mastra(word: str) -> Word:
    found = known(word)
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
    """For words the first one of their line, as `tests/parity/record_mastra_words.mjs` recorded it."""
    found = {}
    for line in (files(__package__) / "words" / f"compromise_{name}.txt").read_text("utf-8").splitlines():
        first, *listed = line.split()
        found.update(dict.fromkeys(listed, first))
    return found


@cache
def _closed() -> dict[str, Word]:
    return {
        word: Word(kind, _PARTS_OF.get(kind, word))
        for kind, listed in reversed(_CLOSED.items())
        for word in listed.split()
    }


_SELDOM = "goes says gets lets makes takes gives knows sees finds keeps wants thinks"
_SELDOM_NOUNS = frozenset(_SELDOM.split())
"""What is in the dictionary as the plural of a noun, too, and hardly ever is one."""

_ENDINGS = ("ed", "ing")
"""What an unknown word is taken for a verb by; and "unused" and "upcoming", too."""

LONGEST = 32
"""Letters. Nothing longer is looked up: it is no English word."""


@lru_cache(REMEMBERED)
def _looked_up(word: str) -> Word:
    from lemminflect import getAllLemmas, getAllLemmasOOV  # here: it reads its dictionaries for half a second

    lemmas: dict[str, tuple[str, ...]] = getAllLemmas(word)
    verbs, noun, adjective = lemmas.get("VERB", ()), "NOUN" in lemmas, "ADJ" in lemmas
    if (
        not verbs
        and not noun
        and len(word) > 4
        and word.endswith(_ENDINGS)
        and (not lemmas or word[:2] in ("un", "up"))
    ):
        verbs = getAllLemmasOOV(word, "VERB")["VERB"]
    if verbs and verbs[0] != word:
        kind: Kind = "s" if word.endswith("s") else "ing" if word.endswith("ing") else "ed"
        noun = noun and word not in _SELDOM_NOUNS
        longer = verbs[0] + "e"
        return Word(kind, longer if longer in verbs else verbs[0], noun, adjective)
    if verbs:
        return Word("base" if noun or adjective else "verb", word, noun, adjective)
    if noun:
        return Word("noun" if word in lemmas["NOUN"] else "plural", word, noun, adjective)
    if adjective:
        return Word("adjective", word, noun, adjective)
    return Word("adverb" if lemmas or word.endswith("ly") else "plural" if word.endswith("s") else "other", word)
