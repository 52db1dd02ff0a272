"""Estimates a shadow before it runs: its sessions, the questions to judges, and their cost.

A part of the sessions is read at places that are spread over the range. The judged criteria run on them with a judge
that answers nothing and notes the questions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pydantic import ValidationError

from traceweir.schemas.session import Session
from traceweir.schemas.text import printable
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.judge import Question
from traceweir.streams.base.settings import Settings
from traceweir.streams.lab.foreseen_questions import (
    JudgePrices,
    first_questions,
    foreseen,
    replies_of,
    verdict_keys,
)
from traceweir.streams.lab.shadow.definition import Definition
from traceweir.streams.lab.shadow.errors import ShadowError
from traceweir.streams.lab.shadow.known_verdicts import ROWS_OF_SCORE, Rows
from traceweir.streams.lab.shadow.stage import apps_of, selection
from traceweir.streams.pipeline.score.judge_rows import VERDICT_KEY_BYTES, verdict_prefix
from traceweir.streams.scoring.judges.models import models_of
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader

PLACES = 4
"""Places of a partition at which sessions are read."""
READ_AT_A_PLACE = 50
JUDGED_SESSIONS = 100
"""Maximum number of sessions on which the judged criteria run."""
_NAMED_APPS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """What a shadow will cost."""

    sessions: int
    """Sessions that will be scored."""
    questions: int
    """Questions to judges: the number for the chosen sessions that were read, extrapolated to all sessions.

    Each vote counts with all its replies, although it ends as soon as it is decided. A criterion with a condition on a
    criterion that asks a judge counts as if the condition held, because nobody has asked yet. A question that two
    criteria share counts once.
    """
    known: int
    """Further questions whose verdict is known; they cost nothing."""
    usd: float
    """Cost of the questions."""
    unpriced: tuple[str, ...]
    """Models without a price; their questions count as free."""
    looked_at: int
    """Sessions that were read for this estimate."""
    chosen: int
    """Sessions of these that will be scored. If it is 0, `questions` is 0 too, and means unknown."""
    is_whole: bool
    """Whether all sessions of the range were read."""
    apps: tuple[str, ...]
    """Some of the apps of the sessions that were read, if the shadow is of one app and no session of it was read."""


@dataclass(slots=True)
class _Sample:
    offsets: int = 0
    read: int = 0
    selected: list[Any] = field(default_factory=list)
    """The chosen sessions on which the judged criteria run."""
    chosen: int = 0
    is_whole: bool = True
    apps: set[str] = field(default_factory=set)


async def estimated(
    settings: Settings,
    definition: Definition,
    plan: Plan,
    verdicts: Rows,
    *,
    reader: Callable[..., BoundedReader] = BoundedReader,
) -> CostEstimate:
    """Returns the estimate for a shadow.

    Args:
        settings: Where Kafka is.
        definition: The shadow.
        plan: Its plan.
        verdicts: The known verdicts.
        reader: Has the parameters of `BoundedReader`, and reads the topic `sessions`.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: the topic `sessions` cannot be read.
        JudgeUnavailableError: a criterion asks a judge, and the judge client is not installed.
    """
    async with reader(settings, settings.topics.sessions, ShadowError) as sessions_topic:
        sample = await _sampled(sessions_topic, definition)
    prices = JudgePrices(plan, settings.judge_api_base)
    sessions = round(definition.size * sample.chosen / sample.offsets) if sample.offsets else 0
    judged = sample.selected if plan.judged else []
    # Models without a price are named also if nothing tells how often they will be asked.
    if not judged:
        for model in models_of(plan):
            prices.of(model)
    plan = foreseen(plan)
    votes = replies_of(plan)
    new = known = 0
    usd = 0.0
    for record in judged:
        stored = _keys(verdicts.get(record.partition, {}), record.key or b"")
        for question in await _questions(plan, prices, record.value):
            count = votes(question)
            if any(key in stored for key in verdict_keys(question, plan, prices)):
                known += count
            else:
                new += count
                usd += count * prices.usd(question)
    factor = sessions / len(judged) if judged else 0.0
    return CostEstimate(
        sessions=sessions,
        questions=round(new * factor),
        known=round(known * factor),
        usd=usd * factor,
        unpriced=tuple(sorted(prices.unknown)),
        looked_at=sample.read,
        chosen=sample.chosen,
        is_whole=sample.is_whole,
        apps=() if sample.chosen else tuple(sorted(sample.apps)[:_NAMED_APPS]),
    )


def none_selected(definition: Definition, estimate: CostEstimate) -> str | None:
    """Returns a sentence if none of the sessions that were read will be scored; None if one will be.

    >>> from datetime import UTC, datetime
    >>> shadow = Definition(
    ...     name="v2", config="{}", config_digest="d", since=None, until=None, app="shpo", sample=1.0, budget_usd=None,
    ...     sessions_id="t", begins={0: 0}, ends={0: 9}, created_at=datetime(2026, 1, 31, tzinfo=UTC),
    ... )
    >>> found = CostEstimate(
    ...     sessions=0, questions=0, known=0, usd=0.0, unpriced=(), looked_at=9, chosen=0, is_whole=True, apps=("bank", "shop"),
    ... )
    >>> none_selected(shadow, found)
    "none of the 9 sessions in the range is of app 'shpo'; they are of 'bank', 'shop'"
    """
    if estimate.chosen:
        return None
    where = "in the range" if estimate.is_whole else "that were read"
    if not estimate.looked_at:
        return f"no session {where} exists any more"
    wanted = [f"of app {printable(definition.app, 200)!r}"] if definition.app is not None else []
    wanted += [f"in a sample of {definition.sample:g}"] if definition.sample < 1 else []
    apps = ", ".join(repr(printable(app, 80)) for app in estimate.apps)
    return f"none of the {estimate.looked_at:,} sessions {where} is {' and '.join(wanted)}" + (
        f"; they are of {apps}" if apps else ""
    )


async def _sampled(reader: BoundedReader, definition: Definition) -> _Sample:
    sample = _Sample()
    selects = selection(definition)
    stretches = _stretches(definition)
    judged_of_each = max(1, JUDGED_SESSIONS // len(stretches)) if stretches else 0
    for number, begin, end in stretches:
        last = begin
        count = 0
        selected = len(sample.selected)
        async with aclosing(reader.records({number: begin})) as records:
            async for record in _before(records, end):
                count = count + 1
                last = record.offset + 1
                if selects(record):
                    sample.chosen += 1
                    if len(sample.selected) - selected < judged_of_each:
                        sample.selected.append(record)
                elif definition.app is not None and not sample.chosen:
                    sample.apps |= apps_of(record.value)
                if count == READ_AT_A_PLACE:
                    break
        sample.read += count
        # A stretch that was read to its end has no further record, whatever its offsets are.
        is_read = count < READ_AT_A_PLACE or last == end
        sample.is_whole &= is_read
        sample.offsets += end - begin if is_read else last - begin
    return sample


def _stretches(definition: Definition) -> list[tuple[int, int, int]]:
    found = []
    for number, end in definition.ends.items():
        begin = definition.begins[number]
        length = end - begin
        cuts = [begin + length * place // PLACES for place in range(PLACES + 1)]
        found += [(number, *pair) for pair in pairwise(cuts) if pair[0] < pair[1]]
    return found


async def _questions(plan: Plan, prices: JudgePrices, value: bytes | None) -> list[Question]:
    try:
        session = Session.model_validate_json(value or b"")
    except ValidationError:
        return []
    # Two criteria can share a question.
    first = await first_questions(plan, session)
    return list({next(verdict_keys(question, plan, prices)): question for question in first}.values())


async def _before(records: AsyncIterator[Any], end: int) -> AsyncIterator[Any]:
    async for record in records:
        if record.offset >= end:
            return
        yield record


def _keys(rows: Mapping[bytes, bytes], session: bytes) -> set[bytes]:
    prefix = ROWS_OF_SCORE + verdict_prefix(session)
    return {key[-VERDICT_KEY_BYTES:] for key in rows if key.startswith(prefix)}
