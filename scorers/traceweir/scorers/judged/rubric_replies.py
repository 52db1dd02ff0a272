"""Reads a judge's vote on each rubric from its reply."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import Rubric
from traceweir.schemas.normal_form import normal_form
from traceweir.scorers.judged.replies import agreed
from traceweir.scorers.judged.reply_objects import TEXT, object_schema, one_of, text_at, value_at, verdict_objects
from traceweir.scorers.judged.turns_of_verdicts import turns_at
from traceweir.scorers.judged.verdict_words import yes_or_no
from traceweir.scorers.judged.vote import Vote


def rubric_text(rubric: Rubric) -> str:
    """Returns the property that a rubric requires; empty if the rubric has no text."""
    text = rubric.rubric_content.get("text_property", rubric.rubric_content.get("textProperty"))
    return text.strip() if isinstance(text, str) else ""


def rubrics_answer(rubrics: Sequence[Rubric], **more: JsonValue) -> JsonObject:
    """Returns the JSON Schema of an answer about these rubrics: it requires a verdict on each.

    Args:
        rubrics: The rubrics.
        more: The schemas of further fields of an entry, by their names; they stand before the verdict.
    """
    entry = object_schema(evidence=TEXT, rationale=TEXT, **more, verdict=one_of("no", "yes"))
    return object_schema(verdicts=object_schema(**{rubric.rubric_id: entry for rubric in rubrics}))


def read_rubrics(reply: str, rubrics: Sequence[Rubric], *, as_adk: bool = False) -> dict[str, Vote]:
    """Returns the vote on each rubric in the reply, by rubric id.

    An object names a rubric by its id, a text by its id or its property. Votes on a rubric that disagree do not count;
    ADK instead counts both. Objects that disagree are no answer.

    Args:
        reply: The judge's reply.
        rubrics: The rubrics.
        as_adk: Whether a verdict in a text is yes if it contains these letters, else no if it contains those, as in ADK;
            otherwise it is yes or no if it has one of the two words, and not both.
    """
    objects, is_unclear, text_around = verdict_objects(reply, "verdicts")
    if is_unclear:
        return {}
    if not objects:
        return _of_text(reply, rubrics, as_adk)
    votes, *others = (_of_object(answer, rubrics) for answer in objects)
    if in_text := _of_text(text_around, rubrics, as_adk):
        others.append(in_text)
    return votes if all(_verdicts(other) == _verdicts(votes) for other in others) else {}


def _verdicts(votes: Mapping[str, Vote]) -> dict[str, bool | None]:
    return {name: vote.verdict for name, vote in votes.items()}


def _of_object(answer: JsonObject, rubrics: Sequence[Rubric]) -> dict[str, Vote]:
    known = {rubric.rubric_id for rubric in rubrics}
    entries = value_at(answer, "verdicts")
    votes: dict[str, list[Vote]] = {}
    for name, entry in _named(entries):
        if name in known:
            verdict = yes_or_no(value_at(entry, "verdict"))
            vote = Vote(verdict, text_at(entry, "rationale"), turns=turns_at(entry))
            votes.setdefault(name, []).append(vote)
    return {name: agreed(found) for name, found in votes.items()}


def _named(entries: JsonValue) -> Iterator[tuple[str, JsonObject]]:
    """Yields the entries with the id of their rubric, which is their key, or their `id` in a list, as in ADK."""
    if isinstance(entries, dict):
        yield from ((name.strip(), entry) for name, entry in entries.items() if isinstance(entry, dict))
    elif isinstance(entries, list):
        yield from ((text_at(entry, "id"), entry) for entry in entries if isinstance(entry, dict))


def _of_text(reply: str, rubrics: Sequence[Rubric], as_adk: bool) -> dict[str, Vote]:
    """Returns the votes of a text in Google ADK's format: blocks of ID, Property, Evidence, Rationale and Verdict.

    Without as many rationales and verdicts as properties, the whole reply is unusable.
    """
    properties = list(_PROPERTY.finditer(reply))
    ids = list(_ID.finditer(reply))
    rationales = _RATIONALE.findall(reply)
    verdicts = _VERDICT.findall(reply)
    if not len(properties) == len(rationales) == len(verdicts):
        return {}
    known = {rubric.rubric_id: rubric.rubric_id for rubric in rubrics}
    by_text = {normalised(rubric_text(rubric)): rubric.rubric_id for rubric in rubrics}
    votes: dict[str, list[Vote]] = {}
    previous_start = -1
    for found, rationale, verdict in zip(properties, rationales, verdicts, strict=True):
        own = [match[1].strip() for match in ids if previous_start < match.start() < found.start()]
        previous_start = found.start()
        rubric = known.get(own[-1]) if own else None
        rubric = rubric or by_text.get(normalised(found[1]))
        if rubric is not None:
            votes.setdefault(rubric, []).append(Vote(_meaning(verdict, as_adk), rationale.strip()))
    return {name: agreed(found) for name, found in votes.items()}


# ADK's pattern has `\s*` instead of `[^\S\n]*`. The matches are equal, and thousands of empty lines cost no time here.
_PROPERTY = re.compile(r"(?m)^[^\S\n]*Property: (.*)$")
_ID = re.compile(r"(?m)^[^\S\n]*ID: (.*)$")
_RATIONALE = re.compile(r"(?<=Rationale: )(.*)")
_VERDICT = re.compile(r"(?<=Verdict: )(.*)")


def _meaning(verdict: str, as_adk: bool) -> bool | None:
    text = verdict.lower()
    if as_adk:
        return True if "yes" in text else False if "no" in text else None
    words = set(_YES_OR_NO.findall(text))
    return words.pop() == "yes" if len(words) == 1 else None


_YES_OR_NO = re.compile(r"\b(?:yes|no)\b")


def normalised(text: str) -> str:
    """Returns a text in NFKC and lower case, with plain quotes and dashes and without decoration.

    In this form a property that a judge repeats equals the rubric's property.

    >>> normalised("**Uses “smart” quotes** ")
    'uses "smart" quotes'
    """
    plain = normal_form("NFKC", text).translate(_PLAIN)
    return re.sub(r"\s+", " ", plain).strip(" *_`#>-\u2022\"'").lower()


_PLAIN = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"})
