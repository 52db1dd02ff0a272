"""Replaces verbs by their infinitives as compromise 14 does.

`contexts` decides the outcome of each verb; this module adds the words that compromise inserts for a negation.
"""

from __future__ import annotations

from collections.abc import Sequence

from traceweir.scorers.text.verbs.compromise.contexts import WordOutcome, outcomes
from traceweir.scorers.text.verbs.infinitives import AUXILIARIES, is_between
from traceweir.scorers.text.verbs.lexicon import Token

_WITH_DO = frozenset({"i", "we", "they", "those"})
"""Pronouns after which compromise inserts "do" for a negated verb, as after plurals; after other words it inserts "does"."""
_RELATIVE = frozenset({"that", "which", "who"})
_VERBS = frozenset({"verb", "be", "have", "do"})
_SHORT_IS = frozenset({"it", "there", "that", "he", "she"})
_NEGATIONS = frozenset({"not", "never"})
_BEFORE_A_VERB = frozenset({"to", "modal", "do", "pronoun", "not"})
_MAX_DISTANCE = 3
"""Maximum distance, in words, within which the auxiliaries and the subject of a verb are searched."""


def with_infinitives_as_mastra(tokens: Sequence[Token]) -> list[str]:
    """Returns the words of the tokens in their order, with verbs as infinitives.

    A negated verb gets an additional "do" or "does": "was not seen" becomes "does not see", and "never arrives"
    becomes "does not never arrive".
    """
    found: list[str] = []
    decided = outcomes(tokens)
    for index, token in enumerate(tokens):
        kind = token.word.kind
        if kind in ("stop", "comma"):
            continue
        if _negates(tokens, decided, index):
            found += [_do_form(tokens, index - 1 if token.text == "non" else index), "not"]
        if decided[index] is WordOutcome.CHANGED or (
            decided[index] is WordOutcome.KEPT and _is_changed_infinitive(tokens, index)
        ):
            found.append(token.word.infinitive)
        elif decided[index] is WordOutcome.KEPT and not _is_dropped_too(tokens, decided, index):
            found.append(token.text)
    return found


def _negates(tokens: Sequence[Token], decided: Sequence[WordOutcome], index: int) -> bool:
    """Returns whether compromise inserts "do not" or "does not" at a position."""
    text = tokens[index].text
    before = _begin(tokens, index)
    if text == "no":
        return _is_negated_be(tokens, index - 1)
    # "we use non-stop flights".
    if text == "non" and tokens[index].fixed and index > 0:
        return (
            decided[index - 1] is not WordOutcome.KEPT
            or tokens[index - 1].word.kind in _VERBS
            or _is_infinitive(tokens, index - 1)
        )
    if text == "never" and before == index:
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        return after is not None and (
            decided[index + 1] is WordOutcome.CHANGED or after.word.kind in ("verb", "base", "have")
        )
    return text in _NEGATIONS and before < index


def _is_negated_be(tokens: Sequence[Token], index: int) -> bool:
    """Returns whether a word is an "is" or "was" that "no" can negate; the "is" of a contraction is a "be"."""
    return index > 0 and (
        tokens[index].text in ("is", "was") or (tokens[index].text == "be" and tokens[index - 1].text in _SHORT_IS)
    )


def _is_dropped_too(tokens: Sequence[Token], decided: Sequence[WordOutcome], index: int) -> bool:
    """Returns whether a word that is not a full verb is dropped: the "do" of "do not", or the "to" of "going to"."""
    kind = tokens[index].word.kind
    if kind == "do":
        return index + 1 < len(tokens) and tokens[index + 1].text in _NEGATIONS
    return (
        kind == "to"
        and index > 0
        and decided[index - 1] is WordOutcome.DROPPED
        and tokens[index - 1].text in ("going", "used")
    )


def _begin(tokens: Sequence[Token], index: int) -> int:
    """Returns the position of the first auxiliary directly before a position, or the position itself."""
    begin = place = index
    while (
        place > 0
        and place > index - _MAX_DISTANCE
        and (is_between(tokens[place - 1]) or _is_auxiliary(tokens[place - 1]))
    ):
        place -= 1
        if _is_auxiliary(tokens[place]):
            begin = place
    return begin


def _is_auxiliary(token: Token) -> bool:
    return token.word.kind in AUXILIARIES and not token.fixed


def _do_form(tokens: Sequence[Token], index: int) -> str:
    """Returns "do" or "does", whichever agrees with the subject of the word at a position."""
    begin = _begin(tokens, index)
    near = reversed(tokens[max(0, begin - _MAX_DISTANCE) : begin])
    before = next((token for token in near if not is_between(token) and token.text not in _RELATIVE), None)
    return "do" if before and (before.word.kind in ("plural", "s") or before.text in _WITH_DO) else "does"


def _is_changed_infinitive(tokens: Sequence[Token], index: int) -> bool:
    """Returns whether compromise changes a word that already is an infinitive: "to tilt" becomes "to tild"."""
    token = tokens[index]
    if token.word.kind not in ("verb", "base") or token.fixed or token.word.infinitive == token.text:
        return False
    return token.word.kind == "verb" or _is_infinitive(tokens, index)


def _is_infinitive(tokens: Sequence[Token], index: int) -> bool:
    return tokens[index].word.kind == "base" and index > 0 and tokens[index - 1].word.kind in _BEFORE_A_VERB
