"""Converts a recorded session to an eval case, and adds a case to an eval set."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.eval_set_files import UnknownFormatError, format_of, modern
from traceweir.schemas.invocation import Content, Invocation
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.lab.evals.files import checked, not_an_eval_set, read_json
from traceweir.streams.lab.evals.recordings import Recording
from traceweir.streams.lab.evals.writing import as_file, write_whole

Outcome = Literal["added", "replaced", "unchanged", "refused"]
_ADK_KEYS = {"invocation_id", "user_content", "final_response", "intermediate_data", "creation_timestamp", "rubrics"}
"""The fields that ADK's Invocation and Traceweir's Invocation share; ADK rejects a file with any other key.

`app_details` is left out, because it is not an expectation.
"""


def eval_case(recording: Recording, eval_id: str) -> JsonObject:
    """Returns a case that expects the recorded behaviour; the same session always results in the same case.

    Raises:
        InputError: the session has no invocation.
    """
    if not recording.invocations:
        raise InputError(
            f"session {recording.session.session_id[:80]!r} has no invocation, so an eval case would expect nothing."
        )
    case: JsonObject = {
        "eval_id": eval_id,
        "conversation": [_invocation(invocation) for invocation in recording.invocations],
        "creation_timestamp": recording.session.first_record_at.timestamp(),
    }
    if recording.app_name:
        case["session_input"] = {"app_name": recording.app_name, "user_id": recording.user_id, "state": {}}
    return case


def add_case(file: Path, case: JsonObject, *, replace: bool) -> Outcome:
    """Adds a case to an eval set file; a missing file is created, and the rest of the file stays unchanged.

    An equal case that the file already has changes nothing. A case with the same eval id and different content is
    refused, or replaced with `replace`.

    Raises:
        InputError: the file cannot be read or written, is no eval set, or is in an old format.
    """
    eval_id = str(case["eval_id"])
    stem = file.name.removesuffix(".json").removesuffix(".test").removesuffix(".evalset")
    document: JsonValue = {"eval_set_id": stem, "name": stem, "eval_cases": []}
    if file.exists():
        document = read_json(file)
        try:
            if format_of(document) != "eval set":
                raise InputError(
                    f"{file}: is in one of ADK's old formats. Rewrite the file first: `traceweir migrate {file} --out {file}`."
                )
        except UnknownFormatError as error:
            raise not_an_eval_set(file, f"{file}: {error}.") from None
    new = modern(document, file.name)
    checked(new, str(file))
    cases = new["eval_cases"]
    assert isinstance(cases, list)  # noqa: S101  # checked above
    place = next((at for at, each in enumerate(cases) if isinstance(each, dict) and each["eval_id"] == eval_id), None)
    if place is None:
        cases.append(case)
    elif cases[place] == case:
        return "unchanged"
    elif not replace:
        return "refused"
    else:
        cases[place] = case
    checked(new, str(file))
    write_whole(file, as_file(new))
    return "added" if place is None else "replaced"


def _invocation(invocation: Invocation) -> JsonObject:
    # ADK requires user content, but an agent can begin a session.
    asked = invocation.user_content or Content(parts=[], role="user")
    whole = invocation.model_copy(update={"user_content": asked})
    written: JsonObject = whole.model_dump(mode="json", include=_ADK_KEYS, exclude_none=True)
    _wrap_responses(written)
    return written


def _wrap_responses(value: JsonValue) -> None:
    """Wraps tool responses in objects, which ADK requires: a text becomes `{"result": text}`, as in ADK itself."""
    if isinstance(value, list):
        for item in value:
            _wrap_responses(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            found = item if key == "tool_responses" else [item] if key == "function_response" else None
            if isinstance(found, list):
                for each in found:
                    if isinstance(each, dict) and not isinstance(each.get("response", {}), dict):
                        each["response"] = {"result": each["response"]}
            elif key != "args":
                _wrap_responses(item)
