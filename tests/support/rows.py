"""Writes rows to files, reads them as input, and scores them, for tests."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
from pydantic import JsonValue
from tests.support.scoring import NOW

from traceweir.schemas.score import Score
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.intake.formats.base import DEFAULT_MAX_SESSION_BYTES, DocumentRecords
from traceweir.streams.intake.formats.files import open_input, read_input
from traceweir.streams.intake.formats.registry import input_format
from traceweir.streams.tools.offline.score_documents import Result, score_offline

AUTO: dict[str, JsonValue] = {"agent_evaluation": {"judged": False}}
ROW = {"request": "q", "response": "a"}


def read(path: Path, format_name: str = "traceweir") -> list[DocumentRecords]:
    os.utime(path, (NOW.timestamp(), NOW.timestamp()))  # The rows get the time of the file.
    with open_input(str(path)) as stream:
        chosen = input_format(format_name)
        return list(read_input(stream, chosen, task_domain="general", max_session_bytes=DEFAULT_MAX_SESSION_BYTES))


def problems(found: Sequence[DocumentRecords], path: Path) -> list[str]:
    return [str(each.problem).removeprefix(f"{path}: ") for each in found if each.problem is not None]


def events(found: Sequence[DocumentRecords]) -> list[dict[str, Any]]:
    """Returns the recorded invocations, without `session.ended` events."""
    read = [orjson.loads(record.value) for each in found for record in each.records]
    return [event for event in read if event["type"] == "invocation.recorded"]


async def score(found: Sequence[DocumentRecords], config: dict[str, JsonValue] | None = None) -> Result:
    return await score_offline(
        found, read_plan(config or AUTO), None, Settings(), clock=lambda: NOW, progress=lambda done, total: None
    )


def values(scores: Sequence[Score]) -> list[tuple[str, str, float | None]]:
    """Returns session, metric and value of each invocation's score."""
    return [(each.session_id, each.metric, each.value) for each in scores if each.level == "invocation"]


def parquet(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    import pyarrow as pa
    from pyarrow import parquet as pq

    names = dict.fromkeys(name for row in rows for name in row)
    written = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([dict.fromkeys(names) | row for row in rows]), written)
    path.write_bytes(written.getvalue())
    return path
