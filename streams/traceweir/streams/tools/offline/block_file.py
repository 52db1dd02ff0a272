"""A temporary file of blocks, each of which holds encoded items.

The file has no name, so that nothing is left behind when the process is killed. It is in the folder that `TMPDIR`
names, and only its own user can read it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Generic, NamedTuple, TypeVar

import msgspec

T = TypeVar("T")


class TemporaryFileError(RuntimeError):
    """The temporary file cannot be written or read. The message names the folder and the way out."""


class Block(NamedTuple):
    """The place of a block in its file, in bytes."""

    position: int
    length: int


class BlockFile:
    """A temporary file of blocks. It is created with the first block."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = None
        self._end = 0

    def append(self, content: bytes) -> Block:
        """Writes a block.

        Raises:
            TemporaryFileError: the block cannot be written, for example because the disk is full.
        """
        block = Block(self._end, len(content))
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # closed by `close`
            self._file.seek(self._end)
            rest = memoryview(content)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise _unusable("written", error) from None
        self._end += len(content)
        return block

    def read(self, block: Block) -> bytes:
        """Returns the content of a block.

        Raises:
            TemporaryFileError: the block cannot be read.
        """
        assert self._file is not None  # noqa: S101  # a block is only returned by `append`
        try:
            self._file.seek(block.position)
            return self._file.read(block.length)
        except OSError as error:
            raise _unusable("read", error) from None

    def close(self) -> None:
        """Deletes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class Items(Generic[T]):
    """Writes items to blocks and reads them again.

    Args:
        file: The file.
        kind: The type of the items, as msgspec knows it.
        block_bytes: Size at which a block is written. A larger item has a block of its own.
    """

    def __init__(self, file: BlockFile, kind: type[T], block_bytes: int) -> None:
        self._file = file
        self._block_bytes = block_bytes
        self._encode = msgspec.msgpack.Encoder().encode
        self._decoder = msgspec.msgpack.Decoder(list[kind])  # type: ignore[valid-type]
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._blocks: list[Block] = []

    def add(self, item: T) -> None:
        """Adds an item.

        Raises:
            TemporaryFileError: the file cannot be written.
        """
        encoded = self._encode(item)
        self._waiting.append(encoded)
        self._waiting_bytes += len(encoded)
        if self._waiting_bytes >= self._block_bytes:
            self.flush()

    def flush(self) -> None:
        """Writes the items that wait in memory.

        Raises:
            TemporaryFileError: the file cannot be written.
        """
        if self._waiting:
            # A list in MessagePack is its length and its items, so the items are encoded only once.
            head = b"\xdd" + len(self._waiting).to_bytes(4)
            self._blocks.append(self._file.append(head + b"".join(self._waiting)))
            self._waiting = []
            self._waiting_bytes = 0

    def __iter__(self) -> Iterator[T]:
        """Yields the written items, in order."""
        for block in self._blocks:
            found: Iterable[T] = self._decoder.decode(self._file.read(block))
            yield from found


def _unusable(what: str, error: OSError) -> TemporaryFileError:
    return TemporaryFileError(
        f"a temporary file in {tempfile.gettempdir()} cannot be {what} ({error.strerror}). An input that is larger than "
        "what is kept in memory needs two to three times its size there: free space, or let TMPDIR name another folder"
    )
