"""Predicts from the context of each verb whether compromise 14 changes it to its infinitive, or drops it.

Each verb form and each auxiliary has features: the word itself, its neighbours, and pairs and triples of neighbours.
Each feature has a weight. A word is dropped if the sum of its weights for dropping is greater than 0, else changed if
the sum of its weights for changing is greater than 0. `tests/parity/record_mastra_contexts.py` computed the weights
from recorded results of compromise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import cache
from importlib.resources import files
from itertools import islice, takewhile
from typing import NamedTuple

from traceweir.scorers.text.verbs.infinitives import AUXILIARIES
from traceweir.scorers.text.verbs.lexicon import Token

FORMS = frozenset({"s", "ed", "ing"})
_OPEN = frozenset({"noun", "plural", "adjective", "verb", "base", "adverb", "other", *FORMS})
"""Open word classes: a feature contains the kind of such a word instead of the word."""
_MAY_BE_NOUNS = frozenset({"noun", "plural", "base"})
_ENDS_A_CLAUSE = frozenset({"stop", "comma", "conjunction", "question"})
_OF_A_CLAUSE = frozenset({"be", "have", "do", "modal", "verb", "pronoun", "to"})
_MAX_DISTANCE = 11
"""Maximum distance, in words, within which `_clause` and `_main` search."""
DROPPED = "-"
"""Prefix of the kind of a word in the names of the weights for dropping the word."""


class WordOutcome(IntEnum):
    """States whether compromise keeps, changes or drops a word."""

    KEPT = 0
    CHANGED = 1
    DROPPED = 2


class _Neighbour(NamedTuple):
    """Holds the properties of a word that the features of its neighbours contain."""

    word: str
    kind: str
    text: str
    """The word itself for closed word classes, else its kind."""
    form: str


_END = _Neighbour("", "stop", "stop", "stop")
_Weights = dict[str, dict[str, int]]


def outcomes(tokens: Sequence[Token]) -> list[WordOutcome]:
    """Returns the outcome of each token; tokens that are neither verb forms nor auxiliaries are kept."""
    found = [WordOutcome.KEPT] * len(tokens)
    if alone := _alone(tokens):
        return [WordOutcome.CHANGED if token is alone else WordOutcome.KEPT for token in tokens]
    weights = _weights()
    seen = _as_seen(tokens)
    for place in reversed(_places(tokens)):
        kind = tokens[place].word.kind
        common = _common(tokens, seen, place)
        single = _of_kind(seen, place, _main(tokens, found, place) if kind in AUXILIARIES else "")
        own = _own(tokens, seen, place)
        if _sum(weights, DROPPED + own, DROPPED + kind, common, single) > 0:
            found[place] = WordOutcome.DROPPED
        elif _sum(weights, own, kind, common, single) > 0:
            found[place] = WordOutcome.CHANGED
    return found


def _alone(tokens: Sequence[Token]) -> Token | None:
    """Returns the only word of a text if it is a verb form that changes without neighbours, such as "running"."""
    words = list(islice((token for token in tokens if token.text), 2))
    if len(words) != 1 or words[0].word.kind not in FORMS or words[0].fixed:
        return None
    return words[0] if words[0].word.form[1:2] in ("", "+") else None


def features(tokens: Sequence[Token], found: Sequence[WordOutcome]) -> Iterator[tuple[int, list[str]]]:
    """Yields the position and the features of each verb form and each auxiliary of a text, for computing the weights.

    Args:
        tokens: The tokens of the text.
        found: The known outcome of each token.
    """
    seen = _as_seen(tokens)
    for place in _places(tokens):
        kind = tokens[place].word.kind
        own = _own(tokens, seen, place)
        common = _common(tokens, seen, place)
        single = _of_kind(seen, place, _main(tokens, found, place) if kind in AUXILIARIES else "")
        yield place, [*(f"{own} {name}" for name in common), *(f"{kind} {name}" for name in (*common, *single))]


def _sum(weights: _Weights, own: str, kind: str, common: Sequence[str], single: Sequence[str]) -> int:
    of_kind = weights.get(kind)
    if of_kind is None:
        return 0
    total = sum(of_kind.get(name, 0) for name in common) + sum(of_kind.get(name, 0) for name in single)
    of_own = weights.get(own)
    return total + sum(of_own.get(name, 0) for name in common) if of_own else total


def _places(tokens: Sequence[Token]) -> list[int]:
    return [
        place
        for place, token in enumerate(tokens)
        if not token.fixed and (token.word.kind in FORMS or token.word.kind in AUXILIARIES)
    ]


def _as_seen(tokens: Sequence[Token]) -> list[_Neighbour]:
    """Returns the tokens as neighbours, with three end marks before and three after them."""
    found = [_END] * 3
    for token in tokens:
        kind = token.word.kind
        short = kind + _flags(token) + ("F" if token.fixed else "")
        text = token.text if token.text and kind not in _OPEN else short
        found.append(_Neighbour(token.text, short, text, f"{kind}{token.word.form}" if kind in FORMS else kind))
    return found + [_END] * 3


def _flags(token: Token) -> str:
    word = token.word
    noun = word.noun and word.kind not in _MAY_BE_NOUNS
    return ("N" if noun else "") + ("A" if word.adjective and word.kind != "adjective" else "")


def _own(tokens: Sequence[Token], seen: Sequence[_Neighbour], place: int) -> str:
    token = tokens[place]
    return seen[place + 3].form + _flags(token) if token.word.kind in FORMS else f"{token.word.kind}.{token.text}"


def _common(tokens: Sequence[Token], seen: Sequence[_Neighbour], place: int) -> tuple[str, ...]:
    """Returns the features that have separate weights for forms of different behaviour."""
    _, before2, before, _, after, after2, _ = seen[place : place + 7]
    return (
        "=",
        f"-1={before.text}",
        f"+1={after.text}",
        f"-2={before2.text}",
        f"+2={after2.text}",
        f"-1:{before.kind}",
        f"+1:{after.kind}",
        f"-1+1:{before.kind},{after.kind}",
        f"-2-1:{before2.kind},{before.kind}",
        f"+1+2:{after.kind},{after2.kind}",
        f"clause:{_clause(tokens, place)}",
    )


def _of_kind(seen: Sequence[_Neighbour], place: int, main: str) -> tuple[str, ...]:
    before3, before2, before, own, after, after2, after3 = seen[place : place + 7]
    return (
        f"word={own.word}",
        f"-1word={before.word}",
        f"+1word={after.word}",
        f"-3={before3.text}",
        f"+3={after3.text}",
        f"-1+1={before.text},{after.text}",
        f"-2-1={before2.text},{before.text}",
        f"+1+2={after.text},{after2.text}",
        f"-2-1+1:{before2.kind},{before.kind},{after.kind}",
        f"-1+1+2:{before.kind},{after.kind},{after2.kind}",
        f"-1form:{before.form}",
        f"+1form:{after.form}",
        f"main:{main}",
        f"main{own.word}:{main}",
    )


def _clause(tokens: Sequence[Token], place: int) -> str:
    """Returns the kind of the last word before a position that is part of a clause, such as a verb or a pronoun."""
    before = (tokens[index].word.kind for index in range(place - 1, max(-1, place - 1 - _MAX_DISTANCE), -1))
    of_clause = takewhile(lambda kind: kind not in _ENDS_A_CLAUSE, before)
    return next((kind for kind in of_clause if kind in _OF_A_CLAUSE), "")


def _main(tokens: Sequence[Token], found: Sequence[WordOutcome], place: int) -> str:
    """Returns the kind and the outcome of the next word after an auxiliary, its adverbs and its "not"."""
    for index in range(place + 1, min(place + 1 + _MAX_DISTANCE, len(tokens))):
        kind = tokens[index].word.kind
        if kind not in ("not", "adverb"):
            return f"{kind}{found[index]:d}"
    return ""


@cache
def _weights() -> _Weights:
    found: _Weights = {}
    for line in (files(__package__) / "words" / "contexts.txt").read_text("utf-8").splitlines():
        name, slot, *values = line.split(" ")
        into = found.setdefault(name, {})
        for value in values:
            rest, _, weight = value.rpartition("~")
            into[slot + rest] = int(weight)
    return found
