"""`traceweir dlq`: lists, shows, exports and replays dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from traceweir.schemas.dead_letter import Reason
from traceweir.streams.base.topics import ALL_STAGES
from traceweir.streams.cli.command_app import CommandApp
from traceweir.streams.cli.record_options import SHOWN, latest, repeated, since, until
from traceweir.streams.cli.times import time_option

if TYPE_CHECKING:
    from traceweir.streams.base.settings import Settings
    from traceweir.streams.tools.dead_letters.reader import DeadLetterFilter, LetterId

REASONS: tuple[str, ...] = get_args(Reason)
STAGE_NAMES = (*ALL_STAGES, "export")
"""What writes dead letters: the stages, and `traceweir export`."""

dlq_app = CommandApp(help="List, show, mend and replay dead letters.", no_args_is_help=True)

Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID", help="Ids of dead letters, `<partition>:<offset>`.", show_default=False),
]
Reasons = Annotated[
    list[str] | None, repeated("--reason", "REASON", f"Only with this reason: one of {', '.join(REASONS)}.")
]
StageNames = Annotated[
    list[str] | None, repeated("--stage", "STAGE", f"Only from this stage: one of {', '.join(STAGE_NAMES)}.")
]
Sources = Annotated[
    list[str] | None,
    repeated("--topic", "TOPIC", "Only records that came from this topic, with or without the prefix."),
]
Since = Annotated[str | None, since("dead letters")]
Until = Annotated[str | None, until("dead letters")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON lines, for programs.")]


@dlq_app.command("list")
def list_letters(
    ids: Ids = None,
    reason: Reasons = None,
    stage: StageNames = None,
    topic: Sources = None,
    since: Since = None,
    until: Until = None,
    open_only: Annotated[bool, typer.Option("--open", help="Only dead letters that were not replayed.")] = False,
    limit: Annotated[int | None, latest(1)] = None,
    as_json: AsJson = False,
) -> None:
    """List dead letters, the latest last, with their ids and whether they were replayed.

    Times are in UTC; a time without an offset is read as UTC.

    Example: `traceweir dlq list --reason late --since 2h --json | jq -r .id`
    """
    from traceweir.streams.cli.dlq.output import list_letters_matching
    from traceweir.streams.cli.up_broker import kafka_settings

    settings = kafka_settings()
    wanted = _wanted(settings, ids, reason, stage, topic, since, until)
    list_letters_matching(
        settings, wanted, open_only=open_only, limit=limit or (None if as_json else SHOWN), as_json=as_json
    )


@dlq_app.command()
def show(
    letter_id: Annotated[str, typer.Argument(metavar="ID", help="Id of a dead letter, `<partition>:<offset>`.")],
    raw: Annotated[
        bool, typer.Option("--raw", help="Write only the value, byte for byte, for a pipe or a file.")
    ] = False,
) -> None:
    """Show one dead letter: reason, origin, headers and value; control characters are escaped.

    A dead letter keeps only the first 64 kB of a value; `--raw` reads the whole value from the original topic if that
    record still exists. Exit code 1: the original record is gone, or the dead letter does not exist.

    Example: `traceweir dlq show 2:17 --raw > record.json`
    """
    from traceweir.streams.cli.dlq.output import show_letter
    from traceweir.streams.cli.up_broker import kafka_settings

    raise typer.Exit(show_letter(kafka_settings(), _ids([letter_id])[0], raw=raw))


@dlq_app.command()
def export(
    ids: Ids = None,
    reason: Reasons = None,
    stage: StageNames = None,
    topic: Sources = None,
    since: Since = None,
    until: Until = None,
) -> None:
    """Write the dead letters that were not replayed to stdout, one per line of JSON, so that they can be mended.

    Correct the `value` of each line, remove the other lines, and send the records with `traceweir dlq replay --from`.
    A value that is not JSON is in `text`, or in `base64` if it is not UTF-8. A value above 64 kB is read from its original
    topic if the record still exists. Exit code 1: a record is gone, or a named dead letter does not exist.

    Example: `traceweir dlq export --reason invalid --since 1d > letters.jsonl`
    """
    from traceweir.streams.cli.dlq.mending import export_letters
    from traceweir.streams.cli.up_broker import kafka_settings

    settings = kafka_settings()
    raise typer.Exit(export_letters(settings, _wanted(settings, ids, reason, stage, topic, since, until)))


@dlq_app.command()
def replay(
    ids: Ids = None,
    reason: Reasons = None,
    stage: StageNames = None,
    topic: Sources = None,
    since: Since = None,
    until: Until = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Replay all dead letters. Without this option, name ids or filters.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Also replay dead letters that were replayed before.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report what would be sent, but send nothing.")] = False,
    mended_file: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Send the dead letters of a mended `dlq export`, with the values of this file; `-` reads standard input.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send dead letters back to their original topics, each once: dead letters that were replayed before are skipped.

    Key, value and headers are those of the record; the timestamp is now. A value above 64 kB is read from its original
    topic if the record still exists. Fix the cause first: a record that is still unusable becomes another dead letter.
    Exit code 1: a dead letter could not be sent, or a named dead letter does not exist.

    Example: `traceweir dlq replay --reason scoring_failed --since 1d --dry-run`
    """
    filters = any((reason, stage, topic, since, until))
    if mended_file is not None:
        if ids or filters or everything:
            raise typer.BadParameter(
                "the file selects the dead letters; remove ids, filters and --all", param_hint="--from"
            )
        from traceweir.streams.cli.dlq.mending import replay_mended

        raise typer.Exit(replay_mended(mended_file, again=again, dry_run=dry_run, as_json=as_json))
    if not (ids or filters or everything):
        raise typer.BadParameter(
            "name ids, or use filters (--reason, --stage, --topic, --since, --until), or use --all"
        )
    if (ids or filters) and everything:
        raise typer.BadParameter("--all cannot be combined with ids or filters; remove one of them", param_hint="--all")
    from traceweir.streams.cli.dlq.output import replay_letters
    from traceweir.streams.cli.up_broker import kafka_settings

    settings = kafka_settings()
    wanted = _wanted(settings, ids, reason, stage, topic, since, until)
    raise typer.Exit(replay_letters(settings, wanted, again=again, dry_run=dry_run, as_json=as_json))


def _wanted(
    settings: Settings,
    ids: Sequence[str] | None,
    reasons: Sequence[str] | None,
    stages: Sequence[str] | None,
    topics: Sequence[str] | None,
    since: str | None,
    until: str | None,
) -> DeadLetterFilter:
    from traceweir.streams.tools.dead_letters.reader import DeadLetterFilter

    if ids and any((reasons, stages, topics, since, until)):
        raise typer.BadParameter("ids and filters exclude each other; remove the filters or the ids", param_hint="ID")
    return DeadLetterFilter(
        ids=frozenset(_ids(ids or ())),
        reasons=_chosen(reasons, REASONS, "--reason"),
        stages=_chosen(stages, STAGE_NAMES, "--stage"),
        topics=frozenset(_topic(settings, name) for name in topics or ()),
        since=time_option(since, "--since"),
        until=time_option(until, "--until"),
    )


def _ids(texts: Sequence[str]) -> list[LetterId]:
    from traceweir.streams.tools.dead_letters.reader import LetterId

    try:
        return [LetterId.parse(text) for text in texts]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="ID") from None


def _chosen(names: Sequence[str] | None, choices: Sequence[str], option: str) -> frozenset[str]:
    for name in names or ():
        if name not in choices:
            raise typer.BadParameter(f"{name!r} is not valid; choose from {', '.join(choices)}", param_hint=option)
    return frozenset(names or ())


def _topic(settings: Settings, name: str) -> str:
    from traceweir.streams.pipeline.topology import topics_of

    topics = settings.topics
    inputs = [
        *(each for stage in ALL_STAGES for each in topics_of(stage, topics).inputs),
        topics.configs,
        topics.results,
    ]
    for full in (name, settings.topic_prefix + name):
        if full in inputs:
            return full
    raise typer.BadParameter(
        f"{name!r} is not an input of a stage; choose from {', '.join(inputs)}", param_hint="--topic"
    )
