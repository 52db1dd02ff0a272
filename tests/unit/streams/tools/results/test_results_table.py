"""Tests the columns of exported scores: every field of a Score has its column, and the page documents each."""

from __future__ import annotations

import csv
import io
import re

import pytest
from tests.support.paths import ROOT
from tests.support.results import make_score

from traceweir.schemas.dimensions import TraceContext
from traceweir.schemas.score import Cost, Score
from traceweir.streams.tools.results import table
from traceweir.streams.tools.results.reader import FoundScore
from traceweir.streams.tools.results.table import COLUMNS, UnwritableScoreError, csv_table, row_of

TEXTS = ["session_id", "invocation_id", "trace_id", "rationale"]
PAGE = ROOT / "docs" / "results.md"


def test_every_field_of_a_score_has_a_column() -> None:
    # The parts of the tokens stand in the document of the score only.
    inner = {f"cost_{name}" for name in Cost.model_fields} - {"cost_cached_input_tokens", "cost_reasoning_tokens"}
    inner |= {f"trace_context_{name}" for name in TraceContext.model_fields}
    fields = {*Score.model_fields} - {"cost", "trace_context"} | inner
    assert {column.name for column in COLUMNS} == fields | {"written_at", "partition", "offset"}, (
        "COLUMNS has the fields of a Score, all of them and no others; a column of the store that is no field of a Score "
        "is added to RESULTS in board/store/tables.py"
    )


@pytest.mark.parametrize("hostile", ["a\r=1+1", "a\n=1+1", 'a",=1+1', "\r\n=1", "=1+1"])
def test_a_cell_with_line_breaks_and_quotes_is_one_cell_of_one_row(hostile: str) -> None:
    score = make_score().model_copy(update=dict.fromkeys(TEXTS, hostile))
    stream = io.BytesIO()
    with csv_table(stream) as writing:
        writing.add(FoundScore(0, 0, 0, score, score.wire()))

    header, row = csv.reader(io.StringIO(stream.getvalue().decode(), newline=""))
    cells = dict(zip(header, row, strict=True))
    assert {cells[name].removeprefix("'") for name in TEXTS} == {hostile}


def test_a_row_has_the_dimensions_of_its_score() -> None:
    context = TraceContext(trace_id="a" * 32, span_id="b" * 16)
    score = make_score(agent_name="=travel", labels={"team": "search"}, trace_context=context, sampling_probability=0.5)
    stream = io.BytesIO()
    with csv_table(stream) as writing:
        writing.add(FoundScore(0, 0, 0, score, score.wire()))

    header, row = csv.reader(io.StringIO(stream.getvalue().decode(), newline=""))
    cells = dict(zip(header, row, strict=True))
    assert (cells["agent_name"], cells["labels"], cells["sampling_probability"]) == (
        "'=travel",
        '{"team":"search"}',
        "0.5",
    )
    assert (cells["trace_context_trace_id"], cells["trace_context_span_id"]) == ("a" * 32, "b" * 16)
    assert (cells["model"], cells["source"]) == ("", "")


def test_the_page_documents_every_column_with_its_type_in_order() -> None:
    rows = re.findall(r"^- `(\w+)` (text|time|number|integer|boolean)\b", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == [(column.name, column.type) for column in COLUMNS]


def test_the_status_of_a_value_without_a_threshold_is_informational() -> None:
    scores = [
        make_score(value=900.0, threshold=None),
        make_score(),
        make_score(metric="gate", value=1.0, threshold=None),
        make_score(value=None, threshold=None),
    ]
    stream = io.BytesIO()
    with csv_table(stream) as writing:
        for score in scores:
            writing.add(FoundScore(0, 0, 0, score, score.wire()))

    rows = csv.DictReader(io.StringIO(stream.getvalue().decode(), newline=""))
    assert [row["status"] for row in rows] == ["INFORMATIONAL", "FAILED", "PASSED", "NOT_EVALUATED"]


def test_an_integer_can_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    column = next(at for at, each in enumerate(COLUMNS) if each.name == "scorer_version")
    monkeypatch.setattr(table, "INTEGERS_AT", [column])
    # The true range would be searched for None for years.
    monkeypatch.setattr(table, "INTEGERS", range(2))
    score = make_score()

    assert row_of(FoundScore(0, 0, 0, score.model_copy(update={"scorer_version": None}), b""))[column] is None
    with pytest.raises(UnwritableScoreError, match="scorer_version has more than 64 bits"):
        row_of(FoundScore(0, 0, 0, score.model_copy(update={"scorer_version": 2}), b""))
