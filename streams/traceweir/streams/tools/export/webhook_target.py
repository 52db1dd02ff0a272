"""Sends decisions and scores, or alerts, to a webhook, one event a request, in the order of each session or alert."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Generic, NamedTuple

from traceweir.streams.tools.export.acceptance import Acceptance
from traceweir.streams.tools.export.answers import Answer, Later, answer_to_status
from traceweir.streams.tools.export.delivery import Delivery
from traceweir.streams.tools.export.http_post import HttpPost
from traceweir.streams.tools.export.not_taken import Delivered, NotTaken
from traceweir.streams.tools.export.problems import ProblemLog
from traceweir.streams.tools.export.source import Found, FoundRecord
from traceweir.streams.tools.export.webhook_event import WebhookEvent, signed_headers

MAX_RECORDS = 256
"""Scores of a batch: after a kill, at most so many are sent again."""
_BEHIND = Later("an earlier event of its session waits")
_WAY_OUT = "check TRACEWEIR_WEBHOOK_URL, and that the receiver has TRACEWEIR_WEBHOOK_SECRET; no event is lost"


class _Item(NamedTuple):
    found: FoundRecord
    event: WebhookEvent


class WebhookTarget(Generic[Found]):
    """Sends one event for each selected score. The sessions of a batch share the connections; each session has its order.

    Of alerts, an alert stands for a session, and what is known of it for a score.

    Args:
        post: Sends bodies to the address of the webhook.
        secrets: The secrets that sign, as `signed_headers` takes them.
        event: Returns the event of a record, the same each time; None: it is not selected.
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
        event: Callable[[Found], WebhookEvent | None],
        version: str,
        problems: ProblemLog,
        now: Callable[[], datetime],
        connections: int,
    ) -> None:
        self._post = post
        self._secrets = secrets
        self._now = now
        self._event = event
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

    async def deliver(self, scores: Sequence[Found]) -> Delivered:
        """Sends each selected score once; those that the receiver has not acknowledged are not taken.

        After one that can succeed later, the further ones of its session are not sent.

        Raises:
            ExportError: the receiver refuses this exporter, or has refused everything for too long.
        """
        sessions: dict[str, list[_Item]] = {}
        selected = 0
        for found in scores:
            if (event := self._event(found)) is not None:
                selected += 1
                sessions.setdefault(found.key, []).append(_Item(found, event))
        try:
            async with asyncio.TaskGroup() as sending:
                sent = [sending.create_task(self._deliver_session(session)) for session in sessions.values()]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        not_taken = [each for session in sent for each in session.result()]
        return Delivered(not_taken, left_out=len(scores) - selected)

    async def _deliver_session(self, items: Sequence[_Item]) -> list[NotTaken]:
        not_taken: list[NotTaken] = []
        async with self._free:
            for number, item in enumerate(items):
                for _, answer in await self._delivery.deliver([item]):
                    not_taken.append(NotTaken(item.found, answer))
                    if isinstance(answer, Later):
                        return not_taken + [NotTaken(each.found, _BEHIND) for each in items[number + 1 :]]
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
