"""Reads the sessions of a file as `traceweir sessions` does."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from traceweir.schemas.session import Session
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.intake.formats.base import DEFAULT_MAX_SESSION_BYTES
from traceweir.streams.intake.formats.files import open_input, read_input
from traceweir.streams.intake.formats.registry import input_format
from traceweir.streams.tools.offline.score_documents import assemble_offline

CLOCK = datetime(2030, 1, 1, tzinfo=UTC)
"""The time of the records."""


def read_sessions(path: Path, format_name: str = "traceweir") -> tuple[list[Session], list[str]]:
    """Returns the sessions of a file, and the problems of its documents."""
    with open_input(str(path)) as stream:
        documents = list(
            read_input(
                stream,
                input_format(format_name),
                task_domain="general",
                max_session_bytes=DEFAULT_MAX_SESSION_BYTES,
            )
        )
    assembled = assemble_offline(documents, read_plan(None), Settings(), clock=lambda: CLOCK)
    sessions = [Session.model_validate_json(value) for value in assembled.sessions]
    return sessions, [problem.detail for problem in assembled.problems]
