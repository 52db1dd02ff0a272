"""Provides a small disk that a test can fill: a file system in memory, which only root can mount."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType

SIZE = "64m"


def can_mount(folder: Path) -> bool:
    """Returns whether this process is allowed to mount a small disk in the folder."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    try:
        with SmallDisk(folder / "trial"):
            return True
    except subprocess.CalledProcessError:
        return False


class SmallDisk:
    """A small disk that is mounted within a `with` block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> SmallDisk:
        self.folder.mkdir(parents=True)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(self.folder)]
        subprocess.run(mount, check=True, capture_output=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True, capture_output=True)

    def fill(self) -> None:
        """Fills the disk completely."""
        with (self.folder / "filler").open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def clear(self) -> None:
        """Frees the space that `fill` took."""
        (self.folder / "filler").unlink(missing_ok=True)
