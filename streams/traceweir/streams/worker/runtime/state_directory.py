"""Claims a worker's state directory: one process at a time uses the directory, and a file in it describes its rows.

The rows are a copy of the changelog, so an unsuitable directory is never repaired. The error names the directory to
delete, or the setting to correct.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from traceweir.streams.base.errors import WorkerError
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import StageName, application_id

log = logging.getLogger(__name__)

LAYOUT, OLDEST_LAYOUT = 3, 1
"""The format of the directory, and the oldest one that this version reads. Rows name their own format (`row_formats`), so
that an older version can use the directory again as long as it can read the rows."""
MARK = "state.json"
LOCK = "lock"
MEMBER = "member"


class Mark(BaseModel):
    """Content of `state.json`: what the rows in a state directory belong to."""

    model_config = ConfigDict(frozen=True)

    format: int
    """The format of the directory; of earlier versions, also that of the rows."""
    application: str
    partitions: int


class StateDirectoryError(WorkerError):
    """The state directory cannot be used; the message contains the reason and the way out."""


def state_folder(settings: Settings, stages: Collection[StageName]) -> Path:
    """Returns the folder for the local state of the application that runs these stages."""
    return settings.state_dir / application_id(settings.topic_prefix, stages)


@contextmanager
def claimed(folder: Path, application: str, partitions: int) -> Iterator[None]:
    """Creates the folder if necessary, and locks it against other processes while the `with` block runs.

    The kernel releases the lock when the process ends, also after a kill. The rows contain text of agents, so only the
    user of the worker can read them: the folder has mode 0700, and the umask of the process is 077 inside the block.

    Args:
        folder: The application's folder.
        application: The application id.
        partitions: Partition count of every topic.

    Raises:
        StateDirectoryError: another process uses the folder, its rows belong to another application or partition count,
            or the folder is not writable.
    """
    # For the files of RocksDB too, which has no setting for their mode.
    umask = os.umask(0o077)
    try:
        yield from _locked_and_marked(folder, Mark(format=LAYOUT, application=application, partitions=partitions))
    finally:
        os.umask(umask)


def _locked_and_marked(folder: Path, mark: Mark) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _make_private(folder)
        # Child processes do not inherit it.
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        if not _locked(lock):
            raise StateDirectoryError(
                f"the state directory {folder} is in use by another worker: set a separate TRACEWEIR_STATE_DIR for each "
                "worker process, or stop the other worker first"
            )
        try:
            _check_mark(folder, mark)
        except OSError as error:
            raise _unwritable(folder, error) from error
        yield
    finally:
        os.close(lock)


def _make_private(folder: Path) -> None:
    """Removes the rights of other users from the folder; warns if the folder belongs to another user."""
    found = folder.stat()
    if os.name != "posix" or not found.st_mode & 0o077:
        return
    if found.st_uid == os.geteuid():
        folder.chmod(0o700)
        return
    log.warning(
        "other users can use the state directory %s (mode %o), which contains text of agents, and it belongs to another user: "
        "set its mode to 700, or set TRACEWEIR_STATE_DIR to a folder of this user",
        folder,
        stat.S_IMODE(found.st_mode),
    )


def _locked(lock: int) -> bool:
    try:
        import fcntl
    except ImportError:
        # Windows has no fcntl; RocksDB's own lock protects the files there.
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _check_mark(folder: Path, wanted: Mark) -> None:
    file = folder / MARK
    other = "set TRACEWEIR_STATE_DIR to another folder"
    delete = f"delete {folder}: the worker rebuilds it from the changelog"
    try:
        found = Mark.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        # A new folder, or one from before the file existed.
        found = None
    except ValidationError as error:
        raise StateDirectoryError(f"{file} cannot be read, so the rows beside it are unknown: {delete}") from error
    if found is not None and not OLDEST_LAYOUT <= found.format <= LAYOUT:
        newer = "a newer" if found.format > LAYOUT else "an older"
        raise StateDirectoryError(
            f"the state directory {folder} was written by {newer} Traceweir (format {found.format}; this version reads "
            f"{OLDEST_LAYOUT} to {LAYOUT}): run that version, {other}, or {delete}"
        )
    if found is not None and found.application != wanted.application:
        raise StateDirectoryError(
            f"the state directory {folder} belongs to the application {found.application!r}, not to "
            f"{wanted.application!r}: {other}, or {delete}"
        )
    if found is not None and found.partitions != wanted.partitions:
        raise StateDirectoryError(
            f"the state directory {folder} belongs to topics with {found.partitions} partitions, and TRACEWEIR_PARTITIONS "
            f"is {wanted.partitions}: the home of every session depends on this number, so set it back; or, if the topics "
            f"were created again, {delete}"
        )
    if found != wanted:
        fresh = file.with_suffix(".new")
        fresh.write_text(wanted.model_dump_json())
        fresh.replace(file)


def _unwritable(folder: Path, error: OSError) -> StateDirectoryError:
    return StateDirectoryError(
        f"the state directory {folder} cannot be written ({error.strerror or error}): correct its permissions, free disk "
        "space, or set TRACEWEIR_STATE_DIR to another folder; the worker rebuilds lost state from the changelog"
    )
