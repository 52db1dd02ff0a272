"""Chunk relevance precision: the share of the retrieved chunks that a judge finds relevant."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import RetrievedChunk
from traceweir.schemas.score import Cost
from traceweir.schemas.text import printable
from traceweir.scorers import databricks_names
from traceweir.scorers.base import NOTHING_SPENT, Measurement, MissingInput, Subject
from traceweir.scorers.databricks_names import reason_with_unread
from traceweir.scorers.judge import AnswerUnusable, Judge, JudgeFailed
from traceweir.scorers.judged.base import judge_of
from traceweir.scorers.judged.vote import results, together, total
from traceweir.scorers.judged.yes_no_rating import AsksForRatings, Rating, named, rating_of, request_of

SHOWN_CHUNKS = 100
SHOWN_CHARACTERS = 300


class ChunkRelevancePrecision(AsksForRatings):
    """Share of the retrieved chunks that a judge finds relevant to the request, from 0 to 1; each is asked about on its own.

    A chunk without content, and one about which the judge failed, is left out as long as there is another. A session's value is the mean
    over its invocations. This is `chunk_relevance/precision` of Databricks Agent Evaluation (databricks-agents 1.13), with a prompt of
    our own.

    >>> ChunkRelevancePrecision().judge_model_options.parallelism_limit
    10
    """

    metric = databricks_names.CHUNK_PRECISION
    template = "chunk_relevance"
    max_chunks: Annotated[int, Field(ge=1)] = 100
    """How many chunks are asked about at most, the first of those retrieved: each is a question with the whole request in it."""

    async def score(self, subject: Subject) -> Measurement:
        """Ask about every chunk.

        Raises:
            AnswerUnusable: no reply is a rating.
            BudgetSpent: asking is no longer paid for.
            JudgeFailed: no question was answered.
        """
        invocation, judge = subject.invocation, judge_of(subject)
        question = request_of(invocation, subject.reference)
        if invocation is None or not invocation.retrieved_context:
            raise MissingInput(
                reason_with_unread(invocation, "nothing was retrieved") if invocation else "there is no invocation"
            )
        chunks = invocation.retrieved_context[: self.max_chunks]
        at_once = asyncio.Semaphore(self.judge_model_options.parallelism_limit)

        async def rated(chunk: RetrievedChunk) -> _Rated:
            if not chunk.content:
                return _Rated(chunk, rationale="the chunk has no content")
            async with at_once:
                return await self._rated(judge, question, chunk, chunk.content)

        found = results(await together([rated(chunk) for chunk in chunks]))
        value = precision([one.rating for one in found])
        if value is None:
            if failure := next((one.failure for one in found if one.failure), None):
                raise failure
            raise MissingInput(reason_with_unread(invocation, "none of the retrieved chunks has content"))
        ratings = [one.rating for one in found if one.rating is not None]
        retrieved = len(invocation.retrieved_context)
        return Measurement(
            value=value,
            rationale=f"{ratings.count('yes')} of {len(ratings)} chunks are relevant"
            + (f", and {retrieved - len(ratings)} have no rating" if len(ratings) < retrieved else ""),
            details={
                "k": retrieved,
                "relevant": ratings.count("yes"),
                "rated": len(ratings),
                "chunks": [one.details() for one in found[:SHOWN_CHUNKS]],
            },
            cost=total(one.cost for one in found if one.cost != NOTHING_SPENT),
        )

    async def _rated(self, judge: Judge, question: str, chunk: RetrievedChunk, content: str) -> _Rated:
        try:
            poll = await self.poll(judge, {"question": question, "chunk": content}, at_once=1)
            rating = rating_of(poll)
        except JudgeFailed as failure:
            cost = failure.cost if isinstance(failure, AnswerUnusable) else NOTHING_SPENT
            return _Rated(chunk, rationale=str(failure), cost=cost, failure=failure)
        return _Rated(chunk, named(rating), rating.rationale, poll.cost)


def precision(ratings: Sequence[Rating | None]) -> float | None:
    """Share of the ratings that are `yes`, from 0 to 1; None, if there is none.

    An `unknown` counts as a rating; None, which is a chunk without content or a question that failed, does not.

    >>> precision(["yes", "no", "no"]), precision(["yes", None]), precision(["yes", "unknown"]), precision([None])
    (0.3333333333333333, 1.0, 0.5, None)
    """
    rated = [rating for rating in ratings if rating is not None]
    return rated.count("yes") / len(rated) if rated else None


@dataclass(frozen=True, slots=True)
class _Rated:
    """What was found about one chunk."""

    chunk: RetrievedChunk
    rating: Rating | None = None
    rationale: str = ""
    cost: Cost = NOTHING_SPENT
    failure: JudgeFailed | None = None

    def details(self) -> JsonObject:
        uri = self.chunk.doc_uri
        return {
            "doc_uri": None if uri is None else printable(uri, SHOWN_CHARACTERS),
            "rating": self.rating,
            "error" if self.failure else "rationale": printable(self.rationale, SHOWN_CHARACTERS),
        }
