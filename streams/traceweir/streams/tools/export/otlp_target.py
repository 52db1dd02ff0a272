"""Sends scores to an OpenTelemetry backend over OTLP/HTTP, as events (the signal `logs`) or as spans (`traces`)."""

from __future__ import annotations

import asyncio
import gzip
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from traceweir.schemas.text import printable
from traceweir.streams.tools.export import otlp_scores
from traceweir.streams.tools.export.acceptance import Acceptance
from traceweir.streams.tools.export.answers import Accepted, Answer, Later, Refused, answer_to_status
from traceweir.streams.tools.export.content import Content
from traceweir.streams.tools.export.delivery import Delivery
from traceweir.streams.tools.export.http_post import HttpPost, HttpReply
from traceweir.streams.tools.export.not_taken import Delivered, NotTaken
from traceweir.streams.tools.export.otlp_environment import PREFIX, OtlpEnvironment, Signal
from traceweir.streams.tools.export.problems import ProblemLog
from traceweir.streams.tools.results.reader import FoundScore

MAX_RECORDS = 512
"""Scores of a batch, as in a batch of OpenTelemetry's SDKs."""
MAX_BYTES = 1_000_000
"""Bytes of the scores of a request; a larger score is a request of its own. Backends refuse requests of some MB."""
_PROTOBUF = "application/x-protobuf"


class _Item(NamedTuple):
    found: FoundScore
    message: Any
    """The event or the span."""


class OtlpTarget:
    """Sends scores as events or spans.

    Args:
        environment: The standard variables of the exporter.
        signal: `logs` for events, `traces` for spans.
        post: Sends bodies to the address of the signal.
        content: How much text of agents and judges is sent.
        version: Version of Traceweir.
        problems: Logs what fails.
        now: The clock for dates in answers.
        sleep: Waits for a number of seconds.
    """

    max_records = MAX_RECORDS

    def __init__(
        self,
        environment: OtlpEnvironment,
        signal: Signal,
        post: HttpPost,
        *,
        content: Content,
        version: str,
        problems: ProblemLog,
        now: Callable[[], datetime],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._signal = signal
        self._post = post
        self._content = content
        self._now = now
        self._gzip = environment.gzip
        self._problems = problems
        self._headers = {**environment.headers, "Content-Type": _PROTOBUF}
        if environment.gzip:
            self._headers["Content-Encoding"] = "gzip"
        self._resource = otlp_scores.resource(environment.resource)
        self._scope = otlp_scores.scope(version)
        self._delivery = Delivery(self._send, trouble=problems.trouble, sleep=sleep)
        self._unfit = 0

    @property
    def counts(self) -> Counter[str]:
        """What was sent since the start, as `Delivery.counts`; and `unfit`: scores that OTLP cannot express."""
        return self._delivery.counts + Counter(unfit=self._unfit)

    @property
    def acceptance(self) -> Acceptance:
        """Whether the target takes what it is sent."""
        return self._delivery.acceptance

    async def deliver(self, scores: Sequence[FoundScore]) -> Delivered:
        """Sends scores; those that the backend has refused, or answered with an error of its own, are not taken.

        While it does not answer, or asks to wait, the whole batch waits.

        Raises:
            ExportError: the backend refuses this exporter, or has refused everything for too long.
        """
        found: list[NotTaken] = []
        for batch in _batches(self._items(scores, found)):
            rejected = self._delivery.counts["rejected"]
            found += (NotTaken(item.found, answer) for item, answer in await self._delivery.deliver(batch))
            if newly := self._delivery.counts["rejected"] - rejected:
                self._problems.rejected(newly, self._delivery.last_rejection)
        return Delivered(found)

    def _items(self, scores: Sequence[FoundScore], unfit: list[NotTaken]) -> Iterator[_Item]:
        make: Callable[..., Any] = otlp_scores.event if self._signal == "logs" else otlp_scores.span
        for found in scores:
            try:
                yield _Item(found, make(found.score, self._content))
            except ValueError as error:
                # A number that no worker writes.
                self._unfit += 1
                unfit.append(NotTaken(found, Refused(f"OTLP cannot express it: {printable(str(error), 200)}")))

    async def _send(self, items: Sequence[_Item]) -> Answer:
        body = self._request([item.message for item in items]).SerializeToString()
        reply = await self._post.post(gzip.compress(body, 6) if self._gzip else body, self._headers)
        return reply if isinstance(reply, Later) else self._answer(reply)

    def _request(self, messages: Sequence[Any]) -> Any:
        if self._signal == "logs":
            request = ExportLogsServiceRequest()
            logs = request.resource_logs.add(resource=self._resource)
            logs.scope_logs.add(scope=self._scope, log_records=messages)
            return request
        traces = ExportTraceServiceRequest()
        spans = traces.resource_spans.add(resource=self._resource)
        spans.scope_spans.add(scope=self._scope, spans=messages)
        return traces

    def _answer(self, reply: HttpReply) -> Answer:
        is_protobuf = reply.headers.get("Content-Type", "").partition(";")[0].strip() == _PROTOBUF
        said = self._post.shown(_said(reply.body) if is_protobuf else reply.body.decode(errors="replace"))
        way_out = f"check {PREFIX}ENDPOINT (the backend must receive OTLP/HTTP {self._signal}) and {PREFIX}HEADERS; no score is lost"
        answer = answer_to_status(reply.status, reply.headers, said, way_out, self._now())
        return self._partial_success(reply.body) if isinstance(answer, Accepted) and is_protobuf else answer

    def _partial_success(self, body: bytes) -> Accepted:
        try:
            if self._signal == "logs":
                found = ExportLogsServiceResponse.FromString(body).partial_success
                return Accepted(found.rejected_log_records, self._post.shown(found.error_message))
            spans = ExportTraceServiceResponse.FromString(body).partial_success
            return Accepted(spans.rejected_spans, self._post.shown(spans.error_message))
        except DecodeError:
            return Accepted()


def _said(body: bytes) -> str:
    """Returns the message of a `google.rpc.Status`, whose message has the number of the one in a partial success."""
    try:
        return str(ExportLogsPartialSuccess.FromString(body).error_message)
    except DecodeError:
        return ""


def _batches(items: Iterator[_Item]) -> Iterator[list[_Item]]:
    batch = list[_Item]()
    size = 0
    for item in items:
        own_size = item.message.ByteSize()
        if batch and size + own_size > MAX_BYTES:
            yield batch
            batch = []
            size = 0
        batch.append(item)
        size += own_size
    if batch:
        yield batch
