"""Document recall: how many of the expected documents did the retriever find?"""

from __future__ import annotations

from collections.abc import Sequence

from traceweir.schemas.invocation import RetrievedChunk
from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject
from traceweir.scorers.databricks_names import lacking


class DocumentRecall(Scorer):
    """Share of the expected documents that were retrieved, from 0 to 1; of a document that is named twice, once.

    Documents are told apart by their `doc_uri`. Without any on either side, or with a chunk that has none, there is no value.
    This is `document_recall` of Databricks Agent Evaluation (databricks-agents 1.13).

    >>> recall({"d1", "d2"}, {"d1", "d3"})
    0.5
    """

    def score(self, subject: Subject) -> Measurement:
        """Compare the documents retrieved with those expected."""
        invocation, reference = subject.invocation, subject.reference
        if invocation is None or reference is None or not reference.retrieved_context:
            raise MissingInput("no reference says which documents were expected")
        if not invocation.retrieved_context:
            none = "the retriever gave nothing" if invocation.retrieved_context == [] else "nothing was retrieved"
            raise MissingInput(lacking(invocation, none))
        retrieved = _uris(invocation.retrieved_context, "retrieved")
        expected = _uris(reference.retrieved_context, "expected")
        found = len(expected & retrieved)
        return Measurement(
            value=recall(retrieved, expected),
            rationale=f"{found} of {len(expected)} expected documents among {len(invocation.retrieved_context)} chunks",
            details={"k": len(invocation.retrieved_context), "expected": len(expected), "found": found},
        )


def recall(retrieved: set[str], expected: set[str]) -> float:
    """The share of the expected, at least one, that is among the retrieved."""
    return len(expected & retrieved) / len(expected)


def _uris(chunks: Sequence[RetrievedChunk], which: str) -> set[str]:
    nameless = sum(chunk.doc_uri is None for chunk in chunks)
    if nameless:
        raise MissingInput(f"{nameless} of {len(chunks)} {which} chunks have no doc_uri")
    return {chunk.doc_uri for chunk in chunks if chunk.doc_uri is not None}
