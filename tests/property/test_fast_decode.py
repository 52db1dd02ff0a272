"""Tests that the fast decoder accepts nothing that the model rejects, and reads the same values."""

from __future__ import annotations

import copy
from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from tests.support.examples import examples

from traceweir.schemas.candidate import Candidate
from traceweir.schemas.dimensions import Dimensions, TraceContext
from traceweir.schemas.events import TYPES
from traceweir.schemas.trace import ReasoningTrace
from traceweir.streams.pipeline.decoding.fast_decode import SHORT, NeedsFullValidation, fast_decoder

ENVELOPE = {
    "event_id": "e",
    "session_id": "s",
    "invocation_id": "i",
    "app_name": "app",
    "user_id": "u",
    "agent_name": "planner",
    "agent_version": "1",
    "environment": "test",
    "model": "m",
    "labels": {"team": "search", "tier": "gold"},
    "trace_context": {"trace_id": "0" * 31 + "a", "span_id": "b" * 16},
    "sampling_probability": 0.5,
    "occurred_at": "2026-01-31T11:00:00.123456+09:00",
    "reference_id": "r",
    "reference": {
        "reference_id": "r",
        "app_name": "app",
        "question": "?",
        "final_response": {"parts": [{"text": "yes"}], "role": "model"},
        "expected_facts": ["one"],
        "tool_uses": [{"id": "1", "name": "find", "args": {"deep": [1, {"a": None}]}}],
        "retrieved_context": [{"doc_uri": "u", "content": "c"}],
        "rubrics": [{"rubric_id": "a", "rubric_content": {"text": "b"}, "description": "c", "type": "d"}],
    },
}
CONTENT = {
    "parts": [{"text": "a"}, {"function_call": {"name": "f", "args": None}}, {"function_response": {"response": 1}}],
    "role": "user",
}
BODIES: dict[str, dict[str, Any]] = {
    "invocation.started": {"user_content": CONTENT},
    "tool.called": {"name": "find", "args": {"a": [1.5]}, "call_id": "c"},
    "tool.returned": {"name": "find", "call_id": "c", "response": {"a": 1}, "error": "no"},
    "response.intermediate": {"author": "a", "content": CONTENT},
    "retrieval.returned": {"chunks": [{"doc_uri": "u", "content": "c"}]},
    "model.called": {"model": "m", "input_tokens": 1, "output_tokens": 2},
    "invocation.completed": {"final_response": CONTENT},
    "invocation.recorded": {
        "invocation": {
            "invocation_id": "i",
            "user_content": CONTENT,
            "final_response": CONTENT,
            "intermediate_data": None,
            "creation_timestamp": 1,
            "rubrics": [],
            "app_details": {"a": 1},
            "retrieved_context": [],
            "token_usage": {"input_tokens": 1, "output_tokens": 2},
            "latency_seconds": 0.5,
            "duration": 0.5,
            "inference_call_count": 1,
            "unread": ["a"],
            "derived": False,
        }
    },
    "session.ended": {},
}
TRACE = {
    "@context": "https://openknowledgepulse.org/schema/v1",
    "@type": "ReasoningTrace",
    "id": "kp:trace:1",
    "source_skill": "s",
    "metadata": {
        "created_at": "2026-01-31T12:00:00.5Z",
        "agent_id": "a",
        "framework": "f",
        "task_domain": "code",
        "success": True,
        "quality_score": 0,
        "visibility": "network",
        "privacy_level": "aggregated",
        "validated_by": ["v"],
        "session_id": "s",
    },
    "task": {"objective": "o", "input_schema": {"type": "object"}},
    "steps": [
        {
            "step_id": 0,
            "type": "tool_call",
            "content": "c",
            "tool": {"name": "t", "mcp_server": "m"},
            "input": {"a": 1},
            "output_summary": "o",
            "latency_ms": 1.5,
        }
    ],
    "outcome": {"result_summary": "r", "confidence": 1},
    "knowledge_graph_delta": {
        "entities": [{"name": "n", "type": "t"}],
        "relationships": [{"fact": "f", "valid_from": "2026-01-31"}],
    },
}
CANDIDATE = {
    "candidate_id": "c",
    "session_id": "s",
    "segment": 0,
    "revision": 1,
    "attempt": 2,
    "scope": "code@none",
    "trace": TRACE,
    "required": {"safety_v1": {"status": "NOT_EVALUATED", "not_evaluated_because": "budget"}},
    "embedding": {"embedder": "e", "dimensions": 2, "data": "AACAPwAAAAA="},
    "novelty_missing": None,
    "occurred_at": "2026-01-31T11:00:00.123Z",
    **{name: ENVELOPE[name] for name in Dimensions.model_fields},
    "gate_rules": {"digest": "d", "gate": {"threshold": 0.5}},
}
DOCUMENTS: list[tuple[type[BaseModel], dict[str, Any]]] = [
    *((TYPES[name], {"type": name, **ENVELOPE, **body}) for name, body in BODIES.items()),
    (ReasoningTrace, TRACE),
    (Candidate, CANDIDATE),
]
_EVENT = fast_decoder(*TYPES.values())
LOOKS: dict[type[BaseModel], Any] = {
    ReasoningTrace: fast_decoder(ReasoningTrace),
    Candidate: fast_decoder(Candidate, as_models=frozenset({TraceContext})),
    **dict.fromkeys(TYPES.values(), _EVENT),
}
PADS = [b"", b" " * SHORT]
"""Behind a document: a longer one is parsed by orjson."""
VALUES = st.one_of(
    st.sampled_from(
        [None, True, 0, -1, 1, 3.0, 1.5, 2**70, "", "a", "kp:trace:", " kp:trace:1", "2026-01-31T12:00:00Z", [], {}]
    ),
    st.sampled_from(
        [
            "2026-01-31T12:00:00",
            "2026-02-30T12:00:00Z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T12:00:60Z",
            "2026-01-31 12:00:00z",
            "2026-01-31T12:00:00+24:00",
            "0000-01-31T12:00:00Z",
            "2026-01-31T12:00:00.1234567Z",
            "2026-01-31T23:59:59.9999999Z",
            "1700000000",
            "2026-01-31T12:00:00Z\n",
        ]
    ),
    st.text(max_size=3),
    st.just("x" * 1_025),
    st.sampled_from(["x" * 257, "0" * 32, "0" * 16, "a" * 16 + "\n", "A" * 16, "a" * 32]),
    st.builds(lambda: {str(number): "x" for number in range(9)}),
    st.builds(lambda value: [value], st.sampled_from([None, 1, "a", {}, []])),
    st.builds(lambda value: {"text": value}, st.sampled_from([None, 1, "a", {}, []])),
)
KEYS = st.sampled_from(["extra", "functionCall", "userContent", "text", "context", "type", "name"])


@st.composite
def damaged(draw: st.DrawFn) -> tuple[type[BaseModel], dict[str, Any]]:
    """Draws a document of a model with up to three values replaced, keys removed or keys added, at any path."""
    model, document = draw(st.sampled_from(DOCUMENTS))
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, 3))):
        holder: Any = document
        while True:
            place = draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
            if isinstance(holder[place], dict | list) and holder[place] and draw(st.integers(0, 3)):
                holder = holder[place]
                continue
            match draw(st.integers(0, 3)):
                case 0 if isinstance(holder, dict):
                    holder[draw(KEYS)] = draw(VALUES)
                case 1 if isinstance(holder, dict):
                    del holder[place]
                case _:
                    holder[place] = draw(VALUES)
            break
        if not document:
            break
    return model, document


@pytest.mark.parametrize("pad", PADS)
@settings(max_examples=examples(500))
@given(case=damaged())
def test_the_model_accepts_what_the_fast_decoder_accepts_and_reads_the_same(
    case: tuple[type[BaseModel], dict[str, Any]], pad: bytes
) -> None:
    model, document = case
    raw = orjson.dumps(_fit(document)) + pad
    try:
        quick = LOOKS[model](raw)
    except NeedsFullValidation:
        return
    try:
        judged = model.model_validate_json(raw)
    except ValidationError as error:
        raise AssertionError(f"the model refuses {raw!r}: {error}") from None
    assert differences(quick, judged) == []


@pytest.mark.parametrize("pad", PADS)
@pytest.mark.parametrize(("model", "document"), DOCUMENTS, ids=[model.__name__ for model, _ in DOCUMENTS])
def test_a_plainly_valid_document_passes_the_fast_decoder(
    model: type[BaseModel], document: dict[str, Any], pad: bytes
) -> None:
    raw = orjson.dumps(document) + pad
    assert differences(LOOKS[model](raw), model.model_validate_json(raw)) == []


@pytest.mark.parametrize("pad", PADS)
@pytest.mark.parametrize("twice", [b'"session_id": 7, "session_id": "s"', b'"session_id": "s", "session_id": 7'])
def test_the_fast_decoder_and_the_model_read_the_same_value_of_a_repeated_key(twice: bytes, pad: bytes) -> None:
    raw = b'{"type": "session.ended", "occurred_at": "2026-01-31T11:00:00Z", ' + twice + b"}" + pad
    try:
        quick = _EVENT(raw)
    except NeedsFullValidation:
        return
    assert differences(quick, TYPES["session.ended"].model_validate_json(raw)) == []


def test_a_parsed_document_is_not_parsed_again() -> None:
    raw = orjson.dumps(TRACE) + PADS[1]
    with pytest.raises(NeedsFullValidation):
        LOOKS[ReasoningTrace](raw, {**TRACE, "id": 7})


def _fit(document: Any) -> Any:
    """Returns the document with integers of up to 64 bits, because orjson writes no others."""
    if isinstance(document, dict):
        return {key: _fit(value) for key, value in document.items()}
    if isinstance(document, list):
        return [_fit(value) for value in document]
    return 1e30 if isinstance(document, int) and document > 2**64 else document


def differences(quick: Any, judged: Any, path: str = "") -> list[str]:
    """Returns the paths at which an object of a derived type and one of a model have different values."""
    if isinstance(judged, BaseModel) and not isinstance(quick, BaseModel):
        names = type(judged).model_fields
        return [
            each
            for name in names
            for each in differences(getattr(quick, name), getattr(judged, name), f"{path}.{name}")
        ]
    if isinstance(judged, list | tuple) and isinstance(quick, list | tuple) and len(quick) == len(judged):
        return [
            each
            for at, (one, other) in enumerate(zip(quick, judged, strict=True))
            for each in differences(one, other, f"{path}.{at}")
        ]
    if isinstance(judged, dict) and isinstance(quick, dict) and quick.keys() == judged.keys():
        return [each for key in judged for each in differences(quick[key], judged[key], f"{path}.{key}")]
    if isinstance(judged, datetime) and isinstance(quick, datetime):
        # To the microsecond: the fast decoder rounds, the model truncates.
        return [] if abs(quick - judged) <= timedelta(microseconds=1) else [path]
    return [] if quick == judged else [path]


BROKEN = [
    b'"\xff"',
    b'{"\xff": 1}',
    b'"\xed\xa0\x80"',
    b'"\\ud800"',
    b'{"\\udc00": 1}',
    b"NaN",
    b"Infinity",
    b"01",
    b"1.",
    b"+1",
    b".5",
    b"1e",
    b"[1,]",
    b'{"a": 1,}',
    b'"\x01"',
    b'"\\x"',
    b"nul",
    b"'a'",
    b"/**/1",
    b"1" * 5_000,
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: repr(broken[:12]))
@pytest.mark.parametrize("pad", [0, 5_000])
@pytest.mark.parametrize("key", ["extra", "args"])
def test_invalid_json_is_rejected_also_in_unread_parts(broken: bytes, pad: int, key: str) -> None:
    document = {"type": "tool.called", **ENVELOPE, "name": "find", "pad": "x" * pad, key: {"at": "@"}}
    with pytest.raises(NeedsFullValidation):
        _EVENT(orjson.dumps(document).replace(b'"@"', broken))


@pytest.mark.parametrize("around", [(b"\xef\xbb\xbf", b""), (b"", b"\0"), (b"", b"{}"), (b"[", b"]")])
def test_a_document_with_bytes_around_it_needs_full_validation(around: tuple[bytes, bytes]) -> None:
    raw = orjson.dumps({"type": "session.ended", **ENVELOPE})
    with pytest.raises(NeedsFullValidation):
        _EVENT(around[0] + raw + around[1])


@pytest.mark.parametrize("body", [{}, {"row": {}}, {"row": None}, {"invocation": None}, {"invocation": {}, "row": {}}])
def test_a_rule_over_several_keys_is_left_to_the_model(body: dict[str, Any]) -> None:
    recorded = {"type": "invocation.recorded", **ENVELOPE, **body}
    with pytest.raises(NeedsFullValidation):
        _EVENT(orjson.dumps(recorded))


def test_a_document_that_satisfies_the_rule_passes_the_fast_decoder() -> None:
    recorded = {"type": "invocation.recorded", **ENVELOPE, "invocation": {"invocation_id": "i"}, "row": None}
    assert _EVENT(orjson.dumps(recorded)).invocation.invocation_id == "i"
