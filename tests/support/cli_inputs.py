"""Writes the input files of commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.scoring import trace_document

EVENT = b'{"type": "tool.called", "session_id": "s1", "name": "find", "occurred_at": "2026-01-31T11:00:00Z"}'


WriteInput = Callable[..., str]


@pytest.fixture
def write_input(tmp_path: Path) -> WriteInput:
    """Returns a function that writes a file of one document per line, and returns its path."""

    def write_input(name: str, *documents: Any) -> str:
        lines = [document if isinstance(document, bytes) else orjson.dumps(document) for document in documents]
        (tmp_path / name).write_bytes(b"\n".join(lines))
        return str(tmp_path / name)

    return write_input


def trace(number: int, **changes: Any) -> dict[str, Any]:
    """Returns a trace whose value is over the gate's threshold."""
    steps = [
        {"step_id": 0, "type": "thought", "content": "Look."},
        {"step_id": 1, "type": "tool_call", "tool": {"name": "find"}},
        {"step_id": 2, "type": "error_recovery", "tool": {"name": "search"}},
        {"step_id": 3, "type": "observation", "content": "Two."},
    ]
    return trace_document(id=f"kp:trace:{number}", **{"steps": steps, "outcome": {"confidence": 1.0}, **changes})
