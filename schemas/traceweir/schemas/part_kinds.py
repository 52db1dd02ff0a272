"""Names the kinds of parts of messages that are no text, in the APIs of all providers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from traceweir.schemas.figures import counted

MEDIA_KINDS = frozenset(
    {
        *(
            "blob",
            "uri",
            "file",
            "file_data",
            "fileData",
            "media",
            "inline_data",
            "inlineData",
            "input_file",
            "document",
        ),
        *("image", "image_url", "image_file", "input_image", "computer_screenshot"),
        *("audio", "input_audio", "output_audio", "video"),
    }
)
"""The kinds of parts whose content is bytes or a place, though either can be written as a text."""


_NONE = Counter[str]()


def counted_kinds(unread: Iterable[Counter[str]]) -> str:
    """Returns the kinds of unread parts with their counts; empty without any.

    >>> counted_kinds([Counter(image_url=1), Counter(image_url=1)])
    "2 parts of type 'image_url'"
    """
    # Most texts have no such part, and a sum of nothing takes long.
    total = sum(filter(None, unread), _NONE)
    return ", ".join(f"{counted(number, 'part')} of type {kind!r}" for kind, number in total.items())


def not_text(part: str, text: str, unread: Iterable[Counter[str]]) -> list[str]:
    """Returns a sentence about the parts of a question or an answer that are no text; none without such parts.

    >>> not_text("question", "What is this?", [Counter(image=1)]), not_text("answer", "", [Counter(audio=1)])
    (["not all of the question is text: 1 part of type 'image'"], ["the answer is no text: 1 part of type 'audio'"])
    """
    kinds = counted_kinds(unread)
    if not kinds:
        return []
    # Without any text, a metric that needs the part would compare nothing.
    return [f"not all of the {part} is text: {kinds}"] if text else [f"the {part} is no text: {kinds}"]


def unread_choices(number: int) -> str:
    """Returns the sentence about the choices of a model beside its answer, which is the first one.

    >>> unread_choices(1), unread_choices(2)
    ('1 further choice of the model was not read', '2 further choices of the model were not read')
    """
    return f"{counted(number, 'further choice')} of the model {'was' if number == 1 else 'were'} not read"


_HOLDERS = ("audio", "input_audio", "output_audio")
_SPOKEN = frozenset(("transcript", *_HOLDERS))


def transcript_in(part: object) -> str:
    """Returns what is spoken in a part, or in an object of it, as its source has written it down; empty without that.

    >>> transcript_in({"type": "output_audio", "transcript": "Oslo."}), transcript_in({"audio": {"transcript": "Oslo."}})
    ('Oslo.', 'Oslo.')
    """
    if not isinstance(part, dict) or _SPOKEN.isdisjoint(part):
        return ""
    for found in (part, *(part.get(key) for key in _HOLDERS)):
        text = found.get("transcript") if isinstance(found, dict) else None
        if isinstance(text, str) and text:
            return text
    return ""
