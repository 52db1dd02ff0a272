"""Runs `traceweir alerts test`, and prints alerts and streams; escapes all text, which can be hostile."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import orjson
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from traceweir.schemas.alert import Alert, AlertStream
from traceweir.schemas.alert_rule import DEFAULT_ALERT_RULE, AlertRule
from traceweir.schemas.base import explain
from traceweir.schemas.figures import counted
from traceweir.schemas.score import Score
from traceweir.schemas.text import printable
from traceweir.streams.cli.errors import FAILED, NO_DOCUMENT
from traceweir.streams.cli.record_lines import RecordLines
from traceweir.streams.cli.terminal import complain, mute_clients, progress_bar
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.tools.alerts.replay import Replayed, replay
from traceweir.streams.tools.alerts.rule_problem import rule_problem
from traceweir.streams.tools.alerts.rule_stream import StreamReport
from traceweir.streams.tools.alerts.watched_scores import ScoreSorter

MOST_STREAMS = 20
"""How many streams the table lists; `--json` has all."""


def run_test(results: Path | None, rule: Path | None, since_ms: int | None, *, as_json: bool) -> int:
    """Prints what a rule would have said about the scores of a file or of the topic, and returns the exit code.

    Raises:
        InputError: a file cannot be read, or the rule cannot be used.
        KafkaUnreachableError: no broker answers.
        ResultsError: the topic is missing or wrong or cannot be read.
    """
    wanted = DEFAULT_ALERT_RULE if rule is None else read_rule(rule)
    sorter = ScoreSorter(wanted, None if since_ms is None else since_ms // 60_000)
    bad = _add_topic(sorter, since_ms) if results is None else _add_file(sorter, results)
    scores = sorter.sorted()
    for reason, number in scores.unused.items():
        complain(f"{counted(number, 'score')} not used: {reason}")
    if not scores.streams:
        if sorter.seen:
            complain(f"no score fits the rule {printable(wanted.id, 100)!r}; check its metric, its level, and --from")
        elif not bad:
            complain(NO_DOCUMENT.format(results) if results else "the topic of results has no score in this time")
        return FAILED
    found = replay(scores, wanted)
    if as_json:
        document = {
            "rule": wanted.model_dump(mode="json", exclude_none=True),
            "alerts": [each.model_dump(by_alias=True) for each in found.alerts],
            "streams": [stream_document(each) for each in found.streams],
            "unused": dict(scores.unused),
        }
        sys.stdout.write(orjson.dumps(document, option=orjson.OPT_UTC_Z).decode() + "\n")
    else:
        _print(found, wanted)
    return FAILED if bad else 0


def _add_file(sorter: ScoreSorter, results: Path) -> int:
    lines = RecordLines(results, Score)
    for score in lines:
        sorter.add(score)
    return lines.bad


def _add_topic(sorter: ScoreSorter, since_ms: int | None) -> int:
    """Reads the topic up to its ends at the start, and returns how many records are no score."""
    import asyncio

    from traceweir.streams.cli.up_broker import kafka_settings
    from traceweir.streams.tools.results.reader import Results, ScoreFilter

    # A score is written after its session ended, so that none of the time is missed.
    wanted = ScoreFilter(since_ms=since_ms, all_revisions=True)
    mute_clients()

    async def read() -> int:
        async with Results(kafka_settings(), wanted) as results:
            with progress_bar("scores read") as advance:
                async for found in results.matching():
                    sorter.add(found.score)
                    advance(sorter.seen, None)
            if results.foreign:
                complain(f"{results.topic}: {counted(results.foreign, 'record')} omitted, because not a score")
            return results.foreign

    return asyncio.run(read())


def read_rule(path: Path) -> AlertRule:
    """Returns the rule of a file.

    Raises:
        InputError: the file cannot be read, or the rule cannot be used.
    """
    try:
        rule = AlertRule.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; check the path") from None
    except ValidationError as error:
        raise InputError(f"{path}: not a rule of alerts: {explain(error)}") from None
    if (problem := rule_problem(rule)) is not None:
        raise InputError(f"{path}: {problem}")
    return rule


def _print(found: Replayed, rule: AlertRule) -> None:
    console = Console(highlight=False)
    if found.alerts:
        table = Table("stream", "state", "raised", box=None, pad_edge=False, header_style="bold")
        for title in ("since", "change", "sessions", "suspects"):
            table.add_column(title)
        for alert in found.alerts:
            table.add_row(
                stream_text(alert.stream),
                "raised" if alert.state == "raised" else f"resolved {_time(alert.occurred_at)}",
                _time(alert.since),
                f"{_time(alert.onset.at)}\n{_time(alert.onset.earliest)} to {_time(alert.onset.latest)}",
                Text(f"{effect_text(alert)}\n{alert.effect.low:+.3f} to {alert.effect.high:+.3f}"),
                f"{alert.sessions_since:,}",
                Text(
                    "\n".join(f"{printable(each.field, 60)} {printable(each.value, 60)}" for each in alert.suspects)
                    or "-"
                ),
            )
        console.print(table)
        for alert in found.alerts:
            worst = ", ".join(printable(each, 100) for each in alert.sessions)
            console.print(Text(f"{stream_text(alert.stream)}: see {worst}"), soft_wrap=True)
    else:
        console.print(Text(f"{printable(rule.id, 100)}: no alert"))
    print_streams(console, found.streams)


def print_streams(console: Console, streams: Sequence[StreamReport]) -> None:
    """Prints what is known about streams, the first `MOST_STREAMS` of them."""
    table = Table("stream", "state", box=None, pad_edge=False, header_style="bold")
    for title in ("sessions a day", "baseline", "found in a day"):
        table.add_column(title, justify="right")
    for each in streams[:MOST_STREAMS]:
        table.add_row(
            stream_text(each.stream.of_alert()),
            "too few sessions" if each.state == "sparse" else each.state,
            f"{each.sessions_a_day:,.1f}",
            _usual(each),
            _findable(each),
        )
    console.print(table)
    if len(streams) > MOST_STREAMS:
        console.print(Text(f"and {counted(len(streams) - MOST_STREAMS, 'more stream')}; --json has all"))


def effect_text(alert: Alert) -> str:
    """Returns how much has changed, and of what if the stream does not say it."""
    limit = "" if alert.limit is None else f" {alert.what.removesuffix('_limit')} {alert.limit:g}"
    category = "" if alert.category is None else f" of {printable(alert.category, 60)}"
    interval = "" if alert.interval_minutes is None else f" of intervals of {alert.interval_minutes} min"
    return f"{alert.effect.estimate:+.3f}{limit}{category}{interval}"


def _usual(report: StreamReport) -> str:
    if report.baseline is None:
        return "-"
    limit = "" if report.limit is None else f" beyond {report.limit:g}"
    rhythm = "" if report.rhythm is None else f" by {report.rhythm}"
    interval = "" if report.interval_minutes is None else f" of {report.interval_minutes} min"
    return f"{report.baseline:.3f}{limit}{interval}{rhythm}"


def _findable(report: StreamReport) -> str:
    if report.state in ("learning", "sparse"):
        return "learning"
    return "no change" if report.findable_in_a_day is None else f"{report.findable_in_a_day:.3f} and more"


def stream_text(stream: AlertStream) -> Text:
    """Returns the name of a stream."""
    parts = [stream.metric, stream.level, *(f"{name}={value or '-'}" for name, value in stream.slice.items())]
    return Text(" ".join(printable(part, 60) for part in parts))


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M")


def stream_document(report: StreamReport) -> dict[str, object]:
    """Returns what is known about a stream, as JSON has it."""
    return {
        "stream": report.stream.of_alert().model_dump(),
        "state": report.state,
        "sessions_a_day": report.sessions_a_day,
        "baseline": report.baseline,
        "rhythm": report.rhythm,
        "findable_in_a_day": report.findable_in_a_day,
        "limit": report.limit,
        "interval_minutes": report.interval_minutes,
    }
