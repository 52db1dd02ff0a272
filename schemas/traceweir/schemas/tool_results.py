"""Pairs tool calls with their results, and tells which results are those of failed calls."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set

import orjson
from pydantic import JsonValue

from traceweir.schemas.invocation import FunctionCall, FunctionResponse

MAX_JSON_CHARS = 1_000_000
"""A longer text is not read as JSON."""
_MAX_FRAMES = 3
_FRAMES = frozenset(("result", "output", "response", "content", "text"))
"""Keys in which frameworks put the result of a tool, as the only key of an object."""
_FRAMES_OF_PENDING = _FRAMES | {"task"}
"""MCP has the task of a call in a frame, too."""
_NO_ERROR = frozenset(("", "none", "null", "false", "no", "no error", "ok", "0"))
"""What tools write as `error` where nothing failed."""
_MESSAGES = frozenset(("error", "errors", "error_message", "errormessage", "message", "detail", "details", "reason"))
_TEXT_OF_FAILURE = re.compile(
    r"""
    \s*\[?
    (?:
        # "Error: no such user" and "Error calling the tool", but not "Errors: 0 found", "Error: 0", "Error rate: 3 %" and
        # "Error-free".
        error \b (?! -[a-z] | \]? \s* [:=]? \s* (?: 0\b | no\serrors?\b | none\s*(?:[,;.]|$) )
                   | \s+ (?: rates? | counts? | logs? | margins? | bars? | budgets? | handling | free | correction
                             | messages? | codes? ) \b )
        # "KeyError: 'user'" and "requests.exceptions.ConnectionError: ...", as Python writes exceptions.
        | (?-i: (?:\w+\.)* (?: [A-Z]\w* (?: Error | Exception ) | Exception ) :)
        | traceback \s \( most \s recent
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_MAY_BE_FAILURE = re.compile(
    r'"(?:error|Error|ERROR|isError|is_error|success|ok)"|^\s*\{\s*"(?:result|output|response|content|text)"|\\u'
)
"""Finds what JSON of a failure has; other JSON, such as a long list of records, is not parsed."""
_BEGINNING = 400
_PENDING = re.compile(
    r"(?:pending|awaiting|waiting|in[ _-]?progress|processing|queued|submitted|working|running|started|scheduled"
    r"|input[ _-]?required)(?:[ _-][\w -]*)?",
    re.IGNORECASE,
)
"""What tools that run for long write as their `status` before their final result; those of A2A and MCP, too."""
_MAX_PENDING_CHARS = 4_000
"""A longer text is a result."""


def is_failure(result: JsonValue) -> bool:
    """Returns whether the result of a tool says that the call failed.

    A result says so if

    - it is an object with `isError` or `is_error` true (as MCP writes it), with `success` or `ok` false, or with an
      `error` that is a text, an object or true; `"error": ""`, `"none"`, `0` and `0.02` are no errors;
    - it is an object with the `status` "error" and either a message or nothing else, as tools of Google ADK write it;
    - it is a text that begins with the word "error" or with the name of a Python exception, and not with a count or a
      rate of errors;
    - it is a text with such an object as JSON, or an object whose only key is a frame such as `result` with such a result.

    A record that a tool has found is no failure only because one of its fields tells of one, such as the order
    `{"id": 7, "status": "failed"}`.

    >>> [is_failure(each) for each in ({"error": "no such user"}, "Error: no such user", "Errors: 0 found", {"error": ""})]
    [True, True, False, False]
    """
    return any(
        _is_object_of_failure(each) if isinstance(each, dict) else _TEXT_OF_FAILURE.match(each[:_BEGINNING]) is not None
        for each in _framed(result, _can_be_failure, _FRAMES)
    )


def is_pending(result: JsonValue) -> bool:
    """Returns whether the result of a tool says that the final result comes later.

    It is an object with such a `status` or `state`, or with the `task` that MCP writes. As in `is_failure`, it can be in a
    frame, or be written as JSON.

    >>> is_pending({"status": "pending", "ticket": 7}), is_pending('{"status": "done"}'), is_pending({"result": "pending"})
    (True, False, True)
    """
    return any(
        _is_object_of_pending(each)
        if isinstance(each, dict)
        else len(each) <= _MAX_PENDING_CHARS and _PENDING.fullmatch(each.strip()) is not None
        for each in _framed(result, _can_be_pending, _FRAMES_OF_PENDING)
    )


def _framed(
    result: JsonValue, can_say: Callable[[str], bool], frames: Set[str]
) -> Iterator[str | dict[str, JsonValue]]:
    """Yields the texts and the objects of a result, each followed by what it has: its JSON, or what is in its frame.

    Args:
        result: The result.
        can_say: Returns whether a text can be JSON in which to look further.
        frames: The keys of frames, each as the only key of an object.
    """
    for _ in range(_MAX_FRAMES):
        if isinstance(result, str):
            yield result
            if not can_say(result):
                return
            try:
                result = orjson.loads(result)
            except orjson.JSONDecodeError:
                return
        if not isinstance(result, dict):
            return
        yield result
        if len(result) != 1 or not (result.keys() & frames):
            return
        (result,) = result.values()


def _can_be_failure(text: str) -> bool:
    return text.lstrip()[:1] == "{" and len(text) <= MAX_JSON_CHARS and _MAY_BE_FAILURE.search(text) is not None


def _can_be_pending(text: str) -> bool:
    return len(text) <= _MAX_PENDING_CHARS


def _is_object_of_pending(result: dict[str, JsonValue]) -> bool:
    return any(isinstance(said := result.get(name), str) and _PENDING.fullmatch(said) for name in ("status", "state"))


def _is_object_of_failure(result: dict[str, JsonValue]) -> bool:
    if True in (result.get("isError"), result.get("is_error")) or any(
        result.get(name) is False for name in ("success", "ok")
    ):
        return True
    error = result.get("error")
    if isinstance(error, str):
        if error.strip().lower() not in _NO_ERROR:
            return True
    elif error is True or (isinstance(error, dict | list) and error):
        return True
    status = result.get("status")
    if not (isinstance(status, str) and status.lower() == "error"):
        return False
    return len(result) == 1 or not _MESSAGES.isdisjoint(key.lower() for key in result)


def places_of_results(
    calls: Sequence[FunctionCall], results: Sequence[FunctionResponse]
) -> tuple[list[int | None], list[int]]:
    """Returns the place of the result of each call, None for a call without one, and the places of results without a call.

    A result belongs to the call with its id. The calls of a tool without ids are answered in their order. Of several
    results with one id the last one counts: a call that waits for an approval is answered again with its result.

    >>> places_of_results([FunctionCall(name="find"), FunctionCall(name="book")], [FunctionResponse(name="book")])
    ([None, 0], [])
    """
    by_id: dict[str, list[int]] = {}
    by_name: dict[str, deque[int]] = {}
    for place, each in enumerate(results):
        by_name.setdefault(each.name, deque()).append(place)
        if each.id:
            by_id.setdefault(each.id, []).append(place)
    open_places = set(range(len(results)))
    found: list[int | None] = []
    for call in calls:
        places = [place for place in by_id.pop(call.id, ()) if place in open_places] if call.id else []
        if not places:
            places = _next_of_name(by_name.get(call.name), results, open_places, has_id=bool(call.id))
        open_places.difference_update(places)
        found.append(places[-1] if places else None)
    return found, sorted(open_places)


def _next_of_name(
    places: deque[int] | None, results: Sequence[FunctionResponse], open_places: Set[int], *, has_id: bool
) -> list[int]:
    """Returns the place of the first open result of a tool; of a call with an id, only one without an id."""
    while places and places[0] not in open_places:
        places.popleft()
    if not places:
        return []
    # The ids of a tool are all there, or none is.
    return [] if has_id and results[places[0]].id else [places[0]]
