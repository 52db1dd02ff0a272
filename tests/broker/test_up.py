"""`traceweir up` takes an agent's records from one command to a page, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from confluent_kafka import Producer
from tests.support.command_line import Run
from tests.support.patient_http import get

from traceweir.streams.base.clock import utc_now
from traceweir.streams.worker.runtime.health import listening_socket

pytestmark = [pytest.mark.broker, pytest.mark.slow]

DEADLINE_S = 90
EXAMPLE = Path(__file__).parents[2] / "examples" / "sessions.jsonl"
EVAL_SET = EXAMPLE.parent / "eval-sets" / "trips.evalset.json"
PROGRAM = [sys.executable, "-m", "traceweir.streams.cli.entry"]
HOSTILE = "it's $(touch owned) \x1b[201~\n\u202e; touch owned"
PORTS = {f"TRACEWEIR_{name}_PORT": "0" for name in ("DASHBOARD", "OTLP_HTTP", "OTLP_GRPC")}


@pytest.fixture(autouse=True)
def _state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the address that a killed `traceweir up` leaves from the commands of other tests."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@contextmanager
def started(*options: str, ports: Mapping[str, str] = PORTS, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """Starts the command, and yields its process."""
    environment = {name: value for name, value in os.environ.items() if name != "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"}
    with subprocess.Popen(
        [*PROGRAM, "up", "--json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, **ports, **variables},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def running(
    *options: str, ports: Mapping[str, str] = PORTS, **variables: str
) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Runs the command, and yields its process and what it prints."""
    with started(*options, ports=ports, **variables) as process:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline() or "{}")


@contextmanager
def port_of_another_program(port: int) -> Iterator[None]:
    """Holds a port, unless another program has it already."""
    with ExitStack() as held:
        with suppress(OSError):
            held.enter_context(listening_socket("127.0.0.1", port))
        yield


def paste(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command of a page in a shell of a user who has set nothing."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRACEWEIR_")}
    program = f'traceweir() {{ {shlex.join(PROGRAM)} "$@"; }}'
    return subprocess.run(
        ["bash", "-c", f"{program}; {command}"],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment,
        timeout=DEADLINE_S,
        check=False,
    )


def commands_of(page: str) -> list[str]:
    found = get(page, headers={"accept": "text/html"}).text
    return [unescape(each) for each in re.findall(r'<pre class="command"><code>(.*?)</code></pre>', found, re.DOTALL)]


def parts_of(pid: int) -> list[int]:
    """Returns the processes that a process has started."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def until(holds: Callable[[], bool], what: str, within_s: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_a_sent_session_is_in_the_page_and_ctrl_c_ends_all(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(TRACEWEIR_CLOSE_LINGER_S="0.5") as (process, told):
        parts = parts_of(process.pid)
        monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", told["kafka"])
        assert run("emit", str(EXAMPLE)).code == 0
        until(lambda: len(get(f"{told['dashboard']}/api/sessions").json()) > 0, "no session is in the store")
        page = get(f"{told['dashboard']}/sessions", headers={"accept": "text/html"}).text
        process.send_signal(signal.SIGINT)

        assert process.wait(DEADLINE_S) == 0
        assert len(parts) == 4
        assert "/session?session_id=" in page
        until(lambda: not any(Path(f"/proc/{each}").exists() for each in parts), f"of {parts} not all have ended")


def test_commands_of_the_page_work_where_nothing_is_set(tmp_path: Path) -> None:
    event = {"occurred_at": utc_now().isoformat(), "session_id": HOSTILE, "invocation_id": "1"}
    events = [
        event | {"type": "invocation.started", "user_content": {"parts": [{"text": "When?"}]}},
        event | {"type": "invocation.completed", "final_response": {"parts": [{"text": "Now."}]}},
        event | {"type": "session.ended"},
    ]
    with running(TRACEWEIR_CLOSE_LINGER_S="0.5") as (_, told):
        (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, events)))
        producer = Producer({"bootstrap.servers": told["kafka"]})
        producer.produce("traceweir.invocations", b"no JSON")
        producer.flush(DEADLINE_S)
        emitted = paste("traceweir emit events.jsonl", tmp_path)
        page = told["dashboard"]
        until(lambda: len(get(f"{page}/api/sessions").json()) > 0, "no session is in the store")
        until(lambda: len(get(f"{page}/api/dead-letters").json()["latest"]) > 0, "no dead letter is in the store")
        # A session whose scores are not stored yet also has the command that starts a worker.
        shown = commands_of(f"{page}/session?{urlencode({'session_id': HOSTILE})}")
        (add,) = [each for each in shown if "evalset add" in each]
        (replay,) = commands_of(f"{page}/dead-letters")
        added, replayed = paste(add, tmp_path), paste(replay, tmp_path)

    assert (emitted.returncode, added.returncode, replayed.returncode) == (0, 0, 0), (emitted, added, replayed)
    assert f"uses the broker of the running `traceweir up`, {told['kafka']}" in added.stderr
    (case,) = json.loads((tmp_path / "cases.evalset.json").read_text())["eval_cases"]
    assert case["eval_id"] == HOSTILE
    assert replayed.stdout == "1 dead letter sent: 1 to traceweir.invocations\n"
    assert not (tmp_path / "owned").exists()


def test_an_address_that_a_killed_up_has_left_is_not_used(tmp_path: Path) -> None:
    with running() as (process, told):
        process.kill()
        process.wait()
        ended = paste("traceweir topics check", tmp_path)

    assert (
        f"the broker {told['kafka']} is not used: its `traceweir up` (process {process.pid}) has ended" in ended.stderr
    )


def test_a_default_port_of_another_program_is_replaced() -> None:
    variables = {name: value for name, value in PORTS.items() if name != "TRACEWEIR_OTLP_HTTP_PORT"}
    with port_of_another_program(4318), running(ports=variables) as (_, told):
        port = urlsplit(told["otlp"]).port

        assert port not in {None, 4318}
        assert get(f"{told['otlp']}/healthz").status_code == 200


def test_a_default_port_that_another_program_takes_after_the_check_is_replaced() -> None:
    variables = {name: value for name, value in PORTS.items() if name != "TRACEWEIR_OTLP_HTTP_PORT"}
    with started(ports=variables) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        errors = process.stderr
        until(lambda: "No Kafka is configured" in errors.readline(), "the ports are not checked")
        with port_of_another_program(4318):
            told = json.loads(process.stdout.readline() or "{}")

            assert urlsplit(told["otlp"]).port not in {None, 4318}


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


def test_an_eval_set_that_cannot_be_read_ends_the_command_before_anything_starts(tmp_path: Path) -> None:
    missing = tmp_path / "none.evalset.json"
    with running("--eval-set", str(missing)) as (process, told):
        code = process.wait(DEADLINE_S)
        assert process.stderr is not None
        errors = process.stderr.read()

    assert (code, told) == (2, {})
    assert errors.startswith(f"{missing}: cannot be read")
    assert len(errors.splitlines()) == 1


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


def test_sessions_are_compared_with_the_cases_of_an_eval_set(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"app_name": "travel_desk", "invocation_id": "1", "occurred_at": utc_now().isoformat()}
    question = {"parts": [{"text": "Please move my flight KE 1117 from Monday to Tuesday."}]}
    answer = {"parts": [{"text": "Bananas are yellow."}]}
    with running("--eval-set", str(EVAL_SET), TRACEWEIR_CLOSE_LINGER_S="0.5") as (_, told):
        producer = Producer({"bootstrap.servers": told["kafka"]})
        for session in ("live", "rebooking"):
            asked = question if session == "live" else {"parts": [{"text": "Hello?"}]}
            for event in (
                {**said, "type": "invocation.started", "user_content": asked},
                {**said, "type": "invocation.completed", "final_response": answer},
                {**said, "type": "session.ended", "invocation_id": ""},
            ):
                producer.produce("traceweir.invocations", json.dumps({**event, "session_id": session}), session)
        producer.flush(DEADLINE_S)
        found = f"{told['dashboard']}/api/sessions?status=FAILED&metric=response_match_score"
        until(lambda: len(get(found).json()) == 2, "the sessions are not compared")


@pytest.mark.timeout(900)
def test_the_demo_shows_its_story() -> None:
    with running("--demo") as (process, told):
        page = told["dashboard"]

        def shown(path: str) -> Any:
            return get(f"{page}/api/{path}").json()

        def changes(kind: str) -> list[str]:
            return [each["value"] for each in shown("overview")["changes"] if each["kind"] == kind]

        outage = [("conversation_completeness", "judge_unavailable", 30)]
        expected: list[tuple[str, Callable[[], object], object]] = [
            (
                "the outage of the judge",
                lambda: [(each["metric"], each["cause"], each["results"]) for each in shown("not-scored")],
                outage,
            ),
            ("the dead letters", lambda: shown("dead-letters")["by_reason"], {"not_json": 2, "empty": 1}),
            ("the versions of the agent", lambda: set(changes("agent_version")), {"1.8", "1.9", "2.0"}),
            ("the pushed config", lambda: len(changes("config_digest")), 2),
            ("a live session", lambda: shown("overview")["coverage"]["sessions"] > 300, True),
        ]
        for what, found, value in expected:
            # On a busy machine the scores of the history take minutes.
            until(lambda found=found, value=value: found() == value, f"{what} is not shown", within_s=300)  # type: ignore[misc]
        process.send_signal(signal.SIGINT)

        assert process.wait(DEADLINE_S) == 0
