"""Parses and validates the messages of a chat transcript."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.finish_reasons import FAILED, NOT_WHOLE, finish_in
from traceweir.schemas.part_kinds import transcript_in
from traceweir.schemas.reasoning_text import without_reasoning
from traceweir.schemas.tool_results import is_failure
from traceweir.schemas.user_notes import without_notes
from traceweir.streams.intake.formats.chat_calls import ChatToolCall, call_of, object_in
from traceweir.streams.intake.formats.chat_content import (
    MARKS,
    ChatContent,
    ChatToolResult,
    content_of,
    read_with_result,
    result_of,
)
from traceweir.streams.intake.formats.chat_keys import other_contents
from traceweir.streams.intake.formats.chat_notes import message_of_line, note, with_placed_notes
from traceweir.streams.intake.formats.chat_times import NO_DURATION, time_in, unread_time, why_not_used
from traceweir.streams.intake.formats.chat_turns import NO_ANSWER, ChatMessage, Role
from traceweir.streams.intake.formats.chat_usage import ModelUse, uses_in
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.intake.formats.outputs_as_messages import with_outputs_apart
from traceweir.streams.intake.formats.shown_text import described
from traceweir.streams.intake.formats.stored_endings import has_failed
from traceweir.streams.intake.formats.transcript_items import TranscriptPlace, is_stored_answer, items_of, listed
from traceweir.streams.intake.formats.written_calls import UNREAD_CALL, calls_in, results_in
from traceweir.streams.intake.formats.written_objects import parts_in
from traceweir.streams.intake.spans.printed_objects import PRINTED, printed_in_place_of

_ROLES: Mapping[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "chatbot": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "gpt": "assistant",
    "function_call": "assistant",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
    "function_response": "tool",
}
_TYPES_OF_LANGCHAIN = ("human", "ai", "tool", "function", "system")
"""The types of LangChain's messages, which have them in place of roles."""
_NAMED_CALLS = ("function_call", "tool_call", "custom_tool_call")
_IGNORED_ROLES = ("system", "developer")
_KNOWN_ROLES = "system, developer, user, assistant, tool, function"
_UNKNOWN_CALLS = "the tool calls are not known: a message has its content under a key that no format has"
_UNREADABLE_CALLS = "the tool calls are not known: a text of the model has a call that cannot be read"
_ITEM = "_call"
"""How the kinds of calls of OpenAI's Responses API end."""


def messages_of(document: JsonObject, place: TranscriptPlace) -> list[ChatMessage]:
    """Returns the messages of a transcript without system messages, and the answer of a stored completion after them.

    Raises:
        InputError: the transcript has no messages, or a message is not valid.
    """
    tools: dict[str, str] = {}
    # The names of the calls without an id, as in ShareGPT, that still wait for their results.
    waiting: list[str] = []
    messages: list[ChatMessage] = []
    unread = ""
    has_called = False
    counted_ids: set[str] = set()
    for path, item in items_of(document, place):
        unread = unread or unread_time(item, path)
        missing = _missing_in(item, path, place)
        # A stored answer has the tokens of its last message beside it.
        used = () if path == "the answer" else _uses_of(item, counted_ids)
        for message in _messages(item, path, tools, place, has_called=has_called):
            message = replace(message, missing=missing) if missing else message
            missing = ()
            if used and message.role == "assistant":
                message = replace(message, used=used)
                used = ()
            tools.update((call.id, call.name) for call in message.calls if call.id is not None)
            waiting += [call.name for call in message.calls if call.id is None]
            if message.role == "tool" and message.call_id is None and waiting:
                name = message.tool if message.tool in waiting else waiting[0]
                message = message if message.tool else replace(message, tool=name)
                waiting.remove(name)
            if message.role != "tool":
                has_called = bool(message.calls) or UNREAD_CALL in message.unread
            messages.append(message)
    messages = with_placed_notes(with_outputs_apart(messages))
    last = next((place for place in reversed(range(len(messages))) if messages[place].role == "assistant"), None)
    if is_stored_answer(document) and last is not None:
        # The result of a tool of the provider can stand after the last message of the model.
        finish = finish_in(document)
        if has_failed(document) or (document.get("error") and finish in ("error", *NOT_WHOLE)):
            finish = FAILED
        calls = messages[last].calls
        if finish in NO_ANSWER:
            answered = {message.call_id for message in messages[last + 1 :]}
            calls = tuple(
                replace(call, arguments=None)
                if _is_text_alone(call.arguments) or (call is calls[-1] and call.id not in answered)
                else call
                for call in calls
            )
        messages[last] = replace(messages[last], calls=calls, finish=finish)
    untimed = why_not_used([each.at for each in messages if each.role != "tool" and each.text], unread)
    if untimed:
        return [replace(each, at=None, untimed=untimed) for each in messages]
    return _without_equal_times(messages)


def _without_equal_times(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Returns the messages, those of the agent without a time that is that of their question."""
    found = []
    asked_at = None
    for each in messages:
        if each.role == "user":
            asked_at = each.at
            found.append(each)
        elif each.at is not None and each.at == asked_at:
            found.append(replace(each, at=None, untimed=NO_DURATION))
        else:
            found.append(each)
    return found


def _uses_of(item: JsonValue, counted_ids: set[str]) -> tuple[ModelUse, ...]:
    """Returns the model calls that a message tells; a message that a log has in several parts has them once."""
    if not isinstance(item, dict):
        return ()
    message, _ = message_of_line(item)
    name = message.get("id")
    if isinstance(name, str) and name in counted_ids:
        return ()
    uses = uses_in(message)
    if uses and isinstance(name, str):
        counted_ids.add(name)
    return uses


def _missing_in(item: JsonValue, path: str, place: TranscriptPlace) -> tuple[str, ...]:
    """Returns what a message says of the parts of its turn that its source does not have."""
    found = item.get("missing") if isinstance(item, dict) else None
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise place.error(f"{path}.missing is {described(found)}; missing must be a list of sentences, as in an event")
    return tuple(each for each in found if isinstance(each, str))


def _is_text_alone(arguments: JsonObject | None) -> bool:
    """Returns whether arguments are a text that is no JSON, such as the beginning of one."""
    return arguments is not None and arguments.keys() == {"arguments"} and isinstance(arguments["arguments"], str)


def _messages(
    item: JsonValue, path: str, tools: dict[str, str], place: TranscriptPlace, *, has_called: bool
) -> Iterator[ChatMessage]:
    """Yields the messages that an item of a transcript stands for; the results of tools can stand in a user's message.

    `has_called` says whether the message before it, results of tools aside, has calls.
    """
    if not isinstance(item, dict):
        raise place.error(f"{path} is {described(item)}; a message must be an object with a role")
    item, kind = message_of_line(item)
    if kind:
        yield note(Counter([kind]))
        return
    data = item.get("data")
    if item.get("type") in _TYPES_OF_LANGCHAIN and isinstance(data, dict):
        item = {"role": item["type"], **data}
    elif item.get("type") == "constructor" and isinstance(item.get("kwargs"), dict):
        item = _of_constructor(item)
    role = next((item[key] for key in ("role", "from") if item.get(key) is not None), None)
    if role is None and item.get("type") in _TYPES_OF_LANGCHAIN:
        role = item["type"]
    if role is None:
        yield from _message_without_role(item, path, tools, place)
        return
    word = role.lower() if isinstance(role, str) else ""
    if word in _IGNORED_ROLES:
        return
    known = _ROLES.get(word)
    if known is None:
        raise place.error(f"{path}.role is {described(role)}; the role must be one of {_KNOWN_ROLES}")
    name = next((key for key in ("content", "parts", "value", "blocks") if item.get(key)), "content")
    at = time_in(item)
    others = other_contents(item)
    if known == "tool" and others:
        yield ChatMessage("assistant", "", unread=Counter(others), at=at, missing=(_UNKNOWN_CALLS,))
        return
    if known == "tool" and item.get("requestor") == "user":
        # In tau2-bench, the result of the user's own tool, whose call is named.
        return
    body = _content_of(item.get(name), known)
    written = results_in(body) if known != "assistant" and isinstance(body, str) else []
    if written and (
        has_called if known == "user" else len(written) > 1 or not isinstance(item.get("tool_call_id"), str)
    ):
        found = [ChatToolResult(None, "", text, is_failure(text)) for text in written]
        yield from (_of_tool(each, tools, at) for each in found)
        return
    if known == "tool" and _are_marks(body):
        return
    if known == "tool":
        # LlamaIndex has the id of the call and the name of the tool beside its blocks.
        found = _results_in(item.get(name)) or [
            result_of(
                {**_beside(item), **item, "content": written[0] if written else item.get(name)},
                path,
                place.error,
                calls=tools,
            )
        ]
        yield from (_of_tool(each, tools, at) for each in found)
        return
    part = "question" if known == "user" else "answer"
    is_printed = isinstance(body, str) and bool(printed_in_place_of(part, body, or_code=True))
    if is_printed and printed_in_place_of(part, str(body)):
        content = ChatContent(unread=Counter([PRINTED]))
    else:
        content = content_of(body, f"{path}.{name}", place.error)
        content.unread.update([PRINTED] if is_printed else [])
    content.unread.update(others)
    # Those of Ollama and OpenRouter are beside the content.
    content.unread.update("image" for _ in listed(item.get("images")))
    if known == "user":
        yield from (_of_tool(each, tools, at) for each in content.results)
        yield from _of_user(item, content, at)
        return
    # The parts of a message of the AI SDK can have the same calls.
    in_parts = {call.id for call in content.calls if call.id is not None}
    for each in listed(item.get("toolInvocations")):
        if isinstance(each, dict) and each.get("toolCallId") not in in_parts:
            read_with_result(each, content, path, place.error)
    if content.results:
        said = without_reasoning(content.joined(content.texts[: content.texts_before]))
        yield ChatMessage("assistant", said, tuple(content.calls[: content.calls_before]), are_parallel=False, at=at)
        tools.update((call.id, call.name) for call in content.calls if call.id is not None)
        yield from (_of_tool(each, tools, at) for each in content.results)
        content.texts = content.texts[content.texts_before :]
        content.calls = content.calls[content.calls_before :]
    refusal = item.get("refusal")
    otherwise = refusal if isinstance(refusal, str) and refusal else transcript_in({"audio": item.get("audio")})
    text = without_reasoning(content.text) or otherwise
    content.unread.update(["audio"] if item.get("audio") and not text else [])
    if role == "function_call":
        given = object_in(content.text)
        call = call_of({} if given is None else given.value, path, place.error)
        if given is not None:
            call = replace(call, replaced=call.replaced + given.replaced)
        yield ChatMessage("assistant", "", (call,), is_item=True, at=at)
        return
    # LangChain writes a call of Anthropic in both places.
    known_ids = {call.id for call in content.calls if call.id is not None}
    calls = [*content.calls, *(call for call in _calls(item, path, place) if call.id not in known_ids)]
    missing = [_UNKNOWN_CALLS] if others else []
    if not calls:
        asked = calls_in(text)
        content.unread.update(asked.unread)
        missing += [_UNREADABLE_CALLS] if asked.unread else []
        calls = asked.calls
        text = asked.text
    yield ChatMessage(
        "assistant",
        text,
        tuple(calls),
        at=at,
        unread=content.unread,
        finish=finish_in({**item, "status": None}),
        missing=tuple(missing),
    )


def _of_constructor(item: JsonObject) -> JsonObject:
    """Returns the message that a constructor of LangChain makes, which `dumpd` writes; its class names the role."""
    names = item.get("id")
    name = names[-1] if isinstance(names, list) and names else None
    role = name.removesuffix("Chunk").removesuffix("Message").lower() if isinstance(name, str) else None
    message = item["kwargs"]
    return {"role": role, **message} if isinstance(message, dict) else item


def _content_of(content: JsonValue, role: Role) -> JsonValue:
    """Returns the content of a message; a list of parts that a program has printed as a text is that list."""
    parts = parts_in(content, is_of_user=role == "user") if isinstance(content, str) else None
    return content if parts is None else parts


def _are_marks(content: JsonValue) -> bool:
    """Returns whether a content has parts, and each of them without content, such as an approval."""
    parts = listed(content)
    return bool(parts) and all(isinstance(part, dict) and part.get("type") in MARKS for part in parts)


def _results_in(content: JsonValue) -> list[ChatToolResult]:
    """Returns the results in the parts of a tool's message; none if the message is the result itself."""
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        return []
    try:
        return content_of(content, "", InputError).results
    except InputError:
        # The result itself, for example a list of rows.
        return []


def _of_user(item: JsonObject, content: ChatContent, at: datetime | None) -> Iterator[ChatMessage]:
    """Yields the question in a message of the user, which can have the results of tools, or calls of the user's own tools."""
    found = [without_notes(text) for text in content.texts]
    texts = [each.said for each in found if each.said or not each.notes]
    notes = sum((each.notes for each in found), Counter[str]())
    calls = listed(item.get("tool_calls"))
    if texts or content.unread or not (content.results or calls or notes):
        yield ChatMessage("user", "\n".join(texts), at=at, unread=content.unread + notes)
        return
    if notes and not content.results:
        yield note(notes)
        notes = Counter()
    unread = notes + Counter({"tool call of the user": len(calls)})
    if unread:
        yield ChatMessage("assistant", "", unread=unread)


def _message_without_role(
    item: JsonObject, path: str, tools: dict[str, str], place: TranscriptPlace
) -> Iterator[ChatMessage]:
    """Yields what an item of the Responses API stands for."""
    kind = item.get("type")
    if not isinstance(kind, str):
        raise place.error(f"{path}.role is {described(None)}; the role must be one of {_KNOWN_ROLES}")
    content = ChatContent()
    if not read_with_result(item, content, path, place.error):
        if kind.endswith(_ITEM) and kind not in _NAMED_CALLS and isinstance(item.get("call_id"), str):
            # What the application runs by itself, such as the use of a computer.
            named: JsonObject = {"id": item["call_id"], "name": kind.removesuffix(_ITEM)}
            content.calls.append(
                call_of({**named, "input": item.get("action", item.get("operation"))}, path, place.error)
            )
        else:
            content = content_of({**item, "id": item.get("call_id") or item.get("id")}, path, place.error)
    if kind == "mcp_call":
        # The request for an approval has told the call.
        content.calls = [call for call in content.calls if call.id not in tools]
    if content.text or content.calls or content.unread:
        yield ChatMessage("assistant", content.text, tuple(content.calls), is_item=True, unread=content.unread)
    tools.update((call.id, call.name) for call in content.calls if call.id is not None)
    yield from (_of_tool(each, tools, None) for each in content.results)


def _of_tool(result: ChatToolResult, tools: Mapping[str, str], at: datetime | None) -> ChatMessage:
    tool = result.name or tools.get(result.call_id or "", "")
    return ChatMessage(
        "tool", result.text, call_id=result.call_id, tool=tool, failed=result.failed, at=at, unread=result.unread
    )


def _calls(item: JsonObject, path: str, place: TranscriptPlace) -> Iterator[ChatToolCall]:
    further = _beside(item)
    calls = item.get("tool_calls") or further.get("tool_calls") or []
    if not isinstance(calls, list):
        raise place.error(f"{path}.tool_calls is {described(calls)}; tool_calls must be a list")
    yield from (call_of(call, f"{path}.tool_calls[{index}]", place.error) for index, call in enumerate(calls))
    # LangChain keeps the calls with broken arguments apart.
    whole = {call.get("id") for call in calls if isinstance(call, dict)}
    for call in listed(item.get("invalid_tool_calls")):
        if isinstance(call, dict) and call.get("name") and (call.get("id") is None or call["id"] not in whole):
            yield call_of(call, f"{path}.invalid_tool_calls", place.error)
    function = item.get("function_call") or (None if calls else further.get("function_call"))
    if function is not None:
        named = f"{path}.function_call"
        yield call_of({"function": function}, named, place.error, function_path=named)


def _beside(item: JsonObject) -> JsonObject:
    """Returns what LangChain and LlamaIndex have of a message of a model's API and have no name for."""
    found = item.get("additional_kwargs")
    return found if isinstance(found, dict) else {}
