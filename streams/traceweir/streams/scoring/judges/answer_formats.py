"""Chooses the form in which a model is asked for its answer, and recognises a form that it refuses.

A schema is tried first, also where nobody knows whether the model takes one: most servers of one's own do. A model that
refuses it is asked for any JSON object, and a model that refuses this too for text in the form that the prompt describes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, Literal

from traceweir.scorers.judge import Question
from traceweir.streams.scoring.judges.refusals import errors_in

FORMATS = ("json_schema", "json_object")
"""The forms in the order in which they are tried, as the types of OpenAI's `response_format`; then text."""
_REFUSING_STATUSES = (400, 422)
_SEARCHED_CHARS = 300
"""Characters of a provider's message that are searched: what follows can repeat the question."""
_NAMES = re.compile(
    r"response[_ ]?format|json[_ ]?schema|json[_ ]mode|json_object|guided[_ ]?\w*|structured[_ ]outputs?|grammar"
    r"|output[_ ](?:format|config)|response[_ ]?(?:mime[_ ]?type|schema)|invalid format",
    re.IGNORECASE,
)
"""What a provider calls the form of the answer."""


def formats_of(wanted: Literal["auto", "always", "never"], *, no_schemas: bool) -> tuple[str, ...]:
    """Returns the forms that are tried with a model before text.

    Args:
        wanted: `judge.structured_output`.
        no_schemas: Whether litellm knows that the model takes no schema.

    >>> formats_of("auto", no_schemas=False), formats_of("auto", no_schemas=True)
    (('json_schema', 'json_object'), ())
    """
    if wanted == "always":
        return FORMATS[:1]
    return FORMATS if wanted == "auto" and not no_schemas else ()


def response_format(question: Question, kind: str | None) -> dict[str, Any]:
    """Returns the option of litellm for a form; empty for text, and for a question without a schema."""
    if question.answer is None or kind is None:
        return {}
    if kind != "json_schema":
        return {"response_format": {"type": kind}}
    schema: dict[str, Any] = {
        "name": re.sub(r"[^A-Za-z0-9_-]", "_", question.metric)[:64] or "answer",
        "schema": dict(question.answer),
    }
    # Strict mode requires this of a schema.
    if question.answer.get("additionalProperties") is False:
        schema["strict"] = True
    return {"response_format": {"type": kind, "json_schema": schema}}


def is_format_refused(error: BaseException, body: bytes, prompt: str) -> bool:
    """Returns whether an error says that the model does not take the form of the answer.

    An error can repeat the text of an agent. A message therefore counts by its beginning only, and a word in it only if
    the prompt does not contain the word; a field that names the parameter always counts.

    Args:
        error: The error of litellm.
        body: The body of the provider's answer; empty if there is none.
        prompt: The prompt, as it was sent.
    """
    if (
        type(error).__name__ != "UnsupportedParamsError"
        and getattr(error, "status_code", None) not in _REFUSING_STATUSES
    ):
        return False
    said = list(_said(body)) if body else [("message", str(error))]
    if any(_NAMES.search(text) for field, text in said if field == "param"):
        return True
    sent = prompt.casefold()
    found = (each for field, text in said if field == "message" for each in _NAMES.findall(text[:_SEARCHED_CHARS]))
    return any(each.casefold() not in sent for each in found)


def first_format(formats: Collection[str], refused: Collection[str]) -> str | None:
    """Returns the first form that a model has not refused; None: text."""
    return next((each for each in formats if parameter_of(each) not in refused), None)


def parameter_of(kind: str) -> str:
    """Returns the name of a form among the parameters that a model can refuse."""
    return f"response_format {kind}"


def _said(body: bytes) -> Iterator[tuple[Literal["param", "message"], str]]:
    """Yields what the fields of an error say: the parameter that it names, and its message."""
    for error in errors_in(body):
        if isinstance(param := error.get("param"), str):
            yield "param", param
        if isinstance(message := error.get("message"), str):
            yield "message", message
        # FastAPI's form of an error, which names the place in the request.
        details = error.get("detail")
        if isinstance(details, str):
            yield "message", details
        for each in details if isinstance(details, list) else ():
            location = each.get("loc") if isinstance(each, dict) else None
            # Deeper places can have names that a text has chosen.
            yield from (("param", name) for name in (location or ())[:2] if isinstance(name, str))
