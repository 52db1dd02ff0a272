"""Measures what traces cost a worker: off, for the default share of the sessions, and for every session, in turns."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from benchmarks import turns

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
    with ThreadingHTTPServer(("127.0.0.1", 0), _Accepts) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        cases = {name: {key: value or url for key, value in variables.items()} for name, variables in CASES.items()}
        turns.compare(servers, cases, sessions, rounds)
        server.shutdown()
