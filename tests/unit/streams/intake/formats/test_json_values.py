"""Tests that what is no JSON costs a value and not its document, that it is named, and that integers keep their digits."""

from __future__ import annotations

import io
import json

import pytest

from traceweir.schemas.events import EVENT, ToolCalled
from traceweir.streams.intake.formats.base import DocumentRecords, InputContext
from traceweir.streams.intake.formats.databricks_rows import AGENT_EVALUATION
from traceweir.streams.intake.formats.documents import read_documents
from traceweir.streams.intake.formats.openai_chat import OPENAI_CHAT
from traceweir.streams.intake.formats.recognition import read_recognized
from traceweir.streams.intake.formats.traceweir_json import TRACEWEIR

CHAT = b'{"session_id": "s", "messages": [{"role": "user", "content": "cut \\ud83d"}, {"role": "assistant", "content": "a"}]}'
ROW = b'{"request": "q", "response": "a", "score": NaN, "expected_facts": -Infinity}'
HALF = "half of a surrogate pair is no text and counts as U+FFFD: 1 place"


def one(raw: bytes, input_format: object = TRACEWEIR) -> DocumentRecords:
    documents = read_documents(io.BytesIO(raw))
    (found,) = read_recognized(input_format, documents, InputContext("in.jsonl"))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    ("raw", "input_format", "problem"),
    [
        (CHAT, TRACEWEIR, f"in.jsonl: document 1: {HALF}"),
        (CHAT, OPENAI_CHAT, f"in.jsonl: document 1: {HALF}"),
        (ROW, TRACEWEIR, "in.jsonl: row 1 was changed: NaN and Infinity are no JSON and count as null: 2 values"),
        (
            ROW,
            AGENT_EVALUATION,
            "in.jsonl: row 1 was changed: NaN and Infinity are no JSON and count as null: 2 values",
        ),
    ],
)
def test_a_value_that_is_no_json_is_replaced_and_named_and_its_document_is_read(
    raw: bytes, input_format: object, problem: str
) -> None:
    found = one(raw, input_format)
    assert found.records
    assert str(found.problem) == problem


@pytest.mark.parametrize("input_format", [TRACEWEIR, OPENAI_CHAT])
def test_a_value_that_is_no_json_in_the_text_of_arguments_costs_the_value_alone(input_format: object) -> None:
    calls = [{"id": f"c{x}", "function": {"name": "plot", "arguments": f'{{"x": {x}, "y": 2}}'}} for x in ("NaN", "1")]
    calls.append({"id": "c3", "function": {"name": "plot", "arguments": '{"x": [-Infinity, NaN]}'}})
    messages = [{"role": "user", "content": "Plot."}, {"role": "assistant", "content": None, "tool_calls": calls}]
    raw = json.dumps({"messages": messages, "score": 1}).encode()

    found = one(raw, input_format)
    in_document_too = one(raw.replace(b'"score": 1', b'"score": NaN'), input_format)

    events = [EVENT.validate_json(each.value) for each in found.records if each.kind == "event"]
    args = [each.args for each in events if isinstance(each, ToolCalled)]
    assert args == [{"x": None, "y": 2}, {"x": 1, "y": 2}, {"x": [None, None]}]
    named = (
        "in.jsonl: document 1: in the arguments of tool calls: NaN and Infinity are no JSON and count as null: 3 values"
    )
    assert str(found.problem) == named
    assert str(in_document_too.problem) == f"{named}; NaN and Infinity are no JSON and count as null: 1 value"
    assert len(in_document_too.records) == len(found.records)


def test_what_is_no_json_at_all_stays_a_problem() -> None:
    (found,) = OPENAI_CHAT.read(read_documents(io.BytesIO(b'{"messages": [')), InputContext("in.jsonl"))
    assert not found.records
    assert "is not JSON" in str(found.problem)


@pytest.mark.parametrize(
    "arguments", [b'"{\\"id\\": 123456789012345678901234567890}"', b'{"id": 123456789012345678901234567890}']
)
def test_an_integer_of_a_call_keeps_all_its_digits(arguments: bytes) -> None:
    call = (
        b'{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "get", "arguments": %b}}]}' % arguments
    )
    found = one(b'{"messages": [{"role": "user", "content": "q"}, %b]}' % call)
    assert found.problem is None
    called = EVENT.validate_json(found.records[1].value)
    assert isinstance(called, ToolCalled)
    assert called.args == {"id": 123456789012345678901234567890}
