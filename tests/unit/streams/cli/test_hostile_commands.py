"""Tests that commands answer unusable inputs and broken standard streams with one message and the right exit code."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli_inputs import EVENT, WriteInput
from tests.support.command_line import Ended, Run
from tests.support.eval_sets import case, eval_set, invocation, write
from tests.support.scoring import trace_document

from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker

LONG_INTEGER = b"9" * 5_000
OLD_EVAL_SET = (
    b'[{"query": "q", "reference": "r", "expected_tool_use": [{"tool_name": "t", "tool_input": {"a": 1e999}}]}]'
)


@pytest.mark.parametrize("text", [b'[{"id": %b}]', b'{\n"id": %b\n}'], ids=["array", "pretty-printed"])
def test_an_integer_of_5000_digits_is_reported_with_its_place(text: bytes, run: Run, write_input: WriteInput) -> None:
    ended = run("score", write_input("long.json", text % LONG_INTEGER))
    assert (ended.code, ended.out) == (2, "")
    assert "column" in ended.err
    assert "an integer of more than 4300 digits" in ended.err


def test_migrate_reports_an_integer_of_5000_digits_without_python_terms(run: Run, write_input: WriteInput) -> None:
    ended = run("migrate", write_input("long.test.json", OLD_EVAL_SET.replace(b"1e999", LONG_INTEGER)))
    assert (ended.code, ended.out) == (2, "")
    assert "has an integer of more than 4300 digits" in ended.err
    assert "set_int_max_str_digits" not in ended.err


def test_migrate_rejects_a_number_beyond_the_range_of_a_double(run: Run, write_input: WriteInput) -> None:
    ended = run("migrate", write_input("infinite.test.json", OLD_EVAL_SET))
    assert (ended.code, ended.out) == (2, "")
    assert "1e999 is beyond the range of a double" in ended.err


def test_migrate_writes_to_a_pipe_in_place(run: Run, write_input: WriteInput, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        ended = run("migrate", write_input("old.test.json", OLD_EVAL_SET.replace(b"1e999", b"1")), "--out", str(pipe))
        assert ended.code == 0
        assert pipe.is_fifo()
        assert len(json.loads(os.read(reader, 65_536))["eval_cases"]) == 1
    finally:
        os.close(reader)


def test_a_threshold_of_400_digits_is_reported(run: Run, write_input: WriteInput) -> None:
    config = write_input("config.json", b'{"criteria": {"response_match_score": 1%b}}' % (b"0" * 400))
    ended = run("score", write_input("events.jsonl", EVENT), "--config", config)
    assert (ended.code, ended.out) == (2, "")
    assert "criteria.response_match_score: the threshold must be a number from 0 to 1" in ended.err


def test_a_sampling_of_400_digits_is_reported(run: Run, write_input: WriteInput) -> None:
    config = write_input("config.json", b'{"sampling": 1%b}' % (b"0" * 400))
    ended = run("score", write_input("events.jsonl", EVENT), "--config", config)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("  - sampling: ") == 1


def test_an_infinite_duration_of_the_demo_is_wrong_usage(run: Run) -> None:
    ended = run("demo", "--seconds", "1e400", "--json")
    assert (ended.code, ended.out) == (2, "")
    assert "--seconds" in ended.err


@pytest.mark.parametrize("modified_s", [253_402_300_800.0, 9e18, -1e15])
def test_a_file_dated_beyond_the_calendar_counts_as_undated(
    modified_s: float, run: Run, write_input: WriteInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "id": "c"}
    path = write_input("chat.json", chat)
    real = os.fstat

    def dated(descriptor: int) -> Any:
        # Not every file system of a test machine stores such a time.
        found = real(descriptor)
        return os.stat_result(found[:10], {"st_mtime": modified_s, "st_rdev": found.st_rdev})

    monkeypatch.setattr("traceweir.streams.intake.formats.files.os.fstat", dated)
    ended = run("score", path, "--format", "openai-chat", "--config", write_input("none.json", {}), "--json")
    assert ended.err == "1 score missed the threshold: trace_value (1)\n"
    assert ended.out.startswith("{")


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs /proc of Linux")
@pytest.mark.parametrize("name", ["traces.jsonl", "rows.csv"])
def test_a_special_file_that_cannot_be_read_is_reported_by_name(name: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / name).symlink_to("/proc/self/mem")
    ended = run("score", str(tmp_path / name))
    assert (ended.code, ended.out) == (2, "")
    assert f"{name}: cannot be read (Input/output error)" in ended.err


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full"])
def test_an_endless_device_is_refused_before_it_is_read(device: str, run: Run) -> None:
    ended = run("score", device)
    assert (ended.code, ended.out) == (2, "")
    assert f"{device}: is a device" in ended.err


def in_shell(arguments: str, redirection: str) -> Ended:
    command = f"{shlex.quote(sys.executable)} -m traceweir.streams.cli.main {arguments} {redirection}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRACEWEIR_")}
    ended = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=False, env=environment, timeout=60
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "redirection", "unbuffered"),
    [
        ("score FILE", ">/dev/full", ""),
        pytest.param("score FILE", ">&-", "1", marks=pytest.mark.large),
        pytest.param("score FILE --json", ">/dev/full", "1", marks=pytest.mark.large),
        ("score FILE --json", ">&-", ""),
        ("--help", ">/dev/full", ""),
        ("--help", ">&-", "1"),
        ("--version", ">/dev/full", "1"),
        ("--version", ">&-", ""),
    ],
)
def test_a_stdout_that_cannot_be_written_is_reported_with_exit_code_1(
    command: str, redirection: str, unbuffered: str, write_input: WriteInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    file = shlex.quote(write_input("traces.jsonl", trace_document()))
    config = shlex.quote(write_input("config.json", {"gate": {"threshold": 0}}))
    ended = in_shell(command.replace("FILE", f"{file} --config {config}"), redirection)
    assert ended.code == 1
    assert ended.err.startswith("standard output: cannot be written (")
    assert len(ended.err.splitlines()) == 1


@contextmanager
def unreadable_stdin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes standard input what `open_missing_streams` makes of a closed one: the null device, for writing only."""
    former, null = os.dup(0), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 0)
    try:
        with open(0, encoding="utf-8", closefd=False) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            yield
    finally:
        os.dup2(former, 0)
        os.close(former)
        os.close(null)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["emit -", "eval trip.evalset.json --sessions -"])
def test_every_command_that_reads_a_closed_stdin_names_it(
    command: str, run: Run, embedded_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", embedded_broker.bootstrap_servers)
    monkeypatch.chdir(tmp_path)
    write(Path("trip.evalset.json"), eval_set(case("a", invocation("Hi", "Hello."))))
    assert run("topics", "create").code == 0
    with unreadable_stdin(monkeypatch):
        ended = run(*command.split())
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1].startswith("standard input: cannot be read (")
    assert "Traceback" not in ended.err


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["dlq list", "topics check", "topics check --json", "topics create"])
def test_a_full_disk_behind_stdout_is_reported_by_the_commands_that_ask_kafka(
    command: str, run: Run, embedded_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", embedded_broker.bootstrap_servers)
    assert run("topics", "create").code == 0
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        ended = run(*command.split())
    assert ended.code == 1
    (line,) = ended.err.splitlines()
    assert line.startswith("standard output: cannot be written (No space left on device)")


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_does_not_hide_why_a_worker_ends(
    run: Run, embedded_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", embedded_broker.bootstrap_servers)
    monkeypatch.setenv("TRACEWEIR_DELIVERY", "exactly_once")
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        ended = run("worker")
    assert ended.code == 1
    assert ended.err.splitlines()[-1].startswith(
        "delivery is exactly_once, but the embedded broker has no transactions"
    )


@pytest.mark.slow
@pytest.mark.large
def test_a_closed_stdin_is_reported_when_a_command_reads_it() -> None:
    ended = in_shell("score -", "<&-")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("standard input: cannot be read (")


@pytest.mark.slow
@pytest.mark.parametrize("redirection", ["2>&-", pytest.param("2>/dev/full", marks=pytest.mark.large)])
def test_a_stderr_that_cannot_be_written_does_not_change_the_exit_code(redirection: str) -> None:
    assert in_shell("score nowhere.jsonl", redirection) == Ended(2, "", "")
