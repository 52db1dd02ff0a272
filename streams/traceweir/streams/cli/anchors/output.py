"""Prints what anchors say about judges, for `traceweir anchors list`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence

from traceweir.schemas.base import JsonObject
from traceweir.schemas.figures import counted
from traceweir.schemas.text import listed
from traceweir.streams.base.clock import utc_now
from traceweir.streams.cli.errors import FAILED
from traceweir.streams.cli.rows import print_aligned, print_figures
from traceweir.streams.cli.terminal import complain
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.tools.anchors.listing import AnchoredCriterion, KnownAnchor, ListedCriterion
from traceweir.streams.tools.anchors.reading import AnchorReader

_NOTHING = "-"


def print_anchors(criterion: str | None, *, with_ids: bool, as_json: bool) -> int:
    """Prints a row for each criterion, and the changes of its judge; returns the exit code.

    Raises:
        AnchorsError: a topic is missing or wrong, or cannot be read.
        KafkaUnreachableError: no broker answers.
    """
    settings = kafka_settings()
    every, unreadable = asyncio.run(AnchorReader(settings).look(utc_now()))
    for what, places in unreadable.items():
        if places:
            complain(f"{counted(len(places), 'record')} cannot be used as {what}: {listed(places, separator=', ')}")
    found = [each for each in every if criterion in (None, each.known.criterion)]
    if not found:
        complain(f"{settings.topics.anchors} has no such anchor: `traceweir anchors add` makes them of labels")
        return FAILED
    if as_json:
        sys.stdout.writelines(
            f"{json.dumps(_document(each, with_ids=with_ids), ensure_ascii=False)}\n" for each in found
        )
        return 0
    print_figures(_HEADINGS, [_row(each.known) for each in found])
    for each in found:
        for change in each.known.changes:
            sys.stdout.write(f"{change.at.isoformat()}: {change.sentence}\n")
    if with_ids:
        print_aligned([_ID_HEADINGS, *(_anchor_row(each, anchor) for each in found for anchor in each.anchors)])
    return 0


_HEADINGS = ("criterion", "anchors", "random", "verdicts", "missing", "agrees with people", "state", "judge")
_ID_HEADINGS = ("id", "session", "criterion", "label", "latest verdict")


def _row(known: AnchoredCriterion) -> Sequence[str]:
    agreement = known.agreement
    return (
        known.criterion,
        f"{known.passing} pass, {known.failing} fail",
        str(known.random),
        f"{known.verdicts:,}",
        ", ".join(f"{number:,} {why}" for why, number in known.missing.items()) or "0",
        _NOTHING
        if agreement is None
        else f"{agreement.agree} of {agreement.anchors} ({agreement.low:.0%} to {agreement.high:.0%})",
        known.state,
        listed(known.judges, separator=", ") if known.judges else _NOTHING,
    )


def _anchor_row(each: ListedCriterion, anchor: KnownAnchor) -> Sequence[str]:
    latest = None if each.watch is None else each.watch.latest.get(anchor.anchor_id)
    verdict = _NOTHING if latest is None else f"{'pass' if latest.passed else 'fail'} at {latest.due_at:%Y-%m-%d %H:%M}"
    return (anchor.anchor_id, anchor.subject_id, anchor.criterion, anchor.label, verdict)


def _document(each: ListedCriterion, *, with_ids: bool) -> JsonObject:
    found: JsonObject = each.known.model_dump(mode="json", by_alias=True)
    if with_ids:
        found["anchors"] = [
            dict(zip(("id", "subject", "criterion", "label", "latest"), _anchor_row(each, anchor), strict=True))
            for anchor in each.anchors
        ]
    return found
