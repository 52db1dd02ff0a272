"""Import path of users: the interface of an input format, which lives in `intake.formats.base`."""

from traceweir.streams.intake.formats.base import (
    AgentRecord,
    DocumentRecords,
    InputContext,
    InputFormat,
    PartlyReadError,
    Recognition,
    records_of_documents,
    records_of_objects,
    records_of_rows,
)

__all__ = [
    "AgentRecord",
    "DocumentRecords",
    "InputContext",
    "InputFormat",
    "PartlyReadError",
    "Recognition",
    "records_of_documents",
    "records_of_objects",
    "records_of_rows",
]
