"""Defines SpanMessage: what a model reads or writes, whatever the shape in which an instrumentation wrote it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

from traceweir.schemas.result_parts import data_url_kind
from traceweir.streams.intake.spans.attributes import ABSENT

_MAX_COMPARED = 16
"""Maximum number of earlier calls with one id with which a call is compared."""

Role = Literal["system", "user", "assistant", "tool"]

_SCRUBBED = "[Scrubbed due to "
"""The beginning of what Logfire writes in place of a value that looks like a secret, such as a session id."""
HIDDEN = frozenset({"__REDACTED__", "<elided>", "[REDACTED]", "redacted-by-litellm", "<REDACTED>"})
"""The texts that OpenInference, ADK, Strands, LiteLLM and Claude Code write in place of hidden content."""


# `Counter()` takes as long as all other fields of a message together, to count nothing.
no_parts: Callable[[], Counter[str]] = partial(Counter.__new__, Counter)
"""Returns a new count of parts that are no text, of which there is none yet."""


class RequestedCall(NamedTuple):
    """A tool call that a model asks for."""

    id: str
    """Id of the call; empty if the message has none."""
    name: str
    """Name of the tool."""
    args: Any
    """Arguments as decoded; ABSENT if the message does not have them."""
    hosted: bool = False
    """Whether the provider of the model runs the tool, such as a web search, while the model answers."""


def differs(one: RequestedCall, other: RequestedCall) -> bool:
    """Returns whether two calls with one id are two calls: the names or the arguments of both are known, and differ.

    Streams write a call first without its name, or with an empty object in place of its arguments.
    """
    if one.name and other.name and one.name != other.name:
        return True
    known = isinstance(one.args, dict) and isinstance(other.args, dict) and one.args and other.args
    return bool(known) and one.args != other.args


def is_first(call: RequestedCall, calls_by_id: dict[str, list[RequestedCall]]) -> bool:
    """Returns whether a call with an id is told for the first time, and adds it to the calls that were told.

    Args:
        call: The call.
        calls_by_id: The different calls so far, by their ids.
    """
    same_id = calls_by_id.setdefault(call.id, [])
    if any(not differs(each, call) for each in same_id[-_MAX_COMPARED:]):
        return False
    same_id.append(call)
    return True


class ToolResult(NamedTuple):
    """The result of a tool, as the model reads it."""

    id: str
    """Id of the call; empty if the message has none."""
    name: str
    """Name of the tool; empty if the message has none."""
    value: Any
    """The result; ABSENT if the message does not have it."""
    failed: bool = False
    """Whether the message says that the tool failed."""
    framed: bool = False
    """Whether the model's API demands an object as result, so that other values are in `{"result": value}`: Gemini's."""
    tells_failure: bool = True
    """Whether the message can say that the tool failed; the standard's `tool_call_response` and `gen_ai.tool.message`
    cannot."""
    args: Any = ABSENT
    """The arguments of the call, where they stand beside the result in place of an id; else ABSENT."""


@dataclass(slots=True)
class SpanMessage:
    """A message: its role, its texts, and the tool calls and tool results in it."""

    role: Role
    texts: list[str] = field(default_factory=list)
    calls: list[RequestedCall] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    name: str = ""
    finish: str = ""
    """Why the model ended the message, in the words of its API; empty if unknown."""
    is_choice: bool = field(default=False, compare=False)
    """Whether the message is one of several choices, although it has no reason why it ended."""
    hidden: bool = False
    """Whether the message had content that was taken out."""
    unread: Counter[str] = field(default_factory=no_parts, compare=False)
    """How many parts of each kind are neither text, call, result nor reasoning, such as `image_url`."""
    in_pieces: bool = field(default=False, compare=False)
    """Whether the texts are pieces of one text, of which some have citations, as Anthropic writes it."""
    said_before_results: int = 0
    """Number of the texts that stand before the last result of a tool that the provider ran."""
    _known_calls: dict[str, list[RequestedCall]] = field(default_factory=dict, compare=False, repr=False)

    def add_text(self, text: str) -> None:
        """Adds a text; one that is nothing but a data URL is a part that is no text."""
        if kind := data_url_kind(text):
            self.unread[kind] += 1
        else:
            self.texts.append(text)

    def add_call(self, call: RequestedCall) -> None:
        """Adds a call, unless the message tells it already: a call with its id that has no other content."""
        if not call.id or is_first(call, self._known_calls):
            self.calls.append(call)

    @property
    def has_content(self) -> bool:
        """Whether the message has a text, a call or a result."""
        return bool(self.calls or self.results or any(self.texts))

    @property
    def text(self) -> str:
        """The non-empty texts, joined by line breaks unless they are pieces of one text."""
        return ("" if self.in_pieces else "\n").join(filter(None, self.texts))


def asks_without_text(messages: Sequence[SpanMessage], place: int) -> bool:
    """Returns whether a message of the user is a question without text, such as an image after an answer.

    An image after a question belongs to the question, and one after the result of a tool to the result.
    """
    message = messages[place]
    before = messages[place - 1] if place > 0 else None
    is_wordless = bool(message.unread) and not message.text and not message.results
    return is_wordless and before is not None and before.role == "assistant" and bool(before.text) and not before.calls


def unread_question(messages: Sequence[SpanMessage]) -> Counter[str]:
    """Returns how many parts of each kind of the newest message of the user are no text."""
    # Some APIs have the results of tools in messages of the user.
    asked = next((each for each in reversed(messages) if each.role == "user" and not each.results), None)
    return asked.unread if asked is not None else Counter()


def newest_turn(messages: Sequence[SpanMessage]) -> list[SpanMessage]:
    """Returns the messages after the newest question of the user."""
    asked = (
        i
        for i, message in enumerate(messages)
        if message.role == "user" and (message.text or message.hidden or asks_without_text(messages, i))
    )
    last = max(asked, default=-1)
    return list(messages[last + 1 :])


def is_hidden(value: Any) -> bool:
    """Returns whether a value stands in place of hidden content."""
    return isinstance(value, str) and (value in HIDDEN or value.startswith(_SCRUBBED))


def said(role: Role, text: str) -> SpanMessage:
    """Returns the message that is a text."""
    message = SpanMessage(role, hidden=is_hidden(text))
    if not message.hidden:
        message.add_text(text)
    return message
