"""The code on the dashboard's page with which other tools read an exported table reads it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.paths import ROOT
from tests.support.results import make_score
from tests.support.scoring import NOW

from traceweir.streams.results.reader import FoundScore
from traceweir.streams.results.table import parquet_table

PAGE = (ROOT / "docs" / "dashboard.md").read_text("utf-8")
CODE = dict(re.findall(r"^\| (\S+) \| `([a-z]+\..*scores\.parquet.*)` \|$", PAGE, re.MULTILINE))


@pytest.mark.parametrize("tool", ["pandas", "Polars", "DuckDB"])
def test_a_tool_reads_an_exported_table(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = pytest.importorskip(tool.lower(), reason=f"{tool} is not installed: pip install {tool.lower()}")
    monkeypatch.chdir(tmp_path)
    score = make_score("a", value=0.5)
    with Path("scores.parquet").open("wb") as file, parquet_table(file) as table:
        table.add(FoundScore(int(NOW.timestamp() * 1000), 0, 0, score, score.wire()))

    found = eval(CODE[tool], {tool.lower(): library})

    if tool == "DuckDB":
        assert found.fetchall() == [(score.metric, 0.5)]
    else:
        assert [list(found[name]) for name in ("session_id", "value")] == [["a"], [0.5]]
        (moment,) = found["occurred_at"]
        assert moment == NOW


def test_the_page_has_code_for_each_tool() -> None:
    assert list(CODE) == ["pandas", "Polars", "DuckDB", "Spark"]
