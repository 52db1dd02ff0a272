"""`traceweir dlq export`, and `traceweir dlq replay --from`: dead letters that a person mends in a file."""

from __future__ import annotations

import asyncio
import sys

from traceweir.schemas.figures import counted
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.dlq.output import replay_letters
from traceweir.streams.cli.errors import FAILED
from traceweir.streams.cli.terminal import complain, mute_clients
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.intake.formats.documents import name_of, read_documents
from traceweir.streams.intake.formats.files import open_input
from traceweir.streams.tools.dead_letters.mending import export_line, read_mended
from traceweir.streams.tools.dead_letters.originals import Originals
from traceweir.streams.tools.dead_letters.reader import DeadLetterFilter, DeadLetters


def export_letters(settings: Settings, wanted: DeadLetterFilter) -> int:
    """Writes the matching dead letters that were not replayed, one line of JSON each, and returns the exit code.

    Raises:
        KafkaUnreachableError: no broker answers.
        DeadLettersError: the topic is missing or wrong or cannot be read.
    """
    mute_clients()
    return asyncio.run(_export(settings, wanted))


async def _export(settings: Settings, wanted: DeadLetterFilter) -> int:
    missing = set(wanted.ids)
    exported = 0
    replayed = 0
    failed = False
    async with DeadLetters(settings) as dead_letter_reader, Originals(settings) as originals:
        async for found in dead_letter_reader.matching(wanted):
            missing.discard(found.id)
            if found.replayed:
                replayed += 1
                continue
            whole = await originals.completed(found)
            if whole.letter.size is None:
                sys.stdout.buffer.write(export_line(whole).encode() + b"\n")
                exported += 1
                continue
            failed = True
            place = f"{found.letter.topic}[{found.letter.partition}]@{found.letter.offset}"
            kept = f"{len(found.letter.value or b'')} of {found.letter.size} bytes"
            complain(
                f"{found.id} is not exported: only the first {kept} are kept, and {place} no longer has the record"
            )
    if replayed:
        complain(f"not exported, because replayed before: {counted(replayed, 'dead letter')}")
    elif not (exported or failed or missing):
        complain("no dead letters match, so nothing is exported")
    for letter_id in sorted(missing):
        complain(
            f"{dead_letter_reader.topic} has no dead letter {letter_id}; `traceweir dlq list` lists all dead letters"
        )
    return FAILED if failed or missing else 0


def replay_mended(path: str, *, again: bool, dry_run: bool, as_json: bool) -> int:
    """Sends the records of the dead letters in a mended file, with their new values, and returns the exit code.

    Raises:
        InputError: the file cannot be read.
        InvalidSettingsError: the environment cannot be used.
        KafkaUnreachableError: no broker answers.
        DeadLettersError: a topic is missing or wrong or cannot be read, another replay has begun, or the brokers
            stopped answering.
    """
    settings = kafka_settings()
    with open_input(path) as stream:
        mended = read_mended(read_documents(stream), name_of(stream))
    for problem in mended.problems:
        complain(problem)
    if not mended.values:
        complain(f"{path}: contains no dead letter, so nothing is sent")
        return FAILED
    wanted = DeadLetterFilter(ids=frozenset(mended.values))
    code = replay_letters(settings, wanted, again=again, dry_run=dry_run, as_json=as_json, mended=mended.values)
    return code or (FAILED if mended.problems else 0)
