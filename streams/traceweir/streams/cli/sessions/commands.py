"""Finds the sessions that `traceweir sessions` prints: in files, or on the sessions topic."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from traceweir.schemas.figures import counted
from traceweir.schemas.session import Session
from traceweir.schemas.text import printable
from traceweir.streams.cli.errors import FAILED, NO_DOCUMENT
from traceweir.streams.cli.sessions.text import lines_of
from traceweir.streams.cli.terminal import complain, mute_clients


class Complaints(NamedTuple):
    """What was wrong with the files from which sessions were assembled."""

    problems: list[str]
    """A line for each document that could not be used."""
    unread: list[str]
    """A line for each kind of key that no reader knows."""
    is_empty: bool
    """Whether the files have no document."""


def show_files(paths: Sequence[str], format_name: str, task_domain: str, wanted: str | None, *, as_json: bool) -> int:
    """Prints the sessions of files as a worker would assemble them, and returns the exit code.

    Args:
        paths: The files, read as one input; `-` is standard input.
        format_name: The input format of the files, by its name.
        task_domain: Domain of a transcript without a domain of its own.
        wanted: The id of the only session to print; None: all.
        as_json: Print one Session document per line.

    Raises:
        InputError: a file cannot be read.
        InvalidSettingsError: the environment cannot be used.
    """
    sessions, complaints = sessions_of_files(paths, format_name, task_domain)
    chosen = [each for each in sessions if wanted in (None, each.session_id)]
    _print(chosen, as_json=as_json)
    for line in complaints.problems + complaints.unread:
        complain(line)
    if complaints.is_empty:
        complain(NO_DOCUMENT.format(", ".join(paths)))
        return FAILED
    if wanted is not None and not chosen:
        complain(
            f"{', '.join(paths)}: there is no session {printable(wanted)!r} among {counted(len(sessions), 'session')}"
        )
        return FAILED
    return FAILED if complaints.problems else 0


def sessions_of_files(paths: Sequence[str], format_name: str, task_domain: str) -> tuple[list[Session], Complaints]:
    """Returns the sessions of files as a worker would assemble them.

    Args:
        paths: The files, read as one input; `-` is standard input.
        format_name: The input format of the files, by its name.
        task_domain: Domain of a transcript without a domain of its own.

    Raises:
        InputError: a file cannot be read.
        InvalidSettingsError: the environment cannot be used.
    """
    from traceweir.scorers.evaluation.plan import read_plan
    from traceweir.streams.base.clock import utc_now
    from traceweir.streams.base.settings import load_settings
    from traceweir.streams.intake.formats.base import DocumentRecords
    from traceweir.streams.intake.formats.documents import name_of
    from traceweir.streams.intake.formats.files import open_inputs, read_inputs
    from traceweir.streams.intake.formats.registry import input_format
    from traceweir.streams.intake.formats.unread_keys import UnreadKeys
    from traceweir.streams.tools.offline.score_documents import assemble_offline

    settings = load_settings()
    places: list[str] = []
    unread: list[str] = []

    def documents() -> Iterator[DocumentRecords]:
        chosen_format = input_format(format_name)
        with open_inputs(paths) as streams:
            for batch in [streams] if chosen_format.read_streams else [[stream] for stream in streams]:
                unread_keys = UnreadKeys()
                for each in read_inputs(
                    batch,
                    chosen_format,
                    task_domain=task_domain,
                    max_session_bytes=settings.segment_max_bytes,
                    visibility=settings.otlp_visibility,
                    unread_keys=unread_keys,
                ):
                    places.append(f"{name_of(batch[0])}: document {each.document.number}")
                    # The assembly numbers problems by document, and documents of several files have equal numbers.
                    yield each._replace(document=each.document._replace(number=len(places)))
                unread.extend(unread_keys.lines(name_of(batch[0])))

    assembled = assemble_offline(documents(), read_plan(None), settings, clock=utc_now)
    problems = [
        # A problem found by the reader already names its place.
        problem.detail
        if problem.reason is None
        else f"{places[problem.document - 1]}: {problem.reason}: {problem.detail}"
        for problem in assembled.problems
    ]
    sessions = [Session.model_validate_json(value) for value in assembled.sessions]
    return sessions, Complaints(problems, unread, not places and not problems)


def show_recorded(session_id: str, *, as_json: bool) -> int:
    """Prints the segments of a session of the sessions topic as they are there, and returns the exit code.

    Raises:
        KafkaUnreachableError: no broker answers.
        SessionsUnreadableError: the topic is missing or wrong or cannot be read.
        InvalidSettingsError: the environment cannot be used.
    """
    from traceweir.streams.cli.up_broker import kafka_settings
    from traceweir.streams.lab.evals.kafka_sessions import absence, read_segments

    mute_clients()
    settings = kafka_settings()
    segments = asyncio.run(read_segments(settings, session_id))
    if not segments:
        complain(absence(session_id, settings))
        return FAILED
    _print(segments, as_json=as_json)
    return 0


def _print(sessions: Iterable[Session], *, as_json: bool) -> None:
    for number, session in enumerate(sessions):
        if as_json:
            # Fields that the record leaves out must stay out: a trace does not take null.
            sys.stdout.write(session.model_dump_json(by_alias=True, exclude_unset=True) + "\n")
            continue
        if number:
            sys.stdout.write("\n")
        sys.stdout.writelines(f"{line}\n" for line in lines_of(session))
