"""Prints what anchors say about judges, for `traceweir anchors list`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import JsonValue

from traceweir.schemas.anchor import Anchor
from traceweir.schemas.base import JsonObject
from traceweir.schemas.figures import counted
from traceweir.schemas.text import listed
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.statistics.watched_judge import SIDES, JudgeChange
from traceweir.streams.cli.errors import FAILED
from traceweir.streams.cli.rows import print_aligned, print_figures
from traceweir.streams.cli.terminal import complain
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.tools.anchors.running import change_in_words
from traceweir.streams.tools.anchors.topics import read_anchors, read_verdicts
from traceweir.streams.tools.anchors.watch import CriterionWatch, watched

_NOTHING = "-"


@dataclass(frozen=True, slots=True)
class _Listed:
    criterion: str
    anchors: Sequence[Anchor]
    watch: CriterionWatch | None


def print_anchors(criterion: str | None, *, with_ids: bool, as_json: bool) -> int:
    """Prints a row for each criterion, and the changes of its judge; returns the exit code.

    Raises:
        AnchorsError: a topic is missing or wrong, or cannot be read.
        KafkaUnreachableError: no broker answers.
    """
    settings = kafka_settings()
    known = asyncio.run(read_anchors(settings))
    verdicts = asyncio.run(read_verdicts(settings))
    watch = watched(verdicts.verdicts)
    # An hour that has ended counts, also if nothing came after it.
    watch.pass_time(utc_now())
    for what, places in (("anchor", known.unreadable), ("verdict", verdicts.unreadable)):
        if places:
            complain(f"{counted(len(places), 'record')} cannot be read as {what}: {listed(places, separator=', ')}")
    names = sorted({each.criterion for each in known.by_id.values()} | set(watch.criteria))
    found = [
        _Listed(name, [each for each in known.by_id.values() if each.criterion == name], watch.criteria.get(name))
        for name in names
        if criterion in (None, name)
    ]
    if not found:
        complain(f"{settings.topics.anchors} has no such anchor: `traceweir anchors add` makes them of labels")
        return FAILED
    if as_json:
        sys.stdout.writelines(
            f"{json.dumps(_document(each, with_ids=with_ids), ensure_ascii=False)}\n" for each in found
        )
        return 0
    print_figures(_HEADINGS, [_row(each) for each in found])
    for each in found:
        for change in each.watch.changes if each.watch is not None else ():
            sys.stdout.write(f"{_time(change.change.at)}: {change_in_words(each.criterion, change)}\n")
    if with_ids:
        print_aligned([_ID_HEADINGS, *(_anchor_row(each, anchor) for each in found for anchor in each.anchors)])
    return 0


_HEADINGS = ("criterion", "anchors", "random", "verdicts", "missing", "agrees with people", "state", "judge")
_ID_HEADINGS = ("id", "session", "criterion", "label", "latest verdict")


def _row(each: _Listed) -> Sequence[str]:
    labels = [anchor.label for anchor in each.anchors]
    return (
        each.criterion,
        f"{labels.count('pass')} pass, {labels.count('fail')} fail",
        str(sum(anchor.drawn == "random" for anchor in each.anchors)),
        "0" if each.watch is None else f"{each.watch.verdicts:,}",
        "0" if each.watch is None else _missing(each.watch.missing),
        _agreement(each.watch),
        _state(each.watch),
        _judges(each.watch),
    )


def _missing(missing: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {why}" for why, number in sorted(missing.items())) or "0"


def _agreement(watch: CriterionWatch | None) -> str:
    if watch is None or watch.agreement_interval is None:
        return _NOTHING
    right, number = watch.agreement
    low, high = watch.agreement_interval
    return f"{right} of {number} ({low:.0%} to {high:.0%})"


def _state(watch: CriterionWatch | None) -> str:
    if watch is None:
        return "not judged"
    sides = [side for side in SIDES if watch.judge.is_watched(side)]
    if len(sides) == len(SIDES):
        return "watched"
    return f"watched for {sides[0]}, else learning" if sides else "learning"


def _judges(watch: CriterionWatch | None) -> str:
    judges = sorted({each.judge for each in watch.latest.values() if each.judge}) if watch is not None else []
    return listed(judges, separator=", ") if judges else _NOTHING


def _anchor_row(each: _Listed, anchor: Anchor) -> Sequence[str]:
    latest = None if each.watch is None else each.watch.latest.get(anchor.anchor_id)
    verdict = _NOTHING if latest is None else f"{'pass' if latest.passed else 'fail'} at {latest.due_at:%Y-%m-%d %H:%M}"
    return (anchor.anchor_id, anchor.subject.subject_id, anchor.criterion, anchor.label, verdict)


def _document(each: _Listed, *, with_ids: bool) -> JsonObject:
    watch = each.watch
    labels = [anchor.label for anchor in each.anchors]
    found: JsonObject = {
        "criterion": each.criterion,
        "pass": labels.count("pass"),
        "fail": labels.count("fail"),
        "random": sum(anchor.drawn == "random" for anchor in each.anchors),
        "verdicts": 0 if watch is None else watch.verdicts,
        "missing": {} if watch is None else dict(watch.missing),
        "agreement": _agreement_document(watch),
        "watched": [] if watch is None else [side for side in SIDES if watch.judge.is_watched(side)],
        "changes": [] if watch is None else [_change(change) for change in watch.changes],
        "metric_digest": None if watch is None else watch.metric_digest,
    }
    if with_ids:
        found["anchors"] = [
            dict(zip(("id", "subject", "criterion", "label", "latest"), _anchor_row(each, anchor), strict=True))
            for anchor in each.anchors
        ]
    return found


def _agreement_document(watch: CriterionWatch | None) -> JsonValue:
    if watch is None or watch.agreement_interval is None:
        return None
    right, number = watch.agreement
    return {"agree": right, "anchors": number, "low": watch.agreement_interval[0], "high": watch.agreement_interval[1]}


def _change(change: JudgeChange) -> JsonObject:
    return {
        "side": change.side,
        "found_at": _time(change.found_at),
        "at": _time(change.change.at),
        "from": _time(change.change.earliest),
        "to": _time(change.change.latest),
        "moved": {"estimate": change.moved[0], "low": change.moved[1], "high": change.moved[2]},
    }


def _time(minute: int) -> str:
    return datetime.fromtimestamp(minute * 60, UTC).isoformat()
