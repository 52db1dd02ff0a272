"""`traceweir evalset` and `traceweir migrate`: create and rewrite eval sets."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceweir.streams.cli.command_app import CommandApp

if TYPE_CHECKING:
    from traceweir.streams.lab.evals.recordings import Recording

evalset_app = CommandApp(help="Create eval sets from recorded sessions.", no_args_is_help=True)


@evalset_app.command()
def add(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="Id of a recorded session.", show_default=False)],
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="The eval set; a missing file is created.")],
    eval_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Eval id of the case. [default: the session's id]", show_default=False),
    ] = None,
    sessions: Annotated[
        list[str] | None,
        typer.Option(
            "--sessions",
            metavar="FILE",
            help="File with the recorded session; can be repeated. [default: Kafka]",
            show_default=False,
        ),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a case that has the same id.")] = False,
) -> None:
    """Add a recorded session to an eval set as a case that expects the recorded behaviour.

    The session is read from the sessions topic (all segments, latest revisions) or from files. The case contains the
    conversation verbatim: read it before you share it. Adding the same session again changes nothing. Exit code 1: the
    session does not exist, or another case has the same id (`--replace` replaces that case). 2: a file cannot be used.

    Example: `traceweir evalset add chat-4711 --to trips.evalset.json --eval-id rebooking`
    """
    raise typer.Exit(_add(session, to, eval_id or session, sessions or (), replace=replace))


def migrate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An eval set or test file, in any of ADK's formats.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Output file; can be FILE itself. [default: stdout]", show_default=False
        ),
    ] = None,
    initial_session: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with the initial session, for an old test file that has one."),
    ] = None,
) -> None:
    """Rewrite an eval set in ADK's current format, from any of the two old formats.

    Comments and trailing commas are removed; keys are in snake_case. The same file always results in the same eval set:
    ids that ADK generates randomly are derived from the content. Exit code 2: the file cannot be used.

    Example: `traceweir migrate simple.test.json --out simple.test.json`
    """
    raise typer.Exit(_migrate(file, out, initial_session))


def _add(session_id: str, to: Path, eval_id: str, sessions: Sequence[str], *, replace: bool) -> int:
    from traceweir.schemas.figures import counted
    from traceweir.streams.cli.errors import FAILED
    from traceweir.streams.cli.terminal import complain
    from traceweir.streams.lab.evals.capture import add_case, eval_case

    found = _recorded(session_id, sessions)
    if found is None:
        if sessions:
            complain(f"{', '.join(sessions)}: there is no session {session_id!r}; there are {_session_ids(sessions)}")
        else:
            from traceweir.streams.cli.up_broker import kafka_settings
            from traceweir.streams.lab.evals.kafka_sessions import absence

            complain(absence(session_id, kafka_settings()))
        return FAILED
    outcome = add_case(to, eval_case(found, eval_id), replace=replace)
    if outcome == "refused":
        complain(
            f"{to}: already has a case {eval_id!r} with different content; replace the case with --replace, or add "
            "the session under another id with --eval-id"
        )
        return FAILED
    done = {"added": "is added", "replaced": "is replaced", "unchanged": "already exists, unchanged"}[outcome]
    complain(f"{to}: case {eval_id!r} {done} ({counted(len(found.invocations), 'invocation')})")
    return 0


def _recorded(session_id: str, sessions: Sequence[str]) -> Recording | None:
    from traceweir.streams.lab.evals.recordings import read_recordings

    if sessions:
        return next(iter(read_recordings(sessions, frozenset([session_id])).get(session_id, ())), None)
    from traceweir.streams.cli.terminal import mute_clients
    from traceweir.streams.cli.up_broker import kafka_settings
    from traceweir.streams.lab.evals.kafka_sessions import read_sessions

    mute_clients()
    return asyncio.run(read_sessions(kafka_settings(), [session_id])).get(session_id)


def _session_ids(sessions: Sequence[str]) -> str:
    from traceweir.streams.lab.evals.files import listed
    from traceweir.streams.lab.evals.recordings import read_recordings

    return listed(list(read_recordings(sessions)))


def _migrate(file: Path, out: Path | None, initial_session: Path | None) -> int:
    from traceweir.schemas.eval_set_files import UnknownFormatError, modern
    from traceweir.schemas.figures import counted
    from traceweir.streams.cli.terminal import complain
    from traceweir.streams.lab.evals.files import checked, not_an_eval_set, read_json, read_text
    from traceweir.streams.lab.evals.json_text import parsed, without_slips
    from traceweir.streams.lab.evals.writing import as_file, write_whole

    name = str(file)
    document = parsed(without_slips(read_text(file)), name)
    session = None if initial_session is None else read_json(initial_session)
    try:
        new = modern(document, file.name, session)
    except UnknownFormatError as error:
        raise not_an_eval_set(file, f"{name}: {error}.") from None
    cases = len(checked(new, name).eval_cases)
    content = as_file(new)
    if out is None:
        sys.stdout.buffer.write(content)
        return 0
    write_whole(out, content)
    complain(f"{out}: {counted(cases, 'case')}")
    return 0
