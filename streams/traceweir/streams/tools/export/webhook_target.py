"""Sends decisions and scores to a webhook, one event a request, in the order of each session."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from traceweir.streams.tools.export.acceptance import Acceptance
from traceweir.streams.tools.export.answers import Answer, Later, answer_to_status
from traceweir.streams.tools.export.content import Content
from traceweir.streams.tools.export.delivery import Delivery
from traceweir.streams.tools.export.http_post import HttpPost
from traceweir.streams.tools.export.not_taken import Delivered, NotTaken
from traceweir.streams.tools.export.problems import ProblemLog
from traceweir.streams.tools.export.webhook_event import (
    EventType,
    WebhookEvent,
    event_type,
    signed_headers,
    webhook_event,
)
from traceweir.streams.tools.results.reader import FoundScore

MAX_RECORDS = 256
"""Scores of a batch: after a kill, at most so many are sent again."""
_BEHIND = Later("an earlier event of its session waits")
_WAY_OUT = "check TRACEWEIR_WEBHOOK_URL, and that the receiver has TRACEWEIR_WEBHOOK_SECRET; no event is lost"


class _Item(NamedTuple):
    found: FoundScore
    event: WebhookEvent


class WebhookTarget:
    """Sends one event for each selected score. The sessions of a batch share the connections; each session has its order.

    Args:
        post: Sends bodies to the address of the webhook.
        secrets: The secrets that sign, as `signed_headers` takes them.
        events: The kinds of events that are sent.
        metrics: The metrics that are sent; empty: all.
        content: How much text of agents and judges is sent.
        version: Version of Traceweir.
        problems: Logs what fails.
        now: The clock, in UTC.
        connections: Number of sessions whose events are sent at the same time.
    """

    max_records = MAX_RECORDS

    def __init__(
        self,
        post: HttpPost,
        secrets: Sequence[str],
        *,
        events: Collection[EventType],
        metrics: Collection[str] = (),
        content: Content,
        version: str,
        problems: ProblemLog,
        now: Callable[[], datetime],
        connections: int,
    ) -> None:
        self._post = post
        self._secrets = secrets
        self._content = content
        self._now = now
        self._events = frozenset(events)
        self._metrics = frozenset(metrics)
        self._free = asyncio.Semaphore(connections)
        self._headers = {"Content-Type": "application/json", "User-Agent": f"traceweir/{version}"}
        self._delivery = Delivery(self._send, trouble=problems.trouble, repeats=False)

    @property
    def counts(self) -> Counter[str]:
        """What was sent since the start, as `Delivery.counts`."""
        return self._delivery.counts

    @property
    def acceptance(self) -> Acceptance:
        """Whether the target takes what it is sent."""
        return self._delivery.acceptance

    async def deliver(self, scores: Sequence[FoundScore]) -> Delivered:
        """Sends each selected score once; those that the receiver has not acknowledged are not taken.

        After one that can succeed later, the further ones of its session are not sent.

        Raises:
            ExportError: the receiver refuses this exporter, or has refused everything for too long.
        """
        selected = [found for found in scores if self._selects(found)]
        sessions: dict[str, list[FoundScore]] = {}
        for found in selected:
            sessions.setdefault(found.score.session_id, []).append(found)
        try:
            async with asyncio.TaskGroup() as sending:
                sent = [sending.create_task(self._deliver_session(session)) for session in sessions.values()]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        not_taken = [each for session in sent for each in session.result()]
        return Delivered(not_taken, left_out=len(scores) - len(selected))

    def _selects(self, found: FoundScore) -> bool:
        return event_type(found.score) in self._events and (not self._metrics or found.score.metric in self._metrics)

    async def _deliver_session(self, scores: Sequence[FoundScore]) -> list[NotTaken]:
        not_taken: list[NotTaken] = []
        async with self._free:
            for number, found in enumerate(scores):
                item = _Item(found, webhook_event(found.score, self._content))
                for _, answer in await self._delivery.deliver([item]):
                    not_taken.append(NotTaken(found, answer))
                    if isinstance(answer, Later):
                        return not_taken + [NotTaken(each, _BEHIND) for each in scores[number + 1 :]]
        return not_taken

    async def _send(self, items: Sequence[_Item]) -> Answer:
        (item,) = items
        headers = self._headers | dict(signed_headers(item.event, self._secrets, self._now()))
        reply = await self._post.post(item.event.body, headers)
        if isinstance(reply, Later):
            return reply
        return answer_to_status(
            reply.status, reply.headers, self._post.shown(reply.body.decode(errors="replace")), _WAY_OUT, self._now()
        )
