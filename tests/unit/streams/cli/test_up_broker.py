"""Commands find the broker of a running `traceweir up`; a setting wins, and an address that is left behind is not used."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from traceweir.streams.base.errors import InvalidSettingsError
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.up_broker import broker_left, kafka_settings

DEFAULT = "127.0.0.1:9092"
ADDRESS = "127.0.0.1:45001"
UP = Settings(kafka_bootstrap_servers=ADDRESS, topic_prefix="trial.")


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("KAFKA_BOOTSTRAP_SERVERS", "KAFKA_COMPRESSION", "TOPIC_PREFIX", "PARTITIONS"):
        monkeypatch.delenv(f"TRACEWEIR_{name}", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def files(home: Path) -> list[Path]:
    return sorted((home / "traceweir" / "up").glob("*"))


def leave(home: Path, **changes: Any) -> None:
    """Leaves the file of this process in another form."""
    with broker_left(UP):
        (file,) = files(home)
        left = json.loads(file.read_text())
    file.with_name("other.json").write_text(json.dumps(left | changes))


def leave_address(home: Path, address: str, **changes: Any) -> None:
    leave(home, variables={"TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": address}, **changes)


@contextmanager
def other_process() -> Iterator[subprocess.Popen[str]]:
    """Yields a process that runs until the block ends."""
    waiting = "print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", waiting], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def test_a_command_uses_the_broker_of_a_running_up_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with broker_left(UP):
        found = kafka_settings()

    assert (found.kafka_bootstrap_servers, found.topic_prefix, found.partitions) == (ADDRESS, "trial.", 4)
    assert f"uses the broker of the running `traceweir up`, {ADDRESS}" in capsys.readouterr().err
    assert kafka_settings().kafka_bootstrap_servers == DEFAULT
    assert capsys.readouterr() == ("", "")


def test_a_clock_that_is_set_takes_no_broker_away(monkeypatch: pytest.MonkeyPatch) -> None:
    with broker_left(UP):
        monkeypatch.setattr(psutil.Process, "create_time", lambda _: 1.0)
        assert kafka_settings().kafka_bootstrap_servers == ADDRESS


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", "kafka:9092", "kafka:9092"),
        ("traceweir_kafka_bootstrap_servers", "kafka:9092", "kafka:9092"),
        ("TRACEWEIR_KAFKA_COMPRESSION", "zstd", DEFAULT),
    ],
)
def test_a_setting_of_kafka_wins(
    variable: str, value: str, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, value)
    with broker_left(UP):
        assert kafka_settings().kafka_bootstrap_servers == expected
    assert capsys.readouterr().err == ""


def test_other_settings_win_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEWEIR_TOPIC_PREFIX", "mine.")
    with broker_left(UP):
        found = kafka_settings()

    assert (found.kafka_bootstrap_servers, found.topic_prefix) == (ADDRESS, "mine.")


@pytest.mark.parametrize("is_reused", [True, False], ids=["the id is that of another process", "no process has the id"])
def test_an_address_that_was_left_behind_is_not_used_and_is_removed(
    is_reused: bool, state_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = "127.0.0.1:45002" if is_reused else "127.0.0.1:45003"
    if is_reused:
        leave_address(state_home, address, command=["traceweir", "up"])
    else:
        with other_process() as process:
            command = process.args
        leave_address(state_home, address, pid=process.pid, command=command)

    assert kafka_settings().kafka_bootstrap_servers == DEFAULT
    assert f"the broker {address} is not used: its `traceweir up` (process " in capsys.readouterr().err
    assert files(state_home) == []


def test_an_address_of_another_machine_is_left_alone(state_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leave(state_home, machine="another")

    assert kafka_settings().kafka_bootstrap_servers == DEFAULT
    assert capsys.readouterr().err == ""
    assert len(files(state_home)) == 1


def test_of_two_that_run_none_is_chosen(state_home: Path) -> None:
    with other_process() as process, broker_left(UP):
        (own,) = files(state_home)
        other = json.loads(own.read_text()) | {"pid": process.pid, "command": process.args}
        own.with_name(f"{process.pid}.json").write_text(json.dumps(other))
        with pytest.raises(InvalidSettingsError, match="2 commands `traceweir up` run: set TRACEWEIR_KAFKA_BOOTSTRAP"):
            kafka_settings()


@pytest.mark.parametrize("content", ["", "{}", '{"machine": 1', '{"variables": {}}'])
def test_a_file_that_cannot_be_read_is_named(
    content: str, state_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(state_home)
    (file,) = files(state_home)
    file.write_text(content)

    assert kafka_settings().kafka_bootstrap_servers == DEFAULT
    assert f"{file} is not used, because it cannot be read; remove it" in capsys.readouterr().err.replace("\n", "")


def test_up_goes_on_if_it_can_leave_nothing(state_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (state_home / "traceweir").write_text("a file in place of the folder")
    with broker_left(UP):
        assert kafka_settings().kafka_bootstrap_servers == DEFAULT

    assert "other commands need the variable TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS" in capsys.readouterr().err
