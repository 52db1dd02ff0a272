"""Exports the JSON Schemas of the documents on topics and in files.

`python -m traceweir.schemas.export` writes the schema files; `--check` compares them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from traceweir.schemas.candidate import Candidate
from traceweir.schemas.config import EvalConfig
from traceweir.schemas.eval_set import EvalSet
from traceweir.schemas.evaluation_row import EvaluationRow
from traceweir.schemas.events import EVENT
from traceweir.schemas.reference import Reference
from traceweir.schemas.score import Score
from traceweir.schemas.session import Session
from traceweir.schemas.trace import ReasoningTrace

FOLDER = Path("schemas/json")
DOCUMENTS: dict[str, TypeAdapter[Any]] = {
    "ReasoningTrace": TypeAdapter(ReasoningTrace),
    "InvocationEvent": EVENT,
    "Reference": TypeAdapter(Reference),
    "Session": TypeAdapter(Session),
    "Candidate": TypeAdapter(Candidate),
    "Score": TypeAdapter(Score),
    "EvalConfig": TypeAdapter(EvalConfig),
    "EvalSet": TypeAdapter(EvalSet),
    "EvaluationRow": TypeAdapter(EvaluationRow),
}
IN_SNAKE_CASE = {"EvalSet"}
"""Documents that Google ADK writes to files in snake_case."""


def exported() -> Iterator[tuple[str, str]]:
    """Yields the name and the text of each schema file."""
    for name, adapter in DOCUMENTS.items():
        fields = adapter.json_schema(by_alias=name not in IN_SNAKE_CASE)
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | fields
        yield f"{name}.schema.json", json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Writes the files, or with `--check` prints those that are stale; returns 1 if a file is stale, else 0."""
    if "--check" not in arguments:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name, text in exported():
            (FOLDER / name).write_text(text, encoding="utf-8")
        return 0
    stale = [name for name, text in exported() if not _is(FOLDER / name, text)]
    for name in stale:
        sys.stderr.write(f"{FOLDER / name} is stale; run `make format`\n")
    return 1 if stale else 0


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
