"""Reads a judge's replies about a response: the list of its sentences, and the label of each sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from traceweir.schemas.base import JsonObject
from traceweir.scorers.judged.reply_objects import TEXT, object_schema, one_of, text_at, value_at, verdict_objects
from traceweir.scorers.judged.verdict_words import plain_word

GOOD, BAD = ("supported", "not_applicable"), ("unsupported", "contradictory", "disputed")
"""The five labels: those that count 1, and those that count 0."""

SENTENCES_ANSWER = object_schema(sentences={"type": "array", "items": TEXT})
LABELS_ANSWER = object_schema(
    results={
        "type": "array",
        "items": object_schema(
            number={"type": "integer"},
            rationale=TEXT,
            label=one_of(*sorted(GOOD + BAD)),
            supporting_excerpt={"type": ["string", "null"]},
            contradicting_excerpt={"type": ["string", "null"]},
        ),
    }
)


@dataclass(frozen=True, slots=True)
class LabelledSentence:
    """Holds a sentence and the judge's label for it."""

    sentence: str
    label: str
    rationale: str
    supporting_excerpt: str | None
    contradicting_excerpt: str | None

    @property
    def good(self) -> bool | None:
        """Whether the sentence is supported or needs no support; None if the label is not one of the five."""
        return True if self.label in GOOD else False if self.label in BAD else None

    def details(self, characters: int) -> JsonObject:
        """Returns the fields, with each text truncated to a number of characters."""
        return {key: value and value[:characters] for key, value in asdict(self).items()}


def read_sentences(reply: str) -> list[str]:
    """Returns the sentences of a reply, from a JSON object or from `<sentence>` tags in text.

    Objects that disagree are no answer.
    """
    objects, is_unclear, text_around = verdict_objects(reply, "sentences")
    if is_unclear:
        return []
    if not objects:
        return _tagged_sentences(reply)
    first, *others = (_sentences_of(answer) for answer in objects)
    if in_text := _tagged_sentences(text_around):
        others.append(in_text)
    return first if all(other == first for other in others) else []


def _tagged_sentences(reply: str) -> list[str]:
    sentences: list[str] = []
    position = 0
    while (start := reply.find("<sentence>", position)) >= 0 and (end := reply.find("</sentence>", start)) >= 0:
        sentences.append(reply[start + len("<sentence>") : end])
        position = end
    return sentences


def _sentences_of(answer: JsonObject) -> list[str]:
    found = value_at(answer, "sentences")
    return [item for item in found if isinstance(item, str) and item.strip()] if isinstance(found, list) else []


def read_labels(reply: str, sentences: Sequence[str]) -> list[LabelledSentence]:
    """Returns the labels of the sentences, from a JSON object or from blocks in Google ADK's format.

    An object refers to a sentence by its number, from 1. Labels of an object for the same sentence that disagree are
    joined to a label that does not count; objects that disagree are no answer. Blocks are returned unchanged, as in
    ADK. If there are more blocks than sentences and some blocks repeat a given sentence, only those blocks count, and
    blocks for the same sentence are joined in the same way.
    """
    objects, is_unclear, text_around = verdict_objects(reply, "results")
    if is_unclear:
        return []
    if objects:
        first, *others = (_labels_of(answer, sentences) for answer in objects)
        if in_text := _blocks(text_around.strip()):
            others.append(in_text)
        return first if all(_labels(other) == _labels(first) for other in others) else []
    blocks = _blocks(reply.strip())
    if len(blocks) <= len(sentences):
        return blocks
    known = {_key(sentence) for sentence in sentences}
    own: dict[str, list[LabelledSentence]] = {}
    for block in blocks:
        if (key := _key(block.sentence)) in known:
            own.setdefault(key, []).append(block)
    return [_joined(found) for found in own.values()] or blocks


def without_label(sentences: Sequence[str], labelled: Sequence[LabelledSentence]) -> list[str]:
    """Returns the sentences that none of the labels is about."""
    known = {_key(each.sentence) for each in labelled}
    return [sentence for sentence in sentences if _key(sentence) not in known]


def _labels_of(answer: JsonObject, sentences: Sequence[str]) -> list[LabelledSentence]:
    entries = value_at(answer, "results")
    labelled: dict[int, list[LabelledSentence]] = {}
    for entry in entries if isinstance(entries, list) else ():
        number = value_at(entry, "number") if isinstance(entry, dict) else None
        if isinstance(entry, dict) and type(number) is int and 1 <= number <= len(sentences):
            labelled.setdefault(number, []).append(
                LabelledSentence(
                    sentences[number - 1],
                    plain_word(text_at(entry, "label")).replace(" ", "_"),
                    text_at(entry, "rationale"),
                    text_at(entry, "supporting_excerpt") or None,
                    text_at(entry, "contradicting_excerpt") or None,
                )
            )
    return [_joined(labelled[number]) for number in sorted(labelled)]


def _labels(labelled: Sequence[LabelledSentence]) -> list[tuple[str, str]]:
    return [(each.sentence, each.label) for each in labelled]


def _joined(labelled: Sequence[LabelledSentence]) -> LabelledSentence:
    """Returns the last of several results for one sentence; if their labels differ, with all labels as its label."""
    labels = dict.fromkeys(each.label for each in labelled)
    return labelled[-1] if len(labels) == 1 else replace(labelled[-1], label=" / ".join(labels))


_FIELDS = [
    re.compile(re.escape(field), re.IGNORECASE)
    for field in ("sentence:", "\nlabel:", "\nrationale:", "\nsupporting_excerpt:", "\ncontradicting_excerpt:")
]
_NEXT_BLOCK = re.compile("\nsentence:", re.IGNORECASE)


def _blocks(text: str) -> list[LabelledSentence]:
    """Returns the blocks of five fields in their order.

    Searching for the field names in sequence returns the same blocks as ADK's pattern, in linear time.
    """
    blocks: list[LabelledSentence] = []
    position = 0
    while True:
        fields: list[tuple[int, int]] = []
        for field in _FIELDS:
            found = field.search(text, position)
            if found is None:
                return blocks
            fields.append(found.span())
            position = found.end()
        following = _NEXT_BLOCK.search(text, position)
        end = following.start() if following else len(text)
        starts = [start for start, _ in fields[1:]] + [end]
        sentence, label, rationale, supporting, contradicting = (
            text[begin:until].strip() for (_, begin), until in zip(fields, starts, strict=True)
        )
        blocks.append(
            LabelledSentence(sentence, label.lower(), rationale, _excerpt(supporting), _excerpt(contradicting))
        )
        position = end


def _excerpt(text: str) -> str | None:
    return None if text.lower() == "null" else text


def _key(sentence: str) -> str:
    return " ".join(sentence.split()).casefold()
