"""Defines the collect stage, which joins the spans of a trace and publishes what the agent did as events and traces."""

from __future__ import annotations

import heapq
import logging
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from traceweir.schemas.dead_letter import ORIGIN, PREFIX, last_header
from traceweir.schemas.text import listed
from traceweir.streams.base.stages.base import CUT_BYTES, Cut, Output, Read, Record, Rows, dead_letter
from traceweir.streams.base.stages.counters import Counters
from traceweir.streams.base.stages.errors import RecordRejected, SessionFailed
from traceweir.streams.base.stages.inputs import place_of
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.stages.record_limits import RecordLimits
from traceweir.streams.base.stages.watermark import SET_BACK, Watermark
from traceweir.streams.base.topics import Topics
from traceweir.streams.intake.otlp.slices import MAX_SPAN_BYTES
from traceweir.streams.pipeline.collect.collecting_rules import CollectingRules
from traceweir.streams.pipeline.collect.document import Rooms
from traceweir.streams.pipeline.collect.open_trace import OpenTrace
from traceweir.streams.pipeline.collect.publication import Publication, dead_letters
from traceweir.streams.pipeline.collect.published import identity_of
from traceweir.streams.pipeline.collect.requests import RequestPart, joined, read_request
from traceweir.streams.pipeline.collect.span_rows import (
    HEADER_KEY,
    LOG,
    SPAN,
    SPANS_KEY,
    Entry,
    TraceHeader,
    published_key,
    split_spans_key,
    unpack_row,
)

log = logging.getLogger(__name__)

_TRACES_PER_CUT = 500
_OUTPUTS_PER_CUT = 20_000
"""Limits of what one checkpoint publishes, so that a backlog does not become one transaction."""


class CollectStage:
    """Joins the spans of the traces of one home partition."""

    def __init__(
        self,
        partition: int,
        partitions: int,
        topics: Topics,
        read: Read,
        changed: Callable[[], None],
        rules: CollectingRules,
        limits: RecordLimits | None = None,
    ) -> None:
        self._limits = limits or RecordLimits()
        self._partition = partition
        self._partitions = partitions
        self._topics = topics
        self._read = read
        self._changed = changed
        self._rules = rules
        self._traces: dict[bytes, OpenTrace] = {}
        # In the order in which they are forgotten.
        self._remembered: dict[bytes, OpenTrace] = {}
        self._due: list[tuple[int, bytes]] = []
        self._ready: dict[bytes, OpenTrace] = {}
        self._dirty: dict[bytes, OpenTrace] = {}
        self._watermark = Watermark()
        self._next: dict[str, int] = {}
        self._rows: Rows = []
        self._outputs: list[Output] = []
        self.counters = Counters()

    @property
    def open_traces(self) -> int:
        """Number of traces that wait for their publication."""
        return len(self._traces) - len(self._remembered)

    @property
    def watermark_ms(self) -> int:
        """The watermark in milliseconds since 1970; 0 before the first look at the clock."""
        return self._watermark.at

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the traces and the watermark from the last finished checkpoint."""
        self.counters.load(rows)
        self._watermark.load(rows)
        for key in sorted(rows):
            kind = key[:1]
            name = key[1:]
            if kind == HEADER_KEY:
                self._loaded(name).restore(TraceHeader.unpack(rows[key]))
            elif kind == SPANS_KEY:
                trace_id, _ = split_spans_key(key)
                self._loaded(trace_id).identities += b"".join(entry.identity for entry in unpack_row(rows[key]))
        for trace in sorted(self._traces.values(), key=lambda each: each.due):
            if trace.is_open:
                self._plan(trace, trace.due)
            else:
                self._remembered[trace.id] = trace

    def apply(self, source: str, records: Sequence[Record]) -> None:
        """Adds spans and log records to their traces, and forwards those of other partitions to their home.

        A request that is no OTLP becomes a dead letter. Of a request with a few unusable spans, the others are used, and
        the request becomes a dead letter too.
        """
        self._next[source] = records[-1].offset + 1
        topic = place_of(source, self._partition).topic
        now = self._watermark.now
        latest = now + self._rules.max_future_ms
        high = self._watermark.high.get(source, 0)
        for record in records:
            timestamp = record.timestamp
            try:
                if timestamp > latest:
                    self._refuse_future(timestamp)
                if high < timestamp <= now:
                    high = timestamp
                self._collect(topic, record)
                self._watermark.note_lateness(timestamp)
            except RecordRejected as why:
                self._reject(source, record, why)
        self._watermark.high[source] = high
        self.counters["consumed"] += len(records)

    def reject(self, source: str, record: Record, why: RecordRejected) -> None:
        """Turns the next record of an input into a dead letter. Only its timestamp counts, as that of every dead letter."""
        self._next[source] = record.offset + 1
        self._watermark.note_reached(source, record.timestamp)
        self.counters["consumed"] += 1
        self._reject(source, record, why)

    def set_aside(self, session: bytes, why: RecordRejected) -> None:
        """Turns the spans of a trace into dead letters, because the stage cannot publish the trace."""
        trace = self._traces.get(session)
        if trace is None or not trace.is_open:
            return
        refused = dead_letters(trace, self._read, self._topics, self._partition, why, self._limits)
        self._outputs += refused
        self.counters[f"dead_lettered.{why.reason}"] += len(refused)
        self._forget(trace)

    def tick(self, now: float, behind: Mapping[str, float]) -> None:
        """Moves the watermark, plans the publication of due traces, and forgets traces that no late span can change."""
        if ahead_ms := self._watermark.advance(now, behind):
            self.counters["watermark_set_back"] += 1
            log.warning(SET_BACK, self._partition, "collect", ahead_ms / 1000)
        while (trace := self._take_due(self._watermark.at)) is not None:
            self._ready[trace.id] = trace
        while self._remembered:
            first = next(iter(self._remembered.values()))
            if first.due >= self._watermark.at:
                break
            self._forget(first)

    def has_outputs(self) -> bool:
        """Returns whether traces are due, or spans were forwarded or rejected, since the last cut."""
        return bool(self._outputs or self._ready)

    def full(self) -> bool:
        """Returns whether too many traces wait for a checkpoint that publishes them."""
        return len(self._ready) > _TRACES_PER_CUT

    def cut(self) -> Cut:
        """Returns new spans, published traces, forwarded spans and dead letters since the last cut."""
        outputs = self._outputs
        published = 0
        size = 0
        while self._ready and published < _TRACES_PER_CUT and len(outputs) < _OUTPUTS_PER_CUT and size < CUT_BYTES:
            trace = next(iter(self._ready.values()))
            outputs += self._publish(trace)
            published += 1
            size += trace.size
        # Deletions come first: a forgotten trace can have begun again under the same keys.
        rows = self._rows
        for trace in self._dirty.values():
            rows += trace.changed_rows()
        rows += self.counters.rows()
        # What the watermark has closed or forgotten is never without it.
        if self._next or rows or outputs:
            rows += self._watermark.rows()
        cut = Cut(rows, outputs, self._next)
        self._rows = []
        self._outputs = []
        self._next = {}
        self._dirty = {}
        if self._ready:
            self._changed()
        return cut

    def drop(self) -> None:
        """Does nothing, because this stage has no running work."""

    def _collect(self, topic: str, record: Record) -> None:
        is_log = self._is_log(topic, record)
        kind = LOG if is_log else SPAN
        found = read_request(record.value, record.headers, logs=is_log)
        if found.other_logs:
            self.counters["other_logs"] += found.other_logs
        at_home = topic == self._topics.spans
        away: dict[int, list[bytes]] = defaultdict(list)
        over_limit: dict[bytes, int] = defaultdict(int)
        for part in found.parts:
            home = self._partition if at_home else partition_of(part.trace_id, self._partitions)
            if home != self._partition:
                away[home].append(part.data)
            elif not self._add(part, kind, record.timestamp):
                over_limit[part.trace_id] += 1
        unfit = [
            f"a span or log record that belongs to partition {home}: {problem}"
            for home, parts in away.items()
            for problem in self._forward(topic, record, home, parts)
        ]
        if found.problems or over_limit or unfit:
            limits = f"{self._rules.max_spans} spans and {self._rules.max_bytes} bytes"
            problems = [
                f"trace {trace_id.hex()}: {count} spans or log records are left out; a trace can have at most {limits}"
                for trace_id, count in over_limit.items()
            ]
            detail = listed([*found.problems, *problems, *unfit], 200)
            raise RecordRejected("invalid" if found.problems else "too_large", detail)

    def _add(self, part: RequestPart, kind: bytes, timestamp: int) -> bool:
        """Adds a span or a log record to its trace; returns False if the trace has reached a limit."""
        identity = identity_of(part.data)
        trace = self._traces.get(part.trace_id)
        if trace is not None and trace.knows(identity):
            self.counters["duplicate"] += 1
            return True
        # Older timestamps come from a backlog or a slow clock; then the trace waits from now on for its other spans.
        moment = max(timestamp, self._watermark.at)
        if trace is None:
            self._make_room()
            trace = self._traces[part.trace_id] = OpenTrace(part.trace_id)
            self.counters["traces"] += 1
        is_over_limit = trace.count >= self._rules.max_spans or trace.size + len(part.data) > self._rules.max_bytes
        if is_over_limit:
            trace.dropped += 1
            self.counters["over_trace_limit"] += 1
        else:
            trace.add(Entry(kind, identity, part.data))
            self.counters["logs" if kind == LOG else "spans"] += 1
            if not trace.is_open:
                self._make_room()
                trace.is_open = True
                del self._remembered[trace.id]
                self.counters["reopened"] += 1
        self._dirty[trace.id] = trace
        if trace.is_open:
            # A span that is left out must not keep the trace open.
            if not is_over_limit:
                trace.last_record = max(trace.last_record, moment)
            if part.is_root and not trace.root_at:
                trace.root_at = moment
            trace.due = self._rules.due(trace.last_record, trace.root_at, trace.publications)
            if trace.id not in self._ready and (not trace.planned or trace.due < trace.planned):
                self._plan(trace, trace.due)
        return not is_over_limit

    def _plan(self, trace: OpenTrace, moment: int) -> None:
        """Schedules the next check of an open trace, and replaces an earlier one."""
        trace.planned = moment
        heapq.heappush(self._due, (moment, trace.id))

    def _take_due(self, before: float) -> OpenTrace | None:
        """Returns the open trace that is due first, if it is due before a moment, and removes its check."""
        while self._due and self._due[0][0] < before:
            planned, name = heapq.heappop(self._due)
            trace = self._traces.get(name)
            if trace is None or trace.planned != planned:
                continue
            if trace.due <= planned:
                trace.planned = 0
                return trace
            self._plan(trace, trace.due)
        return None

    def _make_room(self) -> None:
        """Publishes the trace that is due first early, if the partition has as many open traces as it can have."""
        if self.open_traces - len(self._ready) >= self._rules.max_traces:
            trace = self._take_due(math.inf)
            if trace is not None:
                self.counters["trace_limit"] += 1
                self._ready[trace.id] = trace

    def _publish(self, trace: OpenTrace) -> list[Output]:
        """Publishes what has become known of a trace since its last publication."""
        watermark = self._watermark
        rules = self._rules
        try:
            rooms = Rooms(self._limits.room(self._topics.invocations), self._limits.room(self._topics.traces))
            found = Publication.of(trace, self._read, rules, watermark.now, rooms)
            is_alone = found.published.session_id == trace.id.hex()
            timestamp = rules.published_at(trace.due, watermark.now, is_alone=is_alone)
            outputs = list(found.outputs(self._topics, self._partition, self._partitions, timestamp))
        except Exception as error:
            # Whatever the spans cause must not stop the other traces.
            raise SessionFailed(trace.id, error) from error
        for output in outputs:
            self.counters[self._outcome(output)] += 1
        self.counters["published"] += 1
        changes = found.changes
        # A later publication has the same spans again.
        if changes.own_spans and not trace.publications:
            self.counters["own_spans"] += changes.own_spans
        if changes.moved:
            self.counters["moved"] += 1
        if changes.not_moved:
            self.counters["not_moved"] += 1
        del self._ready[trace.id]
        if found.replaced:
            self.counters["replaced"] += found.replaced
        trace.publications += 1
        trace.published_parts = trace.count
        trace.published_at = timestamp
        trace.is_open = False
        trace.planned = 0
        trace.due = watermark.at + rules.late_ms
        self._rows.append((published_key(trace.id), found.published.pack()))
        self._dirty[trace.id] = self._remembered[trace.id] = trace
        if len(self._remembered) > rules.max_traces:
            self.counters["forgotten_early"] += 1
            self._forget(next(iter(self._remembered.values())))
        return outputs

    def _outcome(self, output: Output) -> str:
        if output.topic == self._topics.dead_letters:
            return f"dead_lettered.{last_header(output.headers, PREFIX + 'reason')}"
        return "events" if output.topic == self._topics.invocations else "reasoning_traces"

    def _forget(self, trace: OpenTrace) -> None:
        self._rows += trace.deleted_rows()
        self._dirty.pop(trace.id, None)
        self._ready.pop(trace.id, None)
        self._remembered.pop(trace.id, None)
        del self._traces[trace.id]

    def _forward(self, topic: str, record: Record, home: int, parts: Sequence[bytes]) -> list[str]:
        """Forwards parts; returns a sentence for each part that does not fit the topic."""
        headers = [(ORIGIN, topic.encode())]
        limits = self._limits
        to = self._topics.spans
        problems = [limits.problem(to, None, part, headers) for part in parts]
        fitting = [part for part, problem in zip(parts, problems, strict=True) if problem is None]
        self.counters["forwarded"] += len(fitting)
        for value in joined(fitting, min(MAX_SPAN_BYTES, limits.room(to, headers))):
            self._outputs.append(Output(to, home, None, value, headers, record.timestamp))
        return [problem for problem in problems if problem is not None]

    def _is_log(self, topic: str, record: Record) -> bool:
        """Returns whether a record holds log records. A forwarded record carries its topic in the worker's own, last header."""
        if topic != self._topics.spans:
            return topic == self._topics.otlp_logs
        return last_header(record.headers, ORIGIN) == self._topics.otlp_logs

    def _refuse_future(self, timestamp: int) -> NoReturn:
        raise RecordRejected(
            "future_timestamp",
            f"the record's timestamp {timestamp} is more than {self._rules.max_future_ms} ms ahead of now",
        )

    def _loaded(self, trace_id: bytes) -> OpenTrace:
        trace = self._traces.get(trace_id)
        if trace is None:
            trace = self._traces[trace_id] = OpenTrace(trace_id)
        return trace

    def _reject(self, source: str, record: Record, why: RecordRejected) -> None:
        self.counters[f"dead_lettered.{why.reason}"] += 1
        target = self._topics.dead_letters
        number = self._partition
        self._outputs.append(dead_letter(target, source, number, record, "collect", why.reason, why.detail))
