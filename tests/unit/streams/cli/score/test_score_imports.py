"""Tests which modules a command that scores one small file imports: each import delays its first score."""

from __future__ import annotations

import subprocess
import sys

from tests.support.cli_inputs import WriteInput, trace

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
    "traceweir.streams.scoring.isolation.process",
    "traceweir.streams.scoring.judges.client",
]
"""What only judges, embedders, processes, Kafka, tables, verbs of answers or telephone numbers need."""
SCORED = f"""
import sys
from traceweir.streams.cli.entry import main
try:
    main()
finally:
    print("imported", [name for name in {UNUSED} if name in sys.modules])
"""


def test_scoring_a_small_file_imports_nothing_that_it_does_not_use(write_input: WriteInput) -> None:
    file = write_input("traces.jsonl", trace(1))
    command = [sys.executable, "-c", SCORED, "score", file, "--embedder", "none"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (0, "imported []"), ended.stderr
