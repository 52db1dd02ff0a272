"""Reads recorded sessions with their expected actions and their success."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import orjson
from pydantic import JsonValue

from traceweir.schemas.invocation import Content, FunctionCall, IntermediateData, Invocation
from traceweir.schemas.reference import Reference
from traceweir.schemas.session import Session
from traceweir.schemas.text import printable
from traceweir.schemas.turns import Turn
from traceweir.streams.intake.formats.base import DocumentRecords, InputContext
from traceweir.streams.intake.formats.documents import InputError, name_of, read_documents
from traceweir.streams.intake.formats.files import base_time_of, open_input
from traceweir.streams.intake.formats.openai_chat import OPENAI_CHAT
from traceweir.streams.lab.evals.recordings import Recording, read_recordings


@dataclass(frozen=True)
class Labelled:
    """A recorded session."""

    session: Session
    turn: Turn
    """The whole session as one invocation, because the expected actions refer to the whole session."""
    turns: tuple[Turn, ...]
    """The questions of the session, each with what followed it, without expectations."""
    task: str
    """Id of the task; sessions of one task had the same request."""
    succeeded: bool | None
    """Whether the session's reward is 1; None: no reward was recorded."""

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self.session.session_id


def read_labelled(path: Path) -> tuple[list[Labelled], list[DocumentRecords]]:
    """Returns the sessions of a file, in order, and the records that an agent would have sent for them.

    Raises:
        InputError: the file, or a document in it, cannot be read.
    """
    with open_input(str(path)) as stream:
        source = name_of(stream)
        found = [*OPENAI_CHAT.read(read_documents(stream), InputContext(source, base_time_of(stream)))]
    for each in found:
        if each.problem is not None:
            raise each.problem
    if not found:
        raise InputError(f"{source}: contains no recorded session. Name a file with at least one transcript.")
    recordings = read_recordings([str(path)])
    sessions: dict[str, Labelled] = {}
    for each in found:
        name = each.records[0].session_id or ""
        # A duplicate transcript is the same session.
        sessions[name] = _labelled(each, recordings[name][0], f"{source}: document {each.document.number}")
    return list(sessions.values()), found


def _labelled(records: DocumentRecords, recording: Recording, place: str) -> Labelled:
    document = orjson.loads(records.document.raw)
    task = document.get("task_id")
    return Labelled(
        session=recording.session,
        turn=Turn(_joined(recording), _reference(document, place)),
        turns=tuple(map(Turn, recording.invocations)),
        task=recording.session.session_id if task is None else str(task),
        succeeded=_succeeded(document.get("reward"), place),
    )


def _joined(recording: Recording) -> Invocation:
    turns = recording.invocations
    answers = [turn.final_response for turn in turns if turn.final_response is not None]
    return Invocation(
        invocation_id="session",
        user_content=next((turn.user_content for turn in turns if turn.user_content is not None), None),
        final_response=answers[-1] if answers else None,
        intermediate_data=IntermediateData(tool_uses=[call for turn in turns for call in turn.tool_uses]),
    )


def _succeeded(reward: JsonValue, place: str) -> bool | None:
    if reward is None:
        return None
    if isinstance(reward, bool) or not isinstance(reward, int | float):
        raise InputError(f"{place}: reward must be a number, not {printable(str(reward), 80)!r}. 1 is a success.")
    return reward == 1


def _reference(document: dict[str, JsonValue], place: str) -> Reference | None:
    """Returns the expected actions of the whole session; None if the document has none."""
    info = document.get("info")
    task = info.get("task") if isinstance(info, dict) else None
    if not isinstance(task, dict):
        return None
    actions, outputs = task.get("actions"), task.get("outputs")
    if actions is not None and not isinstance(actions, list):
        raise InputError(f"{place}: info.task.actions must be a list of objects with name and kwargs.")
    if outputs is not None and not (isinstance(outputs, list) and all(isinstance(each, str) for each in outputs)):
        raise InputError(f"{place}: info.task.outputs must be a list of strings.")
    calls = (
        None if actions is None else [_call(each, f"{place}: info.task.actions[{n}]") for n, each in enumerate(actions)]
    )
    answer = Content.of(" ".join(map(str, outputs)), "model") if outputs else None
    return Reference(tool_uses=calls, final_response=answer)


def _call(action: JsonValue, place: str) -> FunctionCall:
    match action:
        case {"name": str(name), "kwargs": dict(arguments)}:
            return FunctionCall(name=name, args=arguments)
    raise InputError(f"{place}: must be an object with `name` (a string) and `kwargs` (an object).")
