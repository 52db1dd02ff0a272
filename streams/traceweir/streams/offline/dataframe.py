"""A pandas DataFrame of rows is scored: for notebooks, without Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.clock import utc_now
from traceweir.streams.formats.base import InputContext
from traceweir.streams.formats.documents import InputError
from traceweir.streams.formats.registry import BUILT_IN, input_format, known_formats
from traceweir.streams.formats.tables import rows_of
from traceweir.streams.judges.offline import judging_from_file
from traceweir.streams.offline.score_documents import Problem, Result, score_offline
from traceweir.streams.settings import Settings, load_settings

if TYPE_CHECKING:
    from pandas import DataFrame

UNJUDGED: Mapping[str, JsonValue] = {"agent_evaluation": {"judged": False}}
_SOURCE = "the DataFrame"


class FrameScores(NamedTuple):
    """What came of a DataFrame."""

    scores: DataFrame
    """A line for each Score, its fields as columns."""
    problems: list[Problem]
    """What could not be used, and why; `document` is the row, from 1."""


def score_frame(
    frame: DataFrame,
    config: Mapping[str, JsonValue] | str = UNJUDGED,
    *,
    format: str = "databricks-agent-evaluation",  # noqa: A002  # as the command line has it
    settings: Settings | None = None,
) -> FrameScores:
    """Score the rows of a DataFrame as `traceweir score` scores those of a file.

    It may be called where an event loop runs, as in a notebook; it is done when it returns.

    Args:
        frame: A row each request, in the columns of Databricks Agent Evaluation, or of an inference table.
        config: The eval config, or its text; by default the metrics that go with the columns and ask no judge.
        format: What the columns are: the name of an input format that has tables, built-in or of an installed package.
        settings: Limits of scoring, and where judges are; by default what the environment says.

    Raises:
        InputError: there are no rows of this format, or two columns that are read have one name. It is a ValueError.
        ConfigError: the config cannot be used.
        InvalidSettingsError: the environment cannot be used.
        JudgeUnavailable: a criterion asks a judge, and what asks is not installed.
    """
    import pandas as pd

    if format not in known_formats() or (chosen := input_format(format)).read_rows is None:
        with_tables = ", ".join(each.name for each in BUILT_IN.values() if each.read_rows is not None)
        raise InputError(f"format {format!r:.80}: a DataFrame has rows; it must be one of {with_tables}")
    plan, limits = read_plan(config), settings or load_settings()
    context = InputContext(_SOURCE, max_session_bytes=limits.segment_max_bytes)
    rows = chosen.read_rows(rows_of(frame, chosen.columns, _SOURCE), context)

    def scored() -> Result:
        # In a thread of its own, from the judge's file to the loop: a notebook's thread has a loop that runs.
        with judging_from_file(plan, limits) as judging:
            return asyncio.run(
                score_offline(rows, plan, None, limits, clock=utc_now, progress=lambda *_: None, judging=judging)
            )

    with ThreadPoolExecutor(1, "traceweir-score") as thread:
        result = thread.submit(scored).result()
    columns = [score.model_dump() for score in result.scores]
    return FrameScores(
        pd.DataFrame(columns, columns=None if columns else ["session_id", "metric", "value"]), result.problems
    )
