"""Recognises the formats of Google ADK's eval sets, and converts the two old formats to the current one."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.eval_set import EvalSet
from traceweir.schemas.model_keys import inner_model, spellings
from traceweir.schemas.score import uuid5

EvalFormat = Literal["eval set", "old eval set", "old test file"]


class UnknownFormatError(ValueError):
    """Raised if a document is in none of the formats; the message contains the reason."""


def format_of(document: JsonValue) -> EvalFormat:
    """Returns the format of a document: an object is an eval set, a list is in one of the old formats.

    Raises:
        UnknownFormatError: the document is in none of the formats.
    """
    if isinstance(document, dict):
        if "eval_cases" in document or "evalCases" in document:
            return "eval set"
        raise UnknownFormatError("eval_cases: is missing; an eval set is an object with eval_set_id and eval_cases")
    if isinstance(document, list):
        for form, keys in _OLD.items():
            if all(isinstance(item, dict) and keys <= item.keys() for item in document):
                return form
        raise UnknownFormatError(
            "the document: is a list, but its items are neither objects with name and data (ADK's old eval set) "
            "nor objects with query (ADK's old test file)"
        )
    raise UnknownFormatError("the document: is neither an object nor a list; an eval set is an object with eval_cases")


_OLD: dict[EvalFormat, set[str]] = {"old eval set": {"name", "data"}, "old test file": {"query"}}


def modern(document: JsonValue, name: str, initial_session: JsonValue = None) -> JsonObject:
    """Returns the document in the current format, in snake_case; a document in that format keeps all its keys.

    ADK uses random ids and the time of the conversion. Here, ids depend on the content only and the time is 0, so that
    equal files result in equal eval sets. The only case of an old test file is named after the file, where ADK uses
    the path.

    Args:
        document: A document in any of the formats.
        name: The file's name, without its folder.
        initial_session: The content of the session file of an old test file: `app_name`, `user_id` and `state`.

    Raises:
        UnknownFormatError: the document is in none of the formats, or a value has the wrong type.
    """
    form = format_of(document)
    if form == "eval set":
        spelled = in_snake_case(EvalSet, document)
        return spelled if isinstance(spelled, dict) else {}
    cases = document if form == "old eval set" else [{"name": name, "data": document}]
    assert isinstance(cases, list)  # noqa: S101  # format_of has checked the type
    eval_set_id = name.removesuffix(".json").removesuffix(".test").removesuffix(".evalset")
    new: list[JsonValue] = []
    for number, case in enumerate(cases):
        place = "" if form == "old test file" else f"[{number}]."
        new.append(_case(_object(case, place), eval_set_id, place, initial_session))
    return {"eval_set_id": eval_set_id, "name": eval_set_id, "eval_cases": new}


def _case(old: JsonObject, eval_set_id: str, place: str, initial_session: JsonValue) -> JsonObject:
    turns = old["data"]
    if not isinstance(turns, list):
        raise UnknownFormatError(f"{place}data: must be a list of turns")
    eval_id = _text(old, "name", place)
    new: JsonObject = {
        "eval_id": eval_id,
        "conversation": [
            _invocation(turn, f"{place}data[{number}]", uuid5(eval_set_id, eval_id, str(number)))
            for number, turn in enumerate(turns)
        ],
    }
    session = _object(old.get("initial_session") or initial_session or {}, f"{place}initial_session")
    if session:
        new["session_input"] = {
            "app_name": session.get("app_name", ""),
            "user_id": session.get("user_id", ""),
            "state": session.get("state", {}),
        }
    return new


def _invocation(turn: JsonValue, place: str, invocation_id: str) -> JsonObject:
    old = _object(turn, place)
    tools = [_object(tool, f"{place}.expected_tool_use") for tool in _list(old, "expected_tool_use", place)]
    responses = [
        _object(each, f"{place}.expected_intermediate_agent_responses")
        for each in _list(old, "expected_intermediate_agent_responses", place)
    ]
    return {
        "invocation_id": invocation_id,
        "user_content": _content(_text(old, "query", place + "."), "user"),
        "final_response": _content(_text(old, "reference", place + ".", ""), "model"),
        "intermediate_data": {
            "tool_uses": [
                {
                    "name": _text(tool, "tool_name", f"{place}.expected_tool_use."),
                    "args": tool.get("tool_input"),
                }
                for tool in tools
            ],
            "intermediate_responses": [
                [
                    _text(each, "author", f"{place}.expected_intermediate_agent_responses."),
                    [{"text": _text(each, "text", f"{place}.expected_intermediate_agent_responses.")}],
                ]
                for each in responses
            ],
        },
    }


def _content(text: str, role: str) -> JsonObject:
    return {"parts": [{"text": text}], "role": role}


def _text(old: JsonObject, key: str, place: str, default: str | None = None) -> str:
    found = old.get(key, default)
    if not isinstance(found, str):
        raise UnknownFormatError(f"{place}{key}: must be a string")
    return found


def _list(old: JsonObject, key: str, place: str) -> list[JsonValue]:
    found = old.get(key, [])
    if not isinstance(found, list):
        raise UnknownFormatError(f"{place}.{key}: must be a list")
    return found


def _object(value: JsonValue, place: str) -> JsonObject:
    if not isinstance(value, dict):
        raise UnknownFormatError(f"{place}: must be an object")
    return value


def in_snake_case(model: type[BaseModel], document: JsonValue) -> JsonValue:
    """Returns a document with the keys of a model in snake_case; unknown keys and free objects stay unchanged.

    >>> in_snake_case(EvalSet, {"evalSetId": "s", "evalCases": [{"evalId": "e", "myKey": {"evalId": 1}}]})
    {'eval_set_id': 's', 'eval_cases': [{'eval_id': 'e', 'myKey': {'evalId': 1}}]}
    """
    if isinstance(document, list):
        return [in_snake_case(model, item) for item in document]
    if not isinstance(document, dict):
        return document
    fields = {spelling: name for name, field in model.model_fields.items() for spelling in (name, field.alias or name)}
    renamed: JsonObject = {}
    for key, value in document.items():
        name = fields.get(key)
        if name is None:
            renamed[key] = value
            continue
        inner = spellings(model)[key]
        renamed[name] = in_snake_case(inner_model(inner, value), value) if inner else value
    return renamed
