"""Measures chunk relevance precision: the share of the retrieved chunks that a judge rates as relevant."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import RetrievedChunk
from traceweir.schemas.refused_record import CONTEXT
from traceweir.schemas.score import Cost
from traceweir.schemas.text import printable
from traceweir.scorers import databricks_names
from traceweir.scorers.base import NOTHING_SPENT, Measurement, MissingInput, Subject, invocation_of, require_accepted
from traceweir.scorers.databricks_names import reason_with_unread
from traceweir.scorers.judged.fitting import FittedPrompt
from traceweir.scorers.judged.vote import gather_all, raise_first, total_cost
from traceweir.scorers.judged.yes_no_rating import AsksForRatings, Rating, rating_of, rating_word, request_of

SHOWN_CHUNKS = 100
SHOWN_CHARACTERS = 300


class ChunkRelevancePrecision(AsksForRatings):
    """Returns the share of the retrieved chunks that a judge rates as relevant to the request, from 0 to 1.

    The scorer asks a separate question about each chunk. Chunks without content do not count; without any other chunk
    there is no value. If one of the questions has no answer with a rating, the invocation has no value, because a share
    of the rated chunks can pass whatever the others are. A session's value is the mean of its invocations. This is
    `chunk_relevance/precision` of Databricks Agent Evaluation (databricks-agents 1.13), which leaves out a chunk whose
    judge failed, with Traceweir's own prompt.

    >>> ChunkRelevancePrecision().judge_model_options.parallelism_limit
    10
    """

    metric = databricks_names.CHUNK_PRECISION
    template = "chunk_relevance"
    max_chunks: Annotated[int, Field(ge=1)] = 100
    """Maximum number of rated chunks, in the order of retrieval. Each chunk needs a question with the full request."""

    async def score(self, subject: Subject) -> Measurement:
        """Asks the judge about every chunk.

        Raises:
            AnswerUnusable: the replies about a chunk contain no rating.
            BudgetSpent: the budget does not allow further questions.
            JudgeFailed: the judge did not answer a question.
            MissingInput: there is no judge, no request, or no retrieved chunk with content.
        """
        invocation = invocation_of(subject)
        question = request_of(invocation, subject.reference)
        require_accepted(invocation, CONTEXT)
        if not invocation.retrieved_context:
            raise MissingInput(reason_with_unread(invocation, "nothing was retrieved"))
        chunks = invocation.retrieved_context[: self.max_chunks]
        limit = asyncio.Semaphore(self.judge_model_options.parallelism_limit)

        async def rate(chunk: RetrievedChunk) -> _ChunkRating:
            if not chunk.content:
                return _ChunkRating(chunk, rationale="the chunk has no content")
            async with limit:
                return await self._rate(subject, question, chunk, chunk.content)

        chunk_ratings = raise_first(await gather_all([rate(chunk) for chunk in chunks]))
        value = precision([each.rating for each in chunk_ratings])
        if value is None:
            raise MissingInput(reason_with_unread(invocation, "none of the retrieved chunks has content"))
        ratings = [each.rating for each in chunk_ratings if each.rating is not None]
        retrieved = len(invocation.retrieved_context)
        return Measurement(
            value=value,
            rationale=f"{ratings.count('yes')} of {len(ratings)} chunks are relevant"
            + (f", and {retrieved - len(ratings)} have no rating" if len(ratings) < retrieved else ""),
            details={
                "k": retrieved,
                "relevant": ratings.count("yes"),
                "rated": len(ratings),
                "chunks": [each.details() for each in chunk_ratings[:SHOWN_CHUNKS]],
                **next((each.fitted.details for each in chunk_ratings if each.fitted and each.fitted.left_out), {}),
            },
            cost=total_cost(each.cost for each in chunk_ratings if each.cost != NOTHING_SPENT),
        )

    async def _rate(self, subject: Subject, question: str, chunk: RetrievedChunk, content: str) -> _ChunkRating:
        poll, fitted = await self.poll(subject, {"question": question, "chunk": content}, parallelism_limit=1)
        rating = rating_of(poll)
        return _ChunkRating(chunk, rating_word(rating), rating.rationale, poll.cost, fitted=fitted)


def precision(ratings: Sequence[Rating | None]) -> float | None:
    """Returns the share of the ratings that are `yes`, from 0 to 1; None if there is no rating.

    An `unknown` counts as a rating. None, for a chunk without content, does not count.

    >>> precision(["yes", "no", "no"]), precision(["yes", None]), precision(["yes", "unknown"]), precision([None])
    (0.3333333333333333, 1.0, 0.5, None)
    """
    rated = [rating for rating in ratings if rating is not None]
    return rated.count("yes") / len(rated) if rated else None


@dataclass(frozen=True, slots=True)
class _ChunkRating:
    """Holds the rating of one chunk; a chunk without content has none."""

    chunk: RetrievedChunk
    rating: Rating | None = None
    rationale: str = ""
    cost: Cost = NOTHING_SPENT
    fitted: FittedPrompt | None = None

    def details(self) -> JsonObject:
        uri = self.chunk.doc_uri
        return {
            "doc_uri": None if uri is None else printable(uri, SHOWN_CHARACTERS),
            "rating": self.rating,
            "rationale": printable(self.rationale, SHOWN_CHARACTERS),
        }
