"""`traceweir up` takes an agent's records from one command to a page, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests.support.command_line import Run

from traceweir.streams.runtime.health import listening_socket

pytestmark = [pytest.mark.broker, pytest.mark.slow]

DEADLINE_S = 90
EXAMPLE = Path(__file__).parents[2] / "examples" / "sessions.jsonl"
PROGRAM = [sys.executable, "-m", "traceweir.streams.cli.entry"]
PORTS = {f"TRACEWEIR_{name}_PORT": "0" for name in ("DASHBOARD", "OTLP_HTTP", "OTLP_GRPC")}


@contextmanager
def running(
    ports: Mapping[str, str] = PORTS, **variables: str
) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Runs the command, and yields its process and what it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"}
    with subprocess.Popen(
        [*PROGRAM, "up", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, **ports, **variables},
    ) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline() or "{}")
        finally:
            process.kill()


@contextmanager
def port_of_another_program(port: int) -> Iterator[None]:
    """Holds a port, unless another program has it already."""
    with ExitStack() as held:
        with suppress(OSError):
            held.enter_context(listening_socket("127.0.0.1", port))
        yield


def parts_of(pid: int) -> list[int]:
    """Returns the processes that a process has started."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_a_sent_session_is_in_the_page_and_ctrl_c_ends_all(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(TRACEWEIR_CLOSE_LINGER_S="0.5") as (process, told):
        parts = parts_of(process.pid)
        monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", told["kafka"])
        assert run("emit", str(EXAMPLE)).code == 0
        until(lambda: len(httpx.get(f"{told['dashboard']}/api/sessions").json()) > 0, "no session is in the store")
        page = httpx.get(f"{told['dashboard']}/sessions", headers={"accept": "text/html"}).text
        process.send_signal(signal.SIGINT)

        assert process.wait(DEADLINE_S) == 0
        assert len(parts) == 3
        assert "/session?session_id=" in page
        until(lambda: not any(Path(f"/proc/{each}").exists() for each in parts), f"of {parts} not all have ended")


def test_a_default_port_of_another_program_is_replaced() -> None:
    variables = {name: value for name, value in PORTS.items() if name != "TRACEWEIR_OTLP_HTTP_PORT"}
    with port_of_another_program(4318), running(ports=variables) as (_, told):
        port = urlsplit(told["otlp"]).port

        assert port not in {None, 4318}
        assert httpx.get(f"{told['otlp']}/healthz").status_code == 200


def test_a_chosen_port_of_another_program_ends_the_command_before_anything_starts() -> None:
    with listening_socket("127.0.0.1", 0) as other:
        port = other.getsockname()[1]
        with running(TRACEWEIR_OTLP_HTTP_PORT=str(port)) as (process, told):
            code = process.wait(DEADLINE_S)
            assert process.stderr is not None
            errors = process.stderr.read()

    assert (code, told) == (1, {})
    assert errors.startswith(f"TRACEWEIR_OTLP_HTTP_PORT={port}: the port is taken")
    assert len(errors.splitlines()) == 1


def test_the_parts_end_with_a_command_that_is_killed() -> None:
    with running() as (process, _):
        parts = parts_of(process.pid)
        process.kill()
        process.wait()

        until(lambda: not any(_runs(each) for each in parts), f"of {parts} not all have ended")


def test_a_part_that_cannot_start_ends_all_and_says_why(tmp_path: Path) -> None:
    with running(TRACEWEIR_OTLP_TOKEN="short") as (process, told):
        code = process.wait(DEADLINE_S)
        assert process.stderr is not None
        errors = process.stderr.read()

    assert (code, told) == (2, {})
    assert "TRACEWEIR_OTLP_TOKEN" in errors
    assert "Traceback" not in errors


def _runs(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
