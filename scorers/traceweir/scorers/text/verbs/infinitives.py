"""Verbs to infinitives: which words of an English text are verbs, told by their neighbours, and what is left of a verb's auxiliaries.

"He has been working" becomes "he work", "they were not seen" becomes "they not see": an auxiliary goes with its verb, and stays where it
is the verb itself ("she is tall": "she be tall"). A word that the rules are in doubt about stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from traceweir.scorers.text.verbs.lexicon import Token, Word

AUXILIARIES = frozenset({"be", "have", "do", "modal"})
_BETWEEN = frozenset({"not", "adverb"})
"""What may stand between an auxiliary and its verb."""
_BREAKS = frozenset({"now", "then", "yet", "here", "there", "so", "too"})
"""Adverbs after which a verb stands apart from its auxiliary: "will now go" is "will now go"."""
_NAMES_A_THING = frozenset({"noun", "base", "plural", "adjective", "s", "other"})
_END = Token("", Word("stop", ""))


def with_infinitives(tokens: Sequence[Token]) -> list[str]:
    """The words of the tokens in their order, verbs as infinitives."""
    is_verb = _verbs(tokens)
    found: list[str] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.word.kind in AUXILIARIES and not token.fixed:
            phrase = _phrase(tokens, is_verb, at)
            found += phrase.left(tokens)
            at = phrase.end
            continue
        if is_verb[at]:
            found.append(token.word.infinitive)
        elif token.word.kind not in ("stop", "comma"):
            found.append(token.text)
        at += 1
    return found


class _Phrase(NamedTuple):
    """A verb with its auxiliaries and what stands between them, or auxiliaries alone."""

    begin: int
    auxiliary: int
    """The last one."""
    main: int
    """The verb: the last auxiliary, if no other is there."""

    @property
    def end(self) -> int:
        return self.main + 1

    def left(self, tokens: Sequence[Token]) -> list[str]:
        """What is left of the phrase."""
        verb = tokens[self.main]
        between = [token.text for token in tokens[self.begin : self.main] if token.word.kind in _BETWEEN]
        if self.main == self.auxiliary and verb.word.kind == "have" and _then_to(tokens, self.main):
            return between  # "have to go"
        return [*between, verb.text if verb.word.kind == "modal" else verb.word.infinitive]


def _phrase(tokens: Sequence[Token], is_verb: Sequence[bool], begin: int) -> _Phrase:
    at, auxiliary = begin, begin
    while at < len(tokens) and (tokens[at].word.kind in AUXILIARIES or is_between(tokens[at])):
        if tokens[at].word.kind in AUXILIARIES:
            auxiliary = at
        at += 1
    completed = at < len(tokens) and _completes(tokens, is_verb, begin, auxiliary, at)
    return _Phrase(begin, auxiliary, at if completed else auxiliary)


def is_between(token: Token) -> bool:
    """Whether a word may stand between an auxiliary and its verb."""
    return token.word.kind in _BETWEEN and token.text not in _BREAKS


def _then_to(tokens: Sequence[Token], at: int) -> bool:
    after = tokens[at + 1 : at + 3]
    return len(after) == 2 and after[0].word.kind == "to" and after[1].word.kind in ("verb", "base", "be", "do")


def _completes(tokens: Sequence[Token], is_verb: Sequence[bool], begin: int, auxiliary: int, at: int) -> bool:
    """Whether the word is the verb of the auxiliary before it."""
    kind = tokens[at].word.kind
    if tokens[auxiliary].word.kind in ("modal", "do"):
        return kind in ("verb", "base") or tokens[at].text in _VERBS_AFTER_A_MODAL
    return kind in ("ed", "ing") and (is_verb[at] or (kind == "ed" and begin != auxiliary))


_VERBS_AFTER_A_MODAL = frozenset({"like", "need", "near", "further", "please"})


def _verbs(tokens: Sequence[Token]) -> list[bool]:
    found: list[bool] = []
    before = _END
    for place, token in enumerate(tokens):
        after = tokens[place + 1] if place + 1 < len(tokens) else _END
        tells = _TELLS.get(token.word.kind)
        found.append(tells is not None and not token.fixed and tells(token.word, before, after))
        before = token
    return found


_BEGINS_AN_OBJECT = frozenset({"determiner", "noun", "adjective", "base", "adverb", "object", "plural"})


_AFTER_A_VERB = frozenset({"at", "over", "into", "after", "against", "out", "through", "across", "around"})
"""Prepositions that stand behind a verb more often than behind a plural."""


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


_TELLS: dict[str, Callable[[Word, Token, Token], bool]] = {"s": _is_present, "ed": _is_past, "ing": _is_gerund}
"""Whether a form is a verb, from the words before and after it."""
