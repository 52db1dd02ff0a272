"""Verbs to infinitives: which words of an English text are verbs, told by their neighbours, and what is left of a verb's auxiliaries.

"He has been working" becomes "he work", "they were not seen" becomes "they not see": an auxiliary goes with its verb, and stays where it
is the verb itself ("she is tall": "she be tall"). This is what compromise 14 does with English, as far as rules over neighbouring words
tell it; a word that they are in doubt about stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tracegate.scorers.english import Word


class Token(NamedTuple):
    """A word of a text, or a mark that ends a clause or a sentence (`comma`, `stop`)."""

    text: str
    """In lower case."""
    word: Word
    fixed: bool = False
    """Whether it stays as it is: a word with a capital that its place does not ask for, or a part of a compound with a hyphen."""


AUXILIARIES = frozenset({"be", "have", "do", "modal"})
_BETWEEN = frozenset({"not", "adverb"})
"""What may stand between an auxiliary and its verb."""
_BREAKS = frozenset({"now", "then", "yet", "here", "there", "so", "too"})
"""Adverbs after which a verb stands apart from its auxiliary: "will now go" is "will now go"."""
_NAMES_A_THING = frozenset({"noun", "base", "plural", "adjective", "s", "other"})
_BEGINS_A_ROW = frozenset({"try", "love", "start", "stop", "help", "hate", "finish"})
"""Verbs before a gerund, which might be nouns by their form."""
_END = Token("", Word("stop", ""))


def with_infinitives(tokens: Sequence[Token], *, oddities: bool = False) -> list[str]:
    """The words of the tokens in their order, verbs as infinitives.

    Args:
        tokens: A text's words and marks.
        oddities: Whether to do what compromise does and hardly means to: a negated verb brings a "do" or "does" of its own ("was not seen":
            "does not see"), and of verbs in a row only the first changes ("was paid using": "pay using").
    """
    is_verb = _verbs(tokens)
    found: list[str] = []
    at, row = 0, False
    while at < len(tokens):
        token = tokens[at]
        kind = token.word.kind
        if kind in AUXILIARIES and not token.fixed:
            phrase = _phrase(tokens, is_verb, at, oddities)
            found += phrase.left(tokens, oddities)
            state = (
                oddities and phrase.end < len(tokens) and _is_state(tokens, phrase.begin, phrase.auxiliary, phrase.end)
            )
            at, row = phrase.end, phrase.main != phrase.auxiliary or state
            if oddities and tokens[phrase.main].text == "used" and _then_to(tokens, phrase.main):
                found.pop()
                at += 1  # "can be used to find": "find"
            continue
        if oddities and token.fixed and token.text == "non":
            found += ["does", "not"]
        following = is_verb[at + 1] if at + 1 < len(tokens) else False
        if is_verb[at] and not (oddities and (row or (kind == "s" and following))):
            found.append(token.word.infinitive)
        elif kind not in ("stop", "comma"):
            found.append(token.text)
        row = is_verb[at] or kind == "verb" or token.text in _BEGINS_A_ROW
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

    def left(self, tokens: Sequence[Token], oddities: bool) -> list[str]:
        """What is left of the phrase."""
        verb, alone = tokens[self.main], self.main == self.auxiliary
        inside = tokens[self.begin : self.main]
        between = [token.text for token in inside if token.word.kind in _BETWEEN]
        after = tokens[self.end] if self.end < len(tokens) else _END
        found: list[str] = []
        if oddities and ("not" in between or (alone and after.text == "not")):
            before = next(
                (token for token in reversed(tokens[max(0, self.begin - 3) : self.begin]) if not _is_between(token)),
                _END,
            )
            plural = before.word.kind in ("plural", "s")
            found += ["do" if plural or before.text in _WITH_DO else "does", "not"]
            if not alone and [token.text for token in inside] == ["can", "not", "be"]:  # "cannot be paid"
                return [*found, "can", "be", verb.text] if plural else [found[0], verb.word.infinitive]
        found += between
        if alone and verb.word.kind == "have" and _then_to(tokens, self.main):
            return found  # "have to go"
        if oddities and verb.text == "born":
            return [*found, tokens[self.auxiliary].text, verb.text]
        if oddities and not alone and inside[0].text == "be" and verb.word.kind == "ed":
            return [*found, "be", verb.text]  # "to be paid"
        return [*found, verb.text if verb.word.kind == "modal" else verb.word.infinitive]


_WITH_DO = frozenset({"i", "you", "we", "they"})


def _phrase(tokens: Sequence[Token], is_verb: Sequence[bool], begin: int, oddities: bool) -> _Phrase:
    at, auxiliary = begin, begin
    while at < len(tokens) and (tokens[at].word.kind in AUXILIARIES or _is_between(tokens[at])):
        if tokens[at].word.kind in AUXILIARIES:
            auxiliary = at
        at += 1
    completed = at < len(tokens) and _completes(tokens, is_verb, begin, auxiliary, at, oddities)
    return _Phrase(begin, auxiliary, at if completed else auxiliary)


def _is_between(token: Token) -> bool:
    return token.word.kind in _BETWEEN and token.text not in _BREAKS


def _then_to(tokens: Sequence[Token], at: int) -> bool:
    after = tokens[at + 1 : at + 3]
    return len(after) == 2 and after[0].word.kind == "to" and after[1].word.kind in ("verb", "base", "be", "do")


def _completes(
    tokens: Sequence[Token], is_verb: Sequence[bool], begin: int, auxiliary: int, at: int, oddities: bool
) -> bool:
    """Whether the word is the verb of the auxiliary before it."""
    kind = tokens[at].word.kind
    if tokens[auxiliary].word.kind in ("modal", "do"):
        return kind in ("verb", "base") or tokens[at].text in _VERBS_AFTER_A_MODAL
    sure = is_verb[at] or (kind == "ed" and begin != auxiliary)
    return kind in ("ed", "ing") and sure and not (oddities and _is_state(tokens, begin, auxiliary, at))


def _is_state(tokens: Sequence[Token], begin: int, auxiliary: int, at: int) -> bool:
    """Whether compromise reads a state in it: "it is closed.", but "they are closed." and "it is closed today"."""
    after = tokens[at + 1] if at + 1 < len(tokens) else _END
    alone = begin == auxiliary == at - 1 and tokens[auxiliary].text == "is"
    return alone and tokens[at].word.kind == "ed" and after.word.kind in ("stop", "comma")


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
