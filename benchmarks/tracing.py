"""Measures what traces cost a worker: off, for the default share of the sessions, and for every session, in turns."""

import statistics
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from benchmarks import throughput
from benchmarks.throughput import Measured

CASES: dict[str, dict[str, str]] = {
    "off": {},
    "the default share": {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
    "every session": {"OTEL_EXPORTER_OTLP_ENDPOINT": "", "OTEL_TRACES_SAMPLER": "always_on"},
}


class _Accepts(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """Reads a request, and accepts it."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Logs nothing."""


def run(servers: str, sessions: int = 15_000, rounds: int = 7) -> None:
    """Prints the medians of all stages in each case, and their ratios to traces that are off; a first round is not counted."""
    measured: dict[str, list[Measured]] = defaultdict(list)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Accepts) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        for turn in range(rounds + 1):
            for name, variables in CASES.items():
                environment = {key: value or url for key, value in variables.items()}
                found = throughput.one(servers, "all stages", sessions, variables=environment)
                if turn:
                    measured[name].append(found)
        server.shutdown()
    _print("records/s", {name: [each["rate"] for each in found] for name, found in measured.items()})
    _print(
        "us CPU a record in the main process",
        {name: [each["cpu_us"] for each in found] for name, found in measured.items()},
    )


def _print(unit: str, values: dict[str, list[float]]) -> None:
    for name, found in values.items():
        ratios = [one / other for one, other in zip(found, values["off"], strict=True)]
        print(
            f"MEDIAN {name}: {statistics.median(found):,.1f} {unit}, {statistics.median(ratios):.3f} of off "
            f"({min(ratios):.3f} to {max(ratios):.3f})"
        )
