"""Measures what the scoring process says about its judges and its embedder."""

from __future__ import annotations

from traceweir.streams.scoring.isolation.activity import ScoringActivity
from traceweir.streams.worker.telemetry import catalogue
from traceweir.streams.worker.telemetry.measured import Measured


class ScoringWork:
    """Measures requests and batches. Those of the last second of a process that dies are not known.

    Args:
        measured: Takes the values.
    """

    def __init__(self, measured: Measured) -> None:
        self._measured = measured

    def record(self, activity: ScoringActivity) -> None:
        """Adds what a scoring process has done since it last said so."""
        for attempt in activity.attempts:
            self._measured.record(catalogue.JUDGE_DURATION, attempt.seconds, attempt.model, attempt.outcome)
            if attempt.cause is not None:
                self._measured.add(catalogue.JUDGE_FAILURES, 1, attempt.model, attempt.cause)
        for batch in activity.batches:
            self._measured.record(catalogue.EMBEDDER_DURATION, batch.seconds)
            self._measured.record(catalogue.EMBEDDER_BATCH, batch.texts)
            self._measured.add(catalogue.EMBEDDER_TEXTS, batch.texts, "model")
        if activity.texts_reused:
            self._measured.add(catalogue.EMBEDDER_TEXTS, activity.texts_reused, "cache")
