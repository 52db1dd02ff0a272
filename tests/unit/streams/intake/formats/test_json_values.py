"""Tests that what is no JSON costs a value and not its document, that it is named, and that integers keep their digits."""

from __future__ import annotations

import io

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
