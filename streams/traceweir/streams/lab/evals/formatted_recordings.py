"""Reads recorded conversations from files whose input format is named, such as spans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import BinaryIO

from traceweir.streams.intake.formats.base import DEFAULT_DOMAIN, DEFAULT_MAX_SESSION_BYTES, InputFormat
from traceweir.streams.intake.formats.documents import name_of
from traceweir.streams.intake.formats.files import open_inputs, read_inputs
from traceweir.streams.intake.formats.unread_keys import UnreadKeys
from traceweir.streams.lab.evals.recordings import Recording, SessionParts


def read_formatted_recordings(
    paths: Sequence[str],
    input_format: InputFormat,
    wanted: frozenset[str],
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, list[Recording]]:
    """Returns the conversations recorded in files of one format, by session id.

    A later file is a further run of its conversations. Files of a format that reads several files as one input, such as
    `otlp`, are one run.

    Args:
        paths: Names of files; `-` is standard input.
        input_format: The format of the files.
        wanted: The wanted session ids; others are skipped.
        report: Receives a sentence for each key that is not read.

    Raises:
        InputError: a file cannot be read, or a part of it cannot be used.
    """
    found: dict[str, list[Recording]] = {}
    with open_inputs(paths) as streams:
        inputs = [streams] if input_format.read_streams is not None else [[stream] for stream in streams]
        for each in inputs:
            for name, run in _run(each, input_format, wanted, report).items():
                found.setdefault(name, []).append(run)
    return found


def _run(
    streams: Sequence[BinaryIO], input_format: InputFormat, wanted: frozenset[str], report: Callable[[str], None]
) -> dict[str, Recording]:
    parts = SessionParts()
    unread_keys = UnreadKeys()
    documents = read_inputs(
        streams,
        input_format,
        task_domain=DEFAULT_DOMAIN,
        max_session_bytes=DEFAULT_MAX_SESSION_BYTES,
        visibility="private",
        unread_keys=unread_keys,
    )
    for document, records, problem in documents:
        # A conversation without one of its parts must not be compared.
        if problem is not None:
            raise problem
        for record in records:
            if record.session_id in wanted:
                parts.add_record(record, f"{name_of(streams[0])}: document {document.number}")
    for line in unread_keys.lines(name_of(streams[0])):
        report(line)
    return parts.recordings()
