"""Reads from the record of a session what a list of sessions shows of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from pydantic import ValidationError

from traceweir.schemas.conversation import conversation_of
from traceweir.schemas.invocation import known_sum
from traceweir.schemas.session import Session
from traceweir.schemas.times import known_time

PREVIEW_CHARACTERS = 240
"""Characters of a question or an answer that a list shows."""
_KEPT_CHARACTERS = 20_000
"""Characters of a record, at most, whose facts are kept."""


class SessionFacts(NamedTuple):
    """What the record of a session says of it."""

    question: str | None = None
    """What the user asked first; None if it is missing."""
    answer: str | None = None
    """What the agent answered last; None if it is missing."""
    tools: tuple[str, ...] = ()
    """The names of the tools that were called, each once, in the order of their first calls."""
    failed_tools: tuple[str, ...] = ()
    """The names of those of which a call failed."""
    input_tokens: int | None = None
    """Input tokens of the agent's model calls; None if unknown."""
    output_tokens: int | None = None
    """Output tokens of the agent's model calls; None if unknown."""
    duration_s: float | None = None
    """Seconds from the first event to the last one by the agents' clock; None if fewer than two times are known."""


def facts_of(document: str | None) -> SessionFacts | None:
    """Returns what the record of a session says; None for a record that is missing or cannot be read."""
    if document is None:
        return None
    # A page that follows the store reads the same records every few seconds.
    return _known_facts(document) if len(document) <= _KEPT_CHARACTERS else _read(document)


def _read(document: str) -> SessionFacts | None:
    try:
        session = Session.model_validate_json(document)
        exchanges = conversation_of(session)
    except (ValidationError, RecursionError):
        return None
    uses = [use for exchange in exchanges for use in exchange.tools]
    usages = [usage for each in exchanges if (usage := each.turn.invocation.reported_tokens) is not None]
    return SessionFacts(
        question=next((each.question for each in exchanges if each.question is not None), None),
        answer=next((each.answer for each in reversed(exchanges) if each.answer is not None), None),
        tools=tuple(dict.fromkeys(use.name for use in uses)),
        failed_tools=tuple(dict.fromkeys(use.name for use in uses if use.error)),
        input_tokens=known_sum(usage.input_tokens for usage in usages),
        output_tokens=known_sum(usage.output_tokens for usage in usages),
        duration_s=_duration_s(session),
    )


_known_facts = lru_cache(maxsize=1_000)(_read)
"""What the last records say, with at most 20 MB of them."""


def preview(text: str | None, readable: Callable[[str], str]) -> str | None:
    """Returns the beginning of the part of a text that the asker may read; None if nothing is left.

    The whole text is made readable first: half of a secret is not recognized as one.
    """
    shown = readable(text) if text is not None else ""
    if len(shown) > PREVIEW_CHARACTERS:
        return f"{shown[:PREVIEW_CHARACTERS]}…"
    return shown or None


def _duration_s(session: Session) -> float | None:
    times = [moment for event in session.current_events if (moment := known_time(event.occurred_at)) is not None]
    return (max(times) - min(times)).total_seconds() if len(times) > 1 else None
