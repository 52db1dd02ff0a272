"""Tests what scoring a chunk leaves in memory: a run scores thousands of chunks."""

import gc
from collections.abc import Iterator

import pytest
from tests.support.offline_inputs import CLOCK
from tests.support.scoring import make_session, make_trace

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.offline.session_chunks import ChunkScoring, ChunkSession
from traceweir.streams.scoring.session_scoring import SessionScoring, score_bytes
from traceweir.streams.settings import Settings


@pytest.fixture
def without_garbage_collection() -> Iterator[None]:
    """Frees only objects that are in no reference cycle."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_garbage_collection")
async def test_a_chunk_is_freed_with_its_stage_at_once() -> None:
    """A cycle would hold its sessions and scores until a collection, which is rare: it held 400 MB of a run."""
    plan = read_plan(None)
    scoring = score_bytes(SessionScoring(plan, None, lambda: CLOCK, timeout_s=5))
    chunks = ChunkScoring(Settings(), plan, scoring, lambda: CLOCK)
    session = make_session(traces=[make_trace()])

    [outputs] = await chunks(
        [ChunkSession(b"session-1", session.model_dump_json(by_alias=True, exclude_unset=True).encode())]
    )

    assert outputs.candidates
    assert [each for each in gc.get_objects() if type(each).__name__ == "ScoreStage"] == []
