"""Writes files atomically."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.documents import InputError


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file atomically, see `whole_file`.

    Raises:
        InputError: the file cannot be written.
    """
    with whole_file(path) as stream:
        stream.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a stream whose content becomes the file at the end of the `with` block; an exception leaves the old file.

    A reader sees the old or the new content. The function follows links and keeps the file's mode. A device or a pipe,
    for example /dev/stdout, is written in place, because a rename would replace it with a file.

    Raises:
        InputError: the file cannot be written.
    """
    target = Path(os.path.realpath(path))
    mode = 0o666 & ~_umask()
    in_place = False
    with suppress(OSError):
        found = target.stat().st_mode
        mode = found & 0o777
        in_place = not (stat.S_ISREG(found) or stat.S_ISDIR(found))
    temporary = None
    try:
        if in_place:
            with target.open("wb") as stream:
                yield stream
            return
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.")
        with open(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException as error:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)
        if not isinstance(error, OSError):
            raise
        raise InputError(f"{path}: cannot be written ({error.strerror}). Name a file in a writable folder.") from None


def as_file(document: JsonObject) -> bytes:
    """Returns a document as indented UTF-8 JSON with a final line end; non-ASCII text is not escaped."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        return (text + "\n").encode()
    except UnicodeEncodeError:
        # A lone surrogate, which only a JSON escape can represent.
        return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
