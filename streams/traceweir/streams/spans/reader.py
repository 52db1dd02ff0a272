"""Import path of users: reads the spans of one trace; it lives in `intake.spans.reader`."""

from traceweir.streams.intake.spans.reader import TraceRecords, read_trace

__all__ = ["TraceRecords", "read_trace"]
