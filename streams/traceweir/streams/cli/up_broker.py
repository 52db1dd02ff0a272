"""Leaves the address of the broker of `traceweir up` for other commands of the same user, and finds it there."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import psutil
from pydantic import BaseModel, ValidationError

from traceweir.streams.base.errors import InvalidSettingsError
from traceweir.streams.base.setting_groups.group import ENV_PREFIX
from traceweir.streams.base.settings import Settings, load_settings
from traceweir.streams.cli.terminal import complain

KAFKA_VARIABLES = f"{ENV_PREFIX}KAFKA_"
SERVERS = f"{KAFKA_VARIABLES}BOOTSTRAP_SERVERS"
_LEFT = ("kafka_bootstrap_servers", "partitions", "topic_prefix", "otlp_spans_topic", "otlp_logs_topic")
"""The settings that a command needs to read and write the topics of this broker."""


class _LeftBroker(BaseModel):
    machine: str
    pid: int
    command: list[str]
    """The words of its command line."""
    variables: dict[str, str]

    @property
    def is_alive(self) -> bool:
        """Whether the process that has the broker still runs.

        The process id and the command line are compared: the id alone can belong to another process by now. The start time
        is not compared, because it changes when the clock is set. A later `traceweir up` that gets the same id and has the
        same command line writes its own file.
        """
        try:
            return psutil.Process(self.pid).cmdline() == self.command
        except psutil.Error:
            return False


def kafka_settings() -> Settings:
    """Returns the settings of a command that uses Kafka: where the environment names none, that of a `traceweir up`.

    Any variable `TRACEWEIR_KAFKA_...` is a choice, and then no `traceweir up` is looked for. A message on stderr says
    which broker is used, and which address was left by a `traceweir up` that has ended. `traceweir dashboard` takes
    `load_settings` in its place, because its store belongs to the topics of one cluster.

    Raises:
        InvalidSettingsError: the environment cannot be used, or several `traceweir up` run.
    """
    if any(name.upper().startswith(KAFKA_VARIABLES) for name in os.environ):
        return load_settings()
    found = list(_running())
    if not found:
        return load_settings()
    addresses = [each.variables[SERVERS] for each in found]
    if len(found) > 1:
        raise InvalidSettingsError(
            f"{len(found)} commands `traceweir up` run: set {SERVERS} to the broker that is meant, {' or '.join(addresses)}"
        )
    _say_once(f"{SERVERS} is not set: this command uses the broker of the running `traceweir up`, {addresses[0]}")
    return load_settings(found[0].variables)


@contextmanager
def broker_left(settings: Settings) -> Iterator[None]:
    """Leaves where the broker is within the block; if this is not possible, says so."""
    name = f"{os.getpid()}.json"
    try:
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        left = _LeftBroker(
            machine=platform.node(),
            pid=os.getpid(),
            command=psutil.Process().cmdline(),
            variables={f"{ENV_PREFIX}{name.upper()}": str(getattr(settings, name)) for name in _LEFT},
        )
        # A reader sees the whole file or none.
        (folder / f"{name}.new").write_text(left.model_dump_json())
        (folder / f"{name}.new").replace(folder / name)
    except (OSError, RuntimeError) as error:
        # RuntimeError: there is no home directory.
        complain(f"other commands need the variable {SERVERS}, because its value cannot be left for them: {error}")
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            (folder / name).unlink()


def _running() -> Iterator[_LeftBroker]:
    try:
        files = sorted(_folder().glob("*.json"))
    except (OSError, RuntimeError):
        return
    for file in files:
        try:
            left = _LeftBroker.model_validate_json(file.read_bytes())
            address = left.variables[SERVERS]
        except FileNotFoundError:
            # The command has ended just now.
            continue
        except (OSError, ValidationError, KeyError):
            _say_once(f"{file} is not used, because it cannot be read; remove it")
            continue
        # The home directory is that of several machines or containers.
        if left.machine != platform.node():
            continue
        if left.is_alive:
            yield left
            continue
        _say_once(f"the broker {address} is not used: its `traceweir up` (process {left.pid}) has ended")
        with suppress(OSError):
            file.unlink()


def _folder() -> Path:
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path.home() / ".local" / "state") / "traceweir" / "up"


@cache
def _say_once(message: str) -> None:
    complain(message)
