"""Defines protobuf messages that read only the frame of an OTLP request.

The messages have the field numbers of OTLP, but leave resources, scopes, spans and log records as bytes. Therefore
splitting a request decodes no attribute, and a damaged span does not hide the other spans of its request. A repeated
bytes field also holds a message that was written in several parts: protobuf defines that the concatenation of the
parts is the whole message.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "traceweir.otlp"
_FIELD = descriptor_pb2.FieldDescriptorProto


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="traceweir/otlp/views.proto", package=_PACKAGE, syntax="proto3")

    def message(name: str, *fields: tuple[str, int, int, bool]) -> None:
        found = file.message_type.add(name=name)
        for field_name, number, field_type, is_repeated in fields:
            field = found.field.add(name=field_name, number=number, type=field_type)
            field.label = _FIELD.LABEL_REPEATED if is_repeated else _FIELD.LABEL_OPTIONAL
            if field_type == _FIELD.TYPE_MESSAGE:
                field.type_name = f".{_PACKAGE}.{'Resource' if field_name == 'resources' else 'Scope'}View"

    message("RequestView", ("resources", 1, _FIELD.TYPE_MESSAGE, True))
    message("ResourceView", ("resource", 1, _FIELD.TYPE_BYTES, True), ("scopes", 2, _FIELD.TYPE_MESSAGE, True))
    message("ScopeView", ("scope", 1, _FIELD.TYPE_BYTES, True), ("items", 2, _FIELD.TYPE_BYTES, True))
    message(
        "SpanView",
        ("trace_id", 1, _FIELD.TYPE_BYTES, False),
        ("span_id", 2, _FIELD.TYPE_BYTES, False),
        ("parent_span_id", 4, _FIELD.TYPE_BYTES, False),
    )
    message(
        "LogView",
        ("time_unix_nano", 1, _FIELD.TYPE_FIXED64, False),
        ("trace_id", 9, _FIELD.TYPE_BYTES, False),
        ("span_id", 10, _FIELD.TYPE_BYTES, False),
        ("observed_time_unix_nano", 11, _FIELD.TYPE_FIXED64, False),
    )
    return file


_messages: dict[str, Any] = message_factory.GetMessages([_file()], descriptor_pool.DescriptorPool())

RequestView: Any = _messages[f"{_PACKAGE}.RequestView"]
"""An ExportTraceServiceRequest or an ExportLogsServiceRequest: both have the same frame."""
SpanView: Any = _messages[f"{_PACKAGE}.SpanView"]
"""The ids of a span."""
LogView: Any = _messages[f"{_PACKAGE}.LogView"]
"""The ids and the times of a log record."""
