"""The input format `desk-ticket`: each document is a ticket of a help desk, with what its bot did."""

from collections.abc import Iterable, Iterator
from functools import partial
from uuid import UUID

from traceweir.schemas.base import JsonObject
from traceweir.streams.formats.base import (
    AgentRecord,
    Document,
    DocumentRecords,
    InputContext,
    InputFormat,
    Recognition,
    RecordRules,
    RecordsOfObject,
    SessionRecords,
    Sureness,
    records_of_objects,
)

RULES = RecordRules(namespace=UUID("c1a8f0de-93a4-4b5c-8c55-3a2f6b0f7d21"))


def reader(context: InputContext) -> RecordsOfObject:
    """Returns the function that reads the tickets of one input."""

    def records(found: JsonObject, document: Document) -> list[AgentRecord]:
        error = partial(context.document_error, document)
        match found:
            case {"ticket": str(ticket), "asked": str(asked), "calls": list(calls), "answered": str(answered)}:
                session = SessionRecords(ticket, RULES, context.base_time, error)
            case _:
                raise error("needs the texts 'ticket', 'asked' and 'answered', and a list 'calls'")
        session.event({"type": "invocation.started", "invocation_id": "1", "user_content": content("user", asked)})
        for call in calls:
            match call:
                case {"tool": str(name), "args": dict(args), "result": result}:
                    session.event({"type": "tool.called", "invocation_id": "1", "name": name, "args": args})
                    session.event({"type": "tool.returned", "invocation_id": "1", "name": name, "response": result})
                case _:
                    raise error("needs 'tool', 'args' and 'result' in each of its calls")
        final = content("model", answered)
        session.event({"type": "invocation.completed", "invocation_id": "1", "final_response": final})
        session.event({"type": "session.ended"})
        return session.records

    return records


def content(role: str, text: str) -> JsonObject:
    """Returns a text as the content of an event."""
    return {"role": role, "parts": [{"text": text}]}


def read(documents: Iterable[Document], context: InputContext) -> Iterator[DocumentRecords]:
    """Yields the records of each ticket."""
    return records_of_objects(documents, reader(context), context, "a ticket must be an object")


def recognizes(found: JsonObject) -> Sureness:
    """Returns how sure it is that a document is a ticket."""
    return Sureness.CERTAIN if "ticket" in found and "asked" in found else Sureness.NO


DESK_TICKET = InputFormat(
    name="desk-ticket",
    description="tickets of a help desk",
    read_documents=read,
    recognition=Recognition("a ticket of a help desk", recognizes, reader),
)
