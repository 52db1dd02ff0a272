"""Measures document recall: the share of the expected documents that the retriever found."""

from __future__ import annotations

from collections.abc import Sequence

from traceweir.schemas.invocation import RetrievedChunk
from traceweir.schemas.refused_record import CONTEXT
from traceweir.scorers.base import (
    Measurement,
    MissingInput,
    NeededReference,
    Scorer,
    Subject,
    invocation_of,
    require_accepted,
)
from traceweir.scorers.databricks_names import reason_with_unread


class DocumentRecall(Scorer):
    """Returns the share of the expected documents that were retrieved, from 0 to 1; duplicates count once.

    The `doc_uri` identifies a document. The metric has no value if no document was expected, if no document was
    retrieved, or if a chunk has no `doc_uri`. This is `document_recall` of Databricks Agent Evaluation
    (databricks-agents 1.13).

    >>> recall({"d1", "d2"}, {"d1", "d3"})
    0.5
    """

    @property
    def needed_reference(self) -> NeededReference:
        """The expected documents."""
        return NeededReference(("retrieved_context",))

    def score(self, subject: Subject) -> Measurement:
        """Compares the retrieved documents with the expected documents."""
        invocation = invocation_of(subject)
        reference = subject.reference
        if reference is None or not reference.retrieved_context:
            raise MissingInput("no reference says which documents were expected")
        require_accepted(invocation, CONTEXT)
        if not invocation.retrieved_context:
            reason = (
                "the retriever returned no chunks" if invocation.retrieved_context == [] else "nothing was retrieved"
            )
            raise MissingInput(reason_with_unread(invocation, reason))
        retrieved = _uris(invocation.retrieved_context, "retrieved")
        expected = _uris(reference.retrieved_context, "expected")
        found = len(expected & retrieved)
        return Measurement(
            value=recall(retrieved, expected),
            rationale=f"{found} of {len(expected)} expected documents among {len(invocation.retrieved_context)} chunks",
            details={"k": len(invocation.retrieved_context), "expected": len(expected), "found": found},
        )


def recall(retrieved: set[str], expected: set[str]) -> float:
    """Returns the share of the expected documents that were retrieved; `expected` must not be empty."""
    return len(expected & retrieved) / len(expected)


def _uris(chunks: Sequence[RetrievedChunk], kind: str) -> set[str]:
    without_uri = sum(chunk.doc_uri is None for chunk in chunks)
    if without_uri:
        raise MissingInput(f"{without_uri} of {len(chunks)} {kind} chunks have no doc_uri")
    return {chunk.doc_uri for chunk in chunks if chunk.doc_uri is not None}
