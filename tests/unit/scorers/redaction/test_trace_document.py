"""Tests that redaction changes the free text of a trace, and nothing that the schema defines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from tests.support.scoring import trace_document

from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers.redaction.trace_document import FREE_TEXT, is_publishable_id, redact_trace

SCHEMA_STRINGS = {
    "@context",
    "@type",
    "id",
    "metadata.created_at",
    "metadata.visibility",
    "metadata.privacy_level",
    "metadata.session_id",  # not published
    "metadata.invocation_id",  # not published
    "steps.type",
}
"""Strings that the schema defines, and times and ids."""
NO_STRINGS = {
    "metadata.withdrawn",
    *("metadata.success", "metadata.quality_score", "steps.step_id", "steps.latency_ms", "outcome.confidence"),
}

FULL = trace_document(
    source_skill="planner",
    metadata={
        "quality_score": 0.9,
        "agent_id": "agent-7",
        "framework": "adk",
        "validated_by": ["lee"],
        "created_at": "2026-01-31T11:59:00Z",
    },
    task={"objective": "Book two seats", "input_schema": {"name": {"type": "string"}}},
    steps=[
        {
            "step_id": 0,
            "type": "tool_call",
            "content": "on 2026-01-31 by name",
            "tool": {"name": "search", "mcp_server": "trains"},
            "input": {"name": "id 7", "day": "2026-01-31"},
            "output_summary": "found",
            "latency_ms": 1.5,
        }
    ],
    knowledge_graph_delta={
        "entities": [{"name": "kim@example.com", "type": "person"}],
        "relationships": [{"fact": "mails lee@example.com", "valid_from": "2026-01-31"}],
    },
)


def fields_of(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yields the paths of all fields of a schema that hold no other model."""
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        inner = [part for part in parts_of(field.annotation) if isinstance(part, type) and issubclass(part, BaseModel)]
        yield from fields_of(inner[0], f"{path}.") if inner else [path]


def parts_of(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from parts_of(part)


def paths_of(fields: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, inner in fields.items():
        yield from [f"{prefix}{name}"] if isinstance(inner, str) else paths_of(inner, f"{prefix}{name}.")


def test_every_field_of_the_schema_is_free_text_or_is_never_changed() -> None:
    free = set(paths_of(FREE_TEXT))
    assert free | SCHEMA_STRINGS | NO_STRINGS == set(fields_of(ReasoningTrace))
    assert not free & (SCHEMA_STRINGS | NO_STRINGS)


@pytest.mark.parametrize(
    "pattern", ["name", r"\d{4}-\d{2}-\d{2}", "id", "type", "network", "https?", "(?s).+", "[a-z]", "ReasoningTrace"]
)
def test_a_pattern_of_a_config_never_makes_the_document_invalid(pattern: str) -> None:
    redacted: Any = redact_trace(FULL, {"custom": pattern})
    ReasoningTrace.model_validate(redacted)
    kept = [redacted["@context"], redacted["@type"], redacted["id"], redacted["metadata"]["created_at"]]
    assert kept == [FULL["@context"], FULL["@type"], FULL["id"], FULL["metadata"]["created_at"]]
    step = redacted["steps"][0]
    assert (step["step_id"], step["type"], step["latency_ms"]) == (0, "tool_call", 1.5)
    assert redacted["knowledge_graph_delta"]["relationships"][0]["valid_from"] == "2026-01-31"


def test_free_text_is_redacted_and_free_keys_too() -> None:
    redacted: Any = redact_trace(FULL, {"day": r"\d{4}-\d{2}-\d{2}", "word": "name"})
    assert redacted["steps"][0]["content"] == "on [REDACTED:day] by [REDACTED:word]"
    assert redacted["steps"][0]["input"] == {"[REDACTED:word]": "id 7", "day": "[REDACTED:day]"}
    assert redacted["knowledge_graph_delta"]["entities"] == [{"name": "[REDACTED:email]", "type": "person"}]
    assert redacted["knowledge_graph_delta"]["relationships"][0]["fact"] == "mails [REDACTED:email]"


def test_a_secret_in_the_place_of_a_time_is_redacted() -> None:
    delta = {"entities": [], "relationships": [{"fact": "f", "valid_from": "kim@example.com"}]}
    redacted: Any = redact_trace(trace_document(knowledge_graph_delta=delta))
    assert redacted["knowledge_graph_delta"]["relationships"][0]["valid_from"] == "[REDACTED:email]"


def test_the_schema_of_a_secret_input_stays_and_its_examples_do_not() -> None:
    schema = {"properties": {"password": {"type": "string", "minLength": 8, "default": "hunter2"}}}
    redacted: Any = redact_trace(trace_document(task={"input_schema": schema}))
    assert redacted["task"]["input_schema"] == {
        "properties": {"password": {"type": "string", "minLength": 8, "default": "[REDACTED:password]"}}
    }


@pytest.mark.parametrize(
    ("name", "publishable"),
    [("1", True), ("idle-2026", True), ("3f2a1010-4068-4295-9319-5d0c6f1b2a77", True), ("010-1234-5678", False)],
)
def test_an_id_is_publishable_unless_it_contains_an_identifier(name: str, publishable: bool) -> None:
    assert is_publishable_id(f"kp:trace:{name}", {"scheme": "kp:trace"}) is publishable
