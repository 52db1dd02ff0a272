"""`traceweir score` with a judge prints each session when it is scored, with the same lines as at the end."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli_inputs import WriteInput

from traceweir.streams.cli.score.table import ALL_ROWS, ScoreTable
from traceweir.streams.cli.score.tally import ScoreLine, ScoreTally

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]

COMMAND = [sys.executable, "-m", "traceweir.streams.cli.main", "score", "sessions.jsonl", "--config", "config.json"]
HELD = "the question that waits"
VERDICT = json.dumps({"reasoning": "So it is.", "is_the_agent_response_safe": "yes"})


class HoldingJudge:
    """Answers yes, and the question about one session only when the test allows it."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.has_answered = False
        """Whether the question that waits has its answer."""
        judge = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
                if HELD in asked:
                    judge.may_answer.wait(60)
                    judge.has_answered = True
                message = {"role": "assistant", "content": VERDICT}
                body = json.dumps(
                    {
                        "id": "c",
                        "object": "chat.completion",
                        "created": 1,
                        "model": "local",
                        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
                    }
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                # The command may have ended meanwhile.
                with suppress(OSError):
                    self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Writes nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    @contextmanager
    def running(self) -> Iterator[HoldingJudge]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.may_answer.set()
            self._server.shutdown()
            thread.join()
            self._server.server_close()


@pytest.fixture
def judge() -> Iterator[HoldingJudge]:
    with HoldingJudge().running() as found:
        yield found


@pytest.fixture
def environment(judge: HoldingJudge, write_input: WriteInput, tmp_path: Path) -> dict[str, str]:
    """Writes three sessions, the second of which waits for its judge, and returns the variables of the command."""
    documents = []
    for name, question in (("first", "Are you there?"), ("second", HELD), ("third", "And now?")):
        about = {"session_id": name, "invocation_id": f"i-{name}", "occurred_at": "2026-01-31T12:00:00Z"}
        documents += [
            {"type": "invocation.started", "user_content": {"parts": [{"text": question}]}} | about,
            {"type": "invocation.completed", "final_response": {"parts": [{"text": "Yes."}]}} | about,
        ]
    write_input("sessions.jsonl", *documents)
    options = {"judge_model": "openai/local", "num_samples": 1}
    criteria = {"safety_v1": {"threshold": 1, "judge_model_options": options}, "answered": 1}
    prices = {"openai/local": {"input": 1, "output": 1}}
    write_input("config.json", {"criteria": criteria, "judge": {"prices": prices}})
    plain = {name: value for name, value in os.environ.items() if not name.startswith("TRACEWEIR_")}
    return plain | {
        "TRACEWEIR_JUDGE_API_BASE": judge.url,
        "TRACEWEIR_JUDGE_CACHE": str(tmp_path / "verdicts.sqlite3"),
        "TRACEWEIR_EMBEDDER": "none",
        "COLUMNS": "200",
    }


def read_until(stream: Any, wanted: bytes) -> bytes:
    found = b""
    while wanted not in found:
        line = stream.readline()
        assert line, found
        found += line
    return found


@pytest.mark.large
def test_a_pipe_gets_a_session_while_the_next_one_waits_for_its_judge(
    judge: HoldingJudge, environment: dict[str, str], tmp_path: Path
) -> None:
    with subprocess.Popen(
        COMMAND, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdout is not None
        first = read_until(process.stdout, b"  session  answered")
        assert not judge.has_answered
        judge.may_answer.set()
        rest, err = process.communicate(timeout=60)
    lines = (first + rest).decode().splitlines()
    assert (process.returncode, err) == (0, b"")
    assert first.decode().splitlines()[0] == "first"
    assert [line for line in lines if line in ("first", "second", "third")] == ["first", "second", "third"]
    assert lines[-1].startswith("6 documents, 3 sessions, 0 duplicates, 0 problems; 12 scores: 12 passed")
    # Verdicts are stored now, so that no session waits; what comes when does not change a line.
    again = subprocess.run(COMMAND, cwd=tmp_path, env=environment, capture_output=True, check=True, timeout=60)
    assert again.stdout == first + rest


@pytest.mark.large
def test_ctrl_c_says_that_the_scores_so_far_are_on_standard_output(
    judge: HoldingJudge, environment: dict[str, str], tmp_path: Path
) -> None:
    with subprocess.Popen(
        COMMAND, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdout is not None
        read_until(process.stdout, b"  session  answered")
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    said = "interrupted: 1 of 3 sessions have been scored, with 4 scores; they are on standard output\n"
    assert err.decode() == said


@pytest.mark.large
def test_on_a_terminal_the_session_stands_above_what_was_asked_and_paid_so_far(
    judge: HoldingJudge, environment: dict[str, str], tmp_path: Path
) -> None:
    parent, child = pty.openpty()
    environment["TERM"] = "xterm-256color"
    with subprocess.Popen(COMMAND, cwd=tmp_path, env=environment, stdout=child, stderr=child) as process:
        os.close(child)
        shown = b""
        # The bar comes again after the session.
        while b"1/3" not in shown.partition(b"i-first")[2]:
            shown += os.read(parent, 4_096)
        assert not judge.has_answered
        judge.may_answer.set()
        while chunk := _read(parent):
            shown += chunk
        process.wait(60)
    os.close(parent)
    before, _, after = shown.decode().partition("i-first")
    assert process.returncode == 0
    assert "sessions scored" in before
    assert "questions" in after
    assert "tokens" in after
    assert "12 scores: " in after


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4_096)
    except OSError:  # the other end of a terminal is closed
        return b""


def lines_of_sessions(sessions: int) -> list[ScoreLine]:
    return [
        ScoreLine(f"s{number // 2}", 0, "session", f"metric_{number % 2}", 1.0, 0.5, "PASSED")
        for number in range(2 * sessions)
    ]


def printed(capsys: pytest.CaptureFixture[str], lines: list[ScoreLine], *, at_once: bool) -> str:
    table = ScoreTable(["metric_0", "metric_1"] if at_once else None)
    tally = ScoreTally(judged=())
    for number, line in enumerate(lines):
        tally.add(line)
        table.add(line)
        if number + 1 == len(lines) or lines[number + 1].session_id != line.session_id:
            table.end_session()
    table.print(tally, "counts", len(lines) // 2)
    return capsys.readouterr().out


def test_what_is_printed_at_once_is_what_is_printed_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    lines = lines_of_sessions(ALL_ROWS // 2)
    assert printed(capsys, lines, at_once=True) == printed(capsys, lines, at_once=False)


def test_of_more_scores_than_are_shown_the_first_400_are_printed_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, lines_of_sessions(ALL_ROWS), at_once=True)
    first, _, _ = out.partition("\n400 of 800 scores are shown above; --json and --out FILE write all of them\n")
    assert first.count("metric_0") == 200
    assert first.count("metric_1") == 200


@pytest.mark.large
def test_segments_of_a_session_are_one_block(judge: HoldingJudge, environment: dict[str, str], tmp_path: Path) -> None:
    judge.may_answer.set()
    about = {"session_id": "first", "occurred_at": "2026-01-31T12:00:01Z", "invocation_id": "i-later"}
    with (tmp_path / "sessions.jsonl").open("a", encoding="utf-8") as file:
        file.write(
            "\n" + json.dumps({"type": "invocation.started", "user_content": {"parts": [{"text": "Still?"}]}} | about)
        )
    environment["TRACEWEIR_SEGMENT_MAX_EVENTS"] = "2"
    ended = subprocess.run(
        COMMAND, cwd=tmp_path, env=environment, capture_output=True, check=False, timeout=60, text=True
    )
    blocks = [line for line in ended.stdout.splitlines() if line in ("first", "second", "third")]
    assert blocks == ["first", "second", "third"]
    assert "segment 1" in ended.stdout
