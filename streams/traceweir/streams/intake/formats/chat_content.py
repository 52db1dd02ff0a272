"""Reads the content of a chat message: its text, the tool calls and tool results in it, and what is none of these.

The blocks of Anthropic, OpenAI (chat and Responses), Gemini, Bedrock and Vercel's AI SDK are read. Reasoning is no text: it
is left out. A part that is neither is counted by its kind, and never replaced by a text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.part_kinds import MEDIA_KINDS, transcript_in
from traceweir.schemas.reasoning_text import REASONING_KINDS
from traceweir.schemas.result_parts import data_url_kind, read_result
from traceweir.schemas.text import printable
from traceweir.schemas.tool_results import is_failure
from traceweir.streams.base.json_values import write_json
from traceweir.streams.intake.formats.chat_calls import ChatToolCall, call_of, call_with, first_of, identifier
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.intake.formats.session_records import MakeError
from traceweir.streams.intake.formats.shown_text import described
from traceweir.streams.intake.spans.ai_sdk_messages import read_ui_tool, unframed_output
from traceweir.streams.intake.spans.attributes import ABSENT
from traceweir.streams.intake.spans.hosted_tools import read_hosted
from traceweir.streams.intake.spans.message import SpanMessage

_TEXTS = {"text", "input_text", "output_text", "summary_text"}
MARKS = frozenset(
    {
        *("cachePoint", "cache_point", "step-start"),
        *("tool-approval-request", "tool-approval-response"),
    }
)
"""Parts without content, which tell only the provider or a framework something."""
_CALLS = {"tool_use", "tool_call", "tool-call", "function_call", "custom_tool_call"}
_RESULTS = {"tool_result", "tool-result", "tool_call_output"}
_OUTPUT = "_call_output"
"""How the kinds of results of OpenAI's Responses API end."""
_WITH_RESULTS: tuple[Callable[[JsonObject, SpanMessage], bool], ...] = (read_hosted, read_ui_tool)
"""The readers of parts that have a call together with its result, or either of a tool that the provider runs."""
_KIND_CHARS = 40
_MAX_DEPTH = 8
"""Results in results beyond which the content of a result is kept as JSON."""


@dataclass(frozen=True, slots=True)
class ChatToolResult:
    """What a tool returned."""

    call_id: str | None
    name: str
    """The name of the tool; empty if the result does not name it."""
    text: str
    failed: bool
    unread: Counter[str] = field(default_factory=Counter)
    """How many parts of each kind are no text."""


@dataclass(slots=True)
class ChatContent:
    """The content of a message."""

    texts: list[str] = field(default_factory=list)
    calls: list[ChatToolCall] = field(default_factory=list)
    results: list[ChatToolResult] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)
    """How many parts of each kind are neither text, call, result nor reasoning, such as `image_url`."""
    in_pieces: bool = False
    """Whether the texts are pieces of one text, of which some have citations, as Anthropic writes it."""
    texts_before: int = 0
    """Number of the texts before the last result."""
    calls_before: int = 0
    """Number of the calls before the last result."""

    def add_text(self, text: str) -> None:
        """Adds a text; one that is nothing but a data URL is a part that is no text."""
        if kind := data_url_kind(text):
            self.unread[kind] += 1
        else:
            self.texts.append(text)

    def add_result(self, result: ChatToolResult) -> None:
        """Adds a result; an answer is what stands after it."""
        self.results.append(result)
        self.texts_before = len(self.texts)
        self.calls_before = len(self.calls)

    @property
    def text(self) -> str:
        """The texts, a line each unless they are pieces of one text."""
        return self.joined(self.texts)

    def joined(self, texts: Iterable[str]) -> str:
        """Returns some of the texts as one."""
        return ("" if self.in_pieces else "\n").join(texts)


def content_of(content: JsonValue, path: str, error: MakeError, *, depth: int = 0) -> ChatContent:
    """Returns what a content consists of: null, a text, a part, or a list of texts and parts.

    Args:
        content: The content.
        path: Where it stands, for the message.
        error: Makes the error of the document.
        depth: Number of results around it.

    Raises:
        InputError: the content is a number or a truth value, or a part of it is none of these.
    """
    found = ChatContent()
    match content:
        case None:
            return found
        case str():
            found.add_text(content)
        case dict():
            _read_part(content, found, path, error, depth)
        case list():
            for index, part in enumerate(content):
                if isinstance(part, str):
                    found.add_text(part)
                elif isinstance(part, dict):
                    _read_part(part, found, f"{path}[{index}]", error, depth)
                else:
                    raise error(
                        f"{path}[{index}] is {described(part)}; a part must be an object with a type, such as text"
                    )
        case _:
            raise error(f"{path} is {described(content)}; the content must be a string, null or a list of parts")
    return found


def result_of(
    result: JsonObject, path: str, error: MakeError, *, depth: int = 0, calls: Collection[str] | None = None
) -> ChatToolResult:
    """Returns the result of a tool.

    Args:
        result: The message or the part.
        path: Where it stands, for the message.
        error: Makes the error of the document.
        depth: Number of results around it.
        calls: The ids of the calls before a message, whose own `id` can be that of its call; None for a part.
    """
    content, is_error = unframed_output(first_of(result, "content", "output", "result", "response"))
    said = result.get("error")
    if isinstance(said, dict):
        # Inspect has the kind of the error beside its message; without a message, the object itself says what failed.
        said = said.get("message") or (write_json(said).decode() if said else None)
    text, unread = (
        (said, Counter[str]())
        # Some tools say beside an empty result that there was no error.
        if isinstance(said, str) and (content is None or (content == "" and is_failure({"error": said})))
        else _read_result(content, path, error, depth)
    )
    name = first_of(result, "name", "toolName", "tool_name")
    call_id = first_of(result, "tool_call_id", "tool_use_id", "call_id", "toolUseId", "toolCallId")
    if call_id is None and (calls is None or identifier(result.get("id")) in calls):
        call_id = result.get("id")
    failed = is_error or _failed(result, text)
    if failed and isinstance(content, dict) and content.keys() == {"output"} and isinstance(content["output"], str):
        # Gemini's frame around a result that is no object.
        text = content["output"]
    return ChatToolResult(identifier(call_id), name if isinstance(name, str) else "", text, failed, unread)


def _read_part(part: JsonObject, found: ChatContent, path: str, error: MakeError, depth: int) -> None:
    # LlamaIndex has a name of its own for the type.
    kind = part.get("type", part.get("block_type"))
    if read_with_result(part, found, path, error):
        return
    if not isinstance(kind, str):
        _read_untyped(part, found, path, error, depth)
    elif kind in REASONING_KINDS or kind in MARKS or part.get("thought") is True:
        pass
    elif kind in _TEXTS or kind == "refusal":
        text = first_of(part, "refusal", "text") if kind == "refusal" else part.get("text")
        # The Assistants API puts the text into an object.
        text = text.get("value") if isinstance(text, dict) else text
        if isinstance(text, str):
            found.in_pieces = found.in_pieces or bool(part.get("citations"))
            found.add_text(text)
        else:
            found.unread[kind] += 1
    elif kind in _CALLS:
        found.calls.append(call_of(part, path, error))
    elif kind in _RESULTS or kind.endswith(_OUTPUT):
        found.add_result(result_of(part, path, error, depth=depth))
    elif kind in MEDIA_KINDS and (spoken := transcript_in(part)):
        found.texts.append(spoken)
    else:
        found.unread[printable(kind, _KIND_CHARS)] += 1


def _read_untyped(part: JsonObject, found: ChatContent, path: str, error: MakeError, depth: int) -> None:
    """Reads a part of Gemini, Bedrock or Haystack, whose only key is its kind."""
    if part.get("thought") is True:
        return
    kinds = [key for key in part if key not in {"thoughtSignature", "thought_signature", "thought"}]
    for kind in kinds:
        value = part[kind]
        if value is None and len(kinds) > 1:
            # An SDK can write all keys of a part.
            continue
        match kind:
            case "text" if isinstance(value, str):
                found.add_text(value)
            case "toolUse" | "functionCall" | "function_call" | "tool_call":
                found.calls.append(call_of(value, f"{path}.{kind}", error))
            case "toolResult" | "functionResponse" | "function_response" if isinstance(value, dict):
                found.add_result(result_of(value, f"{path}.{kind}", error, depth=depth))
            case "tool_call_result" if isinstance(value, dict):
                found.add_result(result_of({**_named_by_origin(value), **value}, f"{path}.{kind}", error, depth=depth))
            case _ if kind in REASONING_KINDS or kind in MARKS:
                pass
            case _:
                found.unread[printable(kind, _KIND_CHARS)] += 1
    if not kinds:
        raise error(f"{path} is {described(part)}; a part must be an object with a type, such as text")


def _named_by_origin(result: JsonObject) -> JsonObject:
    """Returns the id and the tool of the call that a result of Haystack has beside it."""
    origin = result.get("origin")
    return {"tool_call_id": origin.get("id"), "name": origin.get("tool_name")} if isinstance(origin, dict) else {}


def read_with_result(part: JsonObject, found: ChatContent, path: str, error: MakeError) -> bool:
    """Adds the call and the result of a part or an item that has both, or of a tool that the provider runs.

    Returns whether the part is one.

    Args:
        part: The part or the item.
        found: Receives the call and the result.
        path: Where it stands, for the message.
        error: Makes the error of the document.
    """
    message = SpanMessage("assistant")
    if not any(read(part, message) for read in _WITH_RESULTS):
        return False
    for call in message.calls:
        given = None if call.args is ABSENT else call.args
        found.calls.append(call_with(call.id or None, call.name, given))
    for result in message.results:
        if result.value is not ABSENT or result.failed:
            value = "" if result.value is ABSENT else result.value
            text, unread = _read_result(value, path, error, _MAX_DEPTH)
            # Gemini's results of code name neither the call nor the tool.
            name = result.name or (
                "" if result.id else next((each.name for each in found.calls[::-1] if not each.id), "")
            )
            found.add_result(ChatToolResult(result.id or None, name, text, result.failed, unread))
    return True


def _read_result(content: JsonValue, path: str, error: MakeError, depth: int) -> tuple[str, Counter[str]]:
    """Returns the text of a result, and how many of its parts are no text.

    A result that is neither text nor parts such as images is JSON, so that nothing of it is lost.
    """
    if content is None:
        return "", Counter()
    kept, unread = read_result(content)
    if isinstance(content, list) and isinstance(kept, list) and depth < _MAX_DEPTH:
        try:
            found = content_of(kept, path, error, depth=depth + 1)
        except InputError:
            # A list of numbers, for example, is no list of parts.
            found = ChatContent(unread=Counter(["value"]))
        if not (found.calls or found.results or found.unread):
            return found.text, unread
    match kept:
        case [{"json": value, **others}] if not others:
            # Bedrock.
            kept = value
    return kept if isinstance(kept, str) else _as_json(kept, path, error), unread


def _as_json(value: JsonValue, path: str, error: MakeError) -> str:
    try:
        return write_json(value).decode()
    except (ValueError, orjson.JSONEncodeError) as problem:
        # It is nested too deeply, for example.
        raise error(f"{path} cannot be written as JSON ({problem})") from None


def _failed(result: JsonObject, text: str) -> bool:
    """Returns whether the result of a tool is marked as an error, or says that the call failed."""
    marks: JsonObject = {name: result[name] for name in ("is_error", "isError", "error") if name in result}
    return result.get("status") in ("error", "failed") or is_failure(marks) or is_failure(text)
