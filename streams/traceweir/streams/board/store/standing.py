"""Answers what is wrong with the records of the last hours: losses, dead letters that wait, scorers without an answer."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from traceweir.schemas.score import UNANSWERED
from traceweir.streams.board.store.selection import Readable, stored

LOSSES_OF, SCORES_OF = timedelta(days=1), timedelta(hours=1)
"""How far back losses and scores are looked at."""
LETTERS_OF = timedelta(days=30)
"""How far back dead letters are counted that wait for a replay: as long as the store keeps them by default."""


class Standing(NamedTuple):
    """What the store knows of losses."""

    gaps: int
    """Number of gaps that retention made in an input before a worker read it, within `LOSSES_OF`."""
    waiting_letters: int
    """Number of dead letters of `LETTERS_OF` that nobody has replayed. A gap is none of them: its records are gone."""
    results: int
    """Number of results of the sessions within `SCORES_OF`."""
    failed: dict[str, int]
    """Number of these that have no value because of a scorer or its judge, by the reason, the most frequent first."""


def standing(store: Readable, now: datetime) -> Standing:
    """Returns what the store knows of losses now.

    Raises:
        StoreError: the store cannot answer.
    """
    (dead_letters,) = store.query(
        "SELECT count(*) FILTER (reason = 'missed' AND written_at >= $since) AS gaps, count(*) FILTER (reason <> 'missed' "
        "AND letter_id NOT IN (SELECT letter_id FROM replays)) AS waiting FROM dead_letters WHERE written_at >= $earliest",
        {"since": stored(now - LOSSES_OF), "earliest": stored(now - LETTERS_OF)},
    )
    reasons = store.query(
        "SELECT not_evaluated_because AS reason, count(*) AS n FROM results WHERE occurred_at >= $since "
        "GROUP BY not_evaluated_because ORDER BY n DESC, reason",
        {"since": stored(now - SCORES_OF)},
    )
    failed = {row["reason"]: row["n"] for row in reasons if row["reason"] in UNANSWERED}
    return Standing(dead_letters["gaps"], dead_letters["waiting"], sum(row["n"] for row in reasons), failed)
