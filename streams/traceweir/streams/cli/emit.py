"""`traceweir emit`: sends a file to Kafka."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from rich.console import Console
from rich.text import Text

from traceweir.schemas.figures import counted
from traceweir.schemas.text import printable
from traceweir.streams.cli.errors import FAILED, INTERRUPTED, NO_DOCUMENT
from traceweir.streams.cli.terminal import complain, mute_clients, progress_bar
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.intake.formats.documents import name_of
from traceweir.streams.intake.formats.files import open_inputs, read_inputs
from traceweir.streams.intake.formats.registry import input_format
from traceweir.streams.intake.formats.unread_keys import UnreadKeys
from traceweir.streams.tools.emit import emit


def emit_files(paths: Sequence[str], format_name: str, task_domain: str) -> int:
    """Sends the files of one input, prints the numbers of sent records, and returns the exit code.

    Raises:
        InputError: the file cannot be read.
        InvalidSettingsError: the environment cannot be used.
        KafkaUnreachableError: no broker answers.
        EmitError: a topic is missing or wrong, or the brokers stopped answering.
    """
    settings = kafka_settings()
    mute_clients()
    with open_inputs(paths) as streams, progress_bar("documents sent") as advance, _interruptible():
        source = name_of(streams[0])
        unread_keys = UnreadKeys()
        documents = read_inputs(
            streams,
            input_format(format_name),
            task_domain=task_domain,
            max_session_bytes=settings.segment_max_bytes,
            visibility=settings.otlp_visibility,
            unread_keys=unread_keys,
        )
        report = asyncio.run(emit(settings, documents, progress=lambda done: advance(done, None)))
    sent = ", ".join(f"{count} to {topic}" for topic, count in report.sent.items())
    Console(highlight=False, soft_wrap=True).print(Text(printable(f"{counted(report.documents, 'document')}: {sent}")))
    for problem in report.problems:
        complain(problem)
    for line in unread_keys.lines(source):
        complain(line)
    if not report.documents:
        complain(NO_DOCUMENT.format(source))
    return FAILED if report.problems or not report.documents else 0


@contextmanager
def _interruptible() -> Iterator[None]:
    previous_handler = signal.signal(signal.SIGINT, _exit_at_once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)


def _exit_at_once(number: int, frame: FrameType | None) -> None:
    # A thread reads the input; a thread that blocks on a pipe cannot be stopped, so a normal shutdown would hang.
    Console(stderr=True).show_cursor()
    os._exit(INTERRUPTED)
