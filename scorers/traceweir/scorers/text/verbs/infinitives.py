"""Replaces the verbs of an English text by their infinitives, and removes their auxiliaries.

The neighbours of a word decide whether the word is a verb. "He has been working" becomes "he work", "they were not
seen" becomes "they not see". An auxiliary that is the only verb of its phrase stays as an infinitive ("she is tall":
"she be tall"). A word that the rules cannot decide stays unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from traceweir.scorers.text.verbs.lexicon import Token, Word

AUXILIARIES = frozenset({"be", "have", "do", "modal"})
_BETWEEN = frozenset({"not", "adverb"})
"""Kinds of words that can occur between an auxiliary and its verb."""
_BREAKS = frozenset({"now", "then", "yet", "here", "there", "so", "too"})
"""Adverbs that separate an auxiliary from its verb: "will now go" stays "will now go"."""
_NAMES_A_THING = frozenset({"noun", "base", "plural", "adjective", "s", "other"})
_END = Token("", Word("stop", ""))


def with_infinitives(tokens: Sequence[Token]) -> list[str]:
    """Returns the words of the tokens in their order, with verbs as infinitives."""
    is_verb = _verbs(tokens)
    found: list[str] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.word.kind in AUXILIARIES and not token.fixed:
            phrase = _phrase(tokens, is_verb, index)
            found += phrase.rewritten(tokens)
            index = phrase.end
            continue
        if is_verb[index]:
            found.append(token.word.infinitive)
        elif token.word.kind not in ("stop", "comma"):
            found.append(token.text)
        index += 1
    return found


class _Phrase(NamedTuple):
    """Holds the positions of a verb and its auxiliaries; the words between them belong to the phrase."""

    begin: int
    auxiliary: int
    """Position of the last auxiliary."""
    main: int
    """Position of the verb; equal to `auxiliary` if the phrase has no other verb."""

    @property
    def end(self) -> int:
        return self.main + 1

    def rewritten(self, tokens: Sequence[Token]) -> list[str]:
        """Returns the words that replace the phrase."""
        verb = tokens[self.main]
        between = [token.text for token in tokens[self.begin : self.main] if token.word.kind in _BETWEEN]
        if self.main == self.auxiliary and verb.word.kind == "have" and _precedes_to(tokens, self.main):
            # "have to go".
            return between
        return [*between, verb.text if verb.word.kind == "modal" else verb.word.infinitive]


def _phrase(tokens: Sequence[Token], is_verb: Sequence[bool], begin: int) -> _Phrase:
    index = begin
    auxiliary = begin
    while index < len(tokens) and (tokens[index].word.kind in AUXILIARIES or is_between(tokens[index])):
        if tokens[index].word.kind in AUXILIARIES:
            auxiliary = index
        index += 1
    completed = index < len(tokens) and _completes(tokens, is_verb, begin, auxiliary, index)
    return _Phrase(begin, auxiliary, index if completed else auxiliary)


def is_between(token: Token) -> bool:
    """Returns whether a word can occur between an auxiliary and its verb."""
    return token.word.kind in _BETWEEN and token.text not in _BREAKS


def _precedes_to(tokens: Sequence[Token], index: int) -> bool:
    after = tokens[index + 1 : index + 3]
    return len(after) == 2 and after[0].word.kind == "to" and after[1].word.kind in ("verb", "base", "be", "do")


def _completes(tokens: Sequence[Token], is_verb: Sequence[bool], begin: int, auxiliary: int, index: int) -> bool:
    """Returns whether the word at a position is the verb of the auxiliary before it."""
    kind = tokens[index].word.kind
    if tokens[auxiliary].word.kind in ("modal", "do"):
        return kind in ("verb", "base") or tokens[index].text in _VERBS_AFTER_A_MODAL
    return kind in ("ed", "ing") and (is_verb[index] or (kind == "ed" and begin != auxiliary))


_VERBS_AFTER_A_MODAL = frozenset({"like", "need", "near", "further", "please"})


def _verbs(tokens: Sequence[Token]) -> list[bool]:
    found: list[bool] = []
    before = _END
    for place, token in enumerate(tokens):
        after = tokens[place + 1] if place + 1 < len(tokens) else _END
        rule = _RULES.get(token.word.kind)
        found.append(rule is not None and not token.fixed and rule(token.word, before, after))
        before = token
    return found


_BEGINS_AN_OBJECT = frozenset({"determiner", "noun", "adjective", "base", "adverb", "object", "plural"})


_AFTER_A_VERB = frozenset({"at", "over", "into", "after", "against", "out", "through", "across", "around"})
"""Prepositions that follow a verb more often than a plural."""


def _is_present(word: Word, before: Token, following: Token) -> bool:
    after = following.word.kind
    kind = before.word.kind
    if word.noun and (following.text == "of" or (before.text == "that" and after in ("base", "verb"))):
        return False
    if kind in ("pronoun", "adverb", "not") or before.text in ("this", "that", "which"):
        return True
    if kind in ("determiner", "adjective"):
        return not word.noun and kind == "determiner" and after == "determiner"
    if not word.noun:
        return True
    if kind in ("conjunction", "question"):
        return after not in ("stop", "comma", "be", "ed", "conjunction")
    if kind in ("noun", "base", "plural", "other", "verb"):
        if kind in ("noun", "base") and (after == "pronoun" or (after == "s" and following.word.noun)):
            return True
        return after in _BEGINS_AN_OBJECT or following.text in _AFTER_A_VERB or (kind == "other" and after == "other")
    return kind == "ing" and after == "determiner"


def _is_past(word: Word, before: Token, following: Token) -> bool:
    after = following.word.kind
    kind = before.word.kind
    if before.text in ("that", "which"):
        return True
    if kind == "determiner":
        return not (word.adjective or word.noun) or after not in _NAMES_A_THING
    if word.adjective:
        return after in ("preposition", "to", "conjunction") or kind in (
            "noun",
            "adverb",
            "pronoun",
            "have",
            "stop",
            "conjunction",
            "question",
            "not",
        )
    return True


def _is_gerund(word: Word, before: Token, following: Token) -> bool:
    after = following.word.kind
    kind = before.word.kind
    if kind in ("determiner", "adjective"):
        return before.text == "that"
    if kind == "preposition" and word.noun and after == "stop":
        return False
    if kind in ("be", "pronoun", "object", "not") or after in ("determiner", "object"):
        return True
    if kind == "stop":
        return not word.noun or after in ("stop", "preposition")
    return not (word.noun or word.adjective) or kind in (
        "conjunction",
        "question",
        "to",
        "adverb",
        "preposition",
        "other",
    )


_RULES: dict[str, Callable[[Word, Token, Token], bool]] = {"s": _is_present, "ed": _is_past, "ing": _is_gerund}
"""The rule for each kind of form, which decides from the words before and after a form whether it is a verb."""
