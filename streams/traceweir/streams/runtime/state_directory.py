"""A worker's state directory: one process at a time uses it, and a mark in it says what its rows are.

The rows are a copy of the changelog, so a directory that does not fit is never repaired: whoever runs the worker is told which one to
delete, or which setting to mend.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from traceweir.streams.errors import WorkerError
from traceweir.streams.settings import Settings
from traceweir.streams.topics import StageName, application_id

FORMAT = 2
"""Format of all rows, here and in the changelog. To be raised with a change that an older worker would misread."""
OLDEST = 1
"""The oldest format that is read: one back."""
MARK, LOCK = "state.json", "lock"


class Mark(BaseModel):
    """What a state directory says of itself."""

    model_config = ConfigDict(frozen=True)

    format: int
    application: str
    partitions: int


class StateDirectoryError(WorkerError):
    """The state directory cannot be used; the message says why and what to do."""


def state_folder(settings: Settings, stages: Collection[StageName]) -> Path:
    """Where the application that runs these stages keeps its local state."""
    return settings.state_dir / application_id(settings.topic_prefix, stages)


@contextmanager
def claimed(folder: Path, application: str, partitions: int) -> Iterator[None]:
    """Make the folder if it is missing, and keep every other process out of it for as long as the `with` block lasts.

    The kernel lets go of it when the process ends, however it ends.

    Args:
        folder: The application's folder.
        application: Its id.
        partitions: Of every topic.

    Raises:
        StateDirectoryError: another process uses it, it holds other rows than these, or it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)  # never handed on to child processes
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        if not _locked(lock):
            raise StateDirectoryError(
                f"the state directory {folder} is in use by another worker: give each worker process a TRACEWEIR_STATE_DIR of its own, "
                "or end the other one first"
            )
        try:
            _check_mark(folder, Mark(format=FORMAT, application=application, partitions=partitions))
        except OSError as error:
            raise _unwritable(folder, error) from error
        yield
    finally:
        os.close(lock)


def check_format(found: int, whose: str) -> None:
    """See that rows of this format can be read.

    Raises:
        StateDirectoryError: they cannot; `whose` they are stands at the beginning of the message.
    """
    if found > FORMAT:
        raise StateDirectoryError(
            f"{whose} was written by a newer Traceweir (format {found}; this one reads up to {FORMAT}): run that version again, or, "
            "with this one, begin anew under another TRACEWEIR_TOPIC_PREFIX"
        )
    if found < OLDEST:
        raise StateDirectoryError(
            f"{whose} was written by an older Traceweir (format {found}; this one reads from {OLDEST} on): run the version in between "
            "once, which rewrites it"
        )


def _locked(lock: int) -> bool:
    try:
        import fcntl
    except ImportError:  # there is none on Windows, where RocksDB's own lock has to do
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _check_mark(folder: Path, wanted: Mark) -> None:
    file = folder / MARK
    other, delete = "set TRACEWEIR_STATE_DIR to another folder", f"delete {folder}: it is rebuilt from the changelog"
    try:
        found = Mark.model_validate_json(file.read_bytes())
    except FileNotFoundError:  # new, or from before there was a mark
        found = None
    except ValidationError as error:
        raise StateDirectoryError(f"{file} cannot be read, so nothing says what lies beside it: {delete}") from error
    if found is not None and not OLDEST <= found.format <= FORMAT:
        newer = "a newer" if found.format > FORMAT else "an older"
        raise StateDirectoryError(
            f"the state directory {folder} is of {newer} Traceweir (format {found.format}; this one reads {_range()}): run that "
            f"version, {other}, or {delete}"
        )
    if found is not None and found.application != wanted.application:
        raise StateDirectoryError(
            f"the state directory {folder} is of the application {found.application!r}, not {wanted.application!r}: {other}, or {delete}"
        )
    if found is not None and found.partitions != wanted.partitions:
        raise StateDirectoryError(
            f"the state directory {folder} is of topics with {found.partitions} partitions, and TRACEWEIR_PARTITIONS is "
            f"{wanted.partitions}: every session has its home by that number, so set it back; or, if the topics were made anew, "
            f"{delete}"
        )
    if found != wanted:
        fresh = file.with_suffix(".new")
        fresh.write_text(wanted.model_dump_json())
        fresh.replace(file)


def _range() -> str:
    return f"{FORMAT}" if OLDEST == FORMAT else f"{OLDEST} to {FORMAT}"


def _unwritable(folder: Path, error: OSError) -> StateDirectoryError:
    return StateDirectoryError(
        f"the state directory {folder} cannot be written ({error.strerror or error}): mend its rights or make room, or set "
        "TRACEWEIR_STATE_DIR to another folder; what is lost of it is rebuilt from the changelog"
    )
