"""`traceweir evalset` and `traceweir migrate`: eval sets are made and rewritten."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from traceweir.streams.evals.recordings import Recording

evalset_app = typer.Typer(help="Make eval sets of recorded sessions.", no_args_is_help=True)


@evalset_app.command()
def add(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="Id of a recorded session.", show_default=False)],
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="The eval set; it is made if there is none.")],
    eval_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="What the case is called. [default: the session's id]", show_default=False),
    ] = None,
    sessions: Annotated[
        list[str] | None,
        typer.Option(
            "--sessions",
            metavar="FILE",
            help="Where it is recorded; may be repeated. [default: Kafka]",
            show_default=False,
        ),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a case of that id.")] = False,
) -> None:
    """Make a recorded session an eval case: what happened is what is expected from now on.

    It is taken from the sessions topic, whole, in its latest revision, or from files. The case holds what was said as it was said: read it
    before you share it. Added twice it changes nothing. Exit code 1: there is no such session, or another case of that id, which
    `--replace` replaces. 2: a file cannot be used.

    Example: `traceweir evalset add chat-4711 --to trips.evalset.json --eval-id rebooking`
    """
    raise typer.Exit(_add(session, to, eval_id or session, sessions or (), replace=replace))


def migrate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An eval set or test file, in any format of ADK's.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Where to; FILE itself will do. [default: stdout]", show_default=False
        ),
    ] = None,
    initial_session: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The initial session that stood in a file of its own beside an old test file."
        ),
    ] = None,
) -> None:
    """Rewrite an eval set in today's format: the two old ones are converted, comments and trailing commas go, keys are in snake_case.

    The same file always gives the same eval set: where ADK makes random ids, they follow from the content. Exit code 2: the file cannot be
    used.

    Example: `traceweir migrate simple.test.json --out simple.test.json`
    """
    raise typer.Exit(_migrate(file, out, initial_session))


def _add(session_id: str, to: Path, eval_id: str, sessions: Sequence[str], *, replace: bool) -> int:
    from traceweir.streams.cli.errors import FAILED
    from traceweir.streams.cli.terminal import complain
    from traceweir.streams.evals.capture import add_case, eval_case

    found = _recorded(session_id, sessions)
    if found is None:
        if sessions:
            complain(f"{', '.join(sessions)}: there is no session {session_id!r}; there are {_some(sessions)}")
        else:
            complain(f"the sessions topic has no session {session_id!r}, or no longer")
        return FAILED
    outcome = add_case(to, eval_case(found, eval_id), replace=replace)
    if outcome == "refused":
        complain(
            f"{to}: has a case {eval_id!r} already, with another content; --replace replaces it, --eval-id names this one otherwise"
        )
        return FAILED
    done = {"added": "is added", "replaced": "is replaced", "unchanged": "is there already, unchanged"}[outcome]
    complain(f"{to}: case {eval_id!r} {done} ({len(found.invocations)} invocations)")
    return 0


def _recorded(session_id: str, sessions: Sequence[str]) -> Recording | None:
    from traceweir.streams.evals.recordings import read_recordings

    if sessions:
        return next(iter(read_recordings(sessions, frozenset([session_id])).get(session_id, ())), None)
    from traceweir.streams.evals.kafka_sessions import read_sessions
    from traceweir.streams.settings import load_settings

    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # what it would say is said by the errors
    return asyncio.run(read_sessions(load_settings(), [session_id])).get(session_id)


def _some(sessions: Sequence[str]) -> str:
    from traceweir.streams.evals.files import listed
    from traceweir.streams.evals.recordings import read_recordings

    return listed(list(read_recordings(sessions)))


def _migrate(file: Path, out: Path | None, initial_session: Path | None) -> int:
    from traceweir.schemas.eval_set_files import UnknownFormatError, modern
    from traceweir.streams.cli.terminal import complain
    from traceweir.streams.evals.files import checked, read_json, read_text
    from traceweir.streams.evals.json_text import parsed, without_slips
    from traceweir.streams.evals.writing import as_file, write_whole
    from traceweir.streams.formats.documents import InputError

    name = str(file)
    document = parsed(without_slips(read_text(file)), name)
    session = None if initial_session is None else read_json(initial_session)
    try:
        new = modern(document, file.name, session)
    except UnknownFormatError as error:
        raise InputError(f"{name}: {error}.") from None
    cases = len(checked(new, name).eval_cases)
    content = as_file(new)
    if out is None:
        sys.stdout.buffer.write(content)
        return 0
    write_whole(out, content)
    complain(f"{out}: {cases} cases")
    return 0
