"""Scores a pandas DataFrame of rows without Kafka, for notebooks."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings, load_settings
from traceweir.streams.intake.formats.base import InputContext
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.intake.formats.registry import BUILT_IN, input_format, known_formats
from traceweir.streams.intake.formats.typed_rows import rows_of
from traceweir.streams.scoring.judges.offline import judging_from_file
from traceweir.streams.tools.offline.problems import Problem
from traceweir.streams.tools.offline.score_documents import Result, score_offline

if TYPE_CHECKING:
    from pandas import DataFrame

UNJUDGED: Mapping[str, JsonValue] = {"agent_evaluation": {"judged": False}}
_SOURCE = "the DataFrame"


class FrameScores(NamedTuple):
    """The scores of a DataFrame, and its problems."""

    scores: DataFrame
    """One line per Score, with its fields as columns."""
    problems: list[Problem]
    """The unusable rows and the reasons; `document` is the number of the row, from 1."""


def score_frame(
    frame: DataFrame,
    config: Mapping[str, JsonValue] | str = UNJUDGED,
    *,
    format: str = "databricks-agent-evaluation",  # noqa: A002  # the same name as the option of the command line
    settings: Settings | None = None,
) -> FrameScores:
    """Scores the rows of a DataFrame as `traceweir score` scores the rows of a file.

    The function blocks, and can be called while an event loop runs, as in a notebook. A column that is not read, and that
    can hold content, gives a UserWarning.

    Args:
        frame: One row per request, in the columns of Databricks Agent Evaluation, or of an inference table.
        config: The eval config, or its text; by default the metrics that fit the columns and ask no judge.
        format: The name of an input format with tables, built-in or of an installed package.
        settings: The limits of scoring and the address of judges; by default, the settings of the environment.

    Raises:
        InputError: the format has no tables, or two used columns have the same name. InputError is a ValueError.
        ConfigError: the config cannot be used.
        InvalidSettingsError: the environment cannot be used.
        JudgeUnavailableError: a criterion asks a judge, and the [judge] extra is not installed.
    """
    import pandas as pd

    if format not in known_formats() or (chosen := input_format(format)).read_rows is None:
        with_tables = ", ".join(each.name for each in BUILT_IN.values() if each.read_rows is not None)
        raise InputError(f"format {format!r:.80}: a DataFrame has rows; it must be one of {with_tables}")
    plan = read_plan(config)
    limits = settings or load_settings()
    context = InputContext(_SOURCE, max_session_bytes=limits.segment_max_bytes)
    rows = chosen.read_rows(rows_of(frame, chosen.columns, _SOURCE), context)

    def scored() -> Result:
        # In a separate thread, for the judge's SQLite file and for the loop: the thread of a notebook already runs a loop.
        with judging_from_file(plan, limits) as judging:
            return asyncio.run(
                score_offline(rows, plan, None, limits, clock=utc_now, progress=lambda *_: None, judging=judging)
            )

    with ThreadPoolExecutor(1, "traceweir-score") as thread:
        result = thread.submit(scored).result()
    for line in context.unread_keys.lines(_SOURCE):
        warnings.warn(line, UserWarning, stacklevel=2)
    columns = [score.model_dump() for score in result.scores]
    return FrameScores(
        pd.DataFrame(columns, columns=None if columns else ["session_id", "metric", "value"]), result.problems
    )
