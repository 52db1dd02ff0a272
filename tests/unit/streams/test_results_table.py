"""Tests the columns of exported scores: every field of a Score has its column, and the page documents each."""

from __future__ import annotations

import re

from tests.support.paths import ROOT

from traceweir.schemas.score import Cost, Score
from traceweir.streams.results.table import COLUMNS

PAGE = ROOT / "docs" / "results.md"


def test_every_field_of_a_score_has_a_column() -> None:
    fields = {*Score.model_fields} - {"cost"} | {f"cost_{name}" for name in Cost.model_fields}
    assert {column.name for column in COLUMNS} == fields | {"written_at", "partition", "offset"}


def test_the_page_documents_every_column_with_its_type_in_order() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == [(column.name, column.type) for column in COLUMNS]
