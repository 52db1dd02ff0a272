"""Parses and validates the messages of a chat transcript, and groups them into turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import PurePath
from typing import Literal, NamedTuple

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.continued_invocations import APPROVED_IN_WORDS
from traceweir.schemas.continued_turns import TurnStep, turns_of_steps
from traceweir.schemas.finish_reasons import CUT_OFF, FAILED, MISSING_PIECES, finish_in, not_whole
from traceweir.schemas.part_kinds import not_text, transcript_in
from traceweir.schemas.reasoning_text import without_reasoning
from traceweir.schemas.result_parts import not_text_of_result
from traceweir.schemas.text import printable
from traceweir.schemas.tool_results import is_pending
from traceweir.streams.intake.formats.chat_calls import ChatToolCall, arguments_of, call_of
from traceweir.streams.intake.formats.chat_content import (
    ChatContent,
    ChatToolResult,
    content_of,
    read_with_result,
    result_of,
)
from traceweir.streams.intake.formats.chat_keys import MESSAGE_LISTS
from traceweir.streams.intake.formats.chat_times import NO_TIMES, time_in, unread_time, why_not_used
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.intake.formats.shown_text import described
from traceweir.streams.intake.formats.stored_endings import has_failed

Role = Literal["user", "assistant", "tool"]
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
_ITEM = "_call"
"""How the kinds of calls of OpenAI's Responses API end."""
_NO_ANSWER = (CUT_OFF, FAILED)
"""The reasons of finishing of a text that is not the answer."""
_REMINDER = "<system-reminder>"
"""How a text begins that Claude Code puts beside the results of tools in the user's name."""


class TranscriptPlace(NamedTuple):
    """The source of a transcript and its number there, for error messages and ids."""

    source: str
    """The path of the file, or another name of the input."""
    number: int
    """The number of the document, from 1."""

    @property
    def file_name(self) -> str:
        """The source without its folders, so that ids do not depend on the path by which a file is opened."""
        return PurePath(self.source).name

    def error(self, what: str) -> InputError:
        """Returns an error that names the document."""
        return InputError(f"{self.source}: document {self.number}: {what}")


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of the user, the agent or a tool."""

    role: Role
    text: str
    calls: tuple[ChatToolCall, ...] = ()
    are_parallel: bool = True
    """Whether the model asked for all calls at once; False if the message has results between them."""
    is_item: bool = field(default=False, compare=False)
    """Whether the format has a message for each call, so that the next one can have a further call of the same answer."""
    call_id: str | None = None
    """For the answer of a tool: the id of the call that it answers."""
    tool: str = ""
    """For the answer of a tool: the tool's name; empty if the transcript does not name the tool."""
    failed: bool = False
    """For the answer of a tool: whether the call failed."""
    at: datetime | None = None
    """When the message was written; None if it does not say it."""
    untimed: str = field(default=NO_TIMES, compare=False)
    """Why the message has no time that counts, if it has none."""
    unread: Counter[str] = field(default_factory=Counter)
    """How many parts of each kind could not be read."""
    finish: str = field(default="", compare=False)
    """Why the model ended the message, in the words of its API; empty if unknown."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A user message and all messages that belong to it: as a rule, those before the next user message."""

    question: ChatMessage | None
    """The user message; None for messages of the agent before the first user message."""
    messages: tuple[ChatMessage, ...]
    """The messages of the agent and of tools after the user message."""
    places: tuple[int, ...]
    """The place of the question, if there is one, and of each message in the transcript, from 0."""
    approved_in_words: bool = False
    """Whether a further message of the user let an open call of a tool go on."""

    @property
    def final(self) -> int | None:
        """The index of the agent's last text in `messages`, which is the final response; None without a whole one."""
        if self._finish in _NO_ANSWER:
            return None
        with_text = [i for i, message in enumerate(self.messages) if message.role == "assistant" and message.text]
        return with_text[-1] if with_text else None

    @property
    def _finish(self) -> str:
        return next((each.finish for each in reversed(self.messages) if each.role == "assistant"), "")

    @property
    def missing(self) -> list[str]:
        """A sentence for each part of the turn that the transcript does not have, or that is no text."""
        found = []
        if self.question is not None:
            found += not_text("question", self.question.text, [self.question.unread])
        answers = [message for message in self.messages if message.role == "assistant"]
        found += not_text("answer", "".join(message.text for message in answers), (each.unread for each in answers))
        found += not_whole("" if self.final is None else "a text", self._finish)
        if self._finish in _NO_ANSWER:
            found += _not_whole_calls(answers[-1].calls, self._finish)
        for each in self.messages:
            if each.role == "tool":
                found += not_text_of_result(each.tool, each.text, each.unread)
        final = None if self.final is None else self.messages[self.final]
        if self.question is not None and final is not None and None in (self.question.at, final.at):
            found.append(final.untimed)
        if self.approved_in_words:
            found.append(APPROVED_IN_WORDS)
        return found


def _not_whole_calls(calls: Sequence[ChatToolCall], finish: str) -> list[str]:
    """Returns the sentences about the calls of an answer that has no end."""
    lacks = [f"the tool calls of a model's answer, which was cut off, are perhaps not all recorded: {MISSING_PIECES}"]
    cause = MISSING_PIECES if finish == CUT_OFF else "the model's provider has failed"
    return [
        # Of an answer that has failed, no further call was to come.
        *(lacks if finish == CUT_OFF else ()),
        *(
            f"the arguments of the call of tool {printable(call.name, 80)!r} are not whole: {cause}"
            for call in calls
            if call.arguments is None
        ),
    ]


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
    for path, item in _items(document, place):
        unread = unread or unread_time(item, path)
        for message in _messages(item, path, tools, place):
            tools.update((call.id, call.name) for call in message.calls if call.id is not None)
            waiting += [call.name for call in message.calls if call.id is None]
            if message.role == "tool" and message.call_id is None and waiting:
                name = message.tool if message.tool in waiting else waiting[0]
                message = message if message.tool else replace(message, tool=name)
                waiting.remove(name)
            messages.append(message)
    last = next((place for place in reversed(range(len(messages))) if messages[place].role == "assistant"), None)
    if is_stored_answer(document) and last is not None:
        # The result of a tool of the provider can stand after the last message of the model.
        finish = finish_in(document)
        if has_failed(document) or (document.get("error") and finish in ("error", CUT_OFF)):
            finish = FAILED
        calls = messages[last].calls
        if finish in _NO_ANSWER:
            answered = {message.call_id for message in messages[last + 1 :]}
            calls = tuple(
                replace(call, arguments=None)
                if _is_text_alone(call.arguments) or (call is calls[-1] and call.id not in answered)
                else call
                for call in calls
            )
        messages[last] = replace(messages[last], calls=calls, finish=finish)
    untimed = why_not_used([each.at for each in messages if each.role != "tool" and each.text], unread)
    return [replace(each, at=None, untimed=untimed) for each in messages] if untimed else messages


def _is_text_alone(arguments: JsonObject | None) -> bool:
    """Returns whether arguments are a text that is no JSON, such as the beginning of one."""
    return arguments is not None and arguments.keys() == {"arguments"} and isinstance(arguments["arguments"], str)


def turns_of(messages: Sequence[ChatMessage]) -> list[ChatTurn]:
    """Groups the messages into turns, in order.

    Each user message begins a turn. The late result of a tool belongs to the turn of its call, as `continued_turns` says.
    """
    number = 0
    steps = []
    for message in messages:
        is_question = message.role == "user"
        answered = (message.call_id,) if message.role == "tool" and message.call_id is not None else ()
        number += is_question
        steps.append(
            TurnStep(
                str(number),
                asks=is_question,
                says=message.role == "assistant" and bool(message.text),
                calls=[call.id for call in message.calls if call.id is not None],
                answers=answered,
                pending=answered if answered and is_pending(message.text) else (),
            )
        )
    groups: dict[str, list[int]] = {}
    for place, turn in enumerate(turns_of_steps(steps, named=False)):
        groups.setdefault(turn, []).append(place)
    return [_turn(messages, places) for places in groups.values()]


def _turn(messages: Sequence[ChatMessage], places: Sequence[int]) -> ChatTurn:
    asked = [place for place in places if messages[place].role == "user"]
    others = [place for place in places if messages[place].role != "user"]
    return ChatTurn(
        messages[asked[0]] if asked else None,
        tuple(messages[place] for place in others),
        (*asked[:1], *others),
        approved_in_words=len(asked) > 1,
    )


def _items(document: JsonObject, place: TranscriptPlace) -> Iterator[tuple[str, JsonValue]]:
    """Yields the messages with their paths."""
    if document.get("object") == "response":
        # The Responses API: a text or a list of items, each.
        roles: Mapping[str, Role] = {"input": "user", "output": "assistant"}
        for name, role in roles.items():
            found = document.get(name)
            if name == "input" and not found:
                # The messages of the request, which somebody has written beside the response.
                found = next((document[key] for key in MESSAGE_LISTS if document.get(key)), None)
            yield from _items_in(name, found, role)
        return
    key = next((each for each in MESSAGE_LISTS if document.get(each) is not None), None)
    choices = choices_of(document)
    if key is None and not choices:
        names = ", ".join(map(repr, MESSAGE_LISTS))
        raise place.error(f"has none of {names} and 'choices'; one of these keys must contain the messages")
    if key is not None:
        found = document[key]
        if not isinstance(found, list) or not found:
            raise place.error(f"{key} is {described(found)}; {key} must be a list of at least one message")
        for index, item in enumerate(found):
            if key == "contents" and isinstance(item, dict) and "role" not in item and "parts" in item:
                # Gemini's API takes a content without a role for one of the user.
                item = {"role": "user", **item}
            yield f"{key}[{index}]", item
    else:
        # The question of a completion, or what a log has of it beside the answer.
        name = "prompt" if document.get("prompt") else "input"
        asked = document.get(name)
        if isinstance(asked, str) or all(isinstance(item, dict) for item in _listed(asked)):
            yield from _items_in(name, asked, "user")
    if choices:
        yield "the answer", choices[0]


def _items_in(name: str, found: JsonValue, role: Role) -> Iterator[tuple[str, JsonValue]]:
    """Yields the messages in a text or a list, with their paths."""
    listed: list[JsonValue] = [{"role": role, "content": found}] if isinstance(found, str) else _listed(found)
    yield from ((f"{name}[{index}]", item) for index, item in enumerate(listed))


def is_stored_answer(document: JsonObject) -> bool:
    """Returns whether a document is the stored answer of one model call."""
    return bool(choices_of(document)) or document.get("object") == "response"


def choices_of(document: JsonObject) -> list[JsonObject]:
    """Returns the messages in the choices of a stored answer: of OpenAI (chat or completions), Gemini or Bedrock.

    There are none where `choices` is something else, as in a multiple-choice test.
    """
    output = document.get("output")
    is_completion = document.get("object") == "text_completion"
    lists = (
        [
            {"role": "assistant", "content": each.get("text")} if is_completion else each.get("message")
            for each in _listed(document.get("choices"))
            if isinstance(each, dict)
        ],
        [_of_model(each.get("content")) for each in _listed(document.get("candidates")) if isinstance(each, dict)],
        [output["message"]] if isinstance(output, dict) and "message" in output else [],
    )
    for found in lists:
        messages = [each for each in found if isinstance(each, dict)]
        if messages and len(messages) == len(found):
            return messages
    return []


def _of_model(content: JsonValue) -> JsonValue:
    """Returns a content of Gemini's answer with its role, which the API can leave out."""
    return {"role": "model", **content} if isinstance(content, dict) else content


def _listed(found: JsonValue) -> list[JsonValue]:
    return found if isinstance(found, list) else []


def _messages(item: JsonValue, path: str, tools: dict[str, str], place: TranscriptPlace) -> Iterator[ChatMessage]:
    """Yields the messages that an item of a transcript stands for; the results of tools can stand in a user's message."""
    if not isinstance(item, dict):
        raise place.error(f"{path} is {described(item)}; a message must be an object with a role")
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
    name = next((key for key in ("content", "parts", "value") if item.get(key)), "content")
    at = time_in(item)
    if known == "tool" and item.get("requestor") == "user":
        # In tau2-bench, the result of the user's own tool, whose call is named.
        return
    if known == "tool":
        found = _results_in(item.get(name)) or [
            result_of({**item, "content": item.get(name)}, path, place.error, calls=tools)
        ]
        yield from (_of_tool(each, tools, at) for each in found)
        return
    content = content_of(item.get(name), f"{path}.{name}", place.error)
    # Those of Ollama and OpenRouter are beside the content.
    content.unread.update("image" for _ in _listed(item.get("images")))
    if known == "user":
        yield from (_of_tool(each, tools, at) for each in content.results)
        yield from _of_user(item, content, at)
        return
    # The parts of a message of the AI SDK can have the same calls.
    in_parts = {call.id for call in content.calls if call.id is not None}
    for each in _listed(item.get("toolInvocations")):
        if isinstance(each, dict) and each.get("toolCallId") not in in_parts:
            read_with_result(each, content, path, place.error)
    if content.results:
        said = without_reasoning("\n".join(content.texts[: content.texts_before]))
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
        call = call_of(arguments_of(content.text), path, place.error)
        yield ChatMessage("assistant", "", (call,), is_item=True, at=at)
        return
    # LangChain writes a call of Anthropic in both places.
    known_ids = {call.id for call in content.calls if call.id is not None}
    calls = [*content.calls, *(call for call in _calls(item, path, place) if call.id not in known_ids)]
    yield ChatMessage(
        "assistant", text, tuple(calls), at=at, unread=content.unread, finish=finish_in({**item, "status": None})
    )


def _of_constructor(item: JsonObject) -> JsonObject:
    """Returns the message that a constructor of LangChain makes, which `dumpd` writes; its class names the role."""
    names = item.get("id")
    name = names[-1] if isinstance(names, list) and names else None
    role = name.removesuffix("Chunk").removesuffix("Message").lower() if isinstance(name, str) else None
    message = item["kwargs"]
    return {"role": role, **message} if isinstance(message, dict) else item


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
    reminders = [text for text in content.texts if content.results and text.startswith(_REMINDER)]
    texts = [text for text in content.texts if text not in reminders]
    calls = _listed(item.get("tool_calls"))
    if texts or content.unread or not (content.results or calls):
        yield ChatMessage("user", "\n".join(texts), at=at, unread=content.unread)
    unread = Counter({"reminder": len(reminders), "tool call of the user": 0 if texts else len(calls)})
    if any(unread.values()):
        yield ChatMessage("assistant", "", unread=+unread)


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
    calls = item.get("tool_calls") or []
    if not isinstance(calls, list):
        raise place.error(f"{path}.tool_calls is {described(calls)}; tool_calls must be a list")
    yield from (call_of(call, f"{path}.tool_calls[{index}]", place.error) for index, call in enumerate(calls))
    # LangChain keeps the calls with broken arguments apart.
    whole = {call.get("id") for call in calls if isinstance(call, dict)}
    for call in _listed(item.get("invalid_tool_calls")):
        if isinstance(call, dict) and call.get("name") and (call.get("id") is None or call["id"] not in whole):
            yield call_of(call, f"{path}.invalid_tool_calls", place.error)
    if item.get("function_call") is not None:
        named = f"{path}.function_call"
        yield call_of({"function": item["function_call"]}, named, place.error, function_path=named)
