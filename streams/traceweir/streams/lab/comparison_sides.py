"""Reads a side of a comparison: from a file of scores, or from a topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from traceweir.schemas.figures import counted
from traceweir.schemas.score import Score
from traceweir.schemas.text import printable
from traceweir.streams.base.clock import iso
from traceweir.streams.base.settings import Settings
from traceweir.streams.intake.formats.documents import Document, InputError, read_documents
from traceweir.streams.intake.formats.files import open_input
from traceweir.streams.intake.formats.other_documents import SCORE
from traceweir.streams.intake.formats.recognition import misplaced
from traceweir.streams.lab.comparison.rows import SideRows, UncomparableScoreError
from traceweir.streams.tools.results.reader import Results, ScoreFilter
from traceweir.streams.tools.results.selection import dimension_of

NAMED = 5
"""The number of unusable inputs that are named; the others are counted."""
Trouble = Callable[[str], None]
Advance = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class ScoreSelection:
    """Metrics, levels, and values of dimensions; what is empty selects all."""

    metrics: frozenset[str] = frozenset()
    """Full names of metrics."""
    dimensions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The values of which a score must have one, by dimension or `labels.NAME`."""
    levels: frozenset[str] = frozenset()
    """Levels: `invocation`, `trace` or `session`."""

    def selects(self, score: Score) -> bool:
        """Returns whether a score has one of the metrics, of the levels, and of the values of each dimension."""
        return (
            (not self.metrics or score.metric in self.metrics)
            and (not self.levels or score.level in self.levels)
            and all(dimension_of(score, name) in values for name, values in self.dimensions.items())
        )


@dataclass(frozen=True, slots=True)
class ScoreSource:
    """Where the scores of a side are, and which of them are compared."""

    name: str
    """As the user wrote it."""
    path: str | None = None
    """The name of a file, or `-`; None for a topic."""
    shadow: str | None = None
    """The name of a shadow; None for the live results."""
    since_ms: int | None = None
    """Begin of the time of writing, in milliseconds since 1970; topics only."""
    until_ms: int | None = None
    """End of the time of writing, not part of it."""
    selections: Sequence[ScoreSelection] = ()
    """All of them must select a score."""

    def selects(self, score: Score) -> bool:
        """Returns whether a score is compared."""
        return all(selection.selects(score) for selection in self.selections)


def read_file(source: ScoreSource, side: SideRows, trouble: Trouble, advance: Advance) -> int:
    """Reads the scores of a file: JSON Lines as `traceweir score --json` prints them, or an array.

    A document that is not a score costs nothing but itself.

    Args:
        source: The file.
        side: Receives the scores.
        trouble: Receives a sentence for each of the first documents that cannot be used, and one for the others.
        advance: Called with the number of documents read.

    Returns:
        The number of documents that are not scores that can be compared.

    Raises:
        InputError: the file cannot be read, or is of another kind.
    """
    path = source.path or "-"
    place = "standard input" if path == "-" else path
    unusable = 0
    with open_input(path) as stream:
        for count, document in enumerate(read_documents(stream), 1):
            if count == 1 and (what := misplaced(document.raw, SCORE)) is not None:
                raise InputError(
                    f"{place}: {what}. Scores come from `traceweir score --json` or `traceweir results --json`"
                )
            if (problem := _added(document, source, side)) is not None:
                unusable += 1
                if unusable <= NAMED:
                    trouble(f"{place}: document {document.number}: {problem}")
            if not count % 1_000:
                advance(count, None)
    if unusable > NAMED:
        trouble(f"{place}: {counted(unusable - NAMED, 'further document')} omitted, because not a score")
    return unusable


async def read_topic(
    settings: Settings, source: ScoreSource, side: SideRows, trouble: Trouble, advance: Advance
) -> int:
    """Reads the committed scores of a topic, in the range of time of the source.

    Args:
        settings: Where Kafka is.
        source: The topic.
        side: Receives the scores.
        trouble: Receives a sentence about records that cannot be used.
        advance: Called with the number of scores read.

    Returns:
        The number of records that are not scores that can be compared.

    Raises:
        KafkaUnreachableError: no broker answers.
        ResultsError: the topic does not exist, is wrong, or cannot be read.
    """
    topics = settings.topics
    topic = topics.results if source.shadow is None else topics.shadow_results(source.shadow)
    # All revisions: a revision that the dimensions do not select still replaces the one before.
    wanted = ScoreFilter(since_ms=source.since_ms, until_ms=source.until_ms, all_revisions=True)
    unusable = count = 0
    async with Results(settings, wanted, topic) as results:
        async for found in results.matching():
            count += 1
            try:
                side.add(found.score, selected=source.selects(found.score))
            except UncomparableScoreError as error:
                unusable += 1
                if unusable <= NAMED:
                    trouble(f"{topic}[{found.partition}]@{found.offset}: {error}")
            if not count % 1_000:
                advance(count, None)
        if results.foreign:
            trouble(f"{topic}: {counted(results.foreign, 'record')} omitted, because not a score")
        if not count and not (source.since_ms is None and source.until_ms is None):
            times = await results.times()
            exist = "none at all" if times is None else f"records from {iso(times[0])} to {iso(times[1])}"
            trouble(f"{source.name}: no score was written to {topic} in this range of time; it has {exist}")
        return unusable + results.foreign


def _added(document: Document, source: ScoreSource, side: SideRows) -> str | None:
    """Adds the score of a document; returns what is wrong with the document, or None."""
    try:
        score = Score.model_validate_json(document.raw)
        side.add(score, selected=source.selects(score))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        return printable(f"is not a score: {place + ': ' if place else ''}{first['msg']}", 300)
    except UncomparableScoreError as error:
        return str(error)
    return None
