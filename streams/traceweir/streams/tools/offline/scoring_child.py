"""Runs in a process of `traceweir score`: scores chunks of sessions until the command closes the socket.

The command starts `python -m traceweir.streams.tools.offline.scoring_child SOCKET LIFELINE` with the numbers of a
socket and of the read end of a pipe. The process ends when the command's end of the pipe closes.
"""

from __future__ import annotations

import asyncio
import pickle
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from traceweir.streams.base.process_log import LogOptions, log_to_stderr
from traceweir.streams.base.process_setup import tune_gc
from traceweir.streams.scoring.isolation.child import end_with, fail
from traceweir.streams.scoring.sessions.options import ScoringOptions, ScoringOutputs
from traceweir.streams.scoring.sessions.session_scoring import SessionScoring, score_bytes
from traceweir.streams.tools.offline.chunk_process import answer_of, framed, receive, sessions_of
from traceweir.streams.tools.offline.publication_checks import PublicationChecks
from traceweir.streams.tools.offline.session_chunks import ChunkScoring, ProcessSetup


@contextmanager
def _ending_with_the_command() -> Iterator[None]:
    """Ends this process without a traceback if the command has ended: its end of the socket is closed."""
    try:
        yield
    except (EOFError, OSError):
        sys.exit(0)


async def _serve(connection: socket.socket, setup: ProcessSetup) -> None:
    settings = setup.settings
    plan = setup.plan
    clock = setup.clock
    checks = PublicationChecks(plan)
    scoring = SessionScoring(
        plan,
        setup.embedder,
        clock,
        ScoringOptions.of(settings),
        outputs=ScoringOutputs(offered=checks.add),
    )
    chunks = ChunkScoring(settings, plan, score_bytes(scoring), clock)
    with _ending_with_the_command():
        connection.sendall(framed(b""))
    while True:
        # The loop has nothing else to do, so it can be blocked until the next chunk arrives.
        with _ending_with_the_command():
            sessions = sessions_of(receive(connection))
        outputs = await chunks(sessions)
        for each in outputs:
            each.checks += checks.take(each.candidates)
        checks.clear()
        with _ending_with_the_command():
            connection.sendall(answer_of(outputs))


def main() -> None:
    """Serves the command until the command ends."""
    # A terminal sends them to all, but the command decides.
    for received in (signal.SIGINT, signal.SIGTERM):
        signal.signal(received, lambda number, frame: None)
    connection = socket.socket(fileno=int(sys.argv[1]))
    lifeline = int(sys.argv[2])
    end_with(lifeline)
    log_to_stderr(LogOptions())
    with _ending_with_the_command():
        setup: ProcessSetup = pickle.loads(receive(connection))  # noqa: S301  # sent by the command, through a private socket
    tune_gc()
    try:
        asyncio.run(_serve(connection, setup))
    except Exception as error:  # noqa: BLE001  # an error outside any session; the command starts another process
        fail(error)


if __name__ == "__main__":
    main()
