"""Converts an evaluation row to an invocation and its reference."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.dimensions import UNKNOWN, Dimensions, invocation_dimensions, usable_dimensions
from traceweir.schemas.evaluation_row import Chunk, EvaluationRow, Expectations
from traceweir.schemas.finish_reasons import finish_in, not_whole
from traceweir.schemas.invocation import Content, IntermediateData, Invocation, RetrievedChunk
from traceweir.schemas.mlflow_tokens import response_token_usage
from traceweir.schemas.mlflow_trace import MlflowTrace, read_mlflow_trace
from traceweir.schemas.part_kinds import not_text
from traceweir.schemas.reasoning_text import REASONING_KINDS, without_reasoning
from traceweir.schemas.reference import Reference
from traceweir.schemas.result_parts import data_url_kind
from traceweir.schemas.server_sent_events import data_of_events
from traceweir.schemas.text import printable


class RecordedRow(NamedTuple):
    """The content of a row."""

    invocation: Invocation
    reference: Reference | None
    """The expectations of the row and of its trace; None if there are none."""
    dimensions: Dimensions
    """The dimensions that the trace of the row tells, and the model that a chat completion names."""


def read_row(row: EvaluationRow) -> RecordedRow:
    """Returns the invocation of a row and its reference. The columns of the row take precedence over its trace."""
    trace = MlflowTrace() if row.trace is None else read_mlflow_trace(row.trace)
    reference = _reference(_expected(row, trace.expectations))
    return RecordedRow(_invocation(row, trace), reference, _dimensions(row, trace))


def _dimensions(row: EvaluationRow, trace: MlflowTrace) -> Dimensions:
    response = trace.response if row.response is None else row.response
    model = usable_dimensions({"model": response.get("model")}) if isinstance(response, dict) else UNKNOWN
    return invocation_dimensions([trace.dimensions, model])


def _invocation(row: EvaluationRow, trace: MlflowTrace) -> Invocation:
    asked = chat_request(trace.request) if row.request is None else row.request
    said = trace.response if row.response is None else row.response
    question = request_text(asked)
    answer = response_text(said)
    unread = list(trace.unread)
    for part, text in (("question", question), ("answer", answer)):
        unread += not_text(part, "", [Counter(filter(None, [data_url_kind(text or "")]))])
    if question is None and asked is not None:
        unread.append(f"the question is {_described(asked)}, and not text, messages or a query")
    if answer is None and said is not None:
        unread.append(f"the answer is {_described(said)}, and not text, messages or choices")
    question = None if data_url_kind(question or "") else question
    answer = None if data_url_kind(answer or "") else answer
    finish = finish_in(said)
    if not finish and answer and response_text(trace.model_output) == answer:
        finish = finish_in(trace.model_output)
    unread += not_whole(answer or "", finish)
    latency = trace.latency_seconds
    if latency is None and row.execution_time_ms is not None:
        latency = row.execution_time_ms / 1000
    # Without a trace nothing tells whether tools were called.
    used = (
        None if row.trace is None else IntermediateData(tool_uses=trace.tool_uses, tool_responses=trace.tool_responses)
    )
    return Invocation(
        invocation_id=row.request_id or "",
        user_content=None if question is None else Content.of(question),
        final_response=None if answer is None else Content.of(answer, "model"),
        intermediate_data=used,
        retrieved_context=trace.retrieved_context if row.retrieved_context is None else _context(row.retrieved_context),
        token_usage=trace.token_usage or response_token_usage(row.response, unread),
        latency_seconds=latency,
        unread=unread or None,
        labels=trace.labels or None,
    )


def _expected(row: EvaluationRow, in_trace: Expectations) -> Expectations:
    """Returns the expectations of a row, and those of its trace about which the row says nothing.

    Expected facts and an expected response state the same thing in two ways. A row with one of them therefore takes
    neither from its trace.
    """
    has_answer = row.expected_facts is not None or row.expected_response is not None
    facts, response = (
        (row.expected_facts, row.expected_response)
        if has_answer
        else (in_trace.expected_facts, in_trace.expected_response)
    )
    context = row.expected_retrieved_context
    guidelines = row.guidelines
    return Expectations(
        expected_facts=facts,
        expected_response=response,
        expected_retrieved_context=in_trace.expected_retrieved_context if context is None else context,
        guidelines=in_trace.guidelines if guidelines is None else guidelines,
    )


def _reference(expected: Expectations) -> Reference | None:
    if expected == _NOTHING_EXPECTED:
        return None
    response = expected.expected_response
    return Reference(
        final_response=None if response is None else Content.of(response, "model"),
        expected_facts=expected.expected_facts,
        retrieved_context=_context(expected.expected_retrieved_context),
        guidelines=expected.guidelines,
    )


_NOTHING_EXPECTED = Expectations()


def _context(chunks: list[Chunk] | None) -> list[RetrievedChunk] | None:
    return None if chunks is None else [RetrievedChunk(doc_uri=each.doc_uri, content=each.content) for each in chunks]


def request_text(request: JsonValue, depth: int = 0) -> str | None:
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
    """
    match request:
        case str():
            return request
        case int() | float() if not isinstance(request, bool):
            return json.dumps(request)
        case list() if any(isinstance(each, dict) and "role" in each for each in request):
            return _messages_text(request)
        case list():
            return _joined(_texts(request))
        case dict() if depth < _MAX_DEPTH:
            return _object_text(request, _QUESTIONS, lambda inner: request_text(inner, depth + 1))
    return None


def response_text(response: JsonValue, depth: int = 0) -> str | None:
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
    match response:
        case str():
            return None if data_of_events(response) is not None else without_reasoning(response)
        case int() | float() if not isinstance(response, bool):
            return json.dumps(response)
        case list() if depth < _MAX_DEPTH:
            return _list_text(response, depth)
        case dict() if depth < _MAX_DEPTH:
            return _response_object_text(response, depth)
    return None


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
)
"""Usual names of the value that is the question, the surest first."""
_ANSWERS = ("answer", "response", "output", "result", "completion", "generated_text", "text", "message", "outputs")
"""Usual names of the value that is the answer, the surest first."""
_NO_TEXTS = ("id", "error", "status", "finish_reason", "model", "object", "usage", "type")
"""Names, or ends of names, of values that are never the question or the answer, though they can stand alone."""
_MAX_DEPTH = 16
"""Objects in objects beyond which nothing is read."""


def _object_text(found: JsonObject, names: Sequence[str], text_of: Callable[[JsonValue], str | None]) -> str | None:
    """Returns the text of a value with a usual name, or of the only value."""
    for name in ("messages", "contents"):
        messages = found.get(name)
        if isinstance(messages, list) and messages:
            return _messages_text(messages)
    if "role" in found and found.get("content", found.get("parts")) is not None:
        return _content_text(found.get("content", found.get("parts")))
    for name in names:
        if (text := text_of(found.get(name))) is not None:
            return text
    ((name, only),) = found.items() if len(found) == 1 else (("", None),)
    # A number alone can be any setting.
    may_be_text = isinstance(only, str | list | dict) and not name.lower().endswith(_NO_TEXTS)
    return text_of(only) if may_be_text and name not in names else None


def _messages_text(messages: Sequence[JsonValue]) -> str | None:
    contents = [_content_of(message) for message in messages]
    if len(contents) > 1 and all(isinstance(content, str) for content in contents):
        return json.dumps(messages, ensure_ascii=False)
    return _content_text(contents[-1])


def _content_of(message: JsonValue) -> JsonValue:
    return message.get("content", message.get("parts")) if isinstance(message, dict) else None


def _response_object_text(response: JsonObject, depth: int) -> str | None:
    content = response.get("content", response.get("parts"))
    if content is not None:
        return _answer(content)
    messages = response.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    if (content := _content_of(last)) is not None:
        return _answer(content)
    for name, inner in (("choices", "message"), ("choices", "delta"), ("candidates", "content")):
        choice = _first(response.get(name))
        content = _content_of(choice.get(inner)) if isinstance(choice, dict) else None
        if content is not None:
            return _answer(content)
    if (text := responses_api_text(response)) is not None:
        return text
    return _object_text(response, _ANSWERS, lambda inner: response_text(inner, depth + 1))


def _list_text(pieces: list[JsonValue], depth: int) -> str | None:
    """Returns the text of the pieces of a stream, of the last message, or of blocks."""
    if any(isinstance(piece, dict) and "role" in piece for piece in pieces):
        return response_text(pieces[-1], depth + 1)
    streamed = [_piece(piece) for piece in pieces]
    if any(text is not None for text in streamed):
        return without_reasoning("".join(text for text in streamed if text is not None))
    texts = _texts(pieces)
    return _joined(texts) if texts else response_text(pieces[0], depth + 1) if pieces else None


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


def _answer(content: JsonValue) -> str | None:
    text = _content_text(content)
    return None if text is None else without_reasoning(text)


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


def _text_of_block(part: JsonValue) -> JsonValue:
    if isinstance(part, dict):
        is_reasoning = str(part.get("type")) in REASONING_KINDS or part.get("thought") is True
        return None if is_reasoning else part.get("refusal" if part.get("type") == "refusal" else "text")
    return part


def _described(value: JsonValue) -> str:
    if isinstance(value, str):
        return "the text of server-sent events"
    if isinstance(value, dict):
        keys = ", ".join(repr(printable(key, 40)) for key in [*value][:5])
        return f"an object with {keys}" if keys else "an empty object"
    return f"a list of {len(value)}" if isinstance(value, list) else "a truth value"


def _first(values: JsonValue) -> JsonValue:
    return values[0] if isinstance(values, list) and values else None
