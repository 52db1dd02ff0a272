"""Reads OTLP files: joins the spans of each trace over all files, and writes what agents did as events and traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

import orjson
from pydantic import ValidationError

from traceweir.schemas.base import explain
from traceweir.schemas.figures import counted
from traceweir.schemas.text import listed, printable
from traceweir.streams.intake.formats.base import (
    DocumentRecords,
    InputContext,
    InputFormat,
    PartlyReadError,
)
from traceweir.streams.intake.formats.documents import Document, InputError, name_of
from traceweir.streams.intake.formats.session_records import checked_event, checked_trace
from traceweir.streams.intake.formats.unread_keys import KnownKeys

if TYPE_CHECKING:
    from traceweir.streams.intake.otlp.decoding import LogEvent
    from traceweir.streams.intake.spans.reader import TraceRecords
    from traceweir.streams.intake.spans.span import Span


_INSTRUMENTATIONS = KnownKeys("instrumentation", ())


class _Traces:
    """The spans of all files by trace, in the order of their first span."""

    def __init__(self) -> None:
        self.spans: dict[str, list[Span]] = {}
        self._logs: list[LogEvent] = []

    def add(self, request: bytes) -> list[str]:
        """Adds the spans or log records of a request, and returns a sentence for each unusable one."""
        from traceweir.streams.intake.otlp.decoding import decode_logs, decode_spans
        from traceweir.streams.intake.otlp.errors import OtlpError
        from traceweir.streams.intake.spans.model_logs import is_of_model

        try:
            spans, problems = decode_spans(request)
        except OtlpError as error:
            try:
                logs = decode_logs(request)
            except OtlpError:
                return [str(error)]
            self._logs += (log for log in logs.logs if is_of_model(log.event))
            return logs.problems
        for span in spans:
            self.spans.setdefault(span.trace_id, []).append(span)
        return problems

    def join_logs(self) -> list[LogEvent]:
        """Adds each log record to the events of its span, and returns those of model calls whose span is unknown."""
        from traceweir.streams.intake.otlp.decoding import add_logs

        unknown = add_logs((span for spans in self.spans.values() for span in spans), self._logs)
        self._logs.clear()
        return unknown


def _read(streams: Sequence[BinaryIO], context: InputContext) -> Iterator[DocumentRecords]:
    # Imported here, like the decoders: commands that read other formats start earlier without them.
    from traceweir.streams.intake.spans.kinds import kind_of
    from traceweir.streams.intake.spans.reader import read_trace
    from traceweir.streams.intake.spans.switches import switch_of
    from traceweir.streams.intake.spans.tree import below, trees, unique
    from traceweir.streams.intake.spans.unread_instrumentations import unread_instrumentations, way_out_of
    from traceweir.streams.intake.spans.unread_operations import unread_operations

    traces = _Traces()
    number = 0
    for stream in streams:
        for place, request in enumerate(_requests(stream), start=1):
            number += 1
            if isinstance(request, InputError):
                yield DocumentRecords(Document(number, b""), [], request)
            elif problems := traces.add(request):
                yield DocumentRecords(
                    Document(number, b""), [], InputError(f"{name_of(stream)}: request {place}: {listed(problems)}")
                )
    if unknown := traces.join_logs():
        number += 1
        yield DocumentRecords(Document(number, b""), [], _unknown_spans(unknown, context.source))
    agents = own_spans = 0
    unread_spans: Counter[str] = Counter()
    for trace_id, spans in traces.spans.items():
        try:
            found = read_trace(spans, visibility=context.visibility)
        except Exception as error:  # noqa: BLE001  # whatever the spans cause must not cost the other traces
            agents += 1
            number += 1
            what = f"cannot be read ({type(error).__name__}: {printable(str(error), 300)}); please report it"
            yield DocumentRecords(
                Document(number, b""), [], InputError(f"{context.source}: trace {printable(trace_id)} {what}")
            )
            continue
        own_spans += found.own_spans
        unread_spans += unread_instrumentations(spans)
        if found.events or found.traces:
            agents += 1
            number += 1
            yield _documents(
                Document(number, b""), found, context.document_error(Document(number, b""), f"trace {trace_id}")
            )
    if agents:
        for name, count in unread_spans.items():
            context.unread_keys.note_key(name, _INSTRUMENTATIONS, count=count)
    if traces.spans and not agents:
        span_count = sum(map(len, traces.spans.values()))
        where = f"{counted(span_count, 'span')} in {counted(len(traces.spans), 'trace')}"
        own = f"; {own_spans} of them are Traceweir's own and left out" if own_spans else ""
        found_agents = [span for spans in traces.spans.values() for span in spans if kind_of(span) == "agent"]
        has_tools = any(kind_of(span) == "tool" for spans in traces.spans.values() for span in spans)
        lacks = "none of an agent or a model" if has_tools else "none of an agent, a model or a tool"
        if found_agents:
            what = (
                f"{where}, and the spans of agents tell neither a step nor content{own}; set {switch_of(found_agents)}"
            )
        elif unread := unread_operations(
            node for spans in traces.spans.values() for node in below(trees(unique(spans)))
        ):
            what = f"{where}, and {lacks}{own}; {unread}"
        else:
            way_out = way_out_of(span for spans in traces.spans.values() for span in spans)
            what = f"{where}, and {lacks}{own}; {way_out}"
        yield DocumentRecords(Document(number + 1, b""), [], InputError(f"{context.source}: has {what}"))


def _requests(stream: BinaryIO) -> Iterator[bytes | InputError]:
    """Yields the requests of a file, and the error at which a file ends that begins with requests.

    The end of a file is cut when the program that writes it was killed.
    """
    from traceweir.streams.intake.otlp.errors import OtlpError
    from traceweir.streams.intake.otlp.files import requests_of

    begun = False
    try:
        for request in requests_of(stream):
            yield request
            begun = True
    except OtlpError as error:
        if begun:
            yield InputError(f"{name_of(stream)}: {error}; the rest of the file is not read")
            return
        raise InputError(
            f"{name_of(stream)}: {error}. Name a file of OTLP requests, as JSON Lines or in protobuf."
        ) from None
    except OSError as error:
        raise InputError(f"{name_of(stream)}: cannot be read ({error.strerror or error}).") from None


def _documents(document: Document, found: TraceRecords, error: InputError) -> DocumentRecords:
    records = []
    problems = []
    for event in found.events:
        try:
            records.append(checked_event(event["session_id"], orjson.dumps(event)))
        except ValidationError as problem:
            problems.append(explain(problem))
    for trace in found.traces:
        try:
            records.append(checked_trace(trace["metadata"]["session_id"], orjson.dumps(trace)))
        except ValidationError as problem:
            problems.append(explain(problem))
    unusable = PartlyReadError(f"{error}: {listed(problems)}", records) if problems else None
    return DocumentRecords(document, records, unusable)


def _unknown_spans(logs: Sequence[LogEvent], source: str) -> InputError:
    names = dict.fromkeys(
        f"span {log.span_id} of trace {log.trace_id}" if log.span_id else f"trace {log.trace_id}, of no span"
        for log in logs
    )
    what = counted(len(logs), "log record")
    verb = "belongs" if len(logs) == 1 else "belong"
    return InputError(
        f"{source}: {what} of model calls {verb} to no span of the input: {listed(list(names))}; "
        "their messages are lost; name the files with these spans as well"
    )


OTLP = InputFormat(
    name="otlp",
    description="OTLP requests with the spans and log records of agents, in protobuf or JSON; several files are one input",
    read_streams=_read,
)
