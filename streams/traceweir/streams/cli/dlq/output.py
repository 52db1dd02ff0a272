"""Formats the output of `traceweir dlq`; escapes all text, which can be hostile, except with `--raw`."""

from __future__ import annotations

import asyncio
import heapq
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import MappingProxyType

from traceweir.schemas.figures import counted
from traceweir.streams.base.clock import iso
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.errors import FAILED
from traceweir.streams.cli.rows import line_of, print_rows
from traceweir.streams.cli.rows import write_line as _write
from traceweir.streams.cli.terminal import complain, mute_clients, progress_bar
from traceweir.streams.tools.dead_letters.originals import Originals
from traceweir.streams.tools.dead_letters.reader import DeadLetterFilter, DeadLetters, FoundDeadLetter, LetterId
from traceweir.streams.tools.dead_letters.replay import ReplayStep, replay

_NAMED = 20
"""Maximum number of named dead letters that could not be sent; `--json` names all of them."""
_HEADINGS = ("id", "state", "written (UTC)", "stage", "reason", "from", "detail")


def list_letters_matching(
    settings: Settings, wanted: DeadLetterFilter, *, open_only: bool, limit: int | None, as_json: bool
) -> None:
    """Prints the matching dead letters: the `limit` latest, or all in the order of reading.

    Raises:
        KafkaUnreachableError: no broker answers.
        DeadLettersError: the topic is missing or wrong or cannot be read.
    """
    mute_clients()
    asyncio.run(_list(settings, wanted, open_only, limit, as_json))


def show_letter(settings: Settings, letter_id: LetterId, *, raw: bool) -> int:
    """Prints a dead letter, or writes its value, and returns the exit code.

    Raises:
        KafkaUnreachableError: no broker answers.
        DeadLettersError: the topic is missing or wrong or cannot be read.
    """
    mute_clients()
    found = asyncio.run(_find(settings, letter_id, whole=raw))
    if found is None:
        complain(_missing(settings, letter_id))
        return FAILED
    if not raw:
        print_page(found)
        return 0
    sys.stdout.buffer.write(found.letter.value or b"")
    if found.letter.size is None:
        return 0
    kept = f"these are the first {len(found.letter.value or b'')} of {found.letter.size} bytes"
    complain(f"{letter_id}: {kept}; {_origin(found)} no longer has the whole record")
    return FAILED


def replay_letters(
    settings: Settings,
    wanted: DeadLetterFilter,
    *,
    again: bool,
    dry_run: bool,
    as_json: bool,
    mended: Mapping[LetterId, bytes] = MappingProxyType({}),
) -> int:
    """Replays the matching dead letters, prints the outcomes, and returns the exit code.

    Args:
        settings: Where Kafka is.
        wanted: Selects the dead letters.
        again: Whether to send also dead letters that were replayed before.
        dry_run: Whether to send nothing and to print what would be sent.
        as_json: Whether to print JSON lines.
        mended: New values of dead letters by id.

    Raises:
        KafkaUnreachableError: no broker answers.
        DeadLettersError: a topic is missing or wrong or cannot be read, another replay has begun, or the brokers
            stopped answering.
    """
    mute_clients()
    return asyncio.run(_replay(settings, wanted, again, dry_run, as_json, mended))


async def _list(
    settings: Settings, wanted: DeadLetterFilter, open_only: bool, limit: int | None, as_json: bool
) -> None:
    async with DeadLetters(settings) as dead_letter_reader:
        matching = (found async for found in dead_letter_reader.matching(wanted) if not (open_only and found.replayed))
        if limit is None:
            async for found in matching:
                _write(_json(found) if as_json else line_of(_cells(found)))
        else:
            shown, count = await _latest(matching, limit)
            print_letters(shown, as_json=as_json)
            if count > len(shown):
                complain(f"the latest {len(shown)} of {count}; --limit shows more")
            elif not count and not as_json:
                _write("no dead letters" if wanted == DeadLetterFilter() and not open_only else "no dead letters match")
        if dead_letter_reader.foreign:
            complain(
                f"{dead_letter_reader.topic}: {counted(dead_letter_reader.foreign, 'record')} omitted, because not a dead "
                "letter of Traceweir"
            )


async def _latest(matching: AsyncIterator[FoundDeadLetter], limit: int) -> tuple[list[FoundDeadLetter], int]:
    kept: list[tuple[int, LetterId, FoundDeadLetter]] = []
    count = 0
    async for found in matching:
        count += 1
        heapq.heappush(kept, (found.at, found.id, found))
        if len(kept) > limit:
            heapq.heappop(kept)
    return [found for _, _, found in sorted(kept, key=lambda each: each[:2])], count


async def _find(settings: Settings, letter_id: LetterId, *, whole: bool) -> FoundDeadLetter | None:
    only = None
    async with DeadLetters(settings) as dead_letter_reader, Originals(settings) as originals:
        async for found in dead_letter_reader.matching(DeadLetterFilter(frozenset({letter_id}))):
            only = await originals.completed(found) if whole else found
    return only


async def _replay(
    settings: Settings,
    wanted: DeadLetterFilter,
    again: bool,
    dry_run: bool,
    as_json: bool,
    mended: Mapping[LetterId, bytes],
) -> int:
    counts: Counter[str] = Counter()
    places: Counter[str] = Counter()
    missing = set(wanted.ids)
    refused = list[str]()
    with progress_bar("dead letters") as advance:
        async for step in replay(settings, wanted, again=again, dry_run=dry_run, mended=mended):
            missing.discard(step.found.id)
            counts[step.outcome] += 1
            if step.to is not None:
                places[step.to[0]] += 1
            if as_json:
                _write(_step_json(step))
            elif step.outcome == "would_send":
                _write(f"would send {_step(step)}")
            elif step.outcome == "refused" and len(refused) < _NAMED:
                refused.append(f"{step.found.id} is not sent: {step.because}")
            advance(counts.total(), None)
    if not as_json:
        _write(_summary(counts, places, dry_run))
        for problem in refused:
            complain(problem)
        if counts["refused"] > len(refused):
            complain(f"and {counts['refused'] - len(refused)} more; --json names all")
    for letter_id in sorted(missing):
        complain(_missing(settings, letter_id))
    return FAILED if counts["refused"] or missing else 0


def _summary(counts: Counter[str], places: Counter[str], dry_run: bool) -> str:
    done = counts["would_send" if dry_run else "sent"]
    before = counts["already_replayed"]
    to = ", ".join(f"{count} to {topic}" for topic, count in sorted(places.items()))
    parts = [f"{counted(done, 'dead letter')} {'would be ' if dry_run else ''}sent{f': {to}' if to else ''}"]
    if before:
        parts.append(f"{before} replayed before (--again sends them again)")
    if counts["refused"]:
        parts.append(f"{counts['refused']} cannot be sent")
    return "; ".join(parts)


# The format of one dead letter


def _json(found: FoundDeadLetter) -> str:
    letter = found.letter
    about = {
        "id": str(found.id),
        "state": _state(found),
        "at": _time(found.at),
        "stage": letter.stage,
        "reason": letter.reason,
        "detail": letter.detail,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "timestamp": None if letter.timestamp is None else _time(letter.timestamp),
        "key": None if letter.key is None else letter.key.decode(errors="backslashreplace"),
        "bytes": len(letter.value or b"") if letter.size is None else letter.size,
        "replay_of": letter.replay_of,
    }
    # json.dumps writes ASCII without control characters, so the text cannot move the cursor.
    return json.dumps(about)


def _step_json(step: ReplayStep) -> str:
    topic, partition = step.to or (None, None)
    letter = step.found.letter
    about = {"id": str(step.found.id), "outcome": step.outcome, "reason": letter.reason}
    return json.dumps(about | {"topic": topic, "partition": partition, "because": step.because})


def _step(step: ReplayStep) -> str:
    topic, partition = step.to or ("", 0)
    return f"{step.found.id} ({step.found.letter.reason}) to {topic}[{partition}]"


def _cells(found: FoundDeadLetter) -> Sequence[str]:
    letter = found.letter
    return str(found.id), _state(found), _time(found.at), letter.stage, letter.reason, _origin(found), letter.detail


def _time(milliseconds: int) -> str:
    return iso(milliseconds, "milliseconds")


def print_letters(shown: Iterable[FoundDeadLetter], *, as_json: bool) -> None:
    """Prints dead letters: as a table on a terminal, elsewhere as one line of text or JSON each."""
    if as_json:
        for found in shown:
            _write(_json(found))
    else:
        print_rows(_HEADINGS, map(_cells, shown))


def print_page(found: FoundDeadLetter) -> None:
    """Prints all fields of a dead letter, and its whole value."""
    letter = found.letter
    about = {
        "dead letter": f"{found.id} ({_state(found)})",
        "written": f"{_time(found.at)} by {letter.stage}",
        "reason": letter.reason,
        "detail": letter.detail,
        "from": _origin(found),
        "first from": letter.origin,
        "timestamp": None if letter.timestamp is None else _time(letter.timestamp),
        "replay of": letter.replay_of,
        "key": None if letter.key is None else _text(letter.key),
        "sha256": letter.sha256,
    }
    for name, text in about.items():
        if text is not None:
            _write(f"{name + ':':<13}{text}")
    for name, content in letter.headers:
        _write(f"{'header:':<13}{name}: {'(no value)' if content is None else _text(content)}")
    value = letter.value
    if value is None:
        _write(f"{'value:':<13}(none)")
        return
    size = counted(len(value), "byte") if letter.size is None else f"the first {len(value)} of {letter.size} bytes"
    _write(f"{'value:':<13}{size}")
    _write(_text(value))


def _state(found: FoundDeadLetter) -> str:
    return "replayed" if found.replayed else "open"


def _origin(found: FoundDeadLetter) -> str:
    return f"{found.letter.topic}[{found.letter.partition}]@{found.letter.offset}"


def _text(content: bytes) -> str:
    return content.decode(errors="backslashreplace")


def _missing(settings: Settings, letter_id: LetterId) -> str:
    return f"{settings.topic_prefix}dead-letters has no dead letter {letter_id}; `traceweir dlq list` lists all dead letters"
