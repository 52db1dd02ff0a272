"""The input format `prompt-answer`: each row of a table is a question and its answer."""

from collections.abc import Iterable, Iterator
from functools import partial
from uuid import UUID

from traceweir.schemas.base import JsonObject
from traceweir.streams.formats.base import (
    AgentRecord,
    DocumentRecords,
    InputContext,
    InputFormat,
    RecordRules,
    SessionRecords,
    records_of_rows,
)
from traceweir.streams.formats.tables import Row, number, text

RULES = RecordRules(namespace=UUID("0d7c5b1e-58d6-5d0e-8f3c-0f2d86b6a1c4"))


def read_rows(rows: Iterable[Row], context: InputContext) -> Iterator[DocumentRecords]:
    """Yields the records of each row: one invocation, and the end of its session."""

    def records(row: Row) -> list[AgentRecord]:
        prompt, answer, seconds = (row.columns.get(name) for name in ("prompt", "answer", "seconds"))
        if not isinstance(prompt, str) or not isinstance(answer, str):
            raise context.row_error(row, "needs a text in the columns 'prompt' and 'answer'; remove the row")
        columns: JsonObject = {"request": prompt, "response": answer}
        if isinstance(seconds, int | float):
            columns["execution_time_ms"] = seconds * 1000
        error = partial(context.row_error, row)
        session_id = RULES.session_id_of([row.number, prompt, answer], error)
        session = SessionRecords(session_id, RULES, context.base_time, error)
        session.event({"type": "invocation.recorded", "row": columns})
        session.event({"type": "session.ended"})
        return session.records

    return records_of_rows(rows, records, context)


PROMPT_ANSWER = InputFormat(
    name="prompt-answer",
    description="tables of `prompt` and `answer`",
    read_rows=read_rows,
    columns={"prompt": text, "answer": text, "seconds": number},
)
