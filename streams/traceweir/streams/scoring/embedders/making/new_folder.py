"""Writes a folder as a whole, or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from traceweir.streams.scoring.embedders.making.errors import ModelMakingError


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Yields an empty folder beside `out` that becomes `out` at the end of the block; an error leaves nothing behind.

    Raises:
        ModelMakingError: `out` exists and is not an empty folder, or the disk refuses the files.
    """
    refuse_used(out)
    temporary = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name[:40]}.")
        yield Path(temporary)
        # The folder of `mkdtemp` is for its owner only.
        os.chmod(temporary, 0o777 & ~_umask())
        # Replaces an empty folder, and no other.
        os.rename(temporary, out)
        temporary = None
    except OSError as error:
        raise ModelMakingError(
            f"{out}: cannot be written ({error.strerror or error}). Name a new folder where you may write, on a disk "
            "with room for the model"
        ) from None
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def refuse_used(out: Path) -> None:
    """Refuses a path that holds something.

    Raises:
        ModelMakingError: it is a file, or a folder with files.
    """
    if out.is_dir() and any(out.iterdir()):
        raise ModelMakingError(f"{out}: the folder is not empty. Name a new folder, or remove this one first")
    if out.exists() and not out.is_dir():
        raise ModelMakingError(f"{out}: is a file. Name a new folder")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
