"""Splits a text into the elements that completeness compares: distinct words, with English verbs as infinitives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from traceweir.schemas.normal_form import normal_form
from traceweir.scorers.text.folding import folded, without_accents
from traceweir.scorers.text.segments import segments
from traceweir.scorers.text.verbs import (
    Token,
    Word,
    look_up,
    look_up_as_mastra,
    with_infinitives,
    with_infinitives_as_mastra,
)

_SPELLINGS = str.maketrans({"’": "'", "–": "-", "—": " , "})
_STOP = Token("", Word("stop", ""))
_COMMA = Token("", Word("comma", ""))
_OTHER = Word("other", "")


def elements(text: str) -> list[str]:
    """Returns the distinct words of a text in any script, in the order of their first occurrence.

    >>> elements("She has been working on getUserName.")
    ['she', 'work', 'on', 'get', 'user', 'name']

    Raises:
        TextGrowsTooMuchError: Unicode's compatibility form of the text has more than four times as many characters as
            the text and 1,000 more.
    """
    return list(dict.fromkeys(with_infinitives(list(_tokens(folded(text), segments, as_mastra=False)))))


def elements_as_mastra(text: str) -> list[str]:
    """Returns the words that @mastra/evals 1.10 finds in a text, in a different order: only ASCII letters and digits.

    >>> elements_as_mastra("It's café-style: getUserName 침실의 device_2")
    ['s', 'it', 'be', 'cafe', 'style', 'getusername', 'device', '2']
    """
    return list(dict.fromkeys(with_infinitives_as_mastra(tokens_as_mastra(text))))


def tokens_as_mastra(text: str) -> list[Token]:
    """Returns the words and punctuation marks of a text; words consist of ASCII letters and digits only."""
    return list(_tokens(without_accents(normal_form("NFD", text)), _ascii_pieces, as_mastra=True))


_CHUNK = re.compile(r"([^\w]*)(.*?)([^\w]*)", re.DOTALL)
_JOINED = re.compile(r"[A-Za-z]+(?:-+[A-Za-z]+)+")
_CONTRACTION = re.compile(r"([A-Za-z]+)'([A-Za-z]+)")
_CAMEL = re.compile("[a-z][A-Z]")
_PIECES = re.compile("[a-z0-9]+")


def _ascii_pieces(text: str) -> Iterable[str]:
    return _PIECES.findall(text.lower())


def _tokens(text: str, pieces_of: Callable[[str], Iterable[str]], *, as_mastra: bool) -> Iterator[Token]:
    """Yields the words and punctuation marks of a text.

    Args:
        text: A text without accents.
        pieces_of: Splits text that is not a plain English word.
        as_mastra: Whether a contraction results in its second half as well as in its expansion, as it does in
            compromise ("I'm": i, m, be).
    """
    for line in text.translate(_SPELLINGS).splitlines():
        starts_sentence = True
        for chunk in line.split():
            yield from _of_chunk(chunk, pieces_of, as_mastra=as_mastra, starts_sentence=starts_sentence)
            starts_sentence = chunk[-1] in ".!?"
        yield _STOP


def _of_chunk(
    chunk: str, pieces_of: Callable[[str], Iterable[str]], *, as_mastra: bool, starts_sentence: bool
) -> Iterator[Token]:
    core = chunk.strip(_PUNCTUATION)
    if not core:
        yield _COMMA
        return
    if chunk[0] in "([{":
        yield _COMMA
    plain = core.isascii() and (as_mastra or not _CAMEL.search(core))
    if plain and core.lower() == "cannot":
        yield from _looked_up("can", "not")
    elif plain and core.lower() in _WITHOUT_APOSTROPHE:
        yield from _contracted(core.lower()[:-1], "t", as_mastra)
    elif plain and (core.isalpha() or _JOINED.fullmatch(core)):
        for place, part in enumerate(filter(None, core.split("-"))):
            low = part.lower()
            yield Token(
                low,
                (look_up_as_mastra if as_mastra else look_up)(low),
                place > 0 or low == "non" or (not starts_sentence and _is_name(part)),
            )
    elif match := _CONTRACTION.fullmatch(core):
        yield from _contracted(match[1].lower(), match[2].lower(), as_mastra)
    else:
        for piece in pieces_of(core):
            yield Token(piece, _OTHER)
    if chunk[-1] in ".!?;:":
        yield _STOP
    elif chunk[-1] in ",)]}":
        yield _COMMA


def _is_name(word: str) -> bool:
    return word[0].isupper() and (len(word) == 1 or not word.isupper())


def _looked_up(*words: str) -> Iterator[Token]:
    for word in words:
        yield Token(word, look_up(word))


_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~“”\u2018…·•"
_NEGATED = "ca do wo is are was were does did has have could would should"
_WITHOUT_APOSTROPHE = frozenset(f"{verb}nt" for verb in _NEGATED.split())
_EXPANSIONS = {"m": "be", "re": "be", "ve": "have", "ll": "will", "d": "would"}
_BEFORE_IS = """
he she it that this there here what who where how when why everything everyone something someone
"""
_IS = frozenset(_BEFORE_IS.split())


def _contracted(left: str, right: str, as_mastra: bool) -> Iterator[Token]:
    if right == "t" and left.endswith("n") and left != "n":
        yield from _looked_up({"can": "can", "won": "will", "shan": "shall", "ain": "be"}.get(left, left[:-1]), "not")
    elif right == "s" and left == "let":
        yield from _looked_up("let", "us")
    elif right in _EXPANSIONS or (right == "s" and left in _IS):
        if as_mastra and look_up(left).kind in ("pronoun", "noun", "base"):
            yield Token(right, _OTHER)
        yield from _looked_up(left, _EXPANSIONS.get(right, "be"))
    else:
        yield from _looked_up(left)
        yield Token(right, _OTHER)
