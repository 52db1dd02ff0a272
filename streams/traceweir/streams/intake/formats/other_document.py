"""Defines OtherDocument: a kind of document that no input format reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.base import Sureness


class OtherDocument(NamedTuple):
    """A kind of document that is not an input format."""

    document_name: str
    """A document of this kind in a sentence, with its article."""
    advice: str
    """What to do with the document."""
    recognizes: Callable[[JsonObject], bool | Sureness]
    """Returns how sure it is that the document is of this kind; True means CERTAIN."""
    shown: Callable[[JsonObject], str] = lambda _: ""
    """Returns what a document of this kind says, for the message; empty if that helps nobody."""


def possible(found: bool) -> Sureness:
    """Returns the sureness of keys that documents of other kinds can have too."""
    return Sureness.POSSIBLE if found else Sureness.NO
