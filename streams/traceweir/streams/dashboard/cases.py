"""Adds a session of the store to an eval set, as `traceweir evalset add` does with a session of the topic."""

from __future__ import annotations

import threading
from pathlib import Path

import orjson
from pydantic import BaseModel, ValidationError

from traceweir.schemas.session import Session
from traceweir.schemas.text import printable
from traceweir.streams.evals.capture import Outcome, add_case, eval_case
from traceweir.streams.evals.recordings import SessionParts
from traceweir.streams.store.answers import SessionDetails

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


def add_session(details: SessionDetails, file: Path) -> CaseAdded:
    """Adds a session to an eval set; a missing file is created. The case has the conversation verbatim.

    Raises:
        NoCaseError: the store does not have the record of a segment, or cannot read it.
        InputError: the file cannot be read or written, or is no eval set; or the session has no invocation.
    """
    parts = SessionParts()
    # Retention removes the first segments first; a case of the others would expect half a conversation.
    whole = [segment["segment"] for segment in details.segments] == list(range(len(details.segments)))
    for segment in details.segments:
        if segment.get("document") is None or not whole:
            raise NoCaseError(
                "the store has the scores of this session and not its whole record; `traceweir evalset add` reads the topic"
            )
        try:
            parts.add(Session.model_validate_json(orjson.dumps(segment["document"])))
        except (ValidationError, RecursionError) as error:
            raise NoCaseError(
                f"the record of the session cannot be read ({type(error).__name__}); `traceweir evalset add` says why"
            ) from None
    recording = parts.recordings().get(details.session_id)
    if recording is None:
        raise NoCaseError(f"the store has no record of the session {printable(details.session_id, 200)!r}")
    case = eval_case(recording, details.session_id)
    with _writing:  # two requests would read the same file and write one case
        outcome = add_case(file, case, replace=False)
    return CaseAdded(eval_id=details.session_id, file=str(file), outcome=outcome)
