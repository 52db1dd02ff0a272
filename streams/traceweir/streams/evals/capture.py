"""A recorded session as an eval case, and an eval set with one case more."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.eval_set_files import UnknownFormatError, format_of, modern
from traceweir.schemas.invocation import Content, Invocation
from traceweir.streams.evals.files import checked, read_json
from traceweir.streams.evals.recordings import Recording
from traceweir.streams.evals.writing import as_file, write_whole
from traceweir.streams.formats.documents import InputError

Outcome = Literal["added", "replaced", "unchanged", "refused"]
_ADK_KEYS = {"invocation_id", "user_content", "final_response", "intermediate_data", "creation_timestamp", "rubrics"}
"""What ADK's Invocation has of ours: it refuses a file with any other key. What an app is like is not expected of anyone."""


def eval_case(recording: Recording, eval_id: str) -> JsonObject:
    """The case that expects what happened. The same session always gives the same case.

    Raises:
        InputError: nothing happened.
    """
    if not recording.invocations:
        raise InputError(
            f"session {recording.session.session_id[:80]!r} has no invocation, so there is nothing to expect."
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
    """Add a case to an eval set, which is made if there is none. All else in the file stays as it is.

    A case that is there already, and equal, changes nothing. One with its eval id and another content is refused, or with `replace`
    takes its place.

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
                    f"{file}: is in one of ADK's old formats. Rewrite it first: `traceweir migrate {file} --out {file}`."
                )
        except UnknownFormatError as error:
            raise InputError(f"{file}: {error}.") from None
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
    asked = invocation.user_content or Content(
        parts=[], role="user"
    )  # ADK needs one; a session may begin with the agent
    whole = invocation.model_copy(update={"user_content": asked})
    written: JsonObject = whole.model_dump(mode="json", include=_ADK_KEYS, exclude_none=True)
    _wrap_responses(written)
    return written


def _wrap_responses(value: JsonValue) -> None:
    """Make what tools answered an object, which ADK asks for: a text becomes `{"result": text}`, as ADK itself wraps it."""
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
