"""Import path of users: the interface of an input format, which lives in `intake.formats`."""

from traceweir.streams.intake.formats.base import (
    AgentRecord,
    DocumentRecords,
    InputContext,
    InputFormat,
    PartlyReadError,
    Recognition,
    RecordsOfObject,
    Sureness,
    records_of_documents,
    records_of_objects,
    records_of_rows,
)
from traceweir.streams.intake.formats.documents import Document
from traceweir.streams.intake.formats.session_records import RecordRules, SessionRecords
from traceweir.streams.intake.formats.unread_keys import KnownKeys, UnreadKeys

__all__ = [
    "AgentRecord",
    "Document",
    "DocumentRecords",
    "InputContext",
    "InputFormat",
    "KnownKeys",
    "PartlyReadError",
    "Recognition",
    "RecordRules",
    "RecordsOfObject",
    "SessionRecords",
    "Sureness",
    "UnreadKeys",
    "records_of_documents",
    "records_of_objects",
    "records_of_rows",
]
