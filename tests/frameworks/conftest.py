"""Runs the script of an agent in the environment of its framework, and receives the spans that the script exports."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import textwrap
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.support.otlp_recordings import compare

from traceweir.streams.intake.otlp.decoding import add_logs, decode_logs, decode_spans
from traceweir.streams.intake.spans.span import Span

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
collect_ignore_glob = ["*_agent.py", "scenario.py"]  # they import packages that only their own environment has
ENVIRONMENTS = Path(os.environ.get("TRACEWEIR_FRAMEWORKS", REPOSITORY / ".venv" / "frameworks"))
_LIMIT_S = 90


class Recording(NamedTuple):
    """What an agent did, and the requests that it exported, as the Collector writes them to Kafka."""

    truth: dict[str, Any]
    requests: list[bytes]
    """The requests with spans, in the order of their arrival."""
    logs: list[bytes]
    """The requests with log records, in the order of their arrival."""

    @property
    def spans(self) -> list[Span]:
        """The spans, with their log records as events."""
        spans = [span for request in self.requests for span in decode_spans(request).spans]
        add_logs(spans, (log for request in self.logs for log in decode_logs(request).logs))
        return spans

    def differences(self) -> tuple[dict[str, tuple[int, int, int]], str]:
        """Returns each field that is not read right everywhere: right, said to be missing, and all; and the misses."""
        tally, misses = compare(self.truth, self.spans)
        assert all(tally[field][2] for field in ("turns", "questions", "answers", "args", "results", "errors"))
        found = {field: (right, said, total) for field, (right, said, total) in tally.items() if right != total}
        return found, "\n".join(misses)


class _Receiver(ThreadingHTTPServer):
    """A server for OTLP over HTTP that keeps the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: dict[str, list[bytes]] = {"/v1/traces": [], "/v1/logs": [], "/v1/metrics": []}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, _Receiver)
        zipped = self.headers.get("Content-Encoding") == "gzip"
        self.server.received[self.path].append(gzip.decompress(body) if zipped else body)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Writes nothing."""


class Agents:
    """Runs agents whose spans a server of this process receives."""

    def __init__(self, server: _Receiver, folder: Path) -> None:
        self._server = server
        self._folder = folder

    def run(self, name: str, *words: str, environment: Mapping[str, str] | None = None) -> Recording:
        """Runs `<name>_agent.py TRUTH WORDS...` and returns what it did and exported.

        A test is skipped if the environment of the framework is not there.

        Args:
            name: The framework.
            words: Arguments of the script.
            environment: Further variables.
        """
        python = ENVIRONMENTS / name / "bin" / "python"
        if not python.exists():
            pytest.skip(f"{python} is not there: `make test-frameworks` installs it")
        truth = self._folder / "truth.json"
        host, port = self._server.server_address[:2]
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._folder),
            "PYTHONUTF8": "1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{host!s}:{port}",
            "OTEL_SERVICE_NAME": f"{name}-service",
            "OTEL_BSP_SCHEDULE_DELAY": "100",  # so that a trace is in several requests
            "OTEL_BLRP_SCHEDULE_DELAY": "100",
            **(environment or {}),
        }
        received = self._server.received
        for requests in received.values():
            requests.clear()
        done = subprocess.run(
            [python, HERE / f"{name}_agent.py", truth, *words],
            env=variables,
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-15_000:]
        return Recording(json.loads(truth.read_text()), list(received["/v1/traces"]), list(received["/v1/logs"]))


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Agents]:
    """Runs agents."""
    server = _Receiver()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield Agents(server, tmp_path)
    server.shutdown()
    thread.join()
    server.server_close()


def snippets(page: str) -> list[str]:
    """Returns the Python code on a page of docs/guides."""
    text = (REPOSITORY / "docs" / "guides" / page).read_text()
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def unused_snippets(page: str, script: str) -> list[str]:
    """Returns the Python code on a page of docs/guides that a script of this folder does not contain, line for line."""
    code = textwrap.dedent((HERE / script).read_text())
    lines = {line.strip() for line in code.splitlines()}
    return [each for each in snippets(page) if any(line.strip() not in lines for line in each.splitlines())]
