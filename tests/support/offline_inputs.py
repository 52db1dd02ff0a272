"""Builds the inputs whose scores without Kafka are held against recorded ones, and sums up a result."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from pydantic import JsonValue
from tests.support.paths import ROOT
from tests.support.scoring import trace_document

from traceweir.schemas.score import Score
from traceweir.streams.base.settings import Settings
from traceweir.streams.intake.formats.base import DEFAULT_MAX_SESSION_BYTES, DocumentRecords
from traceweir.streams.intake.formats.documents import Document
from traceweir.streams.intake.formats.files import open_input, read_input
from traceweir.streams.intake.formats.registry import input_format
from traceweir.streams.intake.formats.traceweir_json import wire_record

CLOCK = datetime(2030, 1, 1, tzinfo=UTC)
"""The time of the records and of the scores: later than every document."""
RECORDED = ROOT / "tests" / "parity" / "data" / "offline_scores.json"
_EXAMPLES = ROOT / "examples"
_WORDS = [f"word{number}" for number in range(400)]


@dataclass(frozen=True, slots=True)
class Case:
    """An input with the config, the embedder and the limits under which it is scored."""

    documents: Callable[[Path], list[DocumentRecords]]
    """Reads the documents; receives an empty folder."""
    config: str | Mapping[str, JsonValue] | None = None
    """The eval config; None for the default criteria."""
    embedder: str = "hashing"
    settings: Settings = field(default_factory=Settings)


def summary(
    scores: Sequence[Score], problems: Sequence[Sequence[Any]], documents: int, sessions: int, duplicates: int
) -> dict[str, Any]:
    """Returns what is compared: counts, problems, and a digest of all scores in their order.

    Floats are rounded to 9 digits, because the last digits can depend on the processor.
    """
    lines = [orjson.dumps(_rounded(orjson.loads(score.wire())), option=orjson.OPT_SORT_KEYS) for score in scores]
    return {
        "documents": documents,
        "sessions": sessions,
        "duplicates": duplicates,
        "problems": [list(problem) for problem in problems],
        "scores": len(lines),
        "digest": hashlib.sha256(b"\n".join(lines)).hexdigest(),
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list) else value


def of_documents(raws: Sequence[bytes]) -> list[DocumentRecords]:
    """Returns documents in Traceweir's own format as records."""
    return [DocumentRecords(Document(number, raw), [wire_record(raw)]) for number, raw in enumerate(raws, start=1)]


def generated_traces(count: int, seed: int = 1) -> Iterator[bytes]:
    """Yields traces of eight domains; some traces belong to the session of an earlier trace."""
    rnd = random.Random(seed)

    def text(words: int) -> str:
        return " ".join(rnd.choice(_WORDS) for _ in range(words))

    for number in range(count):
        steps: list[dict[str, Any]] = [
            {"step_id": 0, "type": "thought", "content": text(8)},
            {"step_id": 1, "type": "tool_call", "content": text(4), "tool": {"name": f"tool{rnd.randrange(9)}"}},
            {"step_id": 2, "type": "error_recovery", "content": text(4), "tool": {"name": f"tool{rnd.randrange(9)}"}},
            {"step_id": 3, "type": "observation", "content": text(12), "latency_ms": rnd.randrange(900)},
        ]
        session = number if rnd.random() < 0.9 else rnd.randrange(number + 1)
        yield orjson.dumps(
            trace_document(
                id=f"kp:trace:{number}",
                metadata={"session_id": f"session-{session}", "task_domain": f"domain-{number % 8}"},
                task={"objective": text(6)},
                steps=steps[: rnd.randrange(2, 5)],
                outcome={"result_summary": text(5), "confidence": round(rnd.random(), 2)},
            )
        )


def mixed_documents(sessions: int, seed: int = 2) -> list[bytes]:
    """Returns interleaved events and traces with duplicates, invalid documents, and trace ids of two sessions."""
    rnd = random.Random(seed)
    documents: list[bytes] = []
    for number in range(sessions):
        name = f"s{number}"
        base = {"session_id": name, "occurred_at": f"2026-01-31T11:{number % 60:02}:00Z", "invocation_id": "i"}
        said = {"parts": [{"text": " ".join(rnd.choice(_WORDS) for _ in range(5))}]}
        documents += map(
            orjson.dumps,
            [
                {**base, "type": "invocation.started", "user_content": said, "reference": {"final_response": said}},
                *({**base, "type": "tool.called", "name": f"tool{each}"} for each in range(rnd.randrange(6))),
                {**base, "type": "invocation.completed", "final_response": said},
                {**base, "type": "session.ended"},
                trace_document(id=f"kp:trace:{number % (sessions - 3)}", metadata={"session_id": name}),
                {**base, "type": "tool.called"},
                trace_document(id=f"kp:trace:bad{number}", metadata={"session_id": name, "success": "yes"}),
            ],
        )
        documents += rnd.sample(documents, 2)
        documents += [b"not JSON", b"[1, 2]"] if number % 7 == 0 else []
    rnd.shuffle(documents)
    return documents


def _example(name: str, format_name: str = "traceweir") -> Callable[[Path], list[DocumentRecords]]:
    def read(folder: Path) -> list[DocumentRecords]:
        path = folder / Path(name).name
        shutil.copyfile(_EXAMPLES / name, path)
        os.utime(path, (CLOCK.timestamp(), CLOCK.timestamp()))  # the time of an undated transcript
        with open_input(str(path)) as stream:
            return list(
                read_input(
                    stream,
                    input_format(format_name),
                    task_domain="general",
                    max_session_bytes=DEFAULT_MAX_SESSION_BYTES,
                )
            )

    return read


_EVAL: Mapping[str, JsonValue] = {
    "criteria": {"completeness": 0.2, "keyword_coverage": 0.1},
    "gate": {"threshold": 0.5, "required": ["completeness"]},
}
_AGENT_EVALUATION = (_EXAMPLES / "agent_evaluation.json").read_text()
_STRICT: Mapping[str, JsonValue] = {
    "criteria": {"response_match_score": 0.5, "tool_call_count_v1": {}},
    "gate": {"required": ["response_match_score"]},
}

CASES: Mapping[str, Case] = {
    "sessions": Case(_example("sessions.jsonl")),
    "chats": Case(_example("chats.json"), _EVAL),
    "evaluation rows": Case(_example("evaluation_rows.jsonl"), _AGENT_EVALUATION),
    "rows": Case(_example("rows.csv"), _EVAL, "none"),
    "mlflow trace": Case(_example("mlflow_trace.json"), _AGENT_EVALUATION),
    "adk session": Case(_example("adk/chat-4713.session.json")),
    "adk eval result": Case(_example("adk/trains.evalset_result.json")),
    "recorded sessions": Case(_example("eval-sets/refund.sessions.jsonl")),
    "5,000 traces, hashing": Case(lambda _: of_documents(list(generated_traces(5_000)))),
    "5,000 traces, no embedder": Case(lambda _: of_documents(list(generated_traces(5_000, seed=3))), embedder="none"),
    "mixed": Case(lambda _: of_documents(mixed_documents(60)), _STRICT),
    "mixed, segments": Case(
        lambda _: of_documents(mixed_documents(60)), _STRICT, settings=Settings(segment_max_events=3)
    ),
    "one scope at a time": Case(
        lambda _: of_documents(list(generated_traces(400, seed=5))),
        {"gate": {"max_scopes": 3, "cache_size": 20, "threshold": 0.4}},
    ),
    "nothing": Case(lambda _: []),
}
