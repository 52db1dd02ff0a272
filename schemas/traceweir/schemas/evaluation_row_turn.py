"""Converts an evaluation row to an invocation and its reference."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from pydantic import JsonValue

from traceweir.schemas.dimensions import UNKNOWN, Dimensions, invocation_dimensions, usable_dimensions
from traceweir.schemas.evaluation_row import Chunk, EvaluationRow, Expectations
from traceweir.schemas.finish_reasons import finish_in, not_whole
from traceweir.schemas.invocation import Content, IntermediateData, Invocation, RetrievedChunk
from traceweir.schemas.mlflow_tokens import response_token_usage
from traceweir.schemas.mlflow_trace import MlflowTrace, read_mlflow_trace
from traceweir.schemas.part_kinds import not_text, unread_choices
from traceweir.schemas.reference import Reference
from traceweir.schemas.result_parts import data_url_kind
from traceweir.schemas.row_texts import chat_request, read_request, read_response, response_text
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
    request = read_request(asked)
    response = read_response(said)
    question = request.text
    answer = response.text
    unread = list(trace.unread)
    for part, found in (("question", request), ("answer", response)):
        unread += not_text(part, "", [Counter(filter(None, [data_url_kind(found.text or "")]))])
        unread += not_text(part, found.text or "", [found.other_parts])
    if question is None and asked is not None and not request.other_parts:
        unread.append(f"the question is {_described(asked)}, and not text, messages or a query")
    if answer is None and said is not None and not response.other_parts:
        unread.append(f"the answer is {_described(said)}, and not text, messages or choices")
    question = None if data_url_kind(question or "") else question
    answer = None if data_url_kind(answer or "") else answer
    finish = finish_in(said)
    if not finish and answer and response_text(trace.model_output) == answer:
        finish = finish_in(trace.model_output)
    unread += not_whole(answer or "", finish)
    choices = said.get("choices") if isinstance(said, dict) else None
    further = len(choices) - 1 if isinstance(choices, list) else 0
    if further > 0 and answer is not None:
        unread.append(unread_choices(further))
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
        error=trace.error if answer is None else None,
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


def _described(value: JsonValue) -> str:
    if isinstance(value, str):
        return "the text of server-sent events"
    if isinstance(value, dict):
        keys = ", ".join(repr(printable(key, 40)) for key in [*value][:5])
        return f"an object with {keys}" if keys else "an empty object"
    return f"a list of {len(value)}" if isinstance(value, list) else "a truth value"
