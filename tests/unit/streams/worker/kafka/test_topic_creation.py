"""Tests that each client of aiokafka is made to create no topics."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import traceweir.streams

SOURCES = Path(traceweir.streams.__file__).parent
MADE = re.compile(r"\bAIOKafka(?:Consumer|Producer)\(|super\(\)\._create_worker_consumer\(")
"""Where a client is created; Faust creates that of the worker."""


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=str(file.relative_to(SOURCES)))
        for file in sorted(SOURCES.rglob("*.py"))
        if MADE.search(file.read_text())
    ],
)
def test_each_client_of_aiokafka_creates_no_topics(file: Path) -> None:
    source = file.read_text()
    made = MADE.findall(source)
    assert len(re.findall(r"\bcreate_no_topics\(", source)) == len(made)
