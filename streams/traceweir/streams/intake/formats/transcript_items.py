"""Finds the messages in a chat transcript, and in a stored answer of the APIs of OpenAI, Gemini and Bedrock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import NamedTuple

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.chat_keys import MESSAGE_LISTS
from traceweir.streams.intake.formats.chat_turns import Role
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.intake.formats.shown_text import described
from traceweir.streams.intake.spans.ai_sdk_messages import with_denials


class TranscriptPlace(NamedTuple):
    """The source of a transcript and its number there, for error messages and ids."""

    source: str
    """The path of the file, or another name of the input."""
    number: int
    """The number of the document, from 1."""

    @property
    def file_name(self) -> str:
        """The source without its folders, so that ids do not depend on the path by which a file is opened."""
        return PurePath(self.source).name

    def error(self, what: str) -> InputError:
        """Returns an error that names the document."""
        return InputError(f"{self.source}: document {self.number}: {what}")


def items_of(document: JsonObject, place: TranscriptPlace) -> Iterator[tuple[str, JsonValue]]:
    """Yields the messages of a transcript with their paths: those of its list, then the answer of a stored completion.

    Raises:
        InputError: the transcript has no messages.
    """
    if document.get("object") == "response":
        # The Responses API: a text or a list of items, each.
        roles: Mapping[str, Role] = {"input": "user", "output": "assistant"}
        for name, role in roles.items():
            found = document.get(name)
            if name == "input" and not found:
                # The messages of the request, which somebody has written beside the response.
                found = next((document[key] for key in MESSAGE_LISTS if document.get(key)), None)
            yield from _items_in(name, found, role)
        return
    key = next((each for each in MESSAGE_LISTS if document.get(each) is not None), None)
    choices = choices_of(document)
    if key is None and not choices:
        names = ", ".join(map(repr, MESSAGE_LISTS))
        raise place.error(f"has none of {names} and 'choices'; one of these keys must contain the messages")
    if key is not None:
        found = document[key]
        if not isinstance(found, list) or not found:
            raise place.error(f"{key} is {described(found)}; {key} must be a list of at least one message")
        for index, item in enumerate(with_denials(found)):
            if key == "contents" and isinstance(item, dict) and "role" not in item and "parts" in item:
                # Gemini's API takes a content without a role for one of the user.
                item = {"role": "user", **item}
            yield f"{key}[{index}]", item
    else:
        # The question of a completion, or what a log has of it beside the answer.
        name = "prompt" if document.get("prompt") else "input"
        asked = document.get(name)
        if isinstance(asked, str) or all(isinstance(item, dict) for item in listed(asked)):
            yield from _items_in(name, asked, "user")
    if choices:
        yield "the answer", choices[0]


def _items_in(name: str, found: JsonValue, role: Role) -> Iterator[tuple[str, JsonValue]]:
    """Yields the messages in a text or a list, with their paths."""
    items: list[JsonValue] = [{"role": role, "content": found}] if isinstance(found, str) else listed(found)
    yield from ((f"{name}[{index}]", item) for index, item in enumerate(items))


def is_stored_answer(document: JsonObject) -> bool:
    """Returns whether a document is the stored answer of one model call."""
    return bool(choices_of(document)) or document.get("object") == "response"


def choices_of(document: JsonObject) -> list[JsonObject]:
    """Returns the messages in the choices of a stored answer: of OpenAI (chat or completions), Gemini or Bedrock.

    There are none where `choices` is something else, as in a multiple-choice test.
    """
    output = document.get("output")
    is_completion = document.get("object") == "text_completion"
    lists = (
        [
            {"role": "assistant", "content": each.get("text")} if is_completion else each.get("message")
            for each in listed(document.get("choices"))
            if isinstance(each, dict)
        ],
        [_of_model(each) for each in listed(document.get("candidates")) if isinstance(each, dict)],
        [output["message"]] if isinstance(output, dict) and "message" in output else [],
    )
    for found in lists:
        messages = [each for each in found if isinstance(each, dict)]
        if messages and len(messages) == len(found):
            return messages
    return []


def _of_model(candidate: JsonObject) -> JsonValue:
    """Returns the content of a candidate of Gemini with its role, which the API can leave out; an empty one if the model
    stopped before it wrote anything.
    """
    content = candidate.get("content")
    if content is None and candidate.get("finishReason", candidate.get("finish_reason")):
        content = {"parts": []}
    return {"role": "model", **content} if isinstance(content, dict) else content


def listed(found: JsonValue) -> list[JsonValue]:
    """Returns a list; an empty one for another value."""
    return found if isinstance(found, list) else []
