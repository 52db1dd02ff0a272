"""Writes a folder with an eval set and runs of `traceweir eval --json`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
from tests.support.paths import ROOT
from tests.support.scoring import NOW

_EXAMPLES = ROOT / "examples" / "eval-sets"


def run_line(eval_id: str, status: str, value: float | None = 1.0, **turn: Any) -> bytes:
    """Returns a line of a run, with one criterion and one invocation."""
    criterion = {"metric": "response_match_score", "threshold": 0.8, "value": value, "status": status, "rationale": "w"}
    fields: dict[str, Any] = {
        "run": 1,
        "invocation_id": "i",
        "prompt": "Where to?",
        "expected_response": "To Seoul.",
        "actual_response": "To Busan.",
        "expected_tool_calls": [{"name": "find", "args": {"day": "Friday"}}],
        "actual_tool_calls": [],
        "scores": [criterion],
        **turn,
    }
    return orjson.dumps(
        {
            "file": "trips.evalset.json",
            "eval_set_id": "trips",
            "eval_id": eval_id,
            "status": status,
            "problem": None,
            "runs": 1,
            "criteria": [criterion],
            "invocations": [fields],
        }
    )


def write_evals(folder: Path) -> None:
    """Writes an eval set with its recorded sessions, and two runs, of which the second one is later."""
    folder.mkdir(parents=True)
    for name in ("trips.evalset.json", "trips.sessions.jsonl"):
        (folder / name).write_bytes((_EXAMPLES / name).read_bytes())
    runs = {
        "first": [
            run_line("a", "PASSED"),
            run_line("b", "FAILED", 0.2),
            run_line("c", "PASSED"),
            run_line("gone", "PASSED"),
        ],
        "second": [run_line("a", "FAILED", 0.1), run_line("b", "PASSED"), run_line("c", "PASSED")],
    }
    for number, (name, lines) in enumerate(runs.items()):
        file = folder / f"{name}.jsonl"
        file.write_bytes(b"\n".join(lines) + b"\n")
        os.utime(file, (NOW.timestamp() + number, NOW.timestamp() + number))
