"""A store that is killed at any point of a transaction has each record once when it is opened again."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from tests.support.results import make_score
from tests.support.stores import FakeRecord, batch_of, figures, open_store, recomputed_figures

from traceweir.schemas.score import Score
from traceweir.streams.board.store.rows import SourcePartition

KILLS = 20
RECORDS, IN_BATCH = 1_000, 20


def score_at(offset: int) -> Score:
    """Returns the score that the topic has at an offset: every third one is a revision of an earlier result."""
    chance = random.Random(offset)
    return make_score(f"s{offset % 230}", value=round(chance.random(), 3), revision=offset // 230 if offset % 3 else 0)


def store_from_the_stored_offset(file: Path, progress: Connection) -> None:
    """Writes batches from the stored offset to the end of the topic, as a feed does, and reports each of them."""
    store = open_store(file)
    begin = store.offsets().get(SourcePartition("results", 0), 0)
    for first in range(begin, RECORDS, IN_BATCH):
        progress.send(first)
        offsets = range(first, min(first + IN_BATCH, RECORDS))
        store.write(batch_of("results", *(FakeRecord(score_at(offset).wire(), offset) for offset in offsets)))
    progress.send(None)
    store.close()


@pytest.mark.slow
def test_a_store_that_is_killed_at_random_points_equals_the_topic(tmp_path: Path) -> None:
    file, chance, kills = tmp_path / "store.duckdb", random.Random(11), 0
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "traceweir.streams.board.store.duckdb_store"])
    is_complete = False
    while not is_complete:
        progress, reports = context.Pipe(duplex=False)
        process = context.Process(target=store_from_the_stored_offset, args=(file, reports))
        process.start()
        reports.close()
        batches = chance.randrange(4) if kills < KILLS else RECORDS
        while batches >= 0 and not is_complete:
            is_complete = progress.recv() is None
            batches -= 1
        if not is_complete and process.pid is not None:
            # A busy loop of random length reaches every part of a transaction.
            for _ in range(chance.randrange(200_000)):
                pass
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.join()

    expected: dict[str, Score] = {}
    for offset in range(RECORDS):
        score = score_at(offset)
        before = expected.get(score.session_id)
        if before is None or score.revision >= before.revision:
            expected[score.session_id] = score
    store = open_store(file)
    found = store.query("SELECT session_id, revision, value FROM results ORDER BY session_id")
    assert kills == KILLS
    assert [tuple(row.values()) for row in found] == [
        (name, score.revision, score.value) for name, score in sorted(expected.items())
    ]
    assert figures(store) == recomputed_figures(store)
    (history,) = store.query("SELECT count(*) AS n FROM replaced_results")
    assert history["n"] <= RECORDS - len(found)
