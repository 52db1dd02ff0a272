"""Formats the output of `traceweir results`; escapes all text, which can be hostile."""

from __future__ import annotations

import asyncio
import heapq
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from traceweir.schemas.figures import counted
from traceweir.scorers.databricks_names import short_name
from traceweir.scorers.spelling import did_you_mean
from traceweir.streams.base.clock import iso
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.rows import line_of, print_rows, write_line
from traceweir.streams.cli.score.cells import reason_of, status_of, subject_of, value_of
from traceweir.streams.cli.table_files import open_table
from traceweir.streams.cli.terminal import complain, mute_clients, progress_bar
from traceweir.streams.lab.evals.writing import whole_file
from traceweir.streams.tools.results.reader import FoundScore, Results, ScoreFilter
from traceweir.streams.tools.results.table import ScoreRows, UnwritableScoreError

_HEADINGS = ("written (UTC)", "session", "subject", "metric", "value", "status", "reason")


def show_results(
    settings: Settings,
    wanted: ScoreFilter,
    *,
    limit: int | None,
    follow: bool,
    as_json: bool,
    topic: str | None = None,
) -> None:
    """Prints the selected scores: the `limit` latest, or all in the order of reading; with `follow` also new scores.

    The scores are those of the topic `results`, or of another `topic`.

    Raises:
        KafkaUnreachableError: no broker answers.
        ResultsError: the topic is missing or wrong or cannot be read.
        KeyboardInterrupt: Ctrl-C ended the command.
    """
    mute_clients()
    asyncio.run(_show(lambda: Results(settings, wanted, topic), wanted, limit, follow, as_json))


def export_results(settings: Settings, wanted: ScoreFilter, file: Path) -> None:
    """Writes the selected scores to a CSV or Parquet file, by the suffix of its name.

    Raises:
        InputError: the file cannot be written, or pyarrow is not installed.
        KafkaUnreachableError: no broker answers.
        ResultsError: the topic is missing or wrong or cannot be read.
    """
    mute_clients()
    with whole_file(file) as stream, open_table(stream, file) as table:
        rows = asyncio.run(_export(settings, wanted, table))
    complain(f"{file}: {counted(rows, 'row')}")


def json_line(value: bytes) -> bytes:
    """Returns a JSON document of the topic on one line; in a text, an invisible character becomes an escape.

    >>> json_line('{"a":\\n"\\u2028x"}'.encode())
    b'{"a": "\\\\u2028x"}'
    """
    text = value.decode()
    if not text.isprintable():
        text = "".join(map(_json_character, text))
    return text.encode()


async def _show(
    opened: Callable[[], Results], wanted: ScoreFilter, limit: int | None, follow: bool, as_json: bool
) -> None:
    async with opened() as results:
        try:
            shown = await _show_written(results, wanted, limit, follow, as_json)
            if not shown and limit != 0:
                complain(_nothing(results, wanted))
            if follow:
                sys.stdout.flush()
                async for found in results.following(complain):
                    _print_one(found, wanted, as_json)
                    sys.stdout.flush()
        finally:
            if results.foreign:
                complain(f"{results.topic}: {counted(results.foreign, 'record')} omitted, because not a score")


async def _show_written(results: Results, wanted: ScoreFilter, limit: int | None, follow: bool, as_json: bool) -> int:
    """Prints the scores that were written before the start; returns how many are selected."""
    count = 0
    if limit is None:
        async for found in results.matching():
            count += 1
            _print_one(found, wanted, as_json)
        return count
    latest: list[FoundScore] = []
    with progress_bar("scores read") as advance:
        async for found in results.matching():
            count += 1
            heapq.heappush(latest, found)
            if len(latest) > limit:
                heapq.heappop(latest)
            advance(count, None)
    latest.sort(key=lambda found: found[:3])
    if as_json or follow:
        for found in latest:
            _print_one(found, wanted, as_json)
    else:
        print_rows(_headings(wanted), [_cells(found, wanted) for found in latest])
    if limit and count > limit:
        complain(f"the latest {limit} of {counted(count, 'score')}; --limit shows more")
    return count


async def _export(settings: Settings, wanted: ScoreFilter, table: ScoreRows) -> int:
    rows = 0
    unwritable = 0
    async with Results(settings, wanted) as results:
        with progress_bar("rows written") as advance:
            async for found in results.matching():
                try:
                    table.add(found)
                except UnwritableScoreError:
                    unwritable += 1
                    continue
                rows += 1
                advance(rows, None)
        if omitted := results.foreign + unwritable:
            complain(f"{results.topic}: {counted(omitted, 'record')} omitted, because not a score")
        if not rows:
            complain(_nothing(results, wanted))
    return rows


def _nothing(results: Results, wanted: ScoreFilter) -> str:
    """Returns why no score is shown."""
    if results.is_empty and wanted.session_id is None:
        return f"{results.topic} has no scores: a worker writes scores when a session closes"
    unknown = sorted(wanted.metrics - results.metrics)
    if unknown and results.metrics and wanted.since_ms is None and wanted.session_id is None:
        known = {short_name(name) for name in results.metrics}
        return f"no score has the metric {unknown[0]!r}; {did_you_mean(unknown[0], known)}"
    return "no scores match"


def _print_one(found: FoundScore, wanted: ScoreFilter, as_json: bool) -> None:
    if as_json:
        sys.stdout.buffer.write(json_line(found.value) + b"\n")
    else:
        write_line(line_of(_cells(found, wanted)))


def _headings(wanted: ScoreFilter) -> Sequence[str]:
    return (*_HEADINGS[:3], "revision", *_HEADINGS[3:]) if wanted.all_revisions else _HEADINGS


def _cells(found: FoundScore, wanted: ScoreFilter) -> Sequence[str]:
    score = found.score
    version = f"{score.revision}.{score.attempt}" if score.attempt else str(score.revision)
    return (
        iso(found.at_ms).replace("T", " ").removesuffix("Z"),
        score.session_id,
        subject_of(score),
        *([version] if wanted.all_revisions else []),
        short_name(score.metric),
        value_of(score) or "-",
        status_of(score),
        reason_of(score),
    )


def _json_character(character: str) -> str:
    if character.isprintable():
        return character
    # Between two tokens, because a JSON text contains none of them.
    if character in "\t\n\r":
        return " "
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code - 0x10000 & 0x3FF):04x}"
