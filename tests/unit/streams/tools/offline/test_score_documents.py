"""Tests scoring without Kafka: scores in the order of the input, and every problem with its document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from tests.support.scoring import NOW, trace_document

from traceweir.scorers.embedding import Embedder
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.streams.base.settings import Settings
from traceweir.streams.intake.formats.base import DocumentRecords
from traceweir.streams.intake.formats.documents import Document, InputError
from traceweir.streams.intake.formats.traceweir_json import wire_record
from traceweir.streams.tools.offline.problems import Problem
from traceweir.streams.tools.offline.score_documents import Result, score_offline
from traceweir.streams.tools.offline.scoring_run import ScoringRun

BOTH = {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.5}}


def event(kind: str, session_id: str = "s1", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "session_id": session_id, "occurred_at": "2026-01-31T11:00:00Z", **fields}


def answered(session_id: str, text: str, **fields: Any) -> dict[str, Any]:
    """Returns the event that completes a turn with this answer; `expected` is the answer of the reference."""
    if (expected := fields.pop("expected", None)) is not None:
        fields["reference"] = {"final_response": {"parts": [{"text": expected}]}}
    return event("invocation.completed", session_id, final_response={"parts": [{"text": text}]}, **fields)


def trace(number: int, session_id: str, **changes: Any) -> dict[str, Any]:
    metadata = {"session_id": session_id, **changes.pop("metadata", {})}
    return trace_document(id=f"kp:trace:{number}", metadata=metadata, **changes)


async def score(
    documents: Sequence[dict[str, Any] | bytes],
    config: dict[str, Any] | None = None,
    embedder: Embedder | None = None,
    settings: Settings | None = None,
) -> Result:
    raws = [document if isinstance(document, bytes) else orjson.dumps(document) for document in documents]
    records = [DocumentRecords(Document(number, raw), [wire_record(raw)]) for number, raw in enumerate(raws, start=1)]
    return await score_offline(
        records,
        read_plan(config or {}),
        embedder,
        settings or Settings(),
        clock=lambda: NOW,
        progress=lambda done, total: None,
    )


def subjects(result: Result) -> list[tuple[str, str, str | None]]:
    return [(each.session_id, each.metric, each.trace_id) for each in result.scores]


async def test_sessions_are_in_the_order_of_their_first_record() -> None:
    documents = [event("tool.called", name, name="find") for name in ("b", "a", "c", "a", "b")]

    result = await score(documents, BOTH)

    assert list(dict.fromkeys(each.session_id for each in result.scores)) == ["b", "a", "c"]
    assert (result.documents, result.sessions, result.duplicates, result.problems) == (5, 3, 2, [])


async def test_scores_of_criteria_precede_trace_value_and_gate_decision_of_each_trace() -> None:
    other_field = {"task_domain": "law"}  # another scope; the gate compares novelty per scope
    documents = [trace(2, "s2"), trace(1, "s1", metadata=other_field), trace(3, "s2", metadata=other_field)]

    result = await score(documents, {"criteria": {"tool_call_count_v1": {}}})

    found = [each for each in subjects(result) if each[1] in ("trace_value", "gate")]
    assert found == [
        ("s2", "trace_value", "kp:trace:2"),
        ("s2", "gate", "kp:trace:2"),
        ("s2", "trace_value", "kp:trace:3"),
        ("s2", "gate", "kp:trace:3"),
        ("s1", "trace_value", "kp:trace:1"),
        ("s1", "gate", "kp:trace:1"),
    ]
    last_criterion = max(n for n, each in enumerate(subjects(result)) if each[:2] == ("s2", "tool_call_count_v1"))
    assert last_criterion < subjects(result).index(found[0])


async def test_a_session_that_takes_longer_keeps_its_position() -> None:
    class Threaded(HashingEmbedder):
        runs_inline = False  # the session with a trace waits for a thread, the other session does not

    documents = [trace(1, "slow"), event("tool.called", "quick", name="find")]

    result = await score(documents, BOTH, Threaded())

    assert list(dict.fromkeys(each.session_id for each in result.scores)) == ["slow", "quick"]


async def test_records_after_the_end_event_belong_to_the_same_session() -> None:
    result = await score([event("session.ended"), trace(1, "s1"), event("tool.called", name="find")])

    assert result.sessions == 1
    assert subjects(result) == [("s1", "trace_value", "kp:trace:1"), ("s1", "gate", "kp:trace:1")]


async def test_a_session_over_the_size_limit_is_divided_into_segments() -> None:
    documents = [event("tool.called", name=str(number)) for number in range(5)]

    result = await score(
        documents, {"criteria": {"response_match_score": 0.5}}, settings=Settings(segment_max_events=2)
    )

    assert result.sessions == 3
    assert [each.segment for each in result.scores if each.level == "session"] == [0, 1, 2]


async def test_the_threshold_of_the_config_decides_the_status() -> None:
    documents = [
        answered("s1", "It ships today.", expected="It ships today."),
        answered("s2", "No idea.", expected="It ships today."),
    ]

    result = await score(documents, {"criteria": {"response_match_score": 0.5}})

    assert [(each.session_id, each.value, each.status) for each in result.scores if each.level == "session"] == [
        ("s1", 1.0, "PASSED"),
        ("s2", 0.0, "FAILED"),
    ]


async def test_a_copy_of_an_earlier_trace_is_not_novel() -> None:
    result = await score([trace(1, "s1"), trace(2, "s2")], embedder=HashingEmbedder())

    first, second = (each.details for each in result.scores if each.metric == "trace_value")
    nearest: Any = second["nearest"]
    assert first["novelty"] == 0.5
    assert second["novelty"] == pytest.approx(0.0, abs=1e-6)
    assert nearest["trace_id"] == "kp:trace:1"


async def test_every_unusable_document_is_reported_and_the_others_are_scored() -> None:
    documents: list[dict[str, Any] | bytes] = [
        b"not JSON",
        trace(1, "s1", outcome={"confidence": 1.5}),
        trace(2, "s2"),
        event("tool.called", "s3"),
        trace(2, "s4"),
    ]

    result = await score(documents)

    assert [(each.document, each.reason) for each in result.problems] == [
        (1, "not_json"),
        (2, "invalid"),
        (4, "invalid"),
        (5, "trace_id_conflict"),
    ]
    assert result.problems[1].detail.startswith("outcome.confidence")
    assert subjects(result) == [("s2", "trace_value", "kp:trace:2"), ("s2", "gate", "kp:trace:2")]


async def test_a_document_without_records_is_a_problem_with_its_document_number() -> None:
    broken = DocumentRecords(Document(1, b""), [], InputError("chats.json: document 1: holds no message"))
    good = orjson.dumps(trace(1, "s1"))

    result = await score_offline(
        [
            broken,
            DocumentRecords(Document(2, good), [wire_record(good)]),
            DocumentRecords(Document(3, b"{}"), [wire_record(b"{}")]),
        ],
        read_plan({}),
        None,
        Settings(),
        clock=lambda: NOW,
        progress=lambda done, total: None,
    )

    assert result.problems[0] == Problem(1, "chats.json: document 1: holds no message")
    assert [each.document for each in result.problems] == [1, 3]
    assert len(result.scores) == 2


async def test_progress_counts_sessions() -> None:
    counted: list[tuple[int, int]] = []
    raws = [orjson.dumps(event("tool.called", f"s{number}", name="find")) for number in range(3)]
    records = [DocumentRecords(Document(number, raw), [wire_record(raw)]) for number, raw in enumerate(raws, start=1)]

    await score_offline(
        records,
        read_plan({}),
        None,
        Settings(),
        clock=lambda: NOW,
        progress=lambda done, total: counted.append((done, total)),
    )

    assert counted == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("kept_bytes", [0, 1 << 20], ids=["divided", "in memory"])
async def test_a_session_names_its_refused_document(kept_bytes: int) -> None:
    cut_off = b'{"type": "invocation.completed", "session_id": "s1", "final_response": {"parts": [{"text": "cut o'
    # An agent can send a key with the name of the member that is looked for.
    first = event("invocation.started", "s1", refused=[{"place": "elsewhere"}])
    others = [orjson.dumps(event("invocation.started", f"o{number}")) for number in range(20)]
    raws = [orjson.dumps(first), *others, cut_off]
    records = [DocumentRecords(Document(number, raw), [wire_record(raw)]) for number, raw in enumerate(raws, start=1)]
    with ScoringRun(
        read_plan({"criteria": {"completeness": 0.5}}), None, Settings(), clock=lambda: NOW, kept_bytes=kept_bytes
    ) as run:
        run.read(records)
        scores = [orjson.loads(score) async for session in run.sessions() for score in session.scores]
        problems = [(each.document, each.reason) for each in run.problems]

    sentences = {each["rationale"] for each in scores if each["session_id"] == "s1" and each["level"] == "invocation"}
    assert sentences == {"the answer can be in a refused record: document 22 (not_json)"}
    assert problems == [(22, "not_json")]


async def test_no_documents_give_an_empty_result() -> None:
    assert await score([]) == Result([], [], documents=0, sessions=0, duplicates=0)
