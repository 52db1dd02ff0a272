"""Verbs to infinitives as compromise 14 does it: what becomes of each verb `contexts` tells, and what a negation adds is told here."""

from __future__ import annotations

from collections.abc import Sequence

from traceweir.scorers.text.verbs.contexts import Outcome, outcomes
from traceweir.scorers.text.verbs.infinitives import AUXILIARIES, is_between
from traceweir.scorers.text.verbs.lexicon import Token

_WITH_DO = frozenset({"i", "we", "they", "those"})
"""Pronouns after which a negated verb brings a "do"; after any other word but a plural it is "does"."""
_RELATIVE = frozenset({"that", "which", "who"})
_VERBS = frozenset({"verb", "be", "have", "do"})
_SHORT_IS = frozenset({"it", "there", "that", "he", "she"})
_NEGATIONS = frozenset({"not", "never"})
_BEFORE_A_VERB = frozenset({"to", "modal", "do", "pronoun", "not"})
_FAR = 3
"""Words."""


def with_infinitives_as_mastra(tokens: Sequence[Token]) -> list[str]:
    """The words of the tokens in their order, verbs as infinitives.

    A negated verb brings a "do" or "does" of its own: "was not seen" becomes "does not see", "never arrives" "does not never arrive".
    """
    found: list[str] = []
    become = outcomes(tokens)
    for at, token in enumerate(tokens):
        kind = token.word.kind
        if kind in ("stop", "comma"):
            continue
        if _negates(tokens, become, at):
            found += [_do(tokens, at - 1 if token.text == "non" else at), "not"]
        if become[at] is Outcome.CHANGED or (become[at] is Outcome.KEPT and _is_odd(tokens, at)):
            found.append(token.word.infinitive)
        elif become[at] is Outcome.KEPT and not _goes_too(tokens, become, at):
            found.append(token.text)
    return found


def _negates(tokens: Sequence[Token], become: Sequence[Outcome], at: int) -> bool:
    """Whether a negation begins at a word that brings a "do" or "does"."""
    text, before = tokens[at].text, _begin(tokens, at)
    if text == "no":
        return _is_one(tokens, at - 1)
    if text == "non" and tokens[at].fixed and at > 0:  # "we use non-stop flights"
        return (
            become[at - 1] is not Outcome.KEPT or tokens[at - 1].word.kind in _VERBS or _is_infinitive(tokens, at - 1)
        )
    if text == "never" and before == at:
        after = tokens[at + 1] if at + 1 < len(tokens) else None
        return after is not None and (become[at + 1] is Outcome.CHANGED or after.word.kind in ("verb", "base", "have"))
    return text in _NEGATIONS and before < at


def _is_one(tokens: Sequence[Token], at: int) -> bool:
    """Whether a word is the "is" or "was" that a "no" negates; a contraction's "is" is a "be"."""
    return at > 0 and (
        tokens[at].text in ("is", "was") or (tokens[at].text == "be" and tokens[at - 1].text in _SHORT_IS)
    )


def _goes_too(tokens: Sequence[Token], become: Sequence[Outcome], at: int) -> bool:
    """Whether a word that is no verb of its own goes: the "do" of "do not", and the "to" of "going to"."""
    kind = tokens[at].word.kind
    if kind == "do":
        return at + 1 < len(tokens) and tokens[at + 1].text in _NEGATIONS
    return kind == "to" and at > 0 and become[at - 1] is Outcome.DROPPED and tokens[at - 1].text in ("going", "used")


def _begin(tokens: Sequence[Token], at: int) -> int:
    """The place of the first auxiliary of those before a place, or the place."""
    begin = place = at
    while place > 0 and place > at - _FAR and (is_between(tokens[place - 1]) or _is_auxiliary(tokens[place - 1])):
        place -= 1
        if _is_auxiliary(tokens[place]):
            begin = place
    return begin


def _is_auxiliary(token: Token) -> bool:
    return token.word.kind in AUXILIARIES and not token.fixed


def _do(tokens: Sequence[Token], at: int) -> str:
    """The "do" or "does" of the subject of what is at a place."""
    begin = _begin(tokens, at)
    near = reversed(tokens[max(0, begin - _FAR) : begin])
    before = next((token for token in near if not is_between(token) and token.text not in _RELATIVE), None)
    return "do" if before and (before.word.kind in ("plural", "s") or before.text in _WITH_DO) else "does"


def _is_odd(tokens: Sequence[Token], at: int) -> bool:
    """Whether an infinitive is none to compromise: "to tilt" becomes "to tild"."""
    token = tokens[at]
    if token.word.kind not in ("verb", "base") or token.fixed or token.word.infinitive == token.text:
        return False
    return token.word.kind == "verb" or _is_infinitive(tokens, at)


def _is_infinitive(tokens: Sequence[Token], at: int) -> bool:
    return tokens[at].word.kind == "base" and at > 0 and tokens[at - 1].word.kind in _BEFORE_A_VERB
