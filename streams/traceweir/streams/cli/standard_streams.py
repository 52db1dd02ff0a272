"""Handles standard streams that are closed at start, or that cannot be written."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

_WRITE_ERRORS = {errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.ENOSPC}


def open_missing_streams() -> None:
    """Opens /dev/null as each standard stream that the caller of this process has closed (`<&-`, `>&-`, `2>&-`).

    Python sets such a stream to None. Its descriptor would also be given to the next file that the process opens, and
    output of the command would then be written into that file. Standard input is opened for writing only, and standard
    output for reading only: a command that needs the stream fails with an OSError instead of losing data.
    """
    if sys.stdin is None:
        sys.stdin = open(os.open(os.devnull, os.O_WRONLY), encoding="utf-8")  # noqa: SIM115  # open until the process ends
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")  # noqa: SIM115


def is_stdout_error(error: OSError) -> bool:
    """Returns whether an error comes from writing to standard output.

    A write that failed left its bytes in the buffer, so that a second flush fails as well. An unbuffered stream
    (`PYTHONUNBUFFERED`) keeps nothing: then the error number decides, because errors of files have a file name.
    """
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return error.filename is None and error.errno in _WRITE_ERRORS


def discard_stdout() -> None:
    """Redirects standard output to /dev/null, so that the flush at interpreter exit does not fail."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
