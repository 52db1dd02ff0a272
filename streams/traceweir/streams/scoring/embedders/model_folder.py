"""Reads what a folder says about the embedder in it, which `traceweir embedder` has written."""

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

ABOUT = "traceweir-embedder.json"
"""Name of the file that makes a folder an embedder of Traceweir."""


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Describes the embedder of a folder."""

    kind: Literal["onnx", "onnx-bfloat16", "static"]
    """A graph in single precision, a graph in bfloat16, or a vector for each token."""
    name: str
    """Name of the model from which it was made, without its folder."""
    made_from: str
    """Id of the embedder from which it was made."""
    dimensions: int
    prompt: str = ""
    """Text before each text, if the model has one."""
    format: Literal[1] = 1
    """Version of the folder's layout."""


def is_embedder_folder(folder: Path) -> bool:
    """Whether `traceweir embedder` has written this folder."""
    return (folder / ABOUT).is_file()


def read_about(folder: Path) -> About:
    """Returns the description in a folder.

    Raises:
        ValueError: the description is not one; msgspec's error derives from it.
        OSError: the file cannot be read.
    """
    return msgspec.json.decode((folder / ABOUT).read_bytes(), type=About)


def write_about(folder: Path, about: About) -> None:
    """Writes the description of a folder.

    Raises:
        OSError: the file cannot be written.
    """
    (folder / ABOUT).write_bytes(msgspec.json.format(msgspec.json.encode(about)) + b"\n")


def embedder_id(folder: Path, about: About) -> str:
    """Returns the id of the embedder in a folder: its kind, and twelve hex digits of all files that it reads."""
    digest = hashlib.sha256()
    for file in sorted(each for each in folder.iterdir() if each.is_file() and not each.name.startswith(".")):
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return f"{about.name}-{about.kind}@{digest.hexdigest()[:12]}"
