"""Reads on which turns a judge's verdict rests, and names the invocations of these turns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.text import printable
from traceweir.schemas.turns import Turn
from traceweir.scorers.judged.reply_objects import value_at
from traceweir.scorers.judged.vote import Vote

MAX_NAMED = 5
"""Maximum number of turns that are named although the session does not have them."""
_NUMBER = re.compile(r"(?:turn *)?#? *0*(\d{1,9})(?:\.0)?", re.IGNORECASE)


def turns_at(answer: JsonObject) -> Sequence[str]:
    """Returns the turns that an answer names, each once: a number as its digits, anything else as it stands.

    >>> turns_at({"turns": [2, "Turn 3", 2.0, "the last"]}), turns_at({"turns": 1}), turns_at({})
    (('2', '3', 'the last'), ('1',), ())
    """
    named = value_at(answer, "turns")
    if named is None:
        return ()
    return tuple(dict.fromkeys(_name(each) for each in (named if isinstance(named, list) else [named])))


def _name(named: JsonValue) -> str:
    text = str(named).strip()
    number = _NUMBER.fullmatch(text)
    return number[1] if number else text


def turn_details(votes: Sequence[Vote], turns: Sequence[Turn]) -> JsonObject:
    """Returns the ids of the invocations on which verdicts rest, in their order; a turn that does not exist is named apart.

    Args:
        votes: The votes that name the turns by their numbers, from 1.
        turns: The turns of the session.
    """
    named = dict.fromkeys(name for vote in votes for name in vote.turns)
    ids = {str(number): turn.invocation.invocation_id for number, turn in enumerate(turns, 1)}
    details: JsonObject = {"turns": [name for number, name in ids.items() if number in named]}
    unknown = [name for name in named if name not in ids]
    if unknown:
        details["unknown_turns"] = [printable(name, 20) for name in unknown[:MAX_NAMED]]
    return details


def unknown_turns_text(details: JsonObject) -> str:
    """Returns what a rationale adds about turns that the session does not have; empty if all exist."""
    unknown = details.get("unknown_turns")
    return (
        f" (turns that the session does not have: {', '.join(map(str, unknown))})" if isinstance(unknown, list) else ""
    )
