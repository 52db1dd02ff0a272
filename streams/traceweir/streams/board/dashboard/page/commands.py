"""Writes the commands that pages show ready to paste."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from traceweir.schemas.text import shell_command

_ADDRESSES_AT_ONCE = 20
"""Maximum number of addresses in a command: a shell takes a line of some length."""


def case_command(session_id: str, evalset: Path | None, *, replace: bool) -> str | None:
    """Returns the command that adds a session to an eval set; None if no command line can name the session.

    Args:
        session_id: Id of the session.
        evalset: The eval set, relative to the working directory of this process; None: a new one where the command runs.
        replace: Whether the command replaces a case with the same id.
    """
    file = "cases.evalset.json" if evalset is None else str(evalset.absolute())
    # An id that begins with a hyphen would be an option.
    name = ["--", session_id] if session_id.startswith("-") else [session_id]
    return shell_command("traceweir", "evalset", "add", "--to", file, *(["--replace"] if replace else []), *name)


def accept_command(alert_id: str) -> str | None:
    """Returns the command that accepts what an alert has found; None if no command line can name the alert."""
    # An id that begins with a hyphen would be an option.
    name = ["--", alert_id] if alert_id.startswith("-") else [alert_id]
    return shell_command("traceweir", "alerts", "accept", *name)


def api_commands(addresses: Sequence[str], *, with_token: bool) -> list[str]:
    """Returns the commands that ask the API for these addresses.

    Args:
        addresses: The addresses, with their scheme.
        with_token: Whether the dashboard asks for its token, which the command takes from the environment.
    """
    # The variable is for the shell, so that it is not quoted as the other words are.
    token = '-H "Authorization: Bearer $TRACEWEIR_DASHBOARD_TOKEN" ' if with_token else ""
    parts = [addresses[at : at + _ADDRESSES_AT_ONCE] for at in range(0, len(addresses), _ADDRESSES_AT_ONCE)]
    return [f"curl -s {token}{command}" for part in parts if (command := shell_command(*part)) is not None]


def eval_command(file: Path, folder: Path, now: datetime, eval_id: str | None = None) -> str | None:
    """Returns the command that scores an eval set, or one of its cases, and writes the run into the folder.

    None if no command line can name the case. The sessions are those that were recorded beside the file.
    """
    run = folder.absolute() / f"{file.name.split('.')[0]}.{now:%Y-%m-%d}.jsonl"
    # A comma divides the cases after the colon.
    if eval_id is not None and "," in eval_id:
        return None
    chosen = str(file.absolute()) if eval_id is None else f"{file.absolute()}:{eval_id}"
    command = shell_command("traceweir", "eval", chosen, "--json")
    target = shell_command(str(run))
    return None if command is None or target is None else f"{command} > {target}"
