"""Writes the lists of docs/input-formats.md of documents that no format reads."""

from __future__ import annotations

import re
from collections.abc import Iterable

from traceweir.streams.intake.formats.other_document import OtherDocument
from traceweir.streams.intake.formats.other_documents import OTHER_DOCUMENTS

_AS_CHAT = ('{"messages": [...]', "chat transcript")
"""What advice has that ends in a chat transcript."""


def as_chat() -> str:
    """Returns the documents whose conversation is to be written as a chat transcript."""
    return _listed(each for each in OTHER_DOCUMENTS if _is_chat(each))


def others() -> str:
    """Returns the documents with another way on."""
    return _listed(each for each in OTHER_DOCUMENTS if not _is_chat(each))


def _is_chat(document: OtherDocument) -> bool:
    return any(each in document.advice for each in _AS_CHAT)


def _listed(documents: Iterable[OtherDocument]) -> str:
    return "; ".join(re.sub("^(?:an?|the) ", "", each.document_name) for each in documents) + "."
