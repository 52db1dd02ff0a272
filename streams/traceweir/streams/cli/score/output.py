"""Writes the scores of `traceweir score` to standard output while they are computed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceweir.scorers.evaluation.plan import Plan

_FLUSH_S = 0.2
"""Seconds after which the next score is passed on at once, because the one that reads the output waits for it."""


class OutputFormat(StrEnum):
    """The forms in which `score` prints scores."""

    TEXT = "text"
    JSON = "json"
    MLFLOW = "mlflow"


Write = Callable[[Sequence[bytes]], None]
"""Writes the scores of one session, each as on the topic `results`."""


def writer_of(output_format: OutputFormat, plan: Plan) -> Write:
    """Returns a function that writes the scores of a session to stdout; with `text`, it writes nothing."""
    match output_format:
        case OutputFormat.TEXT:
            return lambda scores: None
        case OutputFormat.JSON:
            return _lines(bytes.decode, _flush_s(plan))
        case OutputFormat.MLFLOW:
            return _lines(_feedback_writer(plan), _flush_s(plan))


def _flush_s(plan: Plan) -> float:
    # The next answer of a judge can take a minute.
    return 0.0 if plan.judged else _FLUSH_S


def _lines(text_of: Callable[[bytes], str], flush_s: float) -> Write:
    flushed = monotonic()

    def write(scores: Sequence[bytes]) -> None:
        nonlocal flushed
        if scores:
            sys.stdout.write("\n".join(map(text_of, scores)) + "\n")
        if monotonic() >= flushed + flush_s:
            sys.stdout.flush()
            flushed = monotonic()

    return write


def _feedback_writer(plan: Plan) -> Callable[[bytes], str]:
    from traceweir.schemas.mlflow_feedback import feedback_of
    from traceweir.schemas.score import Score

    judges = {metric.name: metric.scorer.judge_model for metric in plan.metrics if metric.scorer is not None}

    def text_of(value: bytes) -> str:
        score = Score.model_validate_json(value)
        return json.dumps(feedback_of(score, score.judge or judges.get(score.metric)))

    return text_of
