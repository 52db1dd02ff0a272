"""Files that are written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from traceweir.schemas.base import JsonObject
from traceweir.streams.formats.documents import InputError


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, so that whoever reads it at any moment finds the former content or the new one. Links are followed, its mode is kept.

    Raises:
        InputError: it cannot be written.
    """
    target = Path(os.path.realpath(path))
    mode = 0o666 & ~_umask()
    with suppress(OSError):
        mode = target.stat().st_mode & 0o777
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.")
        with open(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except OSError as error:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)
        raise InputError(
            f"{path}: cannot be written ({error.strerror}). Name a file in a folder that may be written to."
        ) from None


def as_file(document: JsonObject) -> bytes:
    """A document as a person reads it: indented, in its own script, a line end at its end."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        return (text + "\n").encode()
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can say
        return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
