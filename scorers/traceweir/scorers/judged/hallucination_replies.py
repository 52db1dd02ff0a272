"""What a judge's replies say of the sentences of a response: which there are, and how each is founded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from traceweir.schemas.base import JsonObject
from traceweir.scorers.judged.replies import TEXT, object_schema, one_of, text_at, whole_object

GOOD, BAD = ("supported", "not_applicable"), ("unsupported", "contradictory", "disputed")
"""The five labels."""

SENTENCES_ANSWER = object_schema(sentences={"type": "array", "items": TEXT})
LABELS_ANSWER = object_schema(
    results={
        "type": "array",
        "items": object_schema(
            number={"type": "integer"},
            rationale=TEXT,
            label=one_of(*GOOD, *BAD),
            supporting_excerpt={"type": ["string", "null"]},
            contradicting_excerpt={"type": ["string", "null"]},
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A sentence and what the judge found about it."""

    sentence: str
    label: str
    rationale: str
    supporting_excerpt: str | None
    contradicting_excerpt: str | None

    @property
    def good(self) -> bool | None:
        """Whether the sentence is founded, or needs no foundation; None, if the label is none of the five."""
        return True if self.label in GOOD else False if self.label in BAD else None

    def details(self, characters: int) -> JsonObject:
        """The fields, texts cut at a number of characters."""
        return {key: value and value[:characters] for key, value in asdict(self).items()}


def read_sentences(reply: str) -> list[str]:
    """The sentences, of an object or between `<sentence>` and `</sentence>`."""
    answer = whole_object(reply)
    if answer is not None:
        found = answer.get("sentences")
        return [item for item in found if isinstance(item, str) and item.strip()] if isinstance(found, list) else []
    sentences = []
    at = 0
    while (start := reply.find("<sentence>", at)) >= 0 and (end := reply.find("</sentence>", start)) >= 0:
        sentences.append(reply[start + len("<sentence>") : end])
        at = end
    return sentences


def read_labels(reply: str, sentences: Sequence[str]) -> list[Labelled]:
    """What is said of the sentences, of an object or of blocks in Google ADK's form.

    In an object a sentence is named by its number from 1, and one that is named several times has its last label. Blocks are taken as
    they are, as ADK takes them, unless there are more of them than sentences and some repeat a sentence: then the others are left out, and
    of those that repeat the same one, all but the last.
    """
    answer = whole_object(reply)
    if answer is None:
        blocks = _blocks(reply.strip())
        if len(blocks) <= len(sentences):
            return blocks
        known = {_key(sentence) for sentence in sentences}
        own = {_key(block.sentence): block for block in blocks if _key(block.sentence) in known}
        return list(own.values()) or blocks
    entries = answer.get("results")
    labelled: dict[int, Labelled] = {}
    for entry in entries if isinstance(entries, list) else ():
        number = entry.get("number") if isinstance(entry, dict) else None
        if isinstance(entry, dict) and type(number) is int and 1 <= number <= len(sentences):
            labelled[number] = Labelled(
                sentences[number - 1],
                text_at(entry, "label").lower(),
                text_at(entry, "rationale"),
                text_at(entry, "supporting_excerpt") or None,
                text_at(entry, "contradicting_excerpt") or None,
            )
    return [labelled[number] for number in sorted(labelled)]


_MARKS = [
    re.compile(re.escape(mark), re.IGNORECASE)
    for mark in ("sentence:", "\nlabel:", "\nrationale:", "\nsupporting_excerpt:", "\ncontradicting_excerpt:")
]
_NEXT = re.compile("\nsentence:", re.IGNORECASE)


def _blocks(text: str) -> list[Labelled]:
    """The blocks of five fields in their order. Looking for one mark after the other gives what ADK's pattern gives, in linear time."""
    blocks: list[Labelled] = []
    at = 0
    while True:
        fields: list[tuple[int, int]] = []
        for mark in _MARKS:
            found = mark.search(text, at)
            if found is None:
                return blocks
            fields.append(found.span())
            at = found.end()
        following = _NEXT.search(text, at)
        end = following.start() if following else len(text)
        starts = [start for start, _ in fields[1:]] + [end]
        sentence, label, rationale, supporting, contradicting = (
            text[begin:until].strip() for (_, begin), until in zip(fields, starts, strict=True)
        )
        blocks.append(Labelled(sentence, label.lower(), rationale, _excerpt(supporting), _excerpt(contradicting)))
        at = end


def _excerpt(text: str) -> str | None:
    return None if text.lower() == "null" else text


def _key(sentence: str) -> str:
    return " ".join(sentence.split()).casefold()
