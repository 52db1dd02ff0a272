"""Defines EvaluationRow: a row of an evaluation set or of production logs, in Databricks Agent Evaluation's schema."""

from __future__ import annotations

from typing import Annotated, Any, LiteralString

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from traceweir.schemas.base import JsonObject, WireModel
from traceweir.schemas.chunk_texts import CHUNK_TEXTS, with_content
from traceweir.schemas.mlflow_spans import TraceUnreadable, read_spans
from traceweir.schemas.text import printable

MAX_ROWS = 10_000
"""Maximum number of rows of an evaluation set, as in Databricks."""
TOO_MANY = "The number of rows in the dataset exceeds the maximum: {}. Got {} rows."
CONFLICT = "Conflicting field(s): more than one of [expected_response or expected_facts] cannot be defined"
MISSING = "Missing required field(s): response or trace"
CHUNKS = "must contain values of the form [doc_uri: str], [{'doc_uri': str}], or [{'doc_uri': str}, {'content': str}]"
FACTS = "must be iterable of strings like [str]"
GUIDELINES = "must be text, a list of texts, or an object whose values are texts or lists of texts"
TRACES = "must contain valid serialized traces"

NEWER = {"inputs": "request", "outputs": "response"}
"""Names of columns in newer versions, and the corresponding older names."""
EXPECTED = ("expected_facts", "expected_response", "expected_retrieved_context", "guidelines")
"""Older columns that `expectations` can contain in newer versions."""


class Chunk(WireModel):
    """A piece of retrieved context and its document, without other keys; a string in place of an object is the URI.

    `text` and `page_content` are other names of `content`.
    """

    model_config = ConfigDict(extra="forbid")

    doc_uri: str | None = None
    """URI of the document."""
    content: str | None = None
    """Text of the retrieved piece."""


_KINDS = {dict: "an object", list: "a list", str: "text", bool: "a truth value", type(None): "null"}


def _check_request(value: JsonValue) -> JsonValue:
    if value is None:
        raise ValueError("is required and must not contain null values")
    return value


def _check_response(value: JsonValue) -> JsonValue:
    if value == []:
        raise ValueError("must be text or an object that contains the answer, not an empty list")
    return value


def _facts(value: object) -> object:
    if value is None:
        return None
    if not isinstance(value, list):
        raise _wrong(f"{FACTS}, not {_kind(value)}")
    for number, fact in enumerate(value):
        if not isinstance(fact, str):
            raise _wrong(f"{FACTS}; [{number}] is {_kind(fact)}")
    return value


def _chunks(value: object) -> object:
    """Returns the chunks as objects: a string becomes the document's URI, and null is dropped."""
    if value is None:
        return None
    if not isinstance(value, list):
        raise _wrong(f"{CHUNKS}, not {_kind(value)}")
    return [_chunk(number, chunk) for number, chunk in enumerate(value) if chunk is not None]


def _chunk(number: int, chunk: object) -> object:
    if isinstance(chunk, str):
        return {"doc_uri": chunk}
    if isinstance(chunk, Chunk):
        return chunk
    if not isinstance(chunk, dict):
        raise _wrong(f"{CHUNKS}; [{number}] is {_kind(chunk)}")
    try:
        found = with_content(chunk)
    except ValueError as error:
        raise _wrong(f"{CHUNKS}; [{number}] {error}") from None
    for name, value in chunk.items():
        if name not in ("doc_uri", *CHUNK_TEXTS):
            raise _wrong(f"{CHUNKS}; [{number}] has the unknown key {printable(str(name), 40)!r}")
        if value is not None and not isinstance(value, str):
            raise _wrong(f"{CHUNKS}; [{number}].{name} is {_kind(value)}")
    return found


def _guidelines(value: object) -> object:
    """Returns the guidelines as a list of texts: a text is a single guideline, and names of guidelines are dropped."""
    if value is None:
        return None
    groups = list(value.values()) if isinstance(value, dict) else [value]
    found = [text for group in groups for text in ([group] if isinstance(group, str) else _texts(group))]
    if any(not text.strip() for text in found):
        raise _wrong(f"{GUIDELINES}; a text is empty")
    return found


def _texts(value: object) -> list[str]:
    if not isinstance(value, list):
        raise _wrong(f"{GUIDELINES}, not {_kind(value)}")
    for number, text in enumerate(value):
        if not isinstance(text, str):
            raise _wrong(f"{GUIDELINES}; [{number}] is {_kind(text)}")
    return value


def _trace(value: JsonValue) -> JsonValue:
    if value is None:
        return None
    if not isinstance(value, str | dict):
        raise _wrong(f"{TRACES}, not {_kind(value)}")
    try:
        read_spans(value)
    except TraceUnreadable as error:
        raise _wrong(f"{TRACES}: {error}") from None
    except Exception as error:  # noqa: BLE001  # pydantic would pass on the exception, and a worker would stop
        raise _wrong(f"{TRACES}: it cannot be read ({type(error).__name__})") from None
    return value


def _wrong(rule: str) -> ValueError:
    """Returns a ValueError, because pydantic reports no other exception as a problem of the column."""
    return ValueError(rule)


def _problem(kind: LiteralString, message: LiteralString, *columns: str) -> PydanticCustomError:
    return PydanticCustomError(kind, message, {"columns": [*columns]})


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a number")


_MESSAGES: JsonObject = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "role": {"description": "Who wrote the message, such as `user`.", "type": "string"},
            "content": {"description": "The message: text, or a list of parts."},
        },
    },
}
_REQUEST: JsonObject = {
    "description": "The question: text, OpenAI's `messages`, a `query` with its `history`, or an object with the question alone.",
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "required": ["messages"],
            "properties": {"messages": {"description": "The messages, in order.", **_MESSAGES}},
        },
        {
            "type": "object",
            "required": ["query"],
            "properties": {
                "query": {"description": "The question.", "type": "string"},
                "history": {"description": "The messages before the question, in order.", **_MESSAGES},
            },
        },
        {"not": {"type": "null"}},
    ],
}

Facts = Annotated[list[str] | None, BeforeValidator(_facts)]
Chunks = Annotated[list[Chunk] | None, BeforeValidator(_chunks)]
Guidelines = Annotated[
    list[str] | None,
    BeforeValidator(_guidelines, json_schema_input_type=str | list[str] | dict[str, str | list[str]] | None),
]


class Expectations(WireModel):
    """What is expected of a response, wherever it stands: in the columns of a row, or in a trace."""

    expected_facts: Facts = None
    expected_response: str | None = None
    expected_retrieved_context: Chunks = None
    guidelines: Guidelines = None


class EvaluationRow(WireModel):
    """A request, the agent's response, and the expectations. A column that is null counts as absent.

    A row can contain at most one of `expected_facts` and `expected_response`. It must contain a `trace`, or both a
    `request` and a `response`. What the row does not contain is read from the trace. The
    names of newer versions are accepted for the older names: `inputs` for `request`, `outputs` for `response`, and
    `expectations` as an object with the expected columns.
    """

    request_id: str | None = None
    """Identifies the request; without an id, the request is named by its position in the session."""
    request: Annotated[JsonValue, BeforeValidator(_check_request), WithJsonSchema(_REQUEST)] = None
    response: Annotated[JsonValue, BeforeValidator(_check_response)] = None
    """The answer: text, or the return value of a chat completion or a chat agent."""
    expected_facts: Facts = None
    """Facts that an answer must contain, in any wording; an empty list counts as an expectation."""
    expected_response: str | None = None
    """The expected answer; excludes `expected_facts`."""
    expected_retrieved_context: Chunks = None
    """The documents that should be retrieved."""
    guidelines: Guidelines = None
    """Rules for the answer, each in plain words: a text, a list of texts, or an object of them by name."""
    retrieved_context: Chunks = None
    """The result of the last retrieval."""
    trace: Annotated[JsonValue, BeforeValidator(_trace)] = None
    """MLflow's trace of the request, as JSON text or as an object."""
    execution_time_ms: Annotated[float, Field(ge=0)] | None = None
    """Duration of the answer in milliseconds, from the endpoint's logs; a duration in the trace takes precedence."""

    @model_validator(mode="before")
    @classmethod
    def _rename_newer_columns(cls, columns: Any) -> Any:
        if not isinstance(columns, dict):
            return columns
        named = {**columns}
        for newer, older in NEWER.items():
            if named.get(newer) is not None:
                if named.get(older) is not None:
                    raise _problem("two", f"Only one of '{older}' or '{newer}' is allowed", older, newer)
                named[older] = named[newer]
        if columns.get("inputs") is not None and not isinstance(columns["inputs"], dict):
            raise _problem("no_dictionary", "must contain a dictionary", "inputs")
        if named.get("trace") is not None and named.get("request") is None:
            named.pop("request", None)
        elif "request" not in named:
            raise _problem("no_request", "Either column 'request' or 'inputs' is required but not found", "request")
        expectations = named.get("expectations")
        if expectations is None:
            return named
        if not isinstance(expectations, dict):
            raise _problem("no_dictionary", "must contain a dictionary", "expectations")
        for name in EXPECTED:
            if expectations.get(name) is not None:
                if named.get(name) is not None:
                    raise _problem("two", f"Only one of '{name}' and its place in 'expectations' is allowed", name)
                named[name] = expectations[name]
        return named

    @model_validator(mode="after")
    def _check_required_and_conflicting(self) -> EvaluationRow:
        if self.expected_facts is not None and self.expected_response is not None:
            raise _problem("conflict", CONFLICT, "expected_facts", "expected_response")
        if self.response is None and self.trace is None:
            raise _problem("missing", MISSING, "response", "trace")
        return self
