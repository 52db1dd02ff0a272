"""Adds a session of the store to an eval set, as `traceweir evalset add` does with a session of the topic."""

from __future__ import annotations

import threading
from pathlib import Path

from fastapi import HTTPException
from pydantic import BaseModel, ValidationError

from traceweir.schemas.session import Session
from traceweir.schemas.text import printable
from traceweir.streams.board.dashboard.content import Content
from traceweir.streams.board.store.selection import Readable
from traceweir.streams.board.store.sessions import recorded_segments
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.lab.evals.capture import Outcome, add_case, eval_case
from traceweir.streams.lab.evals.recordings import SessionParts

_writing = threading.Lock()


class CaseAdded(BaseModel):
    """What became of a session that was to be an eval case."""

    eval_id: str
    """Id of the case: that of the session."""
    file: str
    """The eval set."""
    outcome: Outcome
    """`added`; `unchanged` if the eval set has the case already; `refused` if a case with this id has other content."""


class NoCaseError(ValueError):
    """The session cannot be a case; the message says why."""


class NoSessionError(LookupError):
    """The store does not know the session."""


def add_session(store: Readable, session_id: str, file: Path) -> CaseAdded:
    """Adds a session to an eval set; a missing file is created. The case has the conversation verbatim.

    Raises:
        NoSessionError: the store knows nothing of the session.
        NoCaseError: the store does not have the record of a segment, or cannot read it.
        InputError: the file cannot be read or written, or is no eval set; or the session has no invocation.
        StoreError: the store cannot answer.
    """
    records = recorded_segments(store, session_id)
    if not records:
        raise NoSessionError(f"the store has no session {printable(session_id, 200)!r}")
    parts = SessionParts()
    # Retention removes the first segments first; a case of the others would expect half a conversation.
    whole = list(records) == list(range(len(records)))
    for document in records.values():
        if document is None or not whole:
            raise NoCaseError(
                "the store has the scores of this session and not its whole record; `traceweir evalset add` reads the topic"
            )
        try:
            parts.add(Session.model_validate_json(document))
        except (ValidationError, RecursionError) as error:
            raise NoCaseError(
                f"the record of the session cannot be read ({type(error).__name__}); `traceweir evalset add` says why"
            ) from None
    case = eval_case(parts.recordings()[session_id], session_id)
    # Two requests would read the same file and write one case.
    with _writing:
        outcome = add_case(file, case, replace=False)
    return CaseAdded(eval_id=session_id, file=str(file), outcome=outcome)


def added_case(store: Readable, session_id: str, evalset: Path | None, content: Content) -> CaseAdded:
    """Adds a session to the eval set.

    Raises:
        HTTPException: there is no eval set, the store has no such session, or the session cannot be a case.
    """
    if evalset is None or content == "none":
        raise HTTPException(
            422, "no eval set is named: start the dashboard with TRACEWEIR_DASHBOARD_EVALSET=cases.evalset.json"
        )
    try:
        return add_session(store, session_id, evalset)
    except NoSessionError as error:
        raise HTTPException(404, str(error)) from None
    except (NoCaseError, InputError) as error:
        raise HTTPException(422, str(error)) from None
