"""Writes files of evaluation rows."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any


def jsonl(path: Path, *rows: Any) -> Path:
    """Writes a row per line; a string is written unchanged, every other row as JSON."""
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), "utf-8")
    return path


def csv_file(path: Path, *rows: dict[str, Any]) -> Path:
    """Writes rows under a header of all their columns; a value that is not a string is written as JSON."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)))
    writer.writeheader()
    writer.writerows(
        {name: value if isinstance(value, str) else json.dumps(value) for name, value in row.items()} for row in rows
    )
    path.write_text(text.getvalue(), "utf-8")
    return path
