"""Tests scoring session by session: the same results in little memory, and results before the end."""

from __future__ import annotations

import asyncio
import json
import tempfile
from contextlib import aclosing
from pathlib import Path
from typing import ClassVar

import orjson
import pytest
from tests.support.judged import judging
from tests.support.offline_inputs import CASES, CLOCK, RECORDED, generated_traces, of_documents, summary
from tests.support.scoring import trace_document

from traceweir.schemas.invocation import Level
from traceweir.schemas.score import Score
from traceweir.scorers.base import Measurement, Scorer, Subject
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.streams.base.settings import Settings
from traceweir.streams.pipeline.gate.novelty_scopes import EXACT_UP_TO
from traceweir.streams.scoring.embedders.loading import load_embedder
from traceweir.streams.testing import plan_of
from traceweir.streams.tools.offline.block_file import BlockFile, TemporaryFileError
from traceweir.streams.tools.offline.problems import Problem, Problems
from traceweir.streams.tools.offline.record_buckets import InputRecord, RecordBuckets
from traceweir.streams.tools.offline.scoring_run import ScoringRun


@pytest.mark.slow
@pytest.mark.parametrize("kept_bytes", [1, 20_000, 200_000])
@pytest.mark.parametrize("name", ["mixed", "mixed, segments", "one scope at a time"])
async def test_an_input_larger_than_the_memory_has_the_recorded_scores(
    name: str, kept_bytes: int, tmp_path: Path
) -> None:
    case = CASES[name]
    run = ScoringRun(
        read_plan(case.config),
        load_embedder(case.embedder),
        case.settings,
        clock=lambda: CLOCK,
        kept_bytes=kept_bytes,
    )
    with run:
        run.read(case.documents(tmp_path))
        scores = [Score.model_validate_json(value) async for found in run.sessions() for value in found.scores]
        found = summary(scores, list(run.problems), run.documents, run.total, run.duplicates)

    assert found == json.loads(RECORDED.read_text())[name]


@pytest.mark.slow
async def test_the_first_session_is_yielded_long_before_the_last_is_scored() -> None:
    class Counting(Scorer):
        level: ClassVar[Level] = "session"
        version: ClassVar[str] = "counting@1"
        scored: ClassVar[int] = 0

        def score(self, subject: Subject) -> Measurement:
            Counting.scored += 1
            return Measurement(value=1.0)

    with ScoringRun(plan_of("counting", Counting(), None), None, Settings(), clock=lambda: CLOCK) as run:
        run.read(of_documents(list(generated_traces(2_000))))
        sessions = run.sessions()
        first = await anext(sessions)
        begun = Counting.scored
        await sessions.aclose()

    assert first.id == "session-0"
    assert run.total > 1_500
    assert begun < run.total / 2


async def test_the_first_session_does_not_wait_for_the_judge_of_the_others() -> None:
    class Waits(Scorer):
        level: ClassVar[Level] = "session"
        version: ClassVar[str] = "waits@1"
        judged: ClassVar[bool] = True
        begun: ClassVar[list[str]] = []
        released: ClassVar[asyncio.Event] = asyncio.Event()

        async def score(self, subject: Subject) -> Measurement:
            assert subject.session is not None
            Waits.begun.append(subject.session.session_id)
            if len(Waits.begun) > 1:
                await Waits.released.wait()
            return Measurement(value=1.0)

    plan = plan_of("waits", Waits(), None)
    with ScoringRun(plan, None, Settings(), clock=lambda: CLOCK, judging=judging("http://127.0.0.1:9")) as run:
        run.read(of_documents(list(generated_traces(40))))
        async with asyncio.timeout(60), aclosing(run.sessions()) as sessions:
            first = await anext(sessions)
            Waits.released.set()
            rest = [session.id async for session in sessions]

    assert first.id == Waits.begun[0]
    assert [first.id, *rest] == Waits.begun


async def test_a_document_of_many_documents_is_named_by_its_number_when_its_trace_is_refused() -> None:
    traces = [
        trace_document(id=f"kp:trace:{number}", metadata={"session_id": session})
        for number, session in ((1, "a"), (2, "b"), (3, "b"), (1, "b"), (4, "b"))
    ]
    with ScoringRun(read_plan({}), None, Settings(), clock=lambda: CLOCK, kept_bytes=1) as run:
        run.read(of_documents([orjson.dumps(each) for each in traces]))
        async for _ in run.sessions():
            pass

        assert [(each.document, each.reason) for each in run.problems] == [(4, "trace_id_conflict")]


def test_a_temporary_folder_that_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "missing"
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    run = ScoringRun(read_plan({}), None, Settings(), clock=lambda: CLOCK, kept_bytes=1)
    with run, pytest.raises(TemporaryFileError, match=f"temporary file in {folder} .* TMPDIR"):
        run.read(of_documents(list(generated_traces(1_000))))


def test_every_part_has_all_records_of_its_sessions_in_their_order() -> None:
    file, names = BlockFile(), [b"s%d" % (number * 7 % 300) for number in range(3_000)]
    buckets = RecordBuckets(file, kept_bytes=20_000)
    records = [InputRecord(number, number, False, name, b"x" * 50) for number, name in enumerate(names)]
    for record in records:
        buckets.add(record)

    parts = [list(part) for part in buckets.parts()]

    file.close()
    assert len(parts) > 20
    assert sorted(record for part in parts for record in part) == records
    assert all([record.offset for record in part] == sorted(record.offset for record in part) for part in parts)
    homes = [{record.session for record in part} for part in parts]
    assert sum(map(len, homes)) == 300


def test_many_problems_are_in_the_order_of_their_documents() -> None:
    file = BlockFile()
    problems = Problems(file, kept=2)
    for document in (5, 1, 3, 1, 2):
        problems.add(Problem(document, f"number {len(problems)}"))

    found = [(each.document, each.detail) for each in problems]

    file.close()
    assert found == [(1, "number 1"), (1, "number 3"), (2, "number 4"), (3, "number 2"), (5, "number 0")]
    assert len(problems) == 5


@pytest.mark.slow
async def test_scopes_whose_vectors_are_read_from_rows_decide_as_scopes_in_memory() -> None:
    async def decided(cache_size: int) -> list[bytes]:
        plan, clock = read_plan({"gate": {"cacheSize": cache_size}}), lambda: CLOCK
        with ScoringRun(plan, HashingEmbedder(), Settings(), clock=clock, jobs=1) as run:
            run.read(of_documents(list(generated_traces(400))))
            return [value for found in [each async for each in run.sessions()] for value in found.scores]

    def values(scores: list[bytes]) -> list[float]:
        found = [orjson.loads(value) for value in scores]
        return [each["value"] for each in found if each["metric"] == "trace_value"]

    small, large = await decided(EXACT_UP_TO), await decided(EXACT_UP_TO + 1)
    assert len(values(small)) > 300
    assert values(large) == values(small)
