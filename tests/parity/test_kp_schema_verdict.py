"""Tests that ReasoningTrace accepts and rejects the same documents as KnowledgePulse's schema.

The expected verdict is that of the JSON Schema exported from KnowledgePulse's zod schema, on the document without its
unknown keys (zod removes them, the exported schema forbids them), and that `created_at` ends in Z (zod requires it,
the exported schema cannot express it).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError
from tests.support.scoring import trace_document

from traceweir.schemas.trace import ReasoningTrace

SCHEMA: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "kp_schemas.json").read_text("utf-8"))[
    "ReasoningTrace"
]
VALIDATOR = jsonschema.Draft7Validator(SCHEMA, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER)
PUBLISHED = jsonschema.Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "schemas/json/ReasoningTrace.schema.json").read_text("utf-8")),
    format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER,
)

FULL = trace_document(
    source_skill="skill",
    metadata={"agent_id": "a", "framework": "f", "validated_by": ["v"]},
    task={"input_schema": {"type": "object"}},
    steps=[
        {"step_id": 0, "type": "thought", "content": ""},
        {
            "step_id": 0,
            "type": "tool_call",
            "tool": {"name": "", "mcp_server": "m"},
            "input": {"a": None},
            "output_summary": "s",
            "latency_ms": 1.5,
        },
    ],
    knowledge_graph_delta={
        "entities": [{"name": "n", "type": "t"}],
        "relationships": [{"fact": "f", "valid_from": "whenever"}],
    },
)
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 3.0, 0.5, 1.5, -0.0, 10**20, "", "x", "0", "thought", "network", "private", "org", "aggregated",
    "kp:trace:", "KP:TRACE:1", " kp:trace:1", [], ["x"], [1], [[]], {}, {"x": 1}, {"name": "n"}, [{}], [None],
]  # fmt: skip
TIMES = [
    "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.1Z", "2026-01-31T12:00:00.123456789Z", "2026-01-31T12:00:00+09:00",
    "2026-01-31T12:00:00+00:00", "2026-01-31T12:00:00", "2026-01-31", "2026-02-30T12:00:00Z", "2026-13-01T12:00:00Z",
    "2026-01-31T25:00:00Z", "2026-01-31T12:60:00Z", "2026-01-31 12:00:00Z", "2026-1-31T12:00:00Z", "Z", "now Z", "2024-02-29T00:00:00Z",
    "2023-02-29T00:00:00Z", "2026-01-31T12:00:00.Z", " 2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z\n", "2026-01-31T12:00Z",
]  # fmt: skip


def known_keys(document: Any, schema: dict[str, Any]) -> Any:
    """Returns the document without keys that the schema does not contain."""
    if isinstance(document, dict) and "properties" in schema:
        kinds = schema["properties"]
        return {key: known_keys(value, kinds[key]) for key, value in document.items() if key in kinds}
    if isinstance(document, list) and "items" in schema:
        return [known_keys(item, schema["items"]) for item in document]
    return document


def theirs(document: Any) -> bool:
    known = known_keys(document, SCHEMA)
    return VALIDATOR.is_valid(known) and str(known["metadata"]["created_at"]).endswith("Z")


def ours(document: Any) -> bool:
    try:
        ReasoningTrace.model_validate_json(json.dumps(document))
    except ValidationError:
        return False
    return True


def places(document: Any) -> Iterator[tuple[str | int, ...]]:
    """Yields the path of every value in a document."""
    children = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in children:
        yield (key,)
        for rest in places(value):
            yield (key, *rest)


def changed(path: tuple[str | int, ...], *value: Any) -> Any:
    """Returns the full document with a different value at a path, or without that value."""
    document = copy.deepcopy(FULL)
    parent: Any = document
    for key in path[:-1]:
        parent = parent[key]
    if value:
        parent[path[-1]] = value[0]
    else:
        del parent[path[-1]]
    return document


PLACES = list(places(FULL))


def test_the_unchanged_document_is_accepted_and_has_every_key() -> None:
    assert ours(FULL)
    assert theirs(FULL)
    assert {path[0] for path in PLACES} == SCHEMA["properties"].keys()
    assert len(PLACES) > 40


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_a_document_without_a_value_has_knowledgepulses_verdict(path: tuple[str | int, ...]) -> None:
    document = changed(path)
    assert ours(document) == theirs(document)


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_a_document_with_a_changed_value_has_knowledgepulses_verdict(path: tuple[str | int, ...]) -> None:
    differing = [value for value in VALUES if ours(changed(path, value)) != theirs(changed(path, value))]
    assert differing == []


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_the_published_schema_refuses_null_where_the_model_does(path: tuple[str | int, ...]) -> None:
    document = changed(path, None)
    assert PUBLISHED.is_valid(document) == ours(document)


@pytest.mark.parametrize("path", [(), *(path for path in PLACES)], ids=lambda path: ".".join(map(str, path)))
def test_an_unknown_key_changes_no_verdict(path: tuple[str | int, ...]) -> None:
    document = copy.deepcopy(FULL)
    place: Any = document
    for key in path:
        place = place[key]
    if isinstance(place, dict):
        place["unknown key"] = {"nested": [None]}
    assert ours(document)
    assert theirs(document)


@pytest.mark.parametrize("written", TIMES)
def test_a_date_time_has_knowledgepulses_verdict(written: str) -> None:
    document = changed(("metadata", "created_at"), written)
    assert ours(document) == theirs(document)


# In Python, unlike in JSON Schema, `$` also matches before a line feed.
@pytest.mark.parametrize("written", [written for written in TIMES if not written.endswith("\n")])
def test_the_published_schema_has_the_same_verdict_on_a_date_time(written: str) -> None:
    document = changed(("metadata", "created_at"), written)
    assert PUBLISHED.is_valid(document) == ours(document)


@pytest.mark.parametrize("document", [None, [], "x", 1, {}, {"steps": []}], ids=json.dumps)
def test_a_document_that_is_not_a_trace_is_rejected_by_evaluate_value(document: Any) -> None:
    assert not ours(document)
    assert not VALIDATOR.is_valid(document)
