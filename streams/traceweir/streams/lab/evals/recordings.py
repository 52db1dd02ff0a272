"""Reads recorded conversations from files, by eval id or session id."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from traceweir.schemas.base import JsonObject, explain
from traceweir.schemas.events import InvocationEvent
from traceweir.schemas.invocation import Invocation
from traceweir.schemas.other_forms import read_event
from traceweir.schemas.refused_record import RefusedRecord
from traceweir.schemas.session import ClosingReason, Session
from traceweir.schemas.text import printable
from traceweir.schemas.times import UNKNOWN_TIME, known_time
from traceweir.schemas.trace import ReasoningTrace
from traceweir.schemas.turns import Turn, turns_of
from traceweir.streams.intake.formats.adk_eval_result import case_results, invocation_pairs
from traceweir.streams.intake.formats.adk_invocations import IGNORED_OF_ADK
from traceweir.streams.intake.formats.answer_streams import with_whole_answers
from traceweir.streams.intake.formats.base import AgentRecord, InputContext
from traceweir.streams.intake.formats.documents import Document, InputError, name_of, read_documents
from traceweir.streams.intake.formats.files import base_time_of, open_input
from traceweir.streams.intake.formats.recognition import Recognizer, looks_like
from traceweir.streams.lab.evals.json_text import MAX_BYTES, TOO_DEEP, rendered, too_many_digits


@dataclass(frozen=True)
class Recording:
    """One run: the recorded behaviour of an agent in one conversation."""

    session: Session
    turns: tuple[Turn, ...]
    app_name: str = ""
    user_id: str = ""

    @property
    def invocations(self) -> list[Invocation]:
        """The recorded invocations, in order."""
        return [turn.invocation for turn in self.turns]


Runs = Mapping[str, Sequence[Recording]]
"""The runs of each conversation by the id under which they were recorded, in the order of recording."""


def read_recordings(
    paths: Iterable[str], wanted: frozenset[str] | None = None, report: Callable[[str], None] = lambda line: None
) -> dict[str, list[Recording]]:
    """Returns the conversations recorded in files, by id; conversations in a later file are further runs.

    Each document of a file (JSON Lines, an array, or one object) can be
    an EvalSet or eval case of Google ADK whose conversations were recorded (by `eval_id`; a repeated id is another run),
    an `*.evalset_result.json` of ADK, from which the actual invocations are read, or
    a session from the `sessions` topic, an event, a trace, a chat transcript, a saved session of ADK, or another document
    that an input format recognizes (by session id; documents with the same session id form one run).

    Args:
        paths: Names of files; `-` is standard input.
        wanted: The wanted ids; other ids are skipped. None: all.
        report: Receives a sentence for each key that is not read.

    Raises:
        InputError: a file cannot be read, or a document has none of these forms.
    """
    found: dict[str, list[Recording]] = {}
    for path in paths:
        with open_input(path) as stream:
            context = InputContext(name_of(stream), base_time_of(stream))
            reader = _Reader(context, wanted)
            for document in with_whole_answers(read_documents(stream)):
                reader.take(document)
        for line in context.unread_keys.lines(context.source):
            report(line)
        for name, runs in reader.runs().items():
            found.setdefault(name, []).extend(runs)
    return found


def sessions_beside(path: Path) -> Path | None:
    """Returns the file of recorded sessions beside an eval set: `trip.sessions.json` or `.jsonl` for `trip.test.json`."""
    stem = path.name.removesuffix(".json").removesuffix(".test").removesuffix(".evalset")
    for suffix in (".sessions.json", ".sessions.jsonl"):
        beside = path.with_name(stem + suffix)
        if beside.is_file():
            return beside
    return None


class SessionParts:
    """Collects sessions from their parts: segments in revisions, or single events and traces."""

    def __init__(self) -> None:
        self._segments: dict[str, dict[int, Session]] = {}
        self._events: dict[str, dict[str, InvocationEvent]] = {}
        self._traces: dict[str, dict[str, ReasoningTrace]] = {}

    def add(self, session: Session) -> None:
        """Adds a segment; a later revision of a segment replaces an earlier one, and an equal revision replaces it too."""
        segments = self._segments.setdefault(session.session_id, {})
        former = segments.get(session.segment)
        if former is None or session.revision >= former.revision:
            segments[session.segment] = session

    def add_event(self, event: InvocationEvent, identity: str) -> None:
        """Adds an event; a duplicate is ignored."""
        self._events.setdefault(event.session_id, {}).setdefault(identity, event)

    def add_trace(self, trace: ReasoningTrace, session_id: str) -> None:
        """Adds a trace; a later trace with the same id replaces the earlier trace."""
        self._traces.setdefault(session_id, {})[trace.id] = trace

    def add_record(self, record: AgentRecord, place: str) -> None:
        """Adds a record as an agent would have sent it.

        Raises:
            InputError: the record cannot be read; the message begins with `place`.
        """
        kind, session_id, raw = record
        if kind == "trace":
            trace = _validated(ReasoningTrace, raw, place)
            self.add_trace(trace, session_id or trace.id)
            return
        try:
            event = read_event(raw)
        except ValidationError as error:
            raise InputError(f"{place}: {printable(explain(error))}.") from None
        except ValueError as error:
            raise InputError(f"{place}: {error}.") from None
        self.add_event(event, event.event_id or raw.decode(errors="replace"))

    def segments(self, name: str) -> list[Session]:
        """Returns the segments of a session in order, each as it was added in its latest revision."""
        return [session for _, session in sorted(self._segments.get(name, {}).items())]

    def recordings(self) -> dict[str, Recording]:
        """Returns each session in full, by its id."""
        names = dict.fromkeys([*self._segments, *self._events, *self._traces])
        return {name: _whole(self._session(name)) for name in names}

    def _session(self, name: str) -> Session:
        segments = self.segments(name)
        events = [event for session in segments for event in session.events]
        traces = {trace.id: trace for session in segments for trace in session.traces} | self._traces.get(name, {})
        events += self._events.get(name, {}).values()
        events.sort(key=lambda event: event.occurred_at)
        refused = [each for session in segments for each in session.refused or ()]
        return _session_of(name, events, list(traces.values()), refused)


class _Reader:
    """Collects the runs in the documents of one file."""

    def __init__(self, context: InputContext, wanted: frozenset[str] | None) -> None:
        self._context = context
        self._wanted = wanted
        self._parts = SessionParts()
        self._recognizer = Recognizer()
        self._runs: dict[str, list[Recording]] = {}

    def runs(self) -> dict[str, list[Recording]]:
        found = {name: list(runs) for name, runs in self._runs.items()}
        for name, run in self._parts.recordings().items():
            found.setdefault(name, []).append(run)
        return found

    def take(self, document: Document) -> None:
        place = f"{self._context.source}: document {document.number}"
        if len(document.raw) > MAX_BYTES:
            raise InputError(
                f"{place}: is larger than the maximum of {MAX_BYTES // 1024**2} MiB. Write one session per line."
            )
        found = _parsed(document.raw, place)
        match found:
            case {"eval_cases": list(cases)} | {"evalCases": list(cases)}:
                for number, case in enumerate(cases):
                    self._case(case, f"{place}: eval_cases[{number}]")
            case _ if (results := case_results(found)) is not None:
                for number, result in enumerate(results):
                    self._case(_as_case(result), f"{place}: eval_case_results[{number}]")
            case {"conversation": _}:
                self._case(found, place)
            case {"session_id": str(name), "events": list()}:
                if self._is_wanted(name):
                    self._parts.add(_validated(Session, document.raw, place))
            case _:
                for record in self._agent_records(found, document, place):
                    if self._is_wanted(record.session_id):
                        self._parts.add_record(record, place)

    def _agent_records(self, found: JsonObject, document: Document, place: str) -> list[AgentRecord]:
        input_format = self._recognizer.format_of(found)
        if input_format is None or input_format.recognition is None:
            kind = self._recognizer.kind_of(found)
            hint = "" if kind is None else f" The document {looks_like(kind, found)}."
            raise InputError(
                f"{place}: is not a recorded conversation. Allowed are an eval set with recorded conversations, an "
                "evalset_result or a saved session of ADK, a session, an event, a trace, a row of Agent Evaluation, or a "
                f"chat transcript with messages.{hint}"
            )
        # Each document has a reader of its own, because two documents with the same session id are one run here.
        return input_format.recognition.reader(self._context)(found, document)

    def _case(self, case: JsonValue, place: str) -> None:
        if not isinstance(case, dict):
            raise InputError(f"{place}: must be an object with eval_id and conversation.")
        eval_id = case.get("eval_id", case.get("evalId"))
        conversation = case.get("conversation")
        if not isinstance(eval_id, str):
            raise InputError(f"{place}: eval_id: must be a string, the id of the recorded case.")
        if not self._is_wanted(eval_id):
            return
        where = f"{place} (case {printable(eval_id, 80)!r}): conversation"
        if not isinstance(conversation, list):
            raise InputError(f"{where}: must be a list of the recorded invocations.")
        for turn in conversation:
            self._context.unread_keys.note_model(Invocation, turn, IGNORED_OF_ADK)
        turns = [
            _turn(_validated(Invocation, rendered(turn, place).encode(), f"{where}[{number}]"))
            for number, turn in enumerate(conversation)
        ]
        run = Recording(_session_of(eval_id, [], []), tuple(turns), *_app_and_user(case))
        self._runs.setdefault(eval_id, []).append(run)

    def _is_wanted(self, name: str | None) -> bool:
        return self._wanted is None or name in self._wanted


def _parsed(raw: bytes, place: str) -> JsonObject:
    try:
        found: JsonValue = json.loads(raw)
        # ADK has written some of its results as JSON in a JSON string.
        if isinstance(found, str):
            found = json.loads(found)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{place}: is not JSON ({error}).") from None
    except RecursionError:
        raise InputError(f"{place}{TOO_DEEP}") from None
    except ValueError:
        # Python's limit for the digits of an integer.
        raise InputError(f"{place}: {too_many_digits()}") from None
    if not isinstance(found, dict):
        raise InputError(f"{place}: is not an object; a recorded conversation must be an object.")
    return found


def _turn(invocation: Invocation) -> Turn:
    """Returns a recorded invocation without events, which began at its `creation_timestamp`; 0 is unknown."""
    try:
        began = known_time(datetime.fromtimestamp(invocation.creation_timestamp, UTC))
    except (ValueError, OverflowError, OSError):
        # Beyond the years that a date can have.
        began = None
    return Turn(invocation, started_at=began)


def _as_case(result: JsonValue) -> JsonValue:
    """Converts a case result of ADK to a case with its actual invocations."""
    pairs = invocation_pairs(result) if isinstance(result, dict) else None
    if not isinstance(result, dict) or pairs is None:
        return result
    return {"eval_id": result.get("eval_id", result.get("evalId")), "conversation": [actual for actual, _ in pairs]}


def _app_and_user(case: JsonObject) -> tuple[str, str]:
    session = case.get("session_input", case.get("sessionInput"))
    if not isinstance(session, dict):
        return "", ""
    app = session.get("app_name", session.get("appName"))
    user = session.get("user_id", session.get("userId"))
    return app if isinstance(app, str) else "", user if isinstance(user, str) else ""


def _validated(model: Any, raw: bytes, place: str) -> Any:
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise InputError(f"{place}: {printable(explain(error))}.") from None


def _session_of(
    name: str,
    events: list[InvocationEvent],
    traces: list[ReasoningTrace],
    refused: Sequence[RefusedRecord] = (),
) -> Session:
    return Session.trusted(
        session_id=name,
        segment=0,
        revision=0,
        closed_because=ClosingReason.SESSION_ENDED,
        first_record_at=events[0].occurred_at if events else UNKNOWN_TIME,
        last_record_at=events[-1].occurred_at if events else UNKNOWN_TIME,
        events=events,
        traces=sorted(traces, key=lambda trace: (trace.created_at, trace.id)),
        refused=list(refused) or None,
    )


def _whole(session: Session) -> Recording:
    turns = turns_of(session)
    app = next((turn.app_name for turn in turns if turn.app_name), "")
    user = next((event.user_id for event in session.current_events if event.user_id), "")
    return Recording(session, tuple(turns), app, user or "")
