"""Tests which modules a command that scores one small file imports: each import delays its first score."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.support.cli_inputs import WriteInput, trace
from tests.support.paths import ROOT

UNUSED = [
    "aiokafka",
    "confluent_kafka",
    "faust",
    "lemminflect",
    "litellm",
    "numpy",
    "pandas",
    "phonenumbers",
    "psutil",
    "pyarrow",
    "scipy",
    "sqlite3",
    "traceweir.scorers.judged.yes_no_rating",
    "traceweir.scorers.text.rouge",
    "traceweir.streams.scoring.isolation.process",
    "traceweir.streams.scoring.judges.client",
]
"""What only judges, embedders, processes, Kafka, tables or other metrics need."""
REDACTION = "traceweir.scorers.redaction.detection"
"""What only accepted traces need."""
SCORED = f"""
import sys
from traceweir.streams.cli.entry import main
try:
    main()
finally:
    print("imported", [name for name in {[*UNUSED, REDACTION]} if name in sys.modules])
"""


def imported(file: str) -> tuple[int, str]:
    """Returns the exit code of `score`, and what it imported of the modules above."""
    command = [sys.executable, "-c", SCORED, "score", file, "--embedder", "none"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout.splitlines()[-1]


@pytest.mark.slow
def test_scoring_a_small_file_imports_nothing_that_it_does_not_use(write_input: WriteInput) -> None:
    assert imported(write_input("traces.jsonl", trace(1))) == (0, f"imported {[REDACTION]}")


@pytest.mark.slow
def test_a_file_without_an_accepted_trace_needs_no_rules_of_redaction() -> None:
    assert imported(str(ROOT / "examples" / "chats.json")) == (0, "imported []")
