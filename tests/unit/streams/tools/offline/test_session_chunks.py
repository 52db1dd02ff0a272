"""Tests what scoring a chunk leaves in memory: a run scores thousands of chunks."""

import weakref

import pytest
from tests.support.offline_inputs import CLOCK
from tests.support.scoring import make_session, make_trace

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.process_setup import paused_gc
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages import work_pool
from traceweir.streams.base.stages.base import Stage
from traceweir.streams.scoring.sessions.options import ScoringOptions
from traceweir.streams.scoring.sessions.session_scoring import SessionScoring, score_bytes
from traceweir.streams.tools.offline import session_chunks
from traceweir.streams.tools.offline.in_process_stages import new_stage
from traceweir.streams.tools.offline.session_chunks import ChunkScoring, ChunkSession


@pytest.mark.parametrize("slice_s", [60.0, -1.0], ids=["fast scoring", "scoring that gives way afterwards"])
async def test_a_chunk_is_freed_with_its_stage_at_once(slice_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cycle would hold its sessions and scores until a collection, which is rare: it held 100 MB of a run and more."""
    monkeypatch.setattr(work_pool, "TIME_SLICE_S", slice_s)
    stages: list[weakref.ref[Stage]] = []

    def watched(*arguments: object, **options: object) -> Stage:
        stage = new_stage(*arguments, **options)  # type: ignore[arg-type]
        stages.append(weakref.ref(stage))
        return stage

    monkeypatch.setattr(session_chunks, "new_stage", watched)
    plan = read_plan(None)
    scoring = score_bytes(SessionScoring(plan, None, lambda: CLOCK, ScoringOptions(5)))
    chunks = ChunkScoring(Settings(), plan, scoring, lambda: CLOCK)
    session = make_session(traces=[make_trace()])
    value = session.model_dump_json(by_alias=True, exclude_unset=True).encode()

    with paused_gc():
        [outputs] = await chunks([ChunkSession(b"session-1", value)])
        assert outputs.candidates
        assert [stage() for stage in stages] == [None]
