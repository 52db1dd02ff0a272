"""The code on the dashboard's page with which other tools read an exported table reads it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.paths import ROOT
from tests.support.results import make_score
from tests.support.scoring import NOW

from traceweir.streams.tools.results.reader import FoundScore
from traceweir.streams.tools.results.table import parquet_table

PAGE = (ROOT / "docs" / "dashboard.md").read_text("utf-8")
CODE = dict(re.findall(r"^\| (\S+) \| `([a-z]+\..*scores\.parquet.*)` \|$", PAGE, re.MULTILINE))


@pytest.mark.parametrize("tool", ["pandas", "Polars", "DuckDB"])
def test_a_tool_reads_an_exported_table(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = pytest.importorskip(tool.lower(), reason=f"{tool} is not installed: pip install {tool.lower()}")
    monkeypatch.chdir(tmp_path)
    metric = write_table()

    found = eval(CODE[tool], {tool.lower(): library})

    if tool == "DuckDB":
        assert found.fetchall() == [(metric, 0.5)]
    else:
        assert [list(found[name]) for name in ("session_id", "value")] == [["a"], [0.5]]
        (moment,) = found["occurred_at"]
        assert moment == NOW


def test_spark_reads_an_exported_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyspark = pytest.importorskip("pyspark.sql", reason="Spark is not installed: pip install pyspark (it needs Java)")
    monkeypatch.chdir(tmp_path)
    write_table()
    builder = pyspark.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = (
        builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
    )
    try:
        (row,) = eval(CODE["Spark"], {"spark": spark}).select("session_id", "value").collect()
    finally:
        spark.stop()
    assert tuple(row) == ("a", 0.5)


def write_table() -> str:
    """Writes `scores.parquet` with one score, and returns its metric."""
    score = make_score("a", value=0.5)
    with Path("scores.parquet").open("wb") as file, parquet_table(file) as table:
        table.add(FoundScore(int(NOW.timestamp() * 1000), 0, 0, score, score.wire()))
    return score.metric


def test_the_page_has_code_for_each_tool() -> None:
    assert list(CODE) == ["pandas", "Polars", "DuckDB", "Spark"]
