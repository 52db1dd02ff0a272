"""Tests that every recorded session of a real agent becomes valid records of a separate session, if a file is given."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from traceweir.schemas.events import EVENT, SessionEnded
from traceweir.schemas.trace import ReasoningTrace
from traceweir.streams.intake.formats.base import DocumentRecords, InputContext
from traceweir.streams.intake.formats.documents import name_of, read_documents
from traceweir.streams.intake.formats.files import base_time_of, open_input
from traceweir.streams.intake.formats.openai_chat import OPENAI_CHAT

VARIABLE = "TRACEWEIR_RECORDED_SESSIONS"


@pytest.fixture(scope="module")
def path() -> Path:
    if not (name := os.environ.get(VARIABLE)):
        pytest.skip(f"needs recorded chat transcripts: set {VARIABLE} to a JSON file of them")
    return Path(name)


@pytest.fixture(scope="module")
def found(path: Path) -> list[DocumentRecords]:
    return read(path)


def read(path: Path) -> list[DocumentRecords]:
    with open_input(str(path)) as stream:
        context = InputContext(name_of(stream), base_time_of(stream))
        return list(OPENAI_CHAT.read(read_documents(stream), context))


@pytest.mark.slow
def test_every_transcript_becomes_a_separate_session(path: Path, found: list[DocumentRecords]) -> None:
    assert [each.problem for each in found] == [None] * len(orjson.loads(path.read_bytes()))
    sessions = [{record.session_id for record in each.records} for each in found]
    assert all(len(of_one) == 1 for of_one in sessions)
    assert len(set.union(*sessions)) == len(found)


def test_every_record_is_valid_and_has_a_unique_id(found: list[DocumentRecords]) -> None:
    ids = []
    for each in found:
        *before, trace, end = each.records
        events = [EVENT.validate_json(record.value) for record in before]
        ids += [event.event_id for event in events]
        ids.append(ReasoningTrace.model_validate_json(trace.value).id)
        assert isinstance(EVENT.validate_json(end.value), SessionEnded)
        assert {event.session_id for event in events} == {end.session_id}
    assert None not in ids
    assert len(set(ids)) == len(ids)


def test_every_message_except_system_messages_and_marks_becomes_an_event_and_a_step(
    path: Path, found: list[DocumentRecords]
) -> None:
    for document, each in zip(orjson.loads(path.read_bytes()), found, strict=True):
        messages = document.get("messages") or document["traj"]
        calls = sum(len(message.get("tool_calls") or ()) for message in messages)
        texts = sum(1 for message in messages if message["role"] == "assistant" and message["content"])
        results = sum(1 for message in messages if message["role"] == "tool")
        types = [EVENT.validate_json(record.value).type for record in each.records if record.kind == "event"]
        # The mark with which the simulated user ends is no question.
        asked = [each for each in messages if each["role"] == "user" and each["content"].strip() != "###STOP###"]
        assert types.count("invocation.started") == len(asked)
        assert types.count("tool.called") == calls
        assert types.count("tool.returned") == results
        assert types.count("response.intermediate") + types.count("invocation.completed") == texts
        trace = ReasoningTrace.model_validate_json(each.records[-2].value)
        assert len(trace.steps) == calls + texts + results


@pytest.mark.slow
def test_a_second_reading_gives_the_same_records(path: Path, found: list[DocumentRecords]) -> None:
    assert read(path) == found


@pytest.mark.slow
def test_labels_do_not_change_the_records(path: Path, found: list[DocumentRecords], tmp_path: Path) -> None:
    documents: list[dict[str, Any]] = orjson.loads(path.read_bytes())
    for document in documents:
        document["reward"] = 1 - document.get("reward", 0)
        document["info"] = {"success": False, "reward": -1}
    changed = tmp_path / path.name
    changed.write_bytes(orjson.dumps(documents))
    written = path.stat().st_mtime
    os.utime(changed, (written, written))

    assert [each.records for each in read(changed)] == [each.records for each in found]
