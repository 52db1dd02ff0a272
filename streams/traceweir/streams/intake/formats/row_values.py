"""Notes the keys inside the question and the answer of a row that nothing reads, such as `k` beside `question`."""

from __future__ import annotations

from functools import lru_cache

from pydantic import JsonValue

from traceweir.schemas.mlflow_spans import INPUTS, OUTPUTS, TraceUnreadable, read_spans
from traceweir.schemas.row_texts import CALL_PARTS, ReadText, read_request, read_response
from traceweir.schemas.text import printable
from traceweir.streams.intake.formats.answer_pieces import objects_in
from traceweir.streams.intake.formats.unread_keys import KnownKeys, UnreadKeys

_SHOWN_CHARS = 80
_SETTINGS = frozenset(
    (
        *("model", "modelId", "temperature", "top_p", "max_tokens", "max_completion_tokens", "max_output_tokens", "n"),
        *("stream", "stream_options", "seed", "frequency_penalty", "presence_penalty", "logprobs", "top_logprobs"),
        *(
            "logit_bias",
            "stop",
            "stop_sequences",
            "response_format",
            "tools",
            "functions",
            "tool_choice",
            "function_call",
        ),
        *("parallel_tool_calls", "reasoning", "reasoning_effort", "thinking", "modalities", "store", "service_tier"),
        *("user", "metadata", "databricks_options", "extra_headers", "extra_body", "timeout"),
        *("system", "system_instruction", "systemInstruction", "instructions", "generationConfig", "safetySettings"),
        # Databricks' own evaluation reads a split request without it.
        "history",
    )
)
"""What requests of a model's API have beside the question, and the ids and labels of the sender."""
_ABOUT_ANSWER = frozenset(
    (
        *(
            "id",
            "object",
            "created",
            "created_at",
            "model",
            "modelVersion",
            "responseId",
            "type",
            "role",
            "name",
            "status",
        ),
        *("usage", "usageMetadata", "finish_reason", "finish_details", "stop_reason", "stop_sequence", "stopReason"),
        *("incomplete_details", "system_fingerprint", "service_tier", "metadata", "reasoning", "reasoning_content"),
        *("response_metadata", "usage_metadata", "additional_kwargs", "output_text", "parallel_tool_calls"),
        *("tools", "tool_choice", "temperature", "top_p", "max_output_tokens", "text", "truncation", "store", "user"),
        *("instructions", "previous_response_id", "completed_at", "background", "top_logprobs", "top_k"),
        *(
            "prompt_cache_key",
            "prompt_cache_retention",
            "safety_identifier",
            "max_tool_calls",
            "annotations",
            "refusal",
        ),
        *("prompt_logprobs", "kv_transfer_params", "databricks_output"),
    )
)
"""What answers of a model's API have beside the text, and what is read elsewhere."""
_CALLS = ("tool_calls", "function_call")
_MAY_CALL = ("messages", "choices", "content", "output")
"""The keys of an answer whose items can be calls of tools, or messages with them."""


def note_row_values(
    unread_keys: UnreadKeys, request: tuple[str, JsonValue], response: tuple[str, JsonValue], trace: JsonValue = None
) -> None:
    """Notes the unread keys in the question and in the answer of a row, or, where it has none, in those of its trace.

    Args:
        unread_keys: Receives the keys.
        request: The name and the value of the question.
        response: The name and the value of the answer.
        trace: The trace of the row; None without one.
    """
    if trace is not None and None in (request[1], response[1]):
        inputs, outputs = _of_trace(trace)
        request = request if request[1] is not None else ("the trace's inputs", inputs)
        response = response if response[1] is not None else ("the trace's outputs", outputs)
    name, value = request
    _note(unread_keys, name, read_request(value), _SETTINGS)
    name, value = response
    found = read_response(value)
    _note(unread_keys, name, found, _ABOUT_ANSWER)
    if isinstance(value, list):
        _note_calls(unread_keys, name, value)
    for each in found.objects:
        where = f"{name}.{printable(each.path, _SHOWN_CHARS)}" if each.path else name
        for listed in _MAY_CALL:
            _note_calls(unread_keys, f"{where}.{listed}", each.found.get(listed))


def _of_trace(trace: JsonValue) -> tuple[JsonValue, JsonValue]:
    try:
        root = read_spans(trace).root
    except TraceUnreadable:
        # The row is refused for it.
        return None, None
    return (root.attributes.get(INPUTS), root.attributes.get(OUTPUTS)) if root else (None, None)


def _note(unread_keys: UnreadKeys, name: str, text: ReadText, ignored: frozenset[str]) -> None:
    for each in text.objects:
        if len(each.found) > 1:
            where = f"{name}.{printable(each.path, _SHOWN_CHARS)}" if each.path else name
            unread_keys.note_all(each.found, _known(where, frozenset(each.names), ignored))


@lru_cache(maxsize=100)
def _known(where: str, read: frozenset[str], ignored: frozenset[str] = frozenset()) -> KnownKeys:
    return KnownKeys(f"key of {where}", read, ignored)


def _note_calls(unread_keys: UnreadKeys, where: str, items: JsonValue) -> None:
    """Notes the calls of tools in messages, choices, blocks and items of an answer."""
    for item in objects_in(items):
        inner = item.get("message")
        message = inner if isinstance(inner, dict) else item
        kind = item.get("type")
        names = [name for name in _CALLS if message.get(name)]
        if isinstance(kind, str) and (kind in CALL_PARTS or kind.endswith("_call")):
            names.append(kind)
        names += [str(each["type"]) for each in objects_in(message.get("content")) if each.get("type") in CALL_PARTS]
        for name in names:
            unread_keys.note_key(name, _known(where, frozenset()))
