"""Says what a stage raised on: a record, a session, or a fault of the machine, which no record can be blamed for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from traceweir.streams.base.stages.errors import RecordFailed, SessionFailed
from traceweir.streams.worker.runtime.inbox import Inbox
from traceweir.streams.worker.runtime.stage_rows import TableFailed
from traceweir.streams.worker.runtime.suspects import StageFailed

_FAULTS_OF_THE_MACHINE = (TableFailed, OSError, MemoryError)


def raise_stage_failed(inbox: Inbox, error: BaseException, *, in_tick: bool = False) -> NoReturn:
    """Raises what a worker makes of the exception of a stage.

    Args:
        inbox: The inbox of the stage.
        error: The exception.
        in_tick: Whether the stage raised it in a tick, which concerns all sessions, so that no record can be named.

    Raises:
        StageFailed: always, but for the end of the process.
    """
    if isinstance(error, KeyboardInterrupt | SystemExit):
        raise error
    if isinstance(error, RecordFailed):
        records = {error.topic: (error.offset, error.offset)}
        raise StageFailed(inbox.name, error.error, records, 1, named=True) from error.error
    if isinstance(error, SessionFailed):
        raise stage_failed(inbox.name, error, inbox.pending_offsets, inbox.pending) from error.error
    if in_tick or isinstance(error, _FAULTS_OF_THE_MACHINE):
        raise StageFailed(inbox.name, error, {}, 0) from error
    raise StageFailed(inbox.name, error, dict(inbox.pending_offsets), inbox.pending) from error


def stage_failed(stage: str, failed: SessionFailed, records: Mapping[str, tuple[int, int]], count: int) -> StageFailed:
    """Returns the failure of a stage on a session, while it worked on these records."""
    if isinstance(failed.error, _FAULTS_OF_THE_MACHINE):
        return StageFailed(stage, failed.error, {}, 0)
    return StageFailed(stage, failed.error, dict(records), count, session=failed.session)
