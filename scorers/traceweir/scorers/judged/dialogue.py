"""Tells a judge what was said and done in the turns of a session: a line of JSON for each message, call and result.

JSON escapes line breaks, so no text of a user, an agent or a tool can look like another line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import Invocation
from traceweir.schemas.session import Session
from traceweir.schemas.turns import Turn
from traceweir.scorers.judged.evidence import EvidenceStep, answer_to, steps_of

Kind = Literal["user", "agent", "tool_call", "tool_result", "error", "note"]

START_CHARACTERS = 120
"""Characters that are left of a text that is shortened."""
SHORTENED_FIRST: tuple[tuple[Kind, ...], ...] = (("tool_result",), ("user", "agent", "tool_call"), ("error",))
"""The kinds of lines in the order in which they are shortened; within a step the oldest line is first."""
BEGINNING_IS_MISSING = "the beginning of the conversation is not shown"
NO_ANSWER = "the agent gave no answer"


@dataclass(frozen=True)
class DialogueLine:
    """Holds one message, tool call, tool result or error, or a note on what is missing."""

    turn: int
    """The number of the turn, from 1; 0 for a note on the session."""
    kind: Kind
    text: str
    """What was said; the arguments of a call and the response of a tool as JSON."""
    name: str = ""
    """The tool, or the agent that spoke; empty if unknown."""
    call_id: str | None = None
    """Id of the call, where the turn has several calls of this tool."""
    left_out: int = 0
    """Number of characters at the end of the text that were left out."""

    def shortened(self) -> DialogueLine:
        """Returns the line with the start of its text only; itself if the text is not longer."""
        start = self.text.split("\n", 1)[0] if self.kind in ("user", "agent") else self.text
        start = start[:START_CHARACTERS]
        # The mark of what is missing takes characters too.
        if len(self.text) - len(start) < START_CHARACTERS:
            return self
        return replace(self, text=start, left_out=self.left_out + len(self.text) - len(start))

    def __str__(self) -> str:
        """Returns the line as JSON."""
        return self._json

    @cached_property
    def _json(self) -> str:
        # The prompt of each later turn contains the line.
        document: JsonObject = {"turn": self.turn} if self.turn else {}
        if self.kind in ("tool_call", "tool_result"):
            document[self.kind] = self.name
            if self.call_id is not None:
                document["id"] = self.call_id
            said = "arguments" if self.kind == "tool_call" else "response"
            document[said] = self.text if self.left_out else json.loads(self.text)
        else:
            document[self.kind] = self.text
            if self.name:
                document["name"] = self.name
        if self.left_out:
            document["left_out"] = self.left_out
        return json.dumps(document, ensure_ascii=False).translate(_LINE_BREAKS)


_LINE_BREAKS = {ord(each): f"\\u{ord(each):04x}" for each in "\x85\u2028\u2029"}
"""The line breaks that JSON leaves as they are."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Holds the lines of a dialogue; `str` gives the text for a prompt."""

    lines: Sequence[DialogueLine]
    whole_from: int = 1
    """The number of the first turn that is never shortened."""

    def __str__(self) -> str:
        """Returns each line as JSON."""
        return "\n".join(map(str, self.lines))

    def shorter(self, characters: int) -> Dialogue | None:
        """Returns the dialogue with at least so many characters less; None if nothing more can be left out.

        If it cannot be shortened by so much, as much as possible is left out. First the oldest tool results are
        shortened, then old messages and arguments to their first lines, then old errors. Notes stay.
        """
        lines = list(self.lines)
        missing = characters
        for kinds in SHORTENED_FIRST:
            for index, line in enumerate(lines):
                if missing <= 0:
                    break
                if line.kind in kinds and line.turn < self.whole_from and not line.left_out:
                    lines[index] = line.shortened()
                    missing -= len(line.text) - len(lines[index].text)
        return None if missing == characters else replace(self, lines=lines)

    def left_out(self) -> JsonObject:
        """Returns how many characters of how many lines were left out, by kind; empty if all are there."""
        shortened = [line for line in self.lines if line.left_out]
        if not shortened:
            return {}
        kinds = Counter[str](line.kind for line in shortened)
        return {"characters": sum(line.left_out for line in shortened), "shortened": dict(kinds)}


def dialogue_of(
    turns: Sequence[Turn],
    session: Session | None = None,
    *,
    first: int = 1,
    whole: int = 1,
    found: dict[Hashable, Any] | None = None,
) -> Dialogue:
    """Returns the dialogue of some turns.

    Args:
        turns: The turns, in order.
        session: Their session, if it is known: a later segment says that its beginning is missing.
        first: The number of the first of these turns in the session.
        whole: How many of the last turns are never shortened.
        found: Keeps the lines of each turn, for other prompts about the session; `Subject.found_of_session`.
    """
    lines: list[DialogueLine] = []
    if first > 1 or (session is not None and session.segment > 0):
        lines.append(DialogueLine(0, "note", BEGINNING_IS_MISSING))
    kept = {} if found is None else found
    for number, turn in enumerate(turns, first):
        if (key := ("dialogue", number)) not in kept:
            kept[key] = [*_lines(number, turn.invocation)]
        lines += kept[key]
    return Dialogue(lines, first + len(turns) - whole)


def _lines(turn: int, invocation: Invocation) -> Iterator[DialogueLine]:
    if invocation.user_content is not None and (asked := invocation.user_content.text):
        yield DialogueLine(turn, "user", asked)
    steps = steps_of(invocation)
    names = Counter(call.name for step in steps for call in step.calls)
    for step in steps:
        for text in step.texts:
            yield DialogueLine(turn, "agent", text, step.author)
        yield from _tool_lines(turn, step, names)
    answer = invocation.final_response.text if invocation.final_response else ""
    if answer:
        yield DialogueLine(turn, "agent", answer)
    for sentence in invocation.unread or ():
        yield DialogueLine(turn, "note", sentence)
    if invocation.error:
        yield DialogueLine(turn, "error", invocation.error)
    if not (answer or invocation.unread or invocation.error):
        yield DialogueLine(turn, "note", NO_ANSWER)


def _tool_lines(turn: int, step: EvidenceStep, names: Counter[str]) -> Iterator[DialogueLine]:
    """Yields the calls of a step, each before its result if the step has it, and then the other results."""
    unmatched = list(step.responses)
    for call in step.calls:
        shown = names[call.name] > 1
        yield DialogueLine(turn, "tool_call", _json(call.args), call.name, call.id if shown else None)
        if (own := answer_to(call, unmatched)) is not None:
            unmatched.remove(own)
            yield DialogueLine(turn, "tool_result", _json(own.response), own.name, own.id if shown else None)
    for response in unmatched:
        yield DialogueLine(turn, "tool_result", _json(response.response), response.name, response.id)


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
