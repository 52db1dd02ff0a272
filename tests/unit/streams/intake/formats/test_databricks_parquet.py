"""Tests evaluation rows from Parquet files."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.rows import ROW, events, parquet, problems, read

from traceweir.streams.intake.formats.documents import InputError


def test_without_pyarrow_the_error_for_parquet_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "rows.parquet").write_bytes(b"")
    with pytest.raises(InputError, match=r"run `pip install '.\[tables\]'`"):
        read(tmp_path / "rows.parquet")


def test_a_parquet_struct_field_that_only_other_rows_have_is_absent(tmp_path: Path) -> None:
    rows = [
        {"request": {"messages": [{"role": "user", "content": "q"}]}, "response": {"content": "a"}},
        {"request": {"query": "q"}, "response": {"choices": [{"message": {"content": "a"}}]}},
    ]
    assert [event["row"] for event in events(read(parquet(tmp_path / "rows.parquet", rows)))] == rows


def arrow_file(path: Path, columns: list[tuple[str, Any]]) -> Path:
    """Writes a Parquet file of these Arrow arrays, in which two columns can have the same name."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    written = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([array for _, array in columns], [name for name, _ in columns]), written)
    path.write_bytes(written.getvalue())
    return path


def test_a_parquet_cell_that_python_cannot_represent_rejects_only_its_row(tmp_path: Path) -> None:
    import pyarrow as pa

    answers = pa.Array.from_buffers(
        pa.string(),
        3,
        [None, pa.py_buffer(b"".join(at.to_bytes(4, "little") for at in (0, 1, 3, 4))), pa.py_buffer(b"an\xe9b")],
    )
    path = arrow_file(tmp_path / "rows.parquet", [("request", pa.array(["q1", "q2", "q3"])), ("response", answers)])
    found = read(path)
    [problem] = problems(found, path)
    assert problem.startswith("row 2, column 'response': cannot be read (UnicodeDecodeError: ")
    assert [event["row"]["response"] for event in events(found)] == ["a", "b"]


@pytest.mark.parametrize("unit", ["far", "Mars/Phobos", "binary"])
def test_an_unreadable_parquet_column_outside_the_format_is_ignored(unit: str, tmp_path: Path) -> None:
    import pyarrow as pa

    other = {
        "far": lambda: pa.array([2**62], pa.timestamp("us")),
        "Mars/Phobos": lambda: pa.array([0], pa.timestamp("us", "Mars/Phobos")),
        "binary": lambda: pa.array([b"\xff"]),
    }[unit]()
    columns = [("request", pa.array(["q"])), ("other", other), ("response", pa.array(["a"]))]
    assert events(read(arrow_file(tmp_path / "rows.parquet", columns)))[0]["row"] == ROW


def test_every_row_of_a_table_without_known_columns_is_reported(tmp_path: Path) -> None:
    path = parquet(tmp_path / "rows.parquet", [{"question": "q"}] * 2)
    expected_problem = "column 'request': Either column 'request' or 'inputs' is required but not found"
    assert problems(read(path), path) == [f"row 1, {expected_problem}", f"row 2, {expected_problem}"]


@pytest.mark.parametrize("name", ["request", "thumb"])
def test_a_duplicate_parquet_column_is_rejected_only_if_the_format_reads_it(name: str, tmp_path: Path) -> None:
    import pyarrow as pa

    columns = [(each, pa.array(["x"])) for each in ("request", "response", "thumb", name)]
    path = arrow_file(tmp_path / "rows.parquet", columns)
    if name == "request":
        with pytest.raises(InputError, match=r"rows\.parquet: has more than one column 'request'"):
            read(path)
    else:
        assert events(read(path))[0]["row"] == {"request": "x", "response": "x"}
