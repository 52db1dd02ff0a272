"""Reads the question and the answer of a row, which are texts or objects of many shapes, and tells from which keys."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeGuard

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.reasoning_text import REASONING_KINDS, without_reasoning
from traceweir.schemas.server_sent_events import data_of_events


class TextHolder(NamedTuple):
    """An object of which keys were read."""

    path: str
    """The keys around it, joined by dots; empty for the object at the top."""
    found: JsonObject
    names: Collection[str]
    """The keys that were read."""


class ReadText(NamedTuple):
    """A question or an answer, and where it stands."""

    text: str | None
    """None if there is none that can be read."""
    objects: Sequence[TextHolder] = ()
    """The objects that have the text, the outermost first. Whatever else they have is not read."""
    content: JsonValue = None
    """The content of the message that has the text, if it is in a message."""

    @property
    def other_parts(self) -> Counter[str]:
        """How many parts of each kind the message has that are no text, such as images; calls of tools are none of them."""
        parts = self.content if isinstance(self.content, list) else []
        kinds = [str(part.get("type") or next(iter(part), "")) for part in parts if _is_other_part(part)]
        return Counter(kinds)

    def below(self, found: JsonObject, *names: str) -> ReadText:
        """Returns the text with an object around it.

        Args:
            found: The object.
            names: The keys of it that were read, the one of the text first.
        """
        inner = [each._replace(path=f"{names[0]}.{each.path}" if each.path else names[0]) for each in self.objects]
        return self._replace(objects=[TextHolder("", found, names), *inner])


def request_text(request: JsonValue) -> str | None:
    """Returns the question in a request; None if it has none that can be read.

    As in Databricks Agent Evaluation, the question of a single message is its content, that of several messages which are
    all text the JSON of the messages without ASCII escapes, and that of a split request its `query` without the history.
    Databricks takes the text of a Python object for any other value; here, an object that has a single value, or a value
    with a usual name of a question, is read like this value, and nothing else is.

    >>> request_text({"messages": [{"role": "user", "content": "one"}]})
    'one'
    >>> request_text({"query": "Q", "history": [{"role": "user", "content": "h"}]})
    'Q'
    >>> request_text({"question": "What is RAG?", "top_k": 3}), request_text({"request": {"query": "Q"}})
    ('What is RAG?', 'Q')
    >>> request_text({"city": "Oslo", "days": 3}) is None, request_text({"user_id": "u-1"}) is None
    (True, True)
    >>> request_text({"answer": "In Oslo."}) is None, request_text([{"role": "system", "content": "Be kind."}]) is None
    (True, True)
    """
    return read_request(request).text


def read_request(request: JsonValue, depth: int = 0) -> ReadText:
    """Returns the question as `request_text` does, and the objects that have it.

    >>> [(each.path, each.names) for each in read_request({"request": {"query": "Q", "k": 3}}).objects]
    [('', ('request',)), ('request', ('query',))]
    """
    match request:
        case str():
            return ReadText(request)
        case int() | float() if not isinstance(request, bool):
            return ReadText(json.dumps(request))
        case list() if any(isinstance(each, dict) and "role" in each for each in request):
            return _messages_text(request)
        case list():
            return ReadText(_joined(_texts(request)), content=request)
        case dict() if depth < _MAX_DEPTH:
            return _read_request_object(request, depth)
    return _NOTHING


def response_text(response: JsonValue) -> str | None:
    """Returns the answer in a response without the model's reasoning; None if it has none that can be read.

    As in Databricks Agent Evaluation and MLflow 3, the answer is a chat completion's first choice, a chat agent's last
    message, `content`, or the text of a response of the Responses API. All pieces of a stream are read, where Databricks
    reads the first one. For any other value, see `request_text`.

    >>> response_text({"choices": [{"message": {"content": "hi"}}]})
    'hi'
    >>> response_text({"messages": [{"role": "assistant", "content": "last"}]})
    'last'
    >>> response_text({"role": "assistant", "content": [{"text": "It is 12 C."}]})
    'It is 12 C.'
    >>> response_text(["It is", " 12 C."]), response_text({"error": "rate limit"}) is None
    ('It is 12 C.', True)
    """
    return read_response(response).text


def read_response(response: JsonValue, depth: int = 0) -> ReadText:
    """Returns the answer as `response_text` does, and the objects that have it."""
    match response:
        case str():
            return ReadText(None if data_of_events(response) is not None else without_reasoning(response))
        case int() | float() if not isinstance(response, bool):
            return ReadText(json.dumps(response))
        case list() if depth < _MAX_DEPTH:
            return _read_list(response, depth)
        case dict() if depth < _MAX_DEPTH:
            return _read_response_object(response, depth)
    return _NOTHING


_NOTHING = ReadText(None)


_QUESTIONS = (
    "query",
    "question",
    "input",
    "prompt",
    "user_input",
    "user_message",
    "message",
    "text",
    "request",
    "inputs",
    # Of Gemini, which takes a text as well as messages; elsewhere it can be a document.
    "contents",
)
"""Usual names of the value that is the question, the surest first."""
_ANSWERS = ("answer", "response", "output", "result", "completion", "generated_text", "text", "message", "outputs")
"""Usual names of the value that is the answer, the surest first."""
_OF_OTHERS = frozenset(
    (
        *("context", "contexts", "documents", "retrieved_context", "reference", "ground_truth", "expected"),
        *("expected_response", "expected_answer", "expected_output", "expected_facts", "expected_retrieved_context"),
    )
)
_NO_QUESTIONS = frozenset(_ANSWERS) - frozenset(_QUESTIONS) | _OF_OTHERS
_NO_ANSWERS = frozenset(_QUESTIONS) - frozenset(_ANSWERS) | _OF_OTHERS
"""Usual names of what is something else, also if it is the only value; an object can still have the text."""
_OF_AGENT = frozenset(("assistant", "ai", "model", "tool", "function", "system", "developer"))
_OF_ASKING = frozenset(("user", "human", "tool", "function", "system", "developer"))
"""The roles of messages that are no question, and no answer."""
_NO_TEXTS = ("id", "error", "status", "finish_reason", "model", "object", "usage", "type")
"""Names, or ends of names, of values that are never the question or the answer, though they can stand alone."""
CALL_PARTS = frozenset(
    (
        *("tool_use", "tool_result", "server_tool_use", "mcp_tool_use", "tool_call", "tool-call", "tool-result"),
        *("toolUse", "toolResult", "functionCall", "function_call", "functionResponse", "function_response"),
    )
)
"""The kinds of parts that are calls of tools and their results."""
_OF_MESSAGE = ("content", "parts", "role")
_MESSAGES = ("messages", "contents")
_MAX_DEPTH = 16
"""Objects in objects beyond which nothing is read."""


def _read_request_object(request: JsonObject, depth: int) -> ReadText:
    for name in _MESSAGES:
        messages = request.get(name)
        if isinstance(messages, list) and messages:
            return _messages_text(messages).below(request, name)
    if "role" in request and (content := _content_of(request)) is not None:
        if _is_of(request, _OF_AGENT):
            return _NOTHING
        return ReadText(_content_text(content), content=content).below(request, *_OF_MESSAGE)
    return _read_named(request, _QUESTIONS, _NO_QUESTIONS, lambda inner: read_request(inner, depth + 1))


def _read_named(
    found: JsonObject, names: Sequence[str], others: Collection[str], read: Callable[[JsonValue], ReadText]
) -> ReadText:
    """Returns the text of a value with a usual name, or of the only value, whose name is none of `others`."""
    for name in names:
        if (inner := read(found.get(name))).text is not None:
            return inner.below(found, name)
    ((name, only),) = found.items() if len(found) == 1 else (("", None),)
    # A number alone can be any setting.
    may_be_text = isinstance(only, str | list | dict) and not name.lower().endswith(_NO_TEXTS)
    is_known = name in names or (name.lower() in others and not isinstance(only, dict))
    return read(only).below(found, name) if may_be_text and not is_known else _NOTHING


def _messages_text(messages: Sequence[JsonValue]) -> ReadText:
    """Returns the question in the messages of a request."""
    if all(_is_of(message, _OF_AGENT) for message in messages):
        return _NOTHING
    contents = [_content_of(message) for message in messages]
    if len(contents) > 1 and all(isinstance(content, str) for content in contents):
        return ReadText(json.dumps(messages, ensure_ascii=False))
    asked = next(_content_of(message) for message in reversed(messages) if not _is_of(message, _OF_AGENT))
    return ReadText(_content_text(asked), content=asked)


def _is_of(message: JsonValue, roles: Collection[str]) -> bool:
    role = message.get("role") if isinstance(message, dict) else None
    return isinstance(role, str) and role in roles


def _content_of(message: JsonValue) -> JsonValue:
    return message.get("content", message.get("parts")) if isinstance(message, dict) else None


def _read_response_object(response: JsonObject, depth: int) -> ReadText:
    content = _content_of(response)
    if content is not None:
        return _NOTHING if _is_of(response, _OF_ASKING) else _answer(content).below(response, *_OF_MESSAGE)
    messages = response.get("messages")
    if isinstance(messages, list) and messages and _content_of(messages[-1]) is not None:
        return _answer_of_last(messages).below(response, "messages")
    for name, inner in (("choices", "message"), ("choices", "delta"), ("candidates", "content")):
        choice = _first(response.get(name))
        content = _content_of(choice.get(inner)) if isinstance(choice, dict) else None
        if content is not None:
            return _answer(content).below(response, name)
    if (text := responses_api_text(response)) is not None:
        return ReadText(text).below(response, "output")
    for name in _MESSAGES:
        messages = response.get(name)
        if isinstance(messages, list) and messages:
            return _answer_of_last(messages).below(response, name)
    return _read_named(response, _ANSWERS, _NO_ANSWERS, lambda inner: read_response(inner, depth + 1))


def _answer_of_last(messages: Sequence[JsonValue]) -> ReadText:
    """Returns the text of the last message; none if it is a question, or calls a tool: an earlier text is no answer."""
    return _NOTHING if _is_of(messages[-1], _OF_ASKING) else _answer(_content_of(messages[-1]))


def _read_list(pieces: list[JsonValue], depth: int) -> ReadText:
    """Returns the text of the pieces of a stream, of the last message, or of blocks."""
    if any(isinstance(piece, dict) and "role" in piece for piece in pieces):
        return read_response(pieces[-1], depth + 1)._replace(objects=())
    streamed = [_piece(piece) for piece in pieces]
    if any(text is not None for text in streamed):
        return ReadText(without_reasoning("".join(text for text in streamed if text is not None)))
    texts = _texts(pieces)
    return ReadText(_joined(texts)) if texts else read_response(pieces[0], depth + 1) if pieces else _NOTHING


def _piece(piece: JsonValue) -> str | None:
    """Returns the text of a piece of a stream; None if the value is no piece with a text."""
    if isinstance(piece, str):
        return piece
    if not isinstance(piece, dict):
        return None
    choice = _first(piece.get("choices"))
    delta = choice.get("delta") if isinstance(choice, dict) else piece.get("delta")
    text = delta.get("content") if isinstance(delta, dict) else delta
    text = piece.get("content") if text is None and "type" not in piece else text
    return text if isinstance(text, str) else None


def _answer(content: JsonValue) -> ReadText:
    text = _content_text(content)
    return ReadText(None if text is None else without_reasoning(text), content=content)


def _content_text(content: JsonValue) -> str | None:
    if isinstance(content, dict):
        content = [content]
    return content if isinstance(content, str) else _joined(_texts(content))


def _joined(texts: Sequence[str]) -> str | None:
    return "\n".join(texts) if texts else None


def chat_request(request: JsonValue) -> JsonValue:
    """Returns a request of OpenAI's Responses API, which has its messages in `input`, as messages or as text.

    Any other request is returned unchanged.

    >>> chat_request({"input": [{"role": "user", "content": [{"type": "input_text", "text": "q"}]}]})
    {'messages': [{'role': 'user', 'content': 'q'}]}
    """
    if isinstance(request, dict) and "messages" not in request and "query" not in request:
        messages = request.get("input")
        if isinstance(messages, list):
            return {"messages": [_with_text_content(message) for message in messages]}
        return messages if isinstance(messages, str) else request
    return request


def responses_api_text(response: JsonValue) -> str | None:
    """Returns the texts of the messages of a response of OpenAI's Responses API; None if there are none.

    >>> responses_api_text({"output": [{"type": "message", "content": [{"type": "output_text", "text": "a"}]}]})
    'a'
    """
    output = response.get("output") if isinstance(response, dict) else None
    items = output if isinstance(output, list) else ()
    messages = [item for item in items if isinstance(item, dict) and item.get("type", "message") == "message"]
    return "\n".join(text for message in messages for text in _texts(message.get("content"))) or None


def _with_text_content(message: JsonValue) -> JsonValue:
    texts = _texts(message.get("content")) if isinstance(message, dict) else ()
    return {**message, "content": "\n".join(texts)} if isinstance(message, dict) and texts else message


def _texts(content: JsonValue) -> Sequence[str]:
    """Returns the texts of blocks, without reasoning."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else ()
    return [text for part in parts if isinstance(text := _text_of_block(part), str)]


def _is_other_part(part: JsonValue) -> TypeGuard[JsonObject]:
    if not isinstance(part, dict) or _text_of_block(part) is not None or part.get("thought") is True:
        return False
    kind = str(part.get("type") or next(iter(part), ""))
    return kind not in REASONING_KINDS and kind not in CALL_PARTS and not kind.endswith("_tool_result")


def _text_of_block(part: JsonValue) -> JsonValue:
    if isinstance(part, dict):
        is_reasoning = str(part.get("type")) in REASONING_KINDS or part.get("thought") is True
        return None if is_reasoning else part.get("refusal" if part.get("type") == "refusal" else "text")
    return part


def _first(values: JsonValue) -> JsonValue:
    return values[0] if isinstance(values, list) and values else None
